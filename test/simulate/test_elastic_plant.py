# SPDX-License-Identifier: Apache-2.0
"""The coupled model of links and motors against the textbook 2R, and its step for real time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from differences import deviation
from numpy.typing import NDArray
from textbook import planar_2r

from eom_dynamics import ElasticArm, RobotDescriptionError, load_robot
from eom_dynamics.simulate import ElasticPlant, simulate
from eom_dynamics.trajectory import paper_motion

Array = NDArray[np.float64]

STATE = np.array([[0.3, -0.7], [0.4, -0.9], [1.1, -0.4], [0.2, 0.9]])
EFFORT = np.array([12.0, -5.0])
STIFFNESS, ROTOR_INERTIA = np.array([500.0, 300.0]), np.array([0.2, 0.1])
"""Of the packaged 2R."""
INF = float("inf")


def plant(**arguments: Any) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot("planar_2r"), **arguments))


def links(state: Array) -> tuple[Array, Array]:
    """Mass matrix and other forces of the textbook 2R."""
    return planar_2r(packaged_parameters("planar_2r"))(state[0], state[2])


def rate(arm: ElasticPlant, state: Array) -> Array:
    """Rates (4, 2) of q, theta, qd, thetad."""
    return arm.rate(state.ravel(), EFFORT).reshape(4, 2)


def test_links_and_motors_obey_their_equations() -> None:
    M, forces = links(STATE)
    spring = STIFFNESS * (STATE[1] - STATE[0])
    expected = [STATE[2], STATE[3], np.linalg.solve(M, spring - forces), (EFFORT - spring) / ROTOR_INERTIA]
    assert deviation(rate(plant(), STATE), expected) < 1e-13


def test_motors_of_rigid_joints_turn_with_their_links() -> None:
    state = STATE.copy()
    state[1::2, 0] = state[::2, 0]
    M, forces = links(state)
    M = M + np.diag([ROTOR_INERTIA[0], 0.0])
    spring = STIFFNESS[1] * (state[1, 1] - state[0, 1])
    qdd = np.linalg.solve(M, np.array([EFFORT[0], spring]) - forces)
    rates = rate(plant(stiffness=[INF, 300.0]), state)
    assert deviation(rates[2], qdd) < 1e-13
    assert rates[3, 0] == rates[2, 0]
    assert deviation(rates[3, 1], (EFFORT[1] - spring) / ROTOR_INERTIA[1]) < 1e-13


def test_a_rigid_joint_may_go_without_rotor_inertia_and_an_elastic_one_not() -> None:
    light = plant(stiffness=[INF, 300.0], rotor_inertia=[0.0, 0.1])
    assert np.all(np.isfinite(rate(light, STATE)))
    with pytest.raises(RobotDescriptionError, match=r"rotor_inertia must be greater than 0 .*joint_2$"):
        plant(rotor_inertia=[0.2, 0.0])


def test_arms_side_by_side_are_one_by_one() -> None:
    rng = np.random.default_rng(2)
    states, efforts = rng.uniform(-1, 1, (3, 8)), rng.uniform(-1, 1, (3, 2))
    mixed = plant(stiffness=[INF, 300.0])
    for function in (
        mixed.rate,
        lambda state, effort: mixed.powers(state, effort).T,
        lambda state, effort: mixed.step(state, effort, 1e-3),
    ):
        batch = function(states, efforts)
        for i in range(3):
            assert deviation(batch[i], function(states[i], efforts[i])) < 1e-13


@pytest.mark.parametrize("stiffness", [None, [INF, 300.0], INF], ids=["elastic", "mixed", "rigid"])
def test_steps_come_to_the_motion_in_proportion_to_their_length(stiffness: Any) -> None:
    arm = plant(stiffness=stiffness)
    start = arm.on_trajectory(*paper_motion(2).derivatives(0.0))
    exact = simulate(arm, lambda t, state: EFFORT, [0.0, 0.2], start).states[-1]

    def off(steps: int) -> float:
        state = start
        for _ in range(steps):
            state = arm.step(state, EFFORT, 0.2 / steps)
        return float(np.max(np.abs(state[:4] - exact[:4])))

    errors = [off(steps) for steps in (1000, 2000)]
    assert errors[0] < 2e-2
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


def test_steps_of_a_millisecond_hold_springs_that_swing_faster() -> None:
    """The lightest link of the iiwa swings at more than 1000 rad/s on its spring; these are ten times that."""
    robot = load_robot("iiwa")
    arm = ElasticPlant(ElasticArm(robot, stiffness=100 * robot.stiffness))
    motion = paper_motion()
    state = arm.on_trajectory(*motion.derivatives(0.0))
    for k in range(1000):
        q, qd, qdd = motion.derivatives(1e-3 * k, order=2)
        effort = arm.arm.dynamics.effort(q, qd, qdd) + robot.rotor_inertia * (
            qdd + 1e4 * (q - arm.parts(state).theta) + 200 * (qd - arm.parts(state).thetad)
        )
        state = arm.step(state, effort, 1e-3)
    assert np.max(np.abs(arm.parts(state).q - motion.derivatives(1.0, order=0)[0])) < 2e-2
