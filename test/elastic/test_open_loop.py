# SPDX-License-Identifier: Apache-2.0
"""Without feedback, the feedforward keeps an elastic arm on its trajectory.

The plant is the textbook planar 2R with springs between motors and links, integrated by SciPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from chains import packaged_parameters
from differences import deviation
from scipy.integrate import solve_ivp
from textbook import planar_2r

from eom_dynamics import ElasticArm, Feedforward, load_robot
from eom_dynamics.arrays import Array

AMPLITUDE, FREQUENCY = np.array([0.6, -0.8]), np.array([3.0, 4.0])
DURATION = 1.0


def motion(t: float) -> list[Array]:
    """q = A cos(w t) with four derivatives."""
    return [AMPLITUDE * FREQUENCY**k * np.cos(FREQUENCY * t + k * np.pi / 2) for k in range(5)]


@pytest.fixture(scope="module")
def arm() -> ElasticArm:
    return ElasticArm(load_robot("planar_2r"))


def links_at_the_end(arm: ElasticArm, start: Feedforward, motor_effort: Callable[[float], Array]) -> Array:
    """q at the end, from links on the trajectory and motors at those of ``start``."""
    links = planar_2r(packaged_parameters("planar_2r"))

    def rate(t: float, state: Array) -> Array:
        q, theta, qd, thetad = state.reshape(4, 2)
        spring = arm.stiffness * (theta - q)
        M, forces = links(q, qd)
        qdd = np.linalg.solve(M, spring - forces)
        thetadd = (motor_effort(t) - spring) / arm.rotor_inertia
        return np.concatenate([qd, thetad, qdd, thetadd])

    q, qd = motion(0.0)[:2]
    initial = np.concatenate([q, start.motor_position, qd, start.motor_velocity])
    solution = solve_ivp(rate, (0.0, DURATION), initial, method="DOP853", rtol=1e-12, atol=1e-13)
    assert solution.success
    return solution.y[:2, -1]


def test_links_follow_the_trajectory(arm: ElasticArm) -> None:
    """To the error of the integrator, whose relative tolerance is 1e-12."""
    end = links_at_the_end(arm, arm.feedforward(*motion(0.0)), lambda t: arm.feedforward(*motion(t)).motor_effort)
    assert deviation(end, motion(DURATION)[0], floor=1.0) < 2e-12


def test_links_leave_the_trajectory_with_feedforward_for_rigid_joints(arm: ElasticArm) -> None:
    rigid = ElasticArm(arm.robot, stiffness=np.inf)
    end = links_at_the_end(arm, arm.feedforward(*motion(0.0)), lambda t: rigid.feedforward(*motion(t)).motor_effort)
    assert deviation(end, motion(DURATION)[0], floor=1.0) > 1e-3
