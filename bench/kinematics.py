# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians of one state, called from Python, next to Pinocchio; inverse kinematics of random poses."""

from __future__ import annotations

import time

import numpy as np
import pinocchio as pin
from pinocchio_model import pinocchio_model
from report import Bar, Section, Table, seconds
from settings import QUICK, Settings
from timing import TimedTask, interleaved

from eom_dynamics import Kinematics, Robot, inverse_kinematics, load_robot
from eom_dynamics.arrays import Array

ARMS = ("iiwa", "panda", "ur5e")

REPRESENTATIONS = {"body": pin.LOCAL, "space": pin.WORLD, "world_aligned": pin.LOCAL_WORLD_ALIGNED}


def run(settings: Settings) -> Section:
    """Compare results with Pinocchio, then measure times; solve random poses."""
    section = Section("kinematics", "Kinematics")
    table = Table("one state, called from Python", ("call", "ours", "Pinocchio", "ours / Pinocchio"))
    ratios = {}
    for name in ARMS:
        for call, ours, theirs, ratio in _one_state(load_robot(name), settings):
            table.add(f"{name}: {call}", ours, theirs, f"{ratio:.2f}")
            ratios[name, call] = ratio
    count = 500 if settings is QUICK else 10_000
    solved = Table(
        f"inverse kinematics of {count:,} random poses within joint limits, from random starts, to 1e-10 m and rad",
        ("arm", "solved", "attempts", "steps", "one target: median", "99 %", "in a batch, each"),
    )
    rates = []
    for name in ARMS:
        row, rate = _inverse(load_robot(name), count)
        solved.add(name, *row)
        rates.append(rate)
    section.tables = [table, solved]
    section.text = [
        "Pinocchio's `forwardKinematics` with `updateFramePlacement`, and `computeFrameJacobian`; results agree to "
        "1e-13. Times of one target are of calls from Python. Attempts and steps are means."
    ]
    poses, jacobians = (max(r for (_, call), r in ratios.items() if call.startswith(what)) for what in ("pose", "jac"))
    section.bars = [
        Bar("`pose` in at most 1.0 × Pinocchio's time", f"{poses:.2f} ×", poses <= 1),
        Bar("`jacobian` in at most 1.0 × Pinocchio's time", f"{jacobians:.2f} ×", jacobians <= 1),
        Bar("at least 99.9 % of reachable poses solved", f"{100 * min(rates):.2f} %", min(rates) >= 0.999),
    ]
    return section


def _one_state(robot: Robot, settings: Settings) -> list[tuple[str, str, str, float]]:
    kinematics, model = Kinematics(robot), pinocchio_model(robot)
    data, frame = model.createData(), model.getFrameId(robot.tools[0].name)
    q = np.random.default_rng(1).uniform(-1, 1, robot.n)

    def placement() -> Array:
        pin.forwardKinematics(model, data, q)
        found: Array = pin.updateFramePlacement(model, data, frame)
        return found

    assert np.allclose(kinematics.pose(q), placement().homogeneous, rtol=0, atol=1e-13)
    pairs = {"pose": (lambda: kinematics.pose(q), placement)}
    for name, reference in REPRESENTATIONS.items():

        def theirs(reference: pin.ReferenceFrame = reference) -> Array:
            found: Array = pin.computeFrameJacobian(model, data, q, frame, reference)
            return found

        assert np.allclose(kinematics.jacobian(q, reference=name), np.roll(theirs(), 3, axis=0), rtol=0, atol=1e-13)
        pairs[f'jacobian, reference="{name}"'] = (lambda name=name: kinematics.jacobian(q, reference=name), theirs)
    tasks = {}
    for name, (ours, theirs) in pairs.items():
        tasks |= {name: TimedTask(ours), f"Pinocchio: {name}": TimedTask(theirs)}
    times = interleaved(tasks, settings.rounds)
    return [
        (
            name,
            seconds(times.median(name)),
            seconds(times.median(f"Pinocchio: {name}")),
            times.ratio(name, f"Pinocchio: {name}"),
        )
        for name in pairs
    ]


def _inverse(robot: Robot, count: int) -> tuple[list[str], float]:
    kinematics = Kinematics(robot)
    targets, starts = _poses(kinematics, count)
    inverse_kinematics(kinematics, targets[0], start=starts[0])  # compiled
    each = np.empty(min(count, 2000))
    for i in range(len(each)):
        begin = time.perf_counter()
        inverse_kinematics(kinematics, targets[i], start=starts[i])
        each[i] = time.perf_counter() - begin
    begin = time.perf_counter()
    found = inverse_kinematics(kinematics, targets, start=starts)
    whole = time.perf_counter() - begin
    rate = float(np.mean(found.success))
    return [
        f"{100 * rate:.2f} %",
        f"{np.mean(found.attempts):.2f}",
        f"{np.mean(found.iterations):.1f}",
        seconds(float(np.median(each))),
        seconds(float(np.quantile(each, 0.99))),
        seconds(whole / count),
    ], rate


def _poses(kinematics: Kinematics, count: int) -> tuple[Array, Array]:
    """Random reachable poses (N, 4, 4) and random starts (N, n)."""
    lower, upper = _limits(kinematics.robot).T
    q, starts = np.random.default_rng(2).uniform(lower, upper, (2, count, kinematics.robot.n))
    return kinematics.pose(q), starts


def _limits(robot: Robot) -> Array:
    """Smallest and largest joint variables (n, 2); half a turn where there are none."""
    limits = np.array([(joint.limits.lower, joint.limits.upper) for joint in robot.independent_joints])
    return np.where(np.isfinite(limits), limits, np.pi * np.array([-1, 1]))
