# SPDX-License-Identifier: Apache-2.0
"""Stored test values for a controller's spline, limits and feedback linearization, computed by the library."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ..arrays import Array
from ..elastic import LimitCheck, chain_gains, flat_state, linearizing_effort
from ..elastic.flat_programs import REFERENCE
from ..elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES
from ..messages.spline_trajectory import read_spline, write_spline
from ..states import STATE_NAMES, WRENCH_NAMES
from ..trajectory import Spline
from .functions import LINEARIZATION
from .plant import MOTOR_STATE
from .project import Project
from .stored_values import POLES, STIFFNESS_GAINS, StoredValues

KNOTS = (0.0, 0.3, 0.5, 1.1)
"""Times of the knots of the stored spline, s."""

# Before the start, at knots, within both halves of pieces, and after the end, s.
_TIMES = (-0.1, 0.0, 0.02, 0.16, 0.29, 0.3, 0.44, 0.5, 0.7, 0.9, 1.1, 1.3)

# Setpoints of the check of limits: the stored states, from rest to several times their size.
_SHARES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 1.0, 2.0, 4.0)


def loop_values(project: Project, stored: StoredValues) -> dict[str, Array]:
    """Arrays by name, one row for each state, time or piece."""
    return {**_spline(project), **_limits(project, stored), **_linearization(project, stored)}


def _spline(project: Project) -> dict[str, Array]:
    n, random = project.robot.n, np.random.default_rng(2024)
    sizes = np.array([0.5, 1.0, 4.0, 20.0, 100.0])[:, np.newaxis, np.newaxis]
    message = SimpleNamespace()
    names = project.robot.joint_names
    write_spline(message, Spline(KNOTS, np.round(sizes * random.uniform(-1.0, 1.0, (5, len(KNOTS), n)), 4)), names)
    spline = read_spline(message, names)
    coefficients = np.reshape(message.coefficients, (len(KNOTS) - 1, -1))
    states = np.stack(spline.derivatives(_TIMES), axis=1).reshape(len(_TIMES), -1)
    return {"coefficients": coefficients, "spline_times": np.array(_TIMES)[:, np.newaxis], "spline_states": states}


def _limits(project: Project, stored: StoredValues) -> dict[str, Array]:
    """Commands of setpoints of increasing size, whether they meet the limits, and the clipped efforts."""
    arm = project.arm
    shares = np.array(_SHARES)[: stored.count, np.newaxis]
    # Not the last state, which is far from 0.
    rows = (1 + np.arange(len(shares))) % (stored.count - 1)
    if arm.paired.any():
        # At nominal stiffness, which larger motions would exceed.
        shares = 0.01 * shares
    motion = [np.round(shares * stored.inputs[name][rows], 6) for name in STATE_NAMES]
    command = arm.feedforward(*motion)
    check = LimitCheck(arm)
    row = np.concatenate([*motion, *command], axis=1)
    clipped = check.clipped(command)
    return {
        **{f"limited_{name}": values for name, values in zip(STATE_NAMES, motion, strict=True)},
        "meets": 1.0 - np.asarray(check.violated(row), dtype=float)[:, np.newaxis],
        "clipped_tau": clipped.tau,
        "clipped_motor_effort": clipped.motor_effort,
    }


def _linearization(project: Project, stored: StoredValues) -> dict[str, Array]:
    """Motor efforts for the stored states of motors and links, with the stored motion as a reference nearby."""
    arm = project.arm
    if LINEARIZATION not in project.functions:
        return {}
    count = stored.count - 1  # without the last state, which is far from 0
    q, qd, theta, thetad = (stored.inputs[name][:count] for name in ("q", "qd", *MOTOR_STATE))
    reference = [stored.inputs[name][:count] for name in REFERENCE]
    wrench = [np.reshape(stored.inputs[name][:count], (count, *arm.robot.wrench_shape)) for name in WRENCH_NAMES]
    stiffness = [stored.inputs[name][:count] for name in STIFFNESS_NAMES if name in stored.inputs]
    state = flat_state(
        arm,
        theta,
        thetad,
        q,
        qd,
        wrench=wrench[:2],
        commanded_stiffness=stiffness[:2],
        rigid=reference[2:4] if arm.rigid.any() else (),
    )
    effort = linearizing_effort(
        arm,
        state,
        reference,
        chain_gains(POLES),
        commanded_stiffness=stiffness,
        stiffness_gains=STIFFNESS_GAINS,
        wrench=wrench,
    )
    return dict(zip(REFERENCE, reference, strict=True)) | {f"linearizing_{MOTOR_NAMES[-1]}": effort}
