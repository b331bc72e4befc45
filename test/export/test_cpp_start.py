# SPDX-License-Identifier: Apache-2.0
"""Start of the loop of a library from motors alone, with soft and stiff springs, against integration of the links."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot
from exported_loop import Loop
from scipy.integrate import solve_ivp
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators.springs import CubicSpring, LinearSpring
from eom_dynamics.arrays import Array

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")


def relaxed(arm: eom.ElasticArm, theta: Array) -> Array:
    """Positions of the links to which they go, overdamped, from springs without deflection."""

    def away(_: float, q: Array) -> Array:
        at_rest = np.zeros((5, arm.robot.n))
        at_rest[0] = q
        return theta - arm.feedforward(*at_rest).motor_position

    found: Array = solve_ivp(away, (0, 1e4), theta, method="LSODA", rtol=1e-10, atol=1e-12).y[:, -1]
    return found


@pytest.mark.parametrize(
    ("arm", "motors"),
    [
        *((with_springs(robot("pendulum"), LinearSpring(k)), ([0.3], [-0.3], [2.0], [4.5])) for k in (400.0, 3.0, 0.5)),
        (with_springs(robot("planar_2r"), LinearSpring(8.0), LinearSpring(3.0)), ([0.3, 0.2], [-1.8, 0.4], [1.5, 1.0])),
        (with_springs(robot("planar_2r"), CubicSpring(5.0, 9.0), LinearSpring(900.0)), ([0.3, 0.2], [1.2, -0.7])),
    ],
    ids=["400", "3", "0.5", "two soft ones", "hardening"],
)
def test_links_from_motors(arm: eom.Robot, motors: tuple[list[float], ...]) -> None:
    """Motors are commanded to stay where they are, at the effort of gravity there."""
    arm = replace(arm, name="arm")
    elastic = eom.ElasticArm(arm)
    loop = Loop(arm)
    for theta in np.array(motors):
        for rate in (0.0, 0.5):
            measured = [theta, np.full(arm.n, rate)]
            loop.configure(lead=0.0)
            assert loop.restart(motors=measured) is None
            found = loop.cycle(0, motors=measured)
            assert found.status == (2 if rate else 4)
            q, qd, position, effort = found.q, found.qd, found.motor_position, found.motor_effort
            np.testing.assert_allclose(q, relaxed(elastic, theta), atol=1e-6)
            motion = np.zeros((5, arm.n))
            motion[0] = q
            # Links that move load the springs by centrifugal forces, too, which are left out.
            np.testing.assert_allclose(position, theta, atol=0.02 if rate and arm.n > 1 else 1e-7)
            assert rate or np.all(np.abs(effort - elastic.feedforward(*motion).tau) < 1e-7)
            motion[1] = qd
            np.testing.assert_allclose(elastic.feedforward(*motion).motor_velocity, rate, atol=0.02 * rate)
