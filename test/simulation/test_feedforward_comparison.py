# SPDX-License-Identifier: Apache-2.0
"""Feedforwards under a PD of the motors, with and without model errors, and perturbed robots."""

from dataclasses import replace

import numpy as np
import pytest
from differences import deviation
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, simulate
from eom_dynamics.simulation.feedforward_comparison import motor_references, perturbed
from eom_dynamics.trajectory import paper_motion

TIMES, MOTION = np.linspace(0.0, 0.3, 31), paper_motion(2)


def tracking_error(feedforward: str, model: Robot, real: Robot, w: float) -> float:
    """Root mean square of the links' errors, rad, under a PD with kp = w² B and kd = 2 w B, from the exact state."""
    plant, known = ElasticPlant(ElasticArm(real)), ElasticPlant(ElasticArm(model))
    inertia = known.driven_inertia(MOTION.derivatives(0.0)[0])

    def control(t: float, state: Array) -> Array:
        command, position, velocity, effort_at = motor_references(known, MOTION.derivatives(t))
        effort = effort_at(velocity)
        if feedforward == "flatness":
            effort, position, velocity = command.motor_effort, command.motor_position, command.motor_velocity
        now = plant.parts(state)
        efforts: Array = effort + inertia * (w**2 * (position - now.theta) + 2 * w * (velocity - now.thetad))
        return efforts

    start = plant.on_trajectory(*MOTION.derivatives(0.0))
    found = simulate(plant, control, TIMES, start, relative_tolerance=1e-10, absolute_tolerance=1e-10)
    error = plant.parts(found.states).q - MOTION.derivatives(TIMES, order=0)[0]
    return float(np.sqrt(np.mean(error**2)))


@pytest.mark.parametrize("w", [0.0, 20.0, 70.0])
def test_flatness_is_exact_with_an_exact_model(w: float) -> None:
    robot = load_robot("planar_2r")
    assert tracking_error("flatness", robot, robot, w) < 1e-9
    assert tracking_error("rigid", robot, robot, w) > 2e-4


def test_flatness_with_model_errors_is_better_than_rigid_feedforward_at_stiff_motors() -> None:
    model = load_robot("planar_2r")
    real = perturbed(model, stiffness=0.1, mass=0.05)
    soft, stiff = ([tracking_error(x, model, real, w) for x in ("rigid", "flatness")] for w in (10.0, 70.0))
    assert stiff[0] > 10 * stiff[1] and soft[0] < 2 * soft[1] and stiff[1] < soft[1]


def test_perturbed_robot() -> None:
    robot = with_springs(load_robot("iiwa"), *EVERY_KIND.values())
    other = perturbed(robot, stiffness=0.1, mass=-0.05)
    for before, after in zip(robot.joints, other.joints, strict=True):
        assert after.mass == pytest.approx(0.95 * before.mass)
        assert deviation(after.inertia_about_origin, 0.95 * before.inertia_about_origin) < 1e-15
        assert after.stiffness == pytest.approx(1.1 * before.stiffness)
    coupled = replace(load_robot("planar_2r"), coupled_stiffness=((0, 1), CoupledSpring([[5.0, 1.0], [1.0, 3.0]])))
    assert perturbed(coupled, stiffness=0.1).coupled_stiffness[1].matrix[0, 1] == pytest.approx(1.1)  # type: ignore[index]
