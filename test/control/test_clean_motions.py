# SPDX-License-Identifier: Apache-2.0
"""Motions within limits, as setpoints that arrive with jitter, under strict: none is refused, and none is stopped."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from loop_rig import MS, START, LoopRig, Record
from sent_oracle import FRESH

from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import SUSPECT, Refusal
from eom_dynamics.elastic.limits import arm_limits
from eom_dynamics.trajectory import Spline, Trajectory, check, minimum_time, sample

ARMS = ("panda", "ur5e", "dual_arm", "sea_planar_2r")
KINDS = ("fastest", "to a limit", *["clean"] * 7)
"""Fastest motions, motions that end at a limit of position, and seven times as many others."""

JITTERS = (300_000, 300_000, 20 * MS)
"""Largest delays of setpoints, ns, in turns."""

COUNT = 450
BLOCK = len(ARMS) * len(KINDS)
LENGTH = 2300
"""Setpoints of each motion on average, with rest at both ends."""


def path(rng: np.random.Generator, start: Array, end: Array) -> Spline:
    """A spline from rest to rest, with a place between that it passes at times."""
    if rng.random() < 0.5:
        return Spline([0.0, 1.0], np.stack([np.stack([start, end]), *np.zeros((4, 2, len(start)))]))
    states = np.zeros((5, 3, len(start)))
    states[0] = start, start + rng.uniform(0.3, 0.7) * (end - start) + rng.uniform(-0.1, 0.1, len(start)), end
    states[1, 1] = 1.5 * (end - start)
    return Spline([0.0, 0.5, 1.0], states)


def motion(number: int) -> tuple[LoopRig, Trajectory, str]:
    """A motion by its number, for an arm of ARMS."""
    rng = np.random.default_rng(number)
    name, kind = ARMS[number % len(ARMS)], KINDS[number // len(ARMS) % len(KINDS)]
    rig = LoopRig(name)
    arm, limits = rig.arm, arm_limits(rig.arm)
    lower, upper = (np.where(np.isfinite(x), x, sign * 2.5) for x, sign in ((limits.lower, -1), (limits.upper, 1)))
    for _ in range(200):
        start, end = (rng.uniform(lower + 0.05 * (upper - lower), upper - 0.05 * (upper - lower)) for _ in range(2))
        end = start + np.clip(end - start, -1.2, 1.2)
        if kind == "to a limit" and limits.limited("velocity"):
            joint = rng.integers(rig.n)
            end[joint] = (lower, upper)[rng.integers(2)][joint]
            start[joint] = end[joint] + np.clip(start[joint] - end[joint], -1.0, 1.0)
        curve = path(rng, start, end)
        if kind == "fastest":
            try:
                return rig, minimum_time(arm, curve), kind
            except Exception:  # an arm that cannot rest there
                continue
        duration = float(rng.uniform(0.4, 1.0))
        for _ in range(14):
            slower = curve.stretched(duration)
            if check(arm, slower, rate=1000.0).ok:
                return rig, slower, kind
            duration *= 1.25
    raise AssertionError(f"no motion {number}")


def failures(number: int) -> tuple[int, list[str]]:
    """Setpoints of a motion, and what became of those that were not followed."""
    rig, trajectory, kind = motion(number)
    rng = np.random.default_rng(number)
    states = np.stack(sample(trajectory, 1000.0)[1:], axis=1)
    still = max((LENGTH - len(states)) // 2, 100)
    first, last = (np.repeat(states[[k]], still, axis=0) for k in (0, -1))
    first[:, 1:], last[:, 1:] = 0, 0
    states = np.concatenate((first, states, last))
    rig._resize(len(states))
    rig.restart(states[0, 0])
    delays = rng.integers(JITTERS[number // len(ARMS) % len(JITTERS)], size=len(states))
    arrivals = np.maximum.accumulate(START + MS * np.arange(len(states)) + delays)
    for k, (state, rig.now) in enumerate(zip(states, arrivals.tolist(), strict=True)):
        rig.refer(state, START + k * MS)
        rig.run()
    record = Record(rig)
    # What a sample rate of 1 kHz does not resolve is counted as inconsistent, but followed.
    followed = (record.code == 0) | (record.code == -SUSPECT)
    bad = np.flatnonzero(~followed | (record.numbers["status"] != FRESH))
    place = f"motion {number}, {kind} of {rig.arm.robot.name}, of {len(states)}"
    wrong = [
        f"{place}: {Refusal(int(record.code[k])).name if record.code[k] > 0 else record.code[k]} at {k}"
        for k in bad[:3]
    ]
    return len(states), wrong


@pytest.mark.parametrize("name", ARMS)
def test_clean_motions(name: str) -> None:
    """One of each kind."""
    first = ARMS.index(name)
    wrong = [x for number in range(first, 3 * len(ARMS), len(ARMS)) for x in failures(number)[1]]
    assert not wrong, wrong


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_million_setpoints() -> None:
    count = max(round(COUNT * min(1.0, float(os.environ.get("SOAK_SECONDS", "600")) / 600)), BLOCK)
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        results = list(pool.map(failures, range(count)))
    total, wrong = sum(x for x, _ in results), [x for _, rows in results for x in rows]
    print(f"{count} motions, {total} setpoints")
    assert not wrong, wrong[:20]
    assert total >= (LENGTH - 50) * count
