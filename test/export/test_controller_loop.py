# SPDX-License-Identifier: Apache-2.0
"""Features of controllers only: start from motors alone, payloads, and moving bases."""

from dataclasses import replace

import numpy as np
import pytest
from exported import robot
from exported_loop import Loop
from scipy.integrate import solve_ivp
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear
from eom_dynamics.actuators.springs import CubicSpring, LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.control.settings import Status

STICKING = Actuator(Friction(0.8, 0.3, 0.5, 0.3, 0.2, 0.6, 0.2, presliding_distance=0.01), Gear(0.8, 2.0))
ARM = replace(
    with_springs(robot("planar_2r"), LinearSpring(100.0), LinearSpring(80.0), actuator=STICKING), name="sticking"
)
START = 1_700_000_000_000_000_000


@pytest.fixture(scope="module")
def loop() -> Loop:
    return Loop(ARM)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ((-1, 0, 0), "mass of a payload must not be negative"),
        ((0, 0, 1), "a payload with inertia must have mass"),
        ((1, 0, -1), "no rigid body has the inertia of a payload"),
        *(
            (body, "mass, center_of_mass and inertia of a payload must be at most 1e12")
            for body in ((1e300, 0, 0), (1, -2e12, 0), (1, 0, 2e12))
        ),
    ],
)
def test_bodies_that_cannot_be_are_refused(loop: Loop, body: tuple[float, float, float], reason: str) -> None:
    mass, x, inertia = body
    assert loop.carry(mass, [x, 0, 0], inertia, 0.1) == reason


def test_blend_times_that_cannot_be_are_counted_and_nothing_else_is(loop: Loop) -> None:
    loop.configure()
    for time in (-0.1, 61.0, *[0.1] * 20):  # the last blends do not start
        loop.carry(1, [0, 0, 0], 0, time)
        loop.cycle(0)
    assert loop.number("refused_payloads") == 2


def test_on_a_moving_base_gravity_is_that_of_the_base() -> None:
    arm = robot("sea_planar_2r")
    elastic, loop = eom.ElasticArm(arm), Loop(replace(arm, moving_base=True))
    base = 0.5 * np.sin(np.arange(21.0).reshape(7, 3))
    motion = np.outer([0.1, 1.0, 2.0, -1.0, 5.0], [1.0, 1.0])
    loop.carry(0.3, [0.1, 0, 0], 0.01, 0.0)
    y = loop.cycle(START, motion, base=base)
    at_rest = motion * np.eye(5)[:, :1]
    payload = eom.Payload(0.3, [0.1, 0, 0], 0.01 * np.eye(3))
    held = elastic.feedforward(*at_rest, base=eom.BaseMotion(base[:4], base[4:]), payload=payload).motor_effort
    np.testing.assert_allclose(y.released, held, rtol=1e-12)
    assert Loop(arm).cycle(START, motion, base=base).refusal.name == "moving_base"


def relaxed(arm: eom.ElasticArm, theta: Array) -> Array:
    """Final link positions of overdamped motion, from springs without deflection."""

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
    """Motors are commanded to hold their positions, with the gravity effort there."""
    arm = replace(arm, name="arm")
    elastic = eom.ElasticArm(arm)
    loop = Loop(arm)
    for theta in np.array(motors):
        for rate in (0.0, 0.5):
            measured = [theta, np.full(arm.n, rate)]
            loop.configure()
            assert loop.restart(motors=measured) is None
            found = loop.cycle(0, motors=measured)
            assert found.status == (Status.STOPPING if rate else Status.WAITING)
            q, qd, position, effort = found.q, found.qd, found.motor_position, found.motor_effort
            np.testing.assert_allclose(q, relaxed(elastic, theta), atol=1e-6)
            motion = np.zeros((5, arm.n))
            motion[0] = q
            # Moving links also load the springs by centrifugal forces, which are neglected.
            np.testing.assert_allclose(position, theta, atol=0.02 if rate and arm.n > 1 else 1e-7)
            assert rate or np.all(np.abs(effort - elastic.feedforward(*motion).tau) < 1e-7)
            motion[1] = qd
            np.testing.assert_allclose(elastic.feedforward(*motion).motor_velocity, rate, atol=0.02 * rate)
