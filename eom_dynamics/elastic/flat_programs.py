# SPDX-License-Identifier: Apache-2.0
"""Programs of the inverse flatness map and of feedback linearization, see :mod:`.flatness`.

The efforts of the springs come from :func:`.motor_programs.spring_efforts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .. import recursion
from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES
from ..codegen.expressions import Scalar
from ..codegen.program import Program, trace
from ..codegen.programs import WITH_PAYLOAD, carrying_jets
from ..recursion.composite import composite_mass_matrix, of_joints
from ..recursion.inverse_mass_matrix import solver
from ..robot import Robot
from .motor_programs import MOTOR_NAMES, STIFFNESS_NAMES, Vectors, spring_names
from .motor_side import MotorSide

HELD = ("qdd_held", "qddd_held")
"""Names of the states of the integrators at rigid joints."""

SPRING_EFFORTS, STIFFNESS = spring_names(), spring_names(quantity="stiffness")
"""Names of measured efforts of the springs and of measured stiffness, with their rates."""

FLAT_STATE = ("q_now", "qd_now", "qdd", "qddd")
"""Results of :func:`flat_state_program`."""

REFERENCE = tuple(f"{name}_reference" for name in STATE_NAMES)
"""Names of the reference motion of :func:`linearizing_snap_program`."""

COMMANDED = tuple(f"{name}_commanded" for name in STIFFNESS_NAMES)
"""Name of the stiffness returned by :func:`linearizing_snap_program`."""


def given_efforts(n: int) -> Program:
    """Measured efforts of n joints and their rates, an alternative to :func:`.motor_programs.spring_efforts`."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        zero = [0.0] * n
        return dict(zip((*SPRING_EFFORTS, *STIFFNESS), (*x.values(), zero, zero), strict=True))

    return trace("given_efforts", dict.fromkeys(EFFORT_NAMES[:2], n), compute)


def flat_state_program(robot: Robot, held: Sequence[int], *, payload: bool = False, whole: bool = False) -> Program:
    """qdd and qddd from q, qd, and the efforts of the springs with their rates.

    Args:
        held: joints with qdd and qddd as inputs.
        payload: whether payload parameters at the tools and their rates are inputs, too.
        whole: whether q and qd are results, too.
    """
    n, tree = robot.n, recursion.link_tree(robot)
    free = [joint for joint in range(n) if joint not in held]
    loads = dict.fromkeys(PAYLOAD_NAMES[:2] if payload else (), recursion.PARAMETERS * len(robot.tools))

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        q, qd, P = x["q"], x["qd"], [x[name] for name in loads]
        M = of_joints(composite_mass_matrix(recursion.carrying(tree, P[0]) if P else tree, q))
        solved = solver([[M[i][j] for j in free] for i in free])
        accelerations: list[list[Scalar]] = []
        # Efforts are affine in qdd, and their rates in qddd, both with the slope M.
        for order, wrench in enumerate(([x["W"]], [x["W"], x["Wd"]])):
            known: list[Scalar] = list(x[HELD[order]]) if held else [0.0] * n
            for joint in free:
                known[joint] = 0.0
            loaded = carrying_jets(tree, P[: order + 1])
            effort = recursion.inverse_dynamics(loaded, [q, qd, *accelerations, known], wrench)[order]
            right = [x[SPRING_EFFORTS[order]][joint] - effort[joint] for joint in free]
            for joint, value in zip(free, solved(right), strict=True):
                known[joint] = value
            accelerations.append(known)
        state = dict(zip(FLAT_STATE, (q, qd, *accelerations), strict=True))
        return state if whole else {name: state[name] for name in FLAT_STATE[2:]}

    inputs = dict.fromkeys((*STATE_NAMES[:2], *SPRING_EFFORTS), n)
    inputs |= dict.fromkeys(WRENCH_NAMES[:2], 6 * len(robot.tools)) | dict.fromkeys(HELD if held else (), n)
    return trace("flat_state" + payload * WITH_PAYLOAD, inputs | loads, compute)


def linearizing_snap_program(side: MotorSide, gains: int) -> Program:
    """Fourth derivative of q and commanded stiffness, if any, of feedback linearization.

    Args:
        gains: number of gains: four, or four for each joint.
    """
    n, paired = len(side.springs), np.flatnonzero(side.paired).tolist()

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        snap: list[Scalar] = list(x[REFERENCE[-1]])
        for order, (name, wanted) in enumerate(zip(STATE_NAMES, REFERENCE[:-1], strict=False)):
            for joint in range(n):
                gain = x["gains"][order if gains == len(STATE_NAMES) - 1 else order * n + joint]
                snap[joint] = snap[joint] + gain * (x[wanted][joint] - x[name][joint])
        if not side.variable.any():
            return {STATE_NAMES[-1]: snap}
        k, kd, kdd = (list[Scalar](x[name]) for name in STIFFNESS_NAMES)
        g0, g1 = x["stiffness_gains"]
        for joint in paired:
            now, rate = (x[name][joint] for name in STIFFNESS)
            kdd[joint] = kdd[joint] + (g0 * (k[joint] - now) + g1 * (kd[joint] - rate))
            k[joint], kd[joint] = now, rate
        return {STATE_NAMES[-1]: snap} | dict(zip(COMMANDED, (k, kd, kdd), strict=True))

    inputs = dict.fromkeys((*STATE_NAMES[:-1], *REFERENCE), n) | {"gains": gains}
    if side.variable.any():
        inputs |= dict.fromkeys((*STIFFNESS, *STIFFNESS_NAMES), n) | {"stiffness_gains": 2}
    return trace("linearizing_snap", inputs, compute)


def motor_pd(m: int) -> Program:
    """Effort of m motors with a PD around their motion."""
    names = (*MOTOR_NAMES[:2], "measured_position", "measured_velocity", MOTOR_NAMES[3], "kp", "kd")

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        rows = zip(*(x[name] for name in names), strict=True)
        return {"effort": [u + kp * (p - y) + kd * (v - w) for p, v, y, w, u, kp, kd in rows]}

    return trace("motor_pd", dict.fromkeys(names, m), compute)
