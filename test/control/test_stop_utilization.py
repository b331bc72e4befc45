# SPDX-License-Identifier: Apache-2.0
"""Stop utilization: the largest utilization of a limit in a joint stop, computed before the stop."""

import numpy as np
import pytest
from random_scenes import QUIET, ROBOTS, arm_of, clean

from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable, limits_of

MS, START = 1_000_000, 10**18
RATES = ("tau", "taud", "motor_velocity", "motor_effort"), ("qd", "qdd")
ROUNDING = 1e-9
FOUND = [("coupled", 382), ("iiwa", 123), ("panda", 14), ("vsa_planar_2r", 65), ("carried", 96), ("sea_planar_2r", 54)]
"""Seeds of stops that exceeded it: accelerations of the plan, velocities, peaks of efforts and rates."""


def table(name: str) -> RobotTable:
    return RobotTable(arm_of(name).oracle.arm)


def share_of(loop: ControlLoop, limits: dict[str, Array]) -> float:
    """Largest utilization of a limit by the last command."""
    most = 0.0
    for vectors, names in zip((loop.command, loop.setpoint), RATES, strict=True):
        for name in names:
            upper = limits[f"upper.{name}"]
            rows = np.isfinite(upper)
            most = max(most, float(np.max(np.abs(vectors[name][rows]) / upper[rows], initial=0.0)))
    return most


def follow(loop: ControlLoop, state: Array, now: int) -> int:
    loop.rest()
    for name, values in zip(STATE_NAMES, state, strict=True):
        loop.given[name][:] = values
    loop.refer(0)
    return loop.update(now, 1e-3)


def quiet(name: str) -> Array:
    return np.array(QUIET.get(name, [-1.4, 0.3] if name == "damped" else [0.2, 0.3]), dtype=float)


@pytest.mark.parametrize("limits", ["refuse", "warn"])
@pytest.mark.parametrize(("name", "seed"), [(name, 4) for name in ROBOTS] + FOUND)
def test_stop_utilization_is_an_upper_bound(name: str, seed: int, limits: str) -> None:
    """Also if the stop begins beyond limits, or must exceed them."""
    rng, of, larger = np.random.default_rng(seed), limits_of(table(name).arm), 0
    for duration in (0.1, 0.5) * 5:
        loop, now = ControlLoop(table(name)), START
        loop.configure(safety="permissive", limits=limits, stop_duration=duration)
        state = clean(quiet(name), rng.uniform(-0.6, 0.6, len(quiet(name))), rng.uniform(1, 6), 1e-3 * np.arange(600))[
            rng.integers(50, 600)
        ]
        loop.restart(state[0])
        if follow(loop, state, now) > 0:
            continue
        told = loop.stop_utilization()
        loop.act("stop")
        most = 0.0
        while loop.number("phase") == 4:  # stopping
            now += MS
            loop.update(now, 1e-3)
            most = max(most, share_of(loop, of))
        assert most <= told + ROUNDING, (told, most)
        larger += told > 1
        assert (loop.number("excess") > 0) == (told > 1 + ROUNDING)
    assert larger or (name, seed, limits) != ("panda", 4, "warn")


def test_harder_brakes_than_soft_springs_allow_are_not_made() -> None:
    """No brake that is looked at fits, but the stop does: the hardest brake took motors to ten times their speed."""
    loop, now, most = ControlLoop(table("vsa_planar_2r")), START, 0.0
    loop.configure(safety="permissive", limits="refuse", stop_duration=0.5)
    moves = np.array([[0.3301, 0.38845], [1.557, 1.0587], [10.16, 6.911], [-47.39, -32.22], [-1658.0, -1128.0]])
    loop.restart(moves[0])
    assert follow(loop, moves, now) <= 0
    loop.act("stop")
    while loop.number("phase") == 4:
        now += MS
        loop.update(now, 1e-3)
        most = max(most, share_of(loop, limits_of(loop.arm)))
    assert now - START > 490 * MS and most <= 1


def test_stop_utilization_at_rest_is_the_utilization_by_weight() -> None:
    loop = ControlLoop(table("panda"))
    loop.restart(quiet("panda"))
    follow(loop, np.vstack([quiet("panda"), np.zeros((4, 7))]), START)
    assert loop.stop_utilization() == pytest.approx(share_of(loop, limits_of(loop.arm)), rel=1e-9)
