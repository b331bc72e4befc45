# SPDX-License-Identifier: Apache-2.0
"""Programs of the inverse flatness map and of feedback linearization, see :mod:`.flatness`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import recursion
from ..codegen.expressions import Scalar
from ..codegen.program import Program, c_name, trace
from ..codegen.programs import WITH_PAYLOAD, carrying_jets, payload_inputs
from ..jet import Jet
from ..recursion.composite import mass_matrix, of_joints
from ..recursion.inverse_mass_matrix import solver
from ..robot import Robot
from ..states import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES
from .motor_programs import DELTA_NAMES, MOTOR_NAMES, STIFFNESS_NAMES, Vectors
from .motor_side import MotorSide

MEASURED = {"efforts": EFFORT_NAMES[:2], "deflections": DELTA_NAMES[:2], "motors": MOTOR_NAMES[:2]}
"""Names of what determines the efforts of the springs."""

HELD = ("qdd_held", "qddd_held")
"""Names of the states of the integrators at rigid joints."""

OF_SPRINGS = ("tau_of_springs", "taud_of_springs", "k_now", "kd_now")
"""Results of :func:`measured`."""

FLAT_OUTPUT = ("q_now", "qd_now", "qdd", "qddd")
"""Results of :func:`flat_state`."""

REFERENCE = tuple(f"{name}_reference" for name in STATE_NAMES)
"""Names of the motion that :func:`feedback` follows."""

COMMANDED = tuple(f"{name}_commanded" for name in STIFFNESS_NAMES)
"""Stiffness that :func:`feedback` returns."""


def measured(side: MotorSide, source: str) -> Program:
    """Efforts of the springs on the links, and stiffness where it is commanded, with their rates.

    Results are zero where they are not determined: efforts at rigid joints, and stiffness from measured efforts.

    Args:
        side: the motors.
        source: a key of :data:`MEASURED`.
    """
    n, m = len(side.springs), len(side.motor_joint)

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        rows = [Jet(row) for row in zip(*(x[name] for name in MEASURED[source]), strict=True)]
        tau, k = rows, [Jet([0.0, 0.0])] * n
        if source == "motors":
            links = [Jet([x["q"][joint], x["qd"][joint]]) for joint in side.motor_joint]
            rows = [own - link for own, link in zip(side.joint_sides(rows), links, strict=True)]
        if source != "efforts":
            tau, _, k = side.efforts(rows, [Jet(row) for row in zip(x["k"], x["kd"], strict=True)])
            tau = [Jet([0.0, 0.0]) if rigid else jet for jet, rigid in zip(tau, side.rigid, strict=True)]
        values = [[jet[order] for jet in jets] for jets in (tau, k) for order in range(2)]
        return dict(zip(OF_SPRINGS, values, strict=True))

    inputs = dict.fromkeys(MEASURED[source], n if source == "efforts" else m)
    if source == "motors":
        inputs |= dict.fromkeys(STATE_NAMES[:2], n)
    return trace(c_name("measured"), inputs | dict.fromkeys(STIFFNESS_NAMES[:2], n), compute)


def flat_state(robot: Robot, held: Sequence[int], *, payload: bool = False) -> Program:
    """q, qd, qdd, qddd from q, qd, and the efforts of the springs with their rates.

    Args:
        robot: the links.
        held: joints whose qdd and qddd are inputs.
        payload: whether the parameters of payloads at the tools and their rates are inputs, too.
    """
    n, tree = robot.n, recursion.link_tree(robot)
    free = [joint for joint in range(n) if joint not in held]
    loads = payload_inputs(robot, 2) if payload else {}

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        q, qd, P = x["q"], x["qd"], [x[name] for name in loads]
        M = of_joints(mass_matrix(recursion.carrying(tree, P[0]) if P else tree, q))
        solved = solver([[M[i][j] for j in free] for i in free])
        accelerations: list[list[Scalar]] = []
        # Efforts are affine in qdd, and their rates in qddd, both with the slope M.
        for order, wrench in enumerate(([x["W"]], [x["W"], x["Wd"]])):
            known: list[Scalar] = list(x[HELD[order]]) if held else [0.0] * n
            for joint in free:
                known[joint] = 0.0
            loaded = carrying_jets(tree, P[: order + 1])
            effort = recursion.inverse_dynamics(loaded, [q, qd, *accelerations, known], wrench)[order]
            right = [x[OF_SPRINGS[order]][joint] - effort[joint] for joint in free]
            for joint, value in zip(free, solved(right), strict=True):
                known[joint] = value
            accelerations.append(known)
        return dict(zip(FLAT_OUTPUT, (q, qd, *accelerations), strict=True))

    inputs = dict.fromkeys((*STATE_NAMES[:2], *OF_SPRINGS[:2]), n)
    inputs |= dict.fromkeys(WRENCH_NAMES[:2], 6 * len(robot.tools)) | dict.fromkeys(HELD if held else (), n)
    return trace(c_name("flat_state" + payload * WITH_PAYLOAD), inputs | loads, compute)


def feedback(side: MotorSide, gains: int) -> Program:
    """Fourth derivative of q and commanded stiffness of feedback linearization.

    Args:
        side: the motors.
        gains: number of gains: four, or four for each joint.
    """
    n = len(side.springs)

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        snap: list[Scalar] = list(x[REFERENCE[-1]])
        for order, (name, wanted) in enumerate(zip(STATE_NAMES, REFERENCE[:-1], strict=False)):
            for joint in range(n):
                gain = x["gains"][order if gains == len(STATE_NAMES) - 1 else order * n + joint]
                snap[joint] = snap[joint] + gain * (x[wanted][joint] - x[name][joint])
        k, kd, kdd = (list[Scalar](x[name]) for name in STIFFNESS_NAMES)
        g0, g1 = x["stiffness_gains"]
        for joint in side.paired.nonzero()[0].tolist():
            now, rate = x[OF_SPRINGS[2]][joint], x[OF_SPRINGS[3]][joint]
            kdd[joint] = kdd[joint] + (g0 * (k[joint] - now) + g1 * (kd[joint] - rate))
            k[joint], kd[joint] = now, rate
        return {STATE_NAMES[-1]: snap} | dict(zip(COMMANDED, (k, kd, kdd), strict=True))

    inputs = dict.fromkeys((*STATE_NAMES[:-1], *OF_SPRINGS[2:], *REFERENCE), n) | {"gains": gains}
    return trace(c_name("feedback"), inputs | dict.fromkeys(STIFFNESS_NAMES, n) | {"stiffness_gains": 2}, compute)


def motor_pd(m: int) -> Program:
    """Effort of m motors with a PD around their motion."""
    names = (*MOTOR_NAMES[:2], "measured_position", "measured_velocity", MOTOR_NAMES[3], "kp", "kd")

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        rows = zip(*(x[name] for name in names), strict=True)
        return {"effort": [u + kp * (p - y) + kd * (v - w) for p, v, y, w, u, kp, kd in rows]}

    return trace(c_name("motor_pd"), dict.fromkeys(names, m), compute)
