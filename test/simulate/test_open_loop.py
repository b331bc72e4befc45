# SPDX-License-Identifier: Apache-2.0
"""The iiwa on the paper's motion without any feedback, in a simulation that shares no code with the library.

Links by Pinocchio's articulated-body algorithm, from the parameters of the file; springs and rotors written here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from chains import packaged_parameters
from numpy.typing import NDArray
from scipy.integrate import DOP853

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.simulate import ElasticPlant, simulate
from eom_dynamics.trajectory import paper_motion

pinocchio = pytest.importorskip("pinocchio", reason="Pinocchio is missing: pip install pin")

Array = NDArray[np.float64]

MOTION = paper_motion()


@pytest.fixture(scope="module")
def arm() -> ElasticArm:
    return ElasticArm(load_robot("iiwa"))


def link_errors(arm: ElasticArm, motor_effort: Callable[[float], Array], duration: float) -> dict[float, float]:
    """Largest error of any link, rad, by the time of each step, s, from the exact initial state."""
    from pinocchio_chain import PinocchioChain

    chain = PinocchioChain(packaged_parameters("iiwa"))

    def rate(t: float, y: Array) -> Array:
        q, theta, qd, thetad = y.reshape(4, 7)
        spring = arm.stiffness * (theta - q)
        qdd = pinocchio.aba(chain.model, chain.data, q, qd, spring)
        return np.concatenate([qd, thetad, qdd, (motor_effort(t) - spring) / arm.rotor_inertia])

    start = arm.feedforward(*MOTION.derivatives(0.0))
    q, qd = MOTION.derivatives(0.0, order=1)
    initial = np.concatenate([q, start.motor_position, qd, start.motor_velocity])
    solver = DOP853(rate, 0.0, initial, duration, rtol=1e-12, atol=1e-13)
    errors = {}
    while solver.status == "running":
        solver.step()
        errors[solver.t] = float(np.max(np.abs(solver.y[:7] - MOTION.derivatives(solver.t, order=0)[0])))
    assert solver.status == "finished"
    return errors


def test_flatness_stays_on_the_trajectory(arm: ElasticArm) -> None:
    """What is left is the integrator's error, which the open-loop arm, unstable, lets grow."""
    errors = link_errors(arm, lambda t: arm.feedforward(*MOTION.derivatives(t)).motor_effort, 5.0)
    assert max(error for t, error in errors.items() if t <= 1.0) < 1e-10
    assert max(errors.values()) < 1e-6


def test_feedforward_for_rigid_joints_leaves_it(arm: ElasticArm) -> None:
    rigid = ElasticArm(arm.robot, stiffness=np.inf)
    errors = link_errors(arm, lambda t: rigid.feedforward(*MOTION.derivatives(t)).motor_effort, 1.0)
    assert max(errors.values()) > 1e-3


def test_the_simulator_sees_the_same(arm: ElasticArm) -> None:
    plant = ElasticPlant(arm)
    start = plant.on_trajectory(*MOTION.derivatives(0.0))
    t = np.linspace(0.0, 1.0, 101)
    simulation = simulate(plant, lambda t, state: arm.feedforward(*MOTION.derivatives(t)).motor_effort, t, start)
    assert np.max(np.abs(plant.parts(simulation.states).q - MOTION.derivatives(t, order=0)[0])) < 1e-10
