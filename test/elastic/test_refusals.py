# SPDX-License-Identifier: Apache-2.0
"""Arguments that elastic arms, their springs and feedback linearization refuse, with the message."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, FlatState, RobotDescriptionError, StateError, load_robot
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.elastic import (
    SpringChain,
    SpringStage,
    chain_gains,
    chain_motor_jet,
    flat_state,
    linearizing_effort,
    motor_jet,
)
from eom_dynamics.robot.model import RotorMount
from eom_dynamics.trajectory import Cosine

INF, NAN, ZERO = float("inf"), float("nan"), np.zeros(2)
ROBOT = load_robot("planar_2r")
MOTION = Cosine([0.5, -0.4], [1.1, 0.9], [0.3, 0.2]).derivatives(0.0)
CHAIN = SpringChain([SpringStage(LinearSpring(60.0), 0.1)] * 2)
AT_REST = FlatState(*np.zeros((6, 2)))
EFFORTS = [np.zeros((3, 2))] * 3


@cache
def arm(*kinds: str, model: str = "reduced") -> ElasticArm:
    springs = [EVERY_KIND[kind] for kind in kinds or ("linear",)]
    return ElasticArm(with_springs(ROBOT, *springs), rotor_model=model)


def own_rotor() -> ElasticArm:
    """An arm whose first rotor is on the link that it moves."""
    first = replace(ROBOT.joints[0], rotor_mount=RotorMount(0, np.array([0.0, 0.0, 1.0])))
    return ElasticArm(replace(ROBOT, joints=(first, ROBOT.joints[1])), rotor_model="complete")


def sensed(kinds: tuple[str, ...] = (), **given: Any) -> FlatState:
    return flat_state(arm(*kinds), ZERO, ZERO, ZERO, ZERO, **given)


def linearized(kinds: tuple[str, ...] = (), **given: Any) -> Any:
    return linearizing_effort(arm(*kinds), AT_REST, MOTION, chain_gains(20.0), **given)


def commanded(*stiffness: Any) -> Any:
    return arm("variable").feedforward(*MOTION, commanded_stiffness=stiffness)


def on_base(*parts: Any) -> Any:
    return arm().feedforward(*MOTION, base=parts)


def over_time(t: Any, **given: Any) -> Any:
    return arm("damped").deflections_over_time(t, EFFORTS, **given)


STATE: list[tuple[Callable[[], object], str]] = [
    (lambda: commanded([10.0, 400.0]), r"joint_1: stiffness 10 is outside the actuator's range 50 … 2000"),
    (lambda: commanded([400.0, 3e3]), "joint_2: stiffness 3000 is outside"),
    (lambda: commanded([400.0, NAN]), "stiffness k must be finite"),
    (lambda: commanded([400.0, 400.0], [0.0, INF]), "stiffness kd must be finite"),
    (lambda: commanded([400.0]), r"stiffness k must have shape \(2,\)"),
    (lambda: commanded(*[[400.0, 400.0]] * 4), "must be a sequence of k, kd, kdd, at most 3"),
    (lambda: commanded("stiff"), "stiffness k is not an array of numbers"),
    (lambda: on_base(np.zeros((4, 3))), "base must have angular_velocity and specific_force, see BaseMotion; has 1"),
    (lambda: on_base(*np.zeros((2, 3, 3))), r"base angular_velocity must have shape \(4, 3\) or \(4, N, 3\)"),
    (lambda: on_base(np.zeros((4, 2)), np.zeros((3, 3))), r"angular_velocity must .*; has \(4, 2\)"),
    (lambda: on_base(np.zeros((4, 3)), np.zeros((3, 1, 1, 3))), r"specific_force must have shape \(3, 3\) or \(3, N"),
    (lambda: on_base(np.zeros((4, 3)), np.zeros(3)), r"specific_force must .*; has \(3,\)"),
    (lambda: on_base(np.zeros((4, 3)), np.full((3, 3), INF)), "base specific_force must be finite"),
    (
        lambda: arm(model="complete").feedforward(*MOTION, base=(np.zeros((4, 3)), np.zeros((3, 3)))),
        "the complete rotor model has no moving base; the reduced one has",
    ),
    (lambda: arm().feedforward(*MOTION, lead=-1e-3), "lead must not be negative"),
    *((lambda z=z: arm().feedforward(*MOTION, lead=z), r"lead must be finite") for z in (NAN, INF)),
    *((lambda z=z: arm().feedforward(*MOTION, lead=z), r"lead must be a number") for z in (None, ZERO)),
    (lambda: over_time([0.0, 0.1]), r"tau must have shape \(2, 2\)"),
    *((lambda t=t: over_time(t), "t must increase") for t in ([0.0, 0.1, 0.1], [0.0, 0.2, 0.1], [[0.0], [0.1], [0.2]])),
    (lambda: over_time([0.0, 0.1, 0.2], start=[0.0, NAN]), "deflection must be finite at damped joints"),
    (lambda: sensed(deflections=[ZERO]), r"deflections must be \(delta, deltad\), has 1"),
    (lambda: sensed(deflections=[ZERO, np.zeros(3)]), r"deltad must have shape \(2,\), has \(3,\)"),
    (lambda: sensed(deflections=[ZERO, ZERO * NAN]), "deltad must be finite"),
    (
        lambda: sensed(deflections=[ZERO, ZERO], commanded_stiffness=[np.full((2, 2), 400.0)]),
        r"stiffness k must have shape \(2,\), has \(2, 2\)",
    ),
    (lambda: sensed(efforts=[ZERO]), r"efforts must be \(tau, taud\), has 1"),
    (lambda: sensed(efforts=[ZERO] * 3), r"efforts must be \(tau, taud\), has 3"),
    (lambda: sensed(rigid=[ZERO]), r"rigid must be \(qdd, qddd\), has 1"),
    (lambda: sensed(rigid=[ZERO, np.zeros(3)]), r"rigid qddd must have shape \(2,\), has \(3,\)"),
    (lambda: sensed(("rigid", "linear"), rigid=[[NAN, 0.0], ZERO]), "rigid must be finite at rigid joints"),
    (lambda: sensed(("cubic", "rigid")), "joint_2: the deflection of a rigid joint does not determine"),
    (lambda: sensed(("cubic", "damped")), "joint_2: the deflection of a damped joint does not determine"),
    (lambda: flat_state(arm(model="complete"), *np.zeros((4, 2))), "planar_2r: in the complete rotor model"),
    (
        lambda: linearizing_effort(arm(model="complete"), AT_REST, MOTION, chain_gains(20.0)),
        "planar_2r: in the complete rotor model",
    ),
    (lambda: linearized(("cubic", "damped")), "joint_2: is damped; feedback linearization"),
    (
        lambda: linearized(("variable",), commanded_stiffness=[np.array([400.0, 1e5])]),
        "joint_2: stiffness 100000 is outside the actuator's range",
    ),
    *((lambda w=w: chain_gains(w), "natural_frequency must be") for w in (-20.0, 0.0, NAN)),
    *((lambda k=k: chain_gains(20.0, k), "order must be") for k in (0, -1, 1.5)),
    (lambda: motor_jet(arm(model="complete"), MOTION), r"q and 6 time derivatives, has 4"),
    (
        lambda: motor_jet(arm("linear", "variable"), MOTION, commanded_stiffness=[[1.0, 1.0]]),
        "joint_2: stiffness 1 is outside",
    ),
    (
        lambda: motor_jet(arm("variable"), MOTION, commanded_stiffness=[[400.0, 400.0], ZERO, ZERO, [0.0]]),
        r"stiffness k, derivative 3, must have shape \(2,\)",
    ),
    (lambda: CHAIN.jet([0.0] * 5, [0.0] * 5, 1), "q must have 5 time derivatives, two for each of the 2 springs and 1"),
    (lambda: CHAIN.jet([0.0] * 5, [NAN] * 5), "tau and its derivatives must be finite"),
    (
        lambda: CHAIN.jet([0.0, [0.0, 1.0], 0.0, 0.0, 0.0], [0.0] * 5),
        r"q and its derivatives must be numbers or all have shape \(N,\)",
    ),
    (
        lambda: chain_motor_jet(ROBOT, [CHAIN, CHAIN], MOTION),
        r"motion must have q and 6 time derivatives, two for the links, .*; has 4",
    ),
]

ROBOTS: list[tuple[Callable[[], object], str]] = [
    (lambda: ElasticArm(ROBOT, stiffness=0.0), "stiffness: must be positive, is 0"),
    (lambda: ElasticArm(ROBOT, stiffness=[500.0, -1.0]), "stiffness: must be positive"),
    (lambda: ElasticArm(ROBOT, stiffness=[NAN, 300.0]), "stiffness: must be finite"),
    (lambda: ElasticArm(ROBOT, stiffness=-INF), "stiffness: must be finite, is -inf"),
    (lambda: ElasticArm(ROBOT, stiffness=[1.0, 2.0, 3.0]), "stiffness: must have 1 or 2 entries, has 3"),
    (lambda: ElasticArm(ROBOT, stiffness=[]), "stiffness: must have 1 or 2 entries, has 0"),
    (lambda: ElasticArm(ROBOT, stiffness=[[1.0, 2.0]]), r"stiffness: must have 1 or 2 entries, has shape \(1, 2\)"),
    (lambda: ElasticArm(ROBOT, stiffness="stiff"), "stiffness: must be numbers, is 'stiff'"),
    (lambda: ElasticArm(ROBOT, stiffness=[[1.0], [2.0, 3.0]]), "stiffness: must be numbers"),  # type: ignore[list-item]
    (lambda: ElasticArm(ROBOT, rotor_inertia=-0.1), "rotor_inertia: must not be negative"),
    (lambda: ElasticArm(ROBOT, rotor_inertia=[0.2, NAN]), "rotor_inertia: must be finite"),
    (lambda: ElasticArm(ROBOT, rotor_inertia=INF), "rotor_inertia: must be finite, is"),
    (lambda: ElasticArm(ROBOT, rotor_inertia=[0.2, 0.1, 0.1]), "rotor_inertia: must have 1 or 2 entries, has 3"),
    (lambda: ElasticArm(ROBOT, rotor_model="full"), "rotor_model must be one of reduced, complete, is 'full'"),
    (lambda: motor_jet(own_rotor(), MOTION), r"planar_2r: the rotors of joint_1 act on each other's links"),
    (lambda: SpringStage(EVERY_KIND["damped"], 0.1), "spring: must not be damped, since its deflection is a state"),
    (lambda: SpringStage(EVERY_KIND["antagonistic_quadratic"], 0.1), "spring: must have one motor; one of .* has 2"),
    (lambda: SpringStage(LinearSpring(60.0), -1.0), "inertia: must not be negative, is -1"),
    (lambda: chain_motor_jet(ROBOT, [CHAIN], MOTION), "planar_2r: chains must be 2, one for each joint, are 1"),
]


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [(StateError, *row) for row in STATE] + [(RobotDescriptionError, *row) for row in ROBOTS],
)
def test_refusals(error: type[Exception], call: Callable[[], object], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
