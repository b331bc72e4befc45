# SPDX-License-Identifier: Apache-2.0
"""Expected errors of feedforwards against plants of MuJoCo over draws of the model, and the uncertainty in files."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from chains import packaged_parameters
from refusals import refusals

from eom_dynamics import ElasticArm, RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.control.expected_errors import expected_errors, feedforward_advice
from eom_dynamics.exceptions import StateError
from eom_dynamics.robot.model import UNKNOWN, ModelUncertainty
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.simulation import ElasticPlant
from eom_dynamics.simulation.feedforward_comparison import motor_references
from eom_dynamics.trajectory import paper_motion

STEP, DURATION = 1e-3, 1.0


def simulated(arm: ElasticArm, w: float, factors: dict[str, float]) -> Array:
    """Mean squares of link errors (3,) of rigid, tau/K and flatness feedforward, without transient of the PD."""
    from mujoco_arms import MujocoArm

    motion = paper_motion(arm.robot.n)
    states = motion.derivatives(STEP * (np.arange(round(DURATION / STEP) + 1) + 0.5))
    y, position, velocity, effort = motor_references(ElasticPlant(arm), states)
    ways = (
        (effort(velocity), position, velocity),
        (effort(velocity), y.motor_position, velocity),
        (y.motor_effort, y.motor_position, y.motor_velocity),
    )
    plant, squares = MujocoArm(arm.robot.name, step=STEP, natural_frequency=w, **factors), []
    for way in np.array(ways):
        t, q, _ = plant.run(lambda t, way=way: way[:, round(t / STEP)], motion, duration=DURATION, period=STEP)
        squares.append(np.mean((q - motion.derivatives(t, 0)[0])[t > 0.2] ** 2))
    return np.array(squares)


def test_expected_errors_are_those_of_simulations_over_draws() -> None:
    """Over half of all signs of errors of one standard deviation: to first order, second moments are those of all."""
    pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")
    arm, sizes, w = ElasticArm(load_robot("panda")), ModelUncertainty(0.05, 0.05, 0.1), 70.0
    draws = [
        simulated(arm, w, dict(zip(sizes._fields, 1 + np.array(sizes) * signs, strict=True)))
        for signs in product((-1, 1), repeat=3)
        if np.prod(signs) > 0
    ]
    states = paper_motion(arm.robot.n).derivatives(np.arange(0.2, DURATION, 1e-2))
    # To first order in errors of 5 and 10 %, and as far as links follow motors.
    np.testing.assert_allclose(expected_errors(arm, states, sizes, w), np.sqrt(np.mean(draws, axis=0)), rtol=0.05)


def test_advice_follows_the_uncertainty_and_the_drives() -> None:
    """With masses known to 30 %, soft drives lose what flatness gains; without springs or uncertainty there is none."""
    panda = load_robot("panda")
    for sizes, w, best in (
        ((0.02, 0.02, 0.02), 70.0, "flatness"),
        ((0.05, 0.05, 0.05), 70.0, "tau/K or flatness"),
        ((0.1, 0.3, 0.1), 15.0, "rigid or tau/K or flatness"),
    ):
        advice = feedforward_advice(ElasticArm(replace(panda, uncertainty=ModelUncertainty(*sizes))), w)
        assert advice is not None and advice.best == best, advice
        assert str(advice).startswith(f"{best} (rigid ")
    assert feedforward_advice(ElasticArm(panda)) is None
    for name, reason in (("leg", "no joint has a spring"), ("vsa_planar_2r", "must have one motor")):
        arm = ElasticArm(replace(load_robot(name), uncertainty=ModelUncertainty(0.1, 0.1, 0.1)))
        assert feedforward_advice(arm) is None
        with pytest.raises(StateError, match=reason):
            expected_errors(arm, paper_motion(arm.robot.n).derivatives(np.zeros(2)), arm.robot.uncertainty)


def test_uncertainty_is_written_and_read(tmp_path: Path) -> None:
    path, sizes = tmp_path / "known.yaml", ModelUncertainty(0.01, 0.02, 0.0)
    path.write_text(robot_as_yaml(replace(load_robot("pendulum"), uncertainty=sizes)).text)
    assert load_robot(str(path)).uncertainty == sizes
    assert load_robot("pendulum").uncertainty == UNKNOWN


test_impossible_uncertainty_is_refused = refusals(
    RobotDescriptionError,
    ({"mass": -0.1}, r"uncertainty.mass: must be within \[0, 1\), is -0.1"),
    ({"stiffness": "5 %"}, "uncertainty.stiffness: must be a number"),
    ({"gravity": 0.1}, "uncertainty.gravity: unknown entry; known are stiffness, mass, rotor_inertia"),
    (0.1, "uncertainty: must be a section with stiffness, mass, rotor_inertia, is 0.1"),
    call=lambda given: robot_from_parameters(packaged_parameters("pendulum") | {"uncertainty": given}),
)
