# SPDX-License-Identifier: Apache-2.0
"""Command that remains in effect when a stream is switched off."""

from __future__ import annotations

import numpy as np

from ..elastic import DriveCommand
from ..messages.setpoint_to_command import EvaluatedCommand

EFFORTS_ON_DEACTIVATE = ("zero", "gravity", "keep")
"""Efforts that remain: none; those that hold the arm at rest without a wrench at its tools; or those of the last
command."""


def final_command(last: EvaluatedCommand, efforts: EvaluatedCommand | None) -> EvaluatedCommand:
    """The command after the last one: its motor positions are held, velocities, accelerations and rates are zero.

    Args:
        last: the last command.
        efforts: the command whose efforts of joints and motors remain; None for zero.
    """
    remaining, motors = np.zeros_like(last.efforts), np.zeros_like(last.motors)
    motors[0] = last.motors[0]
    if efforts:
        remaining[0], motors[-1] = efforts.efforts[0], efforts.motors[-1]
    sent = last.sent
    if sent is not None:
        own = efforts.sent if efforts else None
        none, no_joint_effort = np.zeros_like(sent.effort), np.zeros_like(sent.joint_effort)
        sent = DriveCommand(
            sent.position,
            none,
            own.effort if own else none,
            own.joint_effort if own else no_joint_effort,
            no_joint_effort,
        )
    return last._replace(efforts=remaining, motors=motors, sent=sent)
