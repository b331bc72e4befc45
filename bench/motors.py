# SPDX-License-Identifier: Apache-2.0
"""Feedforward of the iiwa with every kind of spring, compared with the inverse dynamics of its links."""

from dataclasses import replace
from functools import partial

import numpy as np
from harness import Section, Settings, TimedTask, beside

from eom_dynamics import Dynamics, ElasticArm, Robot, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear, springs

SPRINGS: tuple[springs.Spring, ...] = (
    springs.LinearSpring(1e4),
    springs.CubicSpring(8e3, 5e6),
    springs.PolynomialSpring([8e3, 1e3, 4e6, 0.0, 1e9]),
    springs.ExponentialSpring(8e3, 60.0),
    springs.DeadZoneSpring(1e4, 2e3, 2e-3, 1e-3),
    springs.TabulatedSpring([0.0, 1e-3, 3e-3, 8e-3, 2e-2], [0.0, 5.0, 20.0, 80.0, 260.0]),
    springs.DampedSpring(1e4, 30.0),
    springs.VariableSpring(5e3, 2e4, 1e4),
    springs.ExponentialPair(4e3, 60.0, 5e4),
    springs.QuadraticPair(4e3, 2e5, 5e4),
)
"""Ten kinds, sized for the arm."""

COUNT = 50_000  # states of a batch
MOST = 2.0  # largest ratio of the feedforward to the inverse dynamics, of one state and of a batch


def arms(spring: springs.Spring) -> dict[str, Robot]:
    """The iiwa with a spring, by the losses of its motors and joints."""
    robot = load_robot("iiwa")
    losses = {
        "ideal motors": {"actuator": Actuator()},
        "friction and gear loss": {"actuator": Actuator(Friction(1.0, 0.5, 0.8), Gear(0.8))},
        "joint friction": {"damping": 0.5, "friction": 0.3},
    }
    found = {
        name: replace(robot, joints=tuple(replace(x, spring=spring, **values) for x in robot.joints))
        for name, values in losses.items()
    }
    return found | {"joint friction": replace(found["joint friction"], joint_friction=True)}


def motors(section: Section, settings: Settings) -> None:
    """Compare the times of one state and of a batch; arms are interleaved with their own inverse dynamics."""
    table = section.table(
        "iiwa, tau to taudd and motor motion and effort, called from Python",
        *("springs", "motors", "one state", "× inverse dynamics", "batch, a state", "× inverse dynamics"),
    )
    random, worst = np.random.default_rng(1), {"one state": 0.0, "a batch": 0.0}
    # Separate arrays: taking rows of one array would take longer than the measured calls.
    one = tuple(random.uniform(-1, 1, 7) for _ in range(5))
    many = tuple(random.uniform(-1, 1, (COUNT, 7)) for _ in range(5))
    kinds = (("one state", one, 1, settings.rounds), ("a batch", many, COUNT, settings.slow_rounds))
    for spring in SPRINGS:
        for name, robot in arms(spring).items():
            arm, links, cells = ElasticArm(robot), Dynamics(robot), []
            for what, states, count, rounds in kinds:
                calls = partial(arm.feedforward, *states), partial(links.inverse_dynamics, *states)
                ours, theirs = (TimedTask(call, count) for call in calls)
                median, _, ratio = beside({what: (ours, theirs)}, rounds)[what]
                worst[what] = max(worst[what], ratio)
                cells += [median, f"{ratio:.2f}"]
            table.add(spring.kind.replace("_", " "), name, *cells)
    section.text.append(f"Batches have {COUNT:,} states. Ratios are medians of interleaved calls.")
    for what, ratio in worst.items():
        promise = f"feedforward of {what} with any spring at most {MOST} × the inverse dynamics of the arm"
        section.promise(promise, f"{ratio:.2f} ×", ratio <= MOST)
