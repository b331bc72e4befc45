# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians of one state, called from Python, next to Pinocchio; inverse kinematics of random poses."""

from functools import partial

import numpy as np
import pinocchio as pin
from harness import Section, Settings, Table, TimedTask, interleaved, seconds, timed
from pinocchio_model import pinocchio_model

from eom_dynamics import Kinematics, Robot, inverse_kinematics, load_robot
from eom_dynamics.arrays import Array

ARMS = ("iiwa", "panda", "ur5e")

REPRESENTATIONS = {"body": pin.LOCAL, "space": pin.WORLD, "world_aligned": pin.LOCAL_WORLD_ALIGNED}


def kinematics(section: Section, settings: Settings) -> None:
    """Compare results with Pinocchio, then measure times; solve random poses."""
    table = section.table("one state, called from Python", "call", "ours", "Pinocchio", "ours / Pinocchio")
    ratios: dict[str, list[float]] = {"pose": [], "jacobian": []}
    for name in ARMS:
        _one_state(table, ratios, load_robot(name), settings)
    count = 500 if settings.quick else 10_000
    solved = section.table(
        f"inverse kinematics of {count:,} random poses within joint limits, from random starts, to 1e-10 m and rad",
        *("arm", "solved", "attempts", "steps", "one target: median", "99 %", "in a batch, each"),
    )
    rate = min(_inverse(solved, load_robot(name), count) for name in ARMS)
    section.text.append(
        "Pinocchio's `forwardKinematics` with `updateFramePlacement`, and `computeFrameJacobian`; results agree to "
        "1e-13. Times of one target are of calls from Python. Attempts and steps are means."
    )
    for call, found in ratios.items():
        section.promise(f"`{call}` in at most 1.0 × Pinocchio's time", f"{max(found):.2f} ×", max(found) <= 1)
    section.promise("at least 99.9 % of reachable poses solved", f"{100 * rate:.2f} %", rate >= 0.999)


def _one_state(table: Table, ratios: dict[str, list[float]], robot: Robot, settings: Settings) -> None:
    own, model = Kinematics(robot), pinocchio_model(robot)
    data, frame = model.createData(), model.getFrameId(robot.tools[0].name)
    q = np.random.default_rng(1).uniform(-1, 1, robot.n)

    def placement() -> Array:
        pin.forwardKinematics(model, data, q)
        found: Array = pin.updateFramePlacement(model, data, frame)
        return found

    assert np.allclose(own.pose(q), placement().homogeneous, rtol=0, atol=1e-13)
    pairs = {"pose": (partial(own.pose, q), placement)}
    for name, reference in REPRESENTATIONS.items():
        ours = partial(own.jacobian, q, reference=name)
        theirs = partial(pin.computeFrameJacobian, model, data, q, frame, reference)
        assert np.allclose(ours(), np.roll(theirs(), 3, axis=0), rtol=0, atol=1e-13)
        pairs[f'jacobian, reference="{name}"'] = ours, theirs
    tasks = {}
    for name, (ours, theirs) in pairs.items():
        tasks |= {name: TimedTask(ours), f"Pinocchio: {name}": TimedTask(theirs)}
    times = interleaved(tasks, settings.rounds)
    for name in pairs:
        ratio = times.ratio(name, f"Pinocchio: {name}")
        table.add(f"{robot.name}: {name}", times.cell(name), times.cell(f"Pinocchio: {name}"), f"{ratio:.2f}")
        ratios[name.partition(",")[0]].append(ratio)


def _inverse(table: Table, robot: Robot, count: int) -> float:
    """Share of random reachable poses that are solved from random starts."""
    own = Kinematics(robot)
    limits = np.array([(joint.limits.lower, joint.limits.upper) for joint in robot.independent_joints])
    # Half a turn where there are none.
    lower, upper = np.where(np.isfinite(limits), limits, np.pi * np.array([-1, 1])).T
    q, starts = np.random.default_rng(2).uniform(lower, upper, (2, count, robot.n))
    targets = own.pose(q)
    inverse_kinematics(own, targets[0], start=starts[0])  # compiled
    each = [timed(partial(inverse_kinematics, own, targets[i], start=starts[i]))[1] for i in range(min(count, 2000))]
    found, whole = timed(partial(inverse_kinematics, own, targets, start=starts))
    rate = float(np.mean(found.success))
    table.add(
        robot.name,
        *(f"{100 * rate:.2f} %", f"{np.mean(found.attempts):.2f}", f"{np.mean(found.iterations):.1f}"),
        *(seconds(float(np.median(each))), seconds(float(np.quantile(each, 0.99))), seconds(whole / count)),
    )
    return rate
