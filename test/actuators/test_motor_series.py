# SPDX-License-Identifier: Apache-2.0
"""The motor side to any order: against the feedforward, and against differences in time of its own lower orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import fixed_case
from differences import derivative, deviation
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, RobotDescriptionError, StateError, load_robot
from eom_dynamics.actuators import derivatives_needed, motor_series
from eom_dynamics.drivetrain import Actuator, Friction, Gear, Transmission
from eom_dynamics.drivetrain.springs import CoupledSpring, RigidSpring
from eom_dynamics.robot.model import RotorMount
from eom_dynamics.trajectory import Cosine

LOSS = Actuator(
    friction=Friction(viscous=0.4, coulomb=0.2, static=0.3, stribeck_velocity=0.6, smoothing_velocity=0.5),
    gear=Gear(0.8, 5.0),
)
MOTION = Cosine([0.5, -0.4], [1.1, 0.9], [0.3, 0.2])


def arm_with(*springs: Any, model: str = "reduced", **changes: Any) -> ElasticArm:
    return ElasticArm(with_springs(load_robot("planar_2r"), *springs, **changes), rotor_model=model)


@pytest.mark.parametrize("samples", [(), (4,)], ids=["state", "batch"])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_low_orders_are_those_of_the_feedforward(kind: str, samples: tuple[int, ...]) -> None:
    arm = arm_with(EVERY_KIND[kind], actuator=LOSS)
    rng = np.random.default_rng(0)
    motion, wrench = rng.uniform(-1, 1, (5, *samples, 2)), rng.uniform(-5, 5, (3, 6))
    stiffness = [np.full(2, float(np.min(arm.stiffness))) * 1.1, *rng.uniform(-5, 5, (2, 2))]
    given: dict[str, Any] = {"wrench": wrench, "stiffness": stiffness}
    if kind == "damped":
        given["deflection"] = np.full(2, 0.01)
    command = arm.feedforward(*motion, **given)
    series = motor_series(arm, motion, **given)
    assert deviation(series.tau, command[:3]) < 1e-12
    assert deviation(series.motor_position, command[3:6]) < 1e-11
    assert deviation(series.motor_effort[0], command.motor_effort) < 1e-11


@pytest.mark.parametrize("model", ["reduced", "complete"])
@pytest.mark.parametrize("kind", [kind for kind in EVERY_KIND if kind != "damped"])
def test_every_order_is_the_rate_of_the_one_below(kind: str, model: str) -> None:
    arm = arm_with(EVERY_KIND[kind], model=model, actuator=LOSS)
    k = np.where(arm.paired, 1.2, 1.0) * np.where(arm.variable, arm.stiffness, 1.0)
    stiffness = Cosine(0.05 * k, 0.7)
    order = derivatives_needed(arm, 2)

    def series(t: float) -> Any:
        commanded = list(stiffness.derivatives(t, order=order))
        commanded[0] = commanded[0] + k
        return motor_series(arm, MOTION.derivatives(t, order=order), 2, stiffness=commanded)

    now = series(0.0)
    assert len(now.motor_effort) == 3
    rates = derivative(lambda t: np.concatenate([row for rows in series(t) for row in rows[:-1]]), step=2e-3)
    above = [row for rows in now for row in rows[1:]]
    for row, rate in zip(above, np.split(rates, np.cumsum([len(row) for row in above])[:-1]), strict=True):
        assert deviation(row, rate, floor=1e-3) < 1e-7


def test_dampers_remember() -> None:
    """The deflection of a damped spring follows its own equation, K delta + D deltad = tau, at every order."""
    arm = arm_with(EVERY_KIND["damped"])
    motion = MOTION.derivatives(0.0, order=6)
    series = motor_series(arm, motion, 2, deflection=[0.02, -0.01])
    delta = [theta - q for theta, q in zip(series.motor_position, motion, strict=False)]
    assert deviation(delta[0], [0.02, -0.01]) < 1e-12
    for k in range(4):
        assert deviation(500.0 * delta[k] + 15.0 * delta[k + 1], series.tau[k]) < 1e-11


@pytest.mark.parametrize("model", ["reduced", "complete"])
def test_coupled_springs_and_a_transmission(model: str) -> None:
    """A differential whose motors both sit on the base, between springs that act on each other."""
    matrix, T = np.array([[500.0, 60.0], [60.0, 300.0]]), np.array([[0.5, 0.5], [0.5, -0.5]])
    robot = with_springs(load_robot("planar_2r"), RigidSpring(), rotor_mount=RotorMount(-1, np.array([0.0, 0.0, 1.0])))
    robot = replace(robot, coupled_stiffness=((0, 1), CoupledSpring(matrix)), transmission=((0, 1), Transmission(T)))
    arm = ElasticArm(robot, rotor_model=model)
    motion = MOTION.derivatives(0.0, order=5)
    series = motor_series(arm, motion, 1)
    assert deviation(matrix @ (T @ series.motor_position[0] - motion[0]), series.tau[0]) < 1e-10
    load = T.T @ series.tau[1]
    assert deviation(series.motor_effort[1], arm.motor_inertia * series.motor_position[3] + load) < 1e-11
    command = arm.feedforward(*motion[:5])
    assert deviation(series.motor_effort[0], command.motor_effort) < 1e-11


def test_a_base_that_carries_all_rotors_feels_no_coupling() -> None:
    mount = RotorMount(-1, np.array([0.0, 1.0, 0.0]))
    robot = replace(
        load_robot("panda"), joints=tuple(replace(joint, rotor_mount=mount) for joint in load_robot("panda").joints)
    )
    motion = fixed_case("iiwa", 4).motion
    complete, reduced = (ElasticArm(robot, rotor_model=model) for model in ("complete", "reduced"))
    assert derivatives_needed(complete) == derivatives_needed(reduced) == 4
    for a, b in zip(complete.feedforward(*motion), reduced.feedforward(*motion), strict=True):
        assert deviation(a, b) < 1e-12


def test_how_many_derivatives_it_takes() -> None:
    """2 n + 2 along a chain; rotors act on the joints before the link that carries them, in a tree on their branch."""
    complete = {"pendulum": 4, "planar_pr": 4, "planar_2r": 6, "panda": 16, "dual_arm": 12}
    for name, needed in complete.items():
        robot = load_robot(name)
        assert derivatives_needed(ElasticArm(robot)) == 4
        assert derivatives_needed(ElasticArm(robot, rotor_model="complete")) == needed
        assert derivatives_needed(ElasticArm(robot, rotor_model="complete"), 2) == needed + 2


def test_all_rotors_of_a_rigid_arm_follow_exactly() -> None:
    """Where every joint is rigid the stream's approximation is none."""
    arm = ElasticArm(load_robot("panda"), stiffness=np.inf, rotor_model="complete")
    motion = Cosine(np.linspace(0.3, 0.9, 7), 1.3).derivatives(0.4, order=derivatives_needed(arm))
    series, command = motor_series(arm, motion), arm.feedforward(*motion[:5])
    assert deviation(series.motor_effort[0], command.motor_effort) < 1e-12
    assert deviation(series.tau, command[:3]) < 1e-12


def test_too_few_derivatives_are_refused() -> None:
    arm = arm_with(EVERY_KIND["linear"], model="complete")
    with pytest.raises(StateError, match=r"q and 6 time derivatives of it, has 4"):
        motor_series(arm, MOTION.derivatives(0.0))
    with pytest.raises(StateError, match="joint_2: stiffness 1 is outside"):
        motor_series(
            arm_with(EVERY_KIND["linear"], EVERY_KIND["variable"]), MOTION.derivatives(0.0), stiffness=[[1.0, 1.0]]
        )


def test_rotors_that_act_on_their_own_links_are_refused() -> None:
    robot = load_robot("planar_2r")
    own = replace(robot.joints[0], rotor_mount=RotorMount(0, np.array([0.0, 0.0, 1.0])))
    arm = ElasticArm(replace(robot, joints=(own, robot.joints[1])), rotor_model="complete")
    with pytest.raises(RobotDescriptionError, match=r"planar_2r: rotors act on the links .*among joint_1:"):
        motor_series(arm, MOTION.derivatives(0.0, order=10))
    assert np.all(np.isfinite(arm.feedforward(*MOTION.derivatives(0.0)).motor_effort))


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(RobotDescriptionError, match="rotor_model must be one of reduced, complete, is 'full'"):
        ElasticArm(load_robot("planar_2r"), rotor_model="full")
