# SPDX-License-Identifier: Apache-2.0
"""Joints of messages that the robot does not have, such as the gripper of a teleoperation or of MoveIt."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Any

from ..control.joint_order import shown_name
from ..exceptions import StateError
from ..spelling import hint

IGNORED_JOINTS = "ignored_joints"
"""Parameter with their names."""

_FIELDS = ("position", "velocity", "effort", "positions", "velocities", "accelerations")


def remove_ignored(message: Any, joints: Sequence[str], ignored: Collection[str]) -> None:
    """Remove the entries of ignored joints from a JointState or a JointTrajectory.

    Raises:
        StateError: another joint is not the robot's, or no joint remains.
    """
    field = "name" if hasattr(message, "name") else "joint_names"
    names = list(getattr(message, field))
    for k, name in enumerate(names):
        if name not in joints and name not in ignored:
            raise StateError(
                f"{field}[{k}]: the robot has no joint {shown_name(name)}; {hint(name, joints)}; remove it, or add it "
                f"to the parameter {IGNORED_JOINTS}"
            )
    kept = [k for k, name in enumerate(names) if name in joints]
    if len(kept) == len(names):
        return
    if not kept:
        raise StateError(f"{field} has ignored joints alone (parameter {IGNORED_JOINTS})")
    for part in (message, *getattr(message, "points", ())):
        for entry in _FIELDS:
            values = getattr(part, entry, ())
            if len(values) == len(names):
                setattr(part, entry, array("d", (values[k] for k in kept)))
    setattr(message, field, [names[k] for k in kept])
