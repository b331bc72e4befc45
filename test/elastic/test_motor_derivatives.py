# SPDX-License-Identifier: Apache-2.0
"""Motor jets against the feedforward, and against numerical derivatives of their own lower orders."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from differences import derivative, deviation
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import CoupledSpring, RigidSpring
from eom_dynamics.elastic import derivatives_needed, motor_jet
from eom_dynamics.robot.model import RotorMount
from eom_dynamics.trajectory import Cosine

LOSS = Actuator(
    friction=Friction(viscous=0.4, coulomb=0.2, static=0.3, stribeck_velocity=0.6, smoothing_velocity=0.5),
    gear=Gear(0.8, 5.0),
)
MOTION = Cosine([0.5, -0.4], [1.1, 0.9], [0.3, 0.2])


def arm_with(*springs: Any, model: str = "reduced", **changes: Any) -> ElasticArm:
    return ElasticArm(with_springs(load_robot("planar_2r"), *springs, **changes), rotor_model=model)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_low_orders_are_those_of_the_feedforward(kind: str) -> None:
    arm = arm_with(EVERY_KIND[kind], actuator=LOSS)
    rng = np.random.default_rng(0)
    motion, wrench = rng.uniform(-1, 1, (5, 4, 2)), rng.uniform(-5, 5, (3, 6))
    stiffness = [np.full(2, float(np.min(arm.stiffness))) * 1.1, *rng.uniform(-5, 5, (2, 2))]
    given: dict[str, Any] = {"wrench": wrench, "commanded_stiffness": stiffness}
    if kind == "damped":
        given["deflection"] = np.full(2, 0.01)
    command = arm.feedforward(*motion, **given)
    jet = motor_jet(arm, motion, **given)
    assert deviation(jet.tau, command[:3]) < 1e-12
    assert deviation(jet.motor_position, command[3:6]) < 1e-11
    assert deviation(jet.motor_effort[0], command.motor_effort) < 1e-11


@pytest.mark.parametrize(
    ("kind", "model"),
    [*((kind, "reduced") for kind in EVERY_KIND if kind != "damped"), ("cubic", "complete"), ("variable", "complete")],
)
def test_every_order_is_the_time_derivative_of_the_one_below(kind: str, model: str) -> None:
    arm = arm_with(EVERY_KIND[kind], model=model, actuator=LOSS)
    k = np.where(arm.paired, 1.2, 1.0) * np.where(arm.variable, arm.stiffness, 1.0)
    stiffness = Cosine(0.05 * k, 0.7)
    order = derivatives_needed(arm, 2)

    def jet(t: float) -> Any:
        commanded = list(stiffness.derivatives(t, order=order))
        commanded[0] = commanded[0] + k
        return motor_jet(arm, MOTION.derivatives(t, order=order), 2, commanded_stiffness=commanded)

    now = jet(0.0)
    assert len(now.motor_effort) == 3
    rates = derivative(lambda t: np.concatenate([row for rows in jet(t) for row in rows[:-1]]), step=2e-3)
    above = [row for rows in now for row in rows[1:]]
    for row, rate in zip(above, np.split(rates, np.cumsum([len(row) for row in above])[:-1]), strict=True):
        assert deviation(row, rate, floor=1e-3) < 1e-7


def test_deflection_of_a_damped_spring_is_a_state() -> None:
    """K delta + D deltad = tau at every order."""
    arm = arm_with(EVERY_KIND["damped"])
    motion = MOTION.derivatives(0.0, order=6)
    jet = motor_jet(arm, motion, 2, deflection=[0.02, -0.01])
    delta = [theta - q for theta, q in zip(jet.motor_position, motion, strict=False)]
    assert deviation(delta[0], [0.02, -0.01]) < 1e-12
    for k in range(4):
        floor = 500.0 * np.max(np.abs(delta[k]))  # the two terms cancel
        assert deviation(500.0 * delta[k] + 15.0 * delta[k + 1], jet.tau[k], floor=floor) < 2e-15


@pytest.mark.parametrize("model", ["reduced", "complete"])
def test_coupled_springs_and_a_transmission(model: str) -> None:
    """A differential with both motors on the base, before coupled springs."""
    matrix, T = np.array([[500.0, 60.0], [60.0, 300.0]]), np.array([[0.5, 0.5], [0.5, -0.5]])
    robot = with_springs(load_robot("planar_2r"), RigidSpring(), rotor_mount=RotorMount(-1, np.array([0.0, 0.0, 1.0])))
    robot = replace(robot, coupled_stiffness=((0, 1), CoupledSpring(matrix)), transmission=((0, 1), Transmission(T)))
    arm = ElasticArm(robot, rotor_model=model)
    motion = MOTION.derivatives(0.0, order=5)
    jet = motor_jet(arm, motion, 1)
    assert deviation(matrix @ (T @ jet.motor_position[0] - motion[0]), jet.tau[0]) < 1e-10
    load = T.T @ jet.tau[1]
    assert deviation(jet.motor_effort[1], arm.motor_inertia * jet.motor_position[3] + load) < 1e-11
    command = arm.feedforward(*motion[:5])
    assert deviation(jet.motor_effort[0], command.motor_effort) < 1e-11


def test_number_of_derivatives_needed() -> None:
    """2 n + 2 along a chain; in a tree, rotors act on joints of their own branch."""
    complete = {"pendulum": 4, "planar_pr": 4, "planar_2r": 6, "dual_arm": 12}
    for name, needed in complete.items():
        robot = load_robot(name)
        assert derivatives_needed(ElasticArm(robot)) == 4
        assert derivatives_needed(ElasticArm(robot, rotor_model="complete")) == needed
        assert derivatives_needed(ElasticArm(robot, rotor_model="complete"), 2) == needed + 2
