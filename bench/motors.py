# SPDX-License-Identifier: Apache-2.0
"""Feedforward of the iiwa with every kind of spring, beside the inverse dynamics of its links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from report import Bar, Section, Table, seconds
from settings import Settings
from timing import TimedTask, interleaved

from eom_dynamics import Dynamics, ElasticArm, Robot, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear
from eom_dynamics.actuators.springs import (
    CubicSpring,
    DampedSpring,
    DeadZoneSpring,
    ExponentialPair,
    ExponentialSpring,
    LinearSpring,
    PolynomialSpring,
    QuadraticPair,
    Spring,
    TabulatedSpring,
    VariableSpring,
)

SPRINGS: tuple[Spring, ...] = (
    LinearSpring(1e4),
    CubicSpring(8e3, 5e6),
    PolynomialSpring([8e3, 1e3, 4e6, 0.0, 1e9]),
    ExponentialSpring(8e3, 60.0),
    DeadZoneSpring(1e4, 2e3, 2e-3, 1e-3),
    TabulatedSpring([0.0, 1e-3, 3e-3, 8e-3, 2e-2], [0.0, 5.0, 20.0, 80.0, 260.0]),
    DampedSpring(1e4, 30.0),
    VariableSpring(5e3, 2e4, 1e4),
    ExponentialPair(4e3, 60.0, 5e4),
    QuadraticPair(4e3, 2e5, 5e4),
)
"""Ten kinds, sized for the arm."""

MOTORS = {"ideal motors": Actuator(), "friction and gear loss": Actuator(Friction(1.0, 0.5, 0.8), Gear(0.8))}

COUNT = 50_000
"""States of a batch."""

MOST = 2.0
"""Largest ratio of the feedforward to the inverse dynamics, of one state and of a batch."""


def run(settings: Settings) -> Section:
    """Compare the times of one state and of a batch; arms are interleaved with their own inverse dynamics."""
    section = Section("motors", "Feedforward with every kind of spring")
    robots = {(spring.kind, name): robot for spring in SPRINGS for name, robot in _robots(spring).items()}
    table = Table(
        "iiwa, tau to taudd and motor motion and effort, called from Python",
        (*("springs", "motors", "one state", "× inverse dynamics"), *("batch, a state", "× inverse dynamics")),
    )
    random, worst = np.random.default_rng(1), [0.0, 0.0]
    # Arrays of their own: taking rows of one array would cost more than what is measured.
    one = tuple(random.uniform(-1, 1, 7) for _ in range(5))
    many = tuple(random.uniform(-1, 1, (COUNT, 7)) for _ in range(5))
    for (kind, name), robot in robots.items():
        arm, links = ElasticArm(robot), Dynamics(robot)
        tasks = {
            "feedforward": TimedTask(lambda arm=arm: arm.feedforward(*one)),
            "links": TimedTask(lambda links=links: links.inverse_dynamics(*one)),
        }
        batches = {
            "feedforward": TimedTask(lambda arm=arm: arm.feedforward(*many), COUNT),
            "links": TimedTask(lambda links=links: links.inverse_dynamics(*many), COUNT),
        }
        cells = []
        for k, (each, rounds) in enumerate(((tasks, settings.rounds), (batches, settings.slow_rounds))):
            times = interleaved(each, rounds)
            ratio = times.ratio("feedforward", "links")
            worst[k] = max(worst[k], ratio)
            cells += [seconds(times.median("feedforward")), f"{ratio:.2f}"]
        table.add(kind.replace("_", " "), name, *cells)
    section.tables = [table]
    section.text = [f"Batches have {COUNT:,} states. Ratios are medians of interleaved calls."]
    for what, ratio in zip(("one state", "a batch"), worst, strict=True):
        promise = f"feedforward of {what} with any spring at most {MOST} × the inverse dynamics of the arm"
        section.bars.append(Bar(promise, f"{ratio:.2f} ×", ratio <= MOST))
    return section


def _robots(spring: Spring) -> dict[str, Robot]:
    """The arm with a spring, by what its motors and joints lose."""
    robot = load_robot("iiwa")
    found = {
        name: replace(robot, joints=tuple(replace(x, spring=spring, actuator=actuator) for x in robot.joints))
        for name, actuator in MOTORS.items()
    }
    return found | {"joint friction": rubbing(robot, spring)}


def rubbing(robot: Robot, spring: Spring) -> Robot:
    """The arm with a spring and friction in its joints."""
    joints = tuple(replace(x, spring=spring, damping=0.5, friction=0.3) for x in robot.joints)
    return replace(robot, joints=joints, joint_friction=True)
