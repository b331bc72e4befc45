# SPDX-License-Identifier: Apache-2.0
"""Hand guiding of a joint whose friction differs from the file's: it rests soon after the hand lets go."""

import math
from typing import Any

import numpy as np
import pytest

from eom_dynamics import ElasticArm, robot_from_parameters
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable

MASS, LENGTH, ROTOR, GRAVITY = 4.0, 0.5, 0.3, 9.80665


def pendulum(friction: dict[str, float], stiffness: float) -> ElasticArm:
    joint: dict[str, Any] = {"type": "revolute", "screw": [0.0, 1.0, 0.0, 0.0, 0.0, 0.0], "mass": MASS}
    joint |= {"center_of_mass": [0.0, 0.0, -LENGTH], "inertia": [0.0] * 6, "limits": {"velocity": 3.0}}
    joint |= {"origin": {"xyz": [0.0] * 3, "rpy": [0.0] * 3}, "actuator": {"friction": friction}}
    if stiffness:
        joint |= {"elasticity": {"type": "linear", "stiffness": stiffness}, "rotor_inertia": ROTOR}
    robot = {"name": "pendulum", "joint_names": ["hinge"], "inertia_reference": "com", "gravity": [0.0, 0.0, -GRAVITY]}
    return ElasticArm(robot_from_parameters(robot | {"joints": {"hinge": joint}}))


class Guided:
    """A pendulum with its own integrator, whose drive applies efforts a cycle later, and measures with noise."""

    def __init__(
        self, factor: float, stiffness: float, coulomb: float = 1.0, viscous: float = 0.5, **settings: Any
    ) -> None:
        friction = {"coulomb": factor * coulomb, "viscous": factor * viscous, "smoothing_velocity": 0.01}
        arm, q = pendulum(friction, stiffness), np.array([0.3])
        self.loop, self.stiffness, self.friction = ControlLoop(RobotTable(arm)), stiffness, (coulomb, viscous)
        self.loop.configure(safety="strict", setpoint_timeout=0.0, on_setpoint_loss="none", **settings)
        self.loop.restart(q)
        self.loop.change_mode("gravity_compensation")
        command = arm.feedforward(q, 0 * q, 0 * q)
        self.q, self.qd, self.theta, self.thetad = 0.3, 0.0, float(command.motor_position[0]), 0.0
        self.effort, self.now, self.random = float(command.motor_effort[0]), 10**12, np.random.default_rng(0)

    def cycle(self, hand: float) -> None:
        """Advance by 1 ms with the effort of a hand on the link, N m."""
        loop, (coulomb, viscous) = self.loop, self.friction
        loop.measure(motors=np.array([[self.theta], [self.thetad + 0.003 * self.random.standard_normal()]]))
        self.now += 1_000_000
        loop._library.loop_run(loop.address, self.now, 1e-3)
        inertia, h = MASS * LENGTH**2, 0.25e-3
        for _ in range(4):
            rubs = coulomb * math.tanh(self.thetad / 0.01) + viscous * self.thetad
            carried = hand - MASS * GRAVITY * LENGTH * math.sin(self.q)
            if self.stiffness:
                spring = self.stiffness * (self.theta - self.q)
                self.thetad += h * (self.effort - spring - rubs) / ROTOR
                self.theta += h * self.thetad
                self.qd += h * (spring + carried) / inertia
                self.q += h * self.qd
            else:
                self.qd += h * (self.effort - rubs + carried) / inertia
                self.q += h * self.qd
                self.theta, self.thetad = self.q, self.qd
        self.effort = float(loop.sent["drive_effort"][0])


@pytest.mark.parametrize(
    ("stiffness", "coulomb", "viscous"),
    [
        *((0.0, 1.0, 0.5), (0.0, 0.3, 1.0), (0.0, 3.0, 0.5), (300.0, 1.0, 0.5), (300.0, 0.3, 1.0), (300.0, 3.0, 0.5)),
        *((3e3, 1.0, 0.5), (3e3, 3.0, 0.5), (3e4, 0.3, 0.2), (3e4, 3.0, 0.5)),
    ],
)
@pytest.mark.parametrize("factor", [1.0, 1.5, 2.0, 3.0, 6.0, 10.0])
def test_arm_rests_within_two_seconds_after_the_hand_lets_go(
    factor: float, coulomb: float, viscous: float, stiffness: float
) -> None:
    """Whatever the friction of the file; with six times the true one, the arm swung on.

    The motor rests, and the link swings at most as fast as its undamped spring does if friction holds the motor.
    """
    arm, rates = Guided(factor, stiffness, coulomb, viscous), []
    for k in range(3600):
        arm.cycle((2 * coulomb + 0.5) * (600 <= k < 1100))
        rates.append((abs(arm.qd), abs(arm.thetad)))
    links, motors = np.array(rates).T
    assert max(links) < 1.7  # 1.5 rad/s is the limit
    assert max(links[600:1100]) > 0.2
    assert max(motors[3100:]) < 0.02
    assert max(links[3100:]) < max(0.02, coulomb / math.sqrt(stiffness * MASS * LENGTH**2) if stiffness else 0.0)
    assert arm.loop.number("unmeasured") == 0


def test_hand_guides_with_less_than_the_friction() -> None:
    """Along a way of 0.35 rad in 4 s, beyond the time in which compensation fades without a hand."""
    for stiffness in (0.0, 300.0):
        arm, way, efforts = Guided(1.0, stiffness), 0.3, []
        for k in range(4600):
            rate = 0.1 * max(min((k - 600) / 500, (4600 - k) / 500, 1.0), 0.0)
            way += 1e-3 * rate
            hand = 2000 * (way - arm.q) + 100 * (rate - arm.qd)
            arm.cycle(hand if k >= 600 else 0.0)
            efforts += [hand] * (k >= 600)
        assert arm.q > 0.6
        assert np.mean(efforts) < 0.85  # of friction of 1.05 N m and damping of 0.1 N m


def test_joint_that_is_guided_too_fast_stops() -> None:
    """At the share of its limit; the loop has the joint, its velocity and the limit."""
    for share, stops in ((0.5, False), (0.2, True), (0.0, False)):
        arm, rates = Guided(1.0, 0.0, hand_guiding_speed=share), []
        for k in range(2500):
            arm.cycle(2.5 * (600 <= k < 1200))
            rates.append(arm.qd)
        assert (arm.loop.number("too_fast") == 1) == stops
        if stops:
            assert arm.loop.number("guided_speed") == pytest.approx(0.6, abs=0.02)
            assert arm.loop.number("guided_limit") == pytest.approx(0.6)
            assert max(rates) < 0.65 and abs(rates[-1]) < 0.02
