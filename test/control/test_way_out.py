# SPDX-License-Identifier: Apache-2.0
"""Share of limits that a stop would need, which the loop tells at any time, and what the stop then takes."""

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
"""Seeds of stops that took more than was told: accelerations of the plan, velocities, peaks of efforts and rates."""


def table(name: str) -> RobotTable:
    return RobotTable(arm_of(name).oracle.arm)


def share_of(loop: ControlLoop, limits: dict[str, Array]) -> float:
    """Largest share of a limit that the last command takes."""
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
def test_no_stop_takes_more_than_was_told_when_it_began(name: str, seed: int, limits: str) -> None:
    """Also where it begins beyond limits, or must exceed them: they are told before."""
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
        told = loop.number("way_out")
        loop.act("stop")
        assert told == loop.number("way_out")
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


def test_at_rest_it_is_the_share_of_the_weight() -> None:
    loop = ControlLoop(table("panda"))
    loop.restart(quiet("panda"))
    follow(loop, np.vstack([quiet("panda"), np.zeros((4, 7))]), START)
    assert loop.number("way_out") == pytest.approx(share_of(loop, limits_of(loop.arm)), rel=1e-9)


def test_amid_a_stream_it_is_told_every_tenth_of_a_second() -> None:
    loop, told = ControlLoop(table("iiwa")), []
    loop.configure(jump_check="ignore")
    loop.restart(quiet("iiwa"))
    for k, state in enumerate(clean(quiet("iiwa"), np.full(7, 0.2), 2.0, 1e-3 * np.arange(1000))):
        assert follow(loop, state, START + k * MS) <= 0
        told.append(loop.number("way_out"))
    changes = np.flatnonzero(np.diff(told)) + 1
    assert set(np.diff(changes)) == {100} and len(changes) >= 9
    assert loop.number("largest_way_out") == max(told)
    loop.restart(quiet("iiwa"))
    assert loop.number("largest_way_out") == 0
