# SPDX-License-Identifier: Apache-2.0
"""Errors of the links under four feedforwards with model errors, against plants of MuJoCo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eom_dynamics import ElasticArm, RobotDescriptionError, load_robot
from eom_dynamics.actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import StateError
from eom_dynamics.simulation.elastic_plant import ElasticPlant
from eom_dynamics.simulation.model_errors import WAYS, ModelError, _ErrorPlant, sweep
from eom_dynamics.simulation.perturbation import perturbed
from eom_dynamics.trajectory import paper_motion

DURATION = 0.1
ERRORS = (ModelError(stiffness=0.2, mass=-0.2), ModelError(stiffness=-0.1, mass=0.1, friction=0.3))


@pytest.mark.parametrize(("name", "error", "drives"), [("sea_planar_2r", 1, "linear"), ("panda", 0, "none")])
def test_errors_are_those_of_an_independent_plant(name: str, error: int, drives: str) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")
    from mujoco_arms import MujocoArm

    robot, given = replace(load_robot(name), drive_interpolation=drives), ERRORS[error]
    motion = paper_motion(robot.n)
    found = sweep(robot, motion, 0.0, DURATION, ERRORS).of(given)
    factors = {"stiffness": 1 + given.stiffness, "mass": 1 + given.mass, "friction": 1 + given.friction}
    arm, plant = ElasticArm(robot), MujocoArm(name, **factors)
    real = ElasticArm(perturbed(robot, stiffness=given.stiffness, mass=given.mass, friction=given.friction))
    y = real.feedforward(*motion.derivatives(0.0))

    def command(way: str, t: float) -> tuple[Array, Array, Array]:
        q, qd, qdd, qddd, qdddd = motion.derivatives(t + robot.command_lead_at(1e-3))
        y = arm.feedforward(q, qd, qdd, qddd, qdddd)
        if way == "taudd":
            return y.motor_effort, y.motor_position, y.motor_velocity
        speed = y.motor_velocity if way == "taud" else qd
        load = ElasticPlant(arm).motor_load(y.tau, speed)
        return arm.motor_inertia * qdd + load, q if way == "rigid" else y.motor_position, speed

    for way, rms in zip(WAYS, found, strict=True):
        t, q, _ = plant.run(
            lambda t, way=way: command(way, t),
            motion,
            duration=DURATION,
            period=1e-3,
            interpolates=drives == "linear",
            start=(y.motor_position, y.motor_velocity),
        )
        t, q = t[3::4], q[3::4]
        expected = np.sqrt(np.mean((q - motion.derivatives(t, 0)[0]) ** 2))
        assert rms == pytest.approx(expected, rel=2e-3), way


def test_order_of_the_ways_and_of_the_delay() -> None:
    """With an exact model each derivative gains; a delay that is named too large is as bad as one that is not named."""
    robot = load_robot("planar_2r")
    errors = (ModelError(), ModelError(delay=1e-3), ModelError(delay=-1e-3))
    found = sweep(robot, paper_motion(2), 0.0, 0.2, errors)
    exact = found.of(ModelError())
    assert np.all(np.diff(exact) < 0) and exact[0] > 1e3 * exact[3]
    late, early = found.of(errors[1])[3], found.of(errors[2])[3]
    assert late == pytest.approx(early, rel=0.1) and late > 100 * exact[3]
    q, qd, qdd = paper_motion(2).derivatives(np.linspace(0.0, 0.2, 201), 2)
    M = ElasticArm(robot).dynamics.mass_matrix(q)
    lowest = min(np.linalg.eigvals(np.linalg.solve(x, np.diag(robot.stiffness))).real.min() for x in M)
    assert found.resonance == pytest.approx(np.sqrt(lowest), rel=1e-3)
    assert found.motion_frequency == pytest.approx(np.max(np.linalg.norm(qdd, axis=0) / np.linalg.norm(qd, axis=0)))


@pytest.mark.parametrize("name", ["own springs", "sea_planar_2r", "vsa_planar_2r"])
def test_plant_is_that_of_the_perturbed_robot(name: str) -> None:
    """Rates and initial states of the arms side by side; joints' own springs and friction have no error."""
    robot = load_robot("planar_2r" if name == "own springs" else name)
    if name == "own springs":
        spring = ParallelSpring(SignedLinearLaw(30.0), 0.2)
        first = replace(robot.joints[0], parallel_spring=spring, damping=2.0, constant_effort=3.0)
        robot = replace(robot, joints=(first, *robot.joints[1:]), joint_friction=True)
    error = ModelError(0.1, 0.3, -0.2, 0.4)
    arms = _ErrorPlant(robot, [error])
    plant = ElasticPlant(ElasticArm(perturbed(robot, **dict(list(error._asdict().items())[:4]))))
    state = np.random.default_rng(4).uniform(-0.2, 0.2, (5, 2))
    start = plant.on_trajectory(*state)
    np.testing.assert_allclose(arms.on_trajectory(list(state))[0], start, rtol=0, atol=1e-12)
    y, effort = np.tile(start + 1e-3, (len(WAYS), 1)), np.tile(np.arange(plant.rigid.size) + 1.0, (len(WAYS), 1))
    zero = np.zeros_like(effort)
    expected = plant.rate(y, effort)
    found = arms.rate(y, [effort, zero, zero], zero[0], zero[0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("errors", "reason"),
    [([ModelError(mass=-1.0)], "above -1"), ([ModelError(stiffness=-2.0)], "above -1")],
)
def test_errors_that_cannot_be(errors: list[ModelError], reason: str) -> None:
    with pytest.raises(StateError, match=reason):
        sweep(load_robot("planar_2r"), paper_motion(2), 0.0, 0.1, errors)


def test_arms_that_cannot_be_and_motions_too_short() -> None:
    robot = load_robot("planar_2r")
    with pytest.raises(RobotDescriptionError, match="rotor_model must be reduced"):
        sweep(replace(robot, rotor_model="complete"), paper_motion(2), 0.0, 0.1, [ModelError()])
    with pytest.raises(StateError, match="at least a period"):
        sweep(robot, paper_motion(2), 0.0, 1e-4, [ModelError()])
