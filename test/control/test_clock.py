# SPDX-License-Identifier: Apache-2.0
"""Clocks that are reset, below zero, or far ahead: nothing that the loop has noted of the former clock bars or moves the arm."""

from pathlib import Path

import numpy as np
import pytest
from checked import HOME, resting, swing
from compilation import supports
from exported import loop_sources, succeed, write
from loop_rig import MS, LoopRig, Record, rest, straight

from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.control.settings import Status

SECOND = 10**9
RESETS = {
    "an hour back": (3600 * SECOND, SECOND),
    "to zero": (3600 * SECOND, 0),
    "below zero": (3600 * SECOND, -5 * SECOND),
    "3 s back": (10 * SECOND, 7 * SECOND),
    "0.2 s back": (10 * SECOND, 10 * SECOND - 200 * MS),
    "far ahead and back": (10**18, SECOND),
    "from below zero": (-SECOND, -100 * SECOND),
}
"""Times of the clock before a reset and after it, ns."""


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("kind", ["target", "chunk"])
@pytest.mark.parametrize("reset", RESETS)
def test_targets_are_accepted_after_a_reset_of_the_clock(reset: str, kind: str, hosted: bool) -> None:
    before, after = RESETS[reset]
    rig = LoopRig("panda", targets={}, hosted=hosted)
    rig.now = before
    rig.restart(HOME)

    def aim(away: float) -> int:
        rows = (HOME + away, None, None) if kind == "target" else (np.stack([HOME + away] * 2), None, np.array([0, 0.1]))
        refused = rig.number("refused")
        rig.target(*rows, rig.now)
        rig.run()
        return int(rig.number("refused") - refused)

    rig.cycles(10)
    assert aim(0.01) == 0
    rig.cycles(1000)
    rig.now = after
    rig.cycles(3)
    assert aim(0.02) == 0
    rig.cycles(1500)
    np.testing.assert_allclose(rig.q, HOME + 0.02, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["target", "chunk"])
def test_an_older_target_is_refused_after_a_reset_of_the_clock_too(kind: str) -> None:
    rig = LoopRig("panda", targets={})
    rig.now = 3600 * SECOND
    rig.restart(HOME)
    times = None if kind == "target" else np.array([0.0, 0.1])
    q = HOME if times is None else np.stack([HOME] * 2)
    for at in (3600 * SECOND, -SECOND):
        rig.now = at
        for stamp, wanted in ((at, "none"), (at - 5 * MS, "older"), (at + 5 * MS, "none")):
            rig.target(q, None, times, stamp)
            assert Refusal(rig.run()).name == wanted


@pytest.mark.parametrize("start", [-SECOND, -20 * MS, 0, 1])
def test_a_stream_through_time_zero_is_followed_as_on_any_other_clock(start: int) -> None:
    """Its only stamp of 0, which means none, does not pass for one."""
    rows = []
    for at in (start, 1000 * SECOND):
        rig = resting(cycles=0)
        rig.now = at
        rig.restart(HOME, at)
        for k in range(1500):
            rig.refer(swing(1e-3 * k, rate=2.0), rig.now or 1)
            rig.run()
        rig.cycles(600)
        rows.append(Record(rig))
    ours, other = rows
    assert not ours.code.any()
    np.testing.assert_array_equal(ours.code, other.code)
    np.testing.assert_array_equal(ours.sent["drive_position"], other.sent["drive_position"])
    assert ours.numbers["status"][-1] == Status.HELD


@pytest.mark.parametrize("what", ["target", "trajectory", "stop"])
def test_a_motion_of_damped_springs_through_time_zero_is_that_of_any_other_clock(what: str) -> None:
    """At time zero, the filters of the springs began anew: a stamp of 0 means none."""
    from dataclasses import replace

    from springs import EVERY_KIND, with_springs

    from eom_dynamics import load_robot

    robot = load_robot("sea_planar_2r")
    joints = [
        replace(joint, limits=replace(joint.limits, lower=-3, upper=3, velocity=2.0, acceleration=8.0))
        for joint in with_springs(robot, EVERY_KIND["damped"]).joints
    ]
    robot, q = replace(robot, name="damped_with_ranges", joints=tuple(joints)), np.array([0.2, 0.3])
    rows = []
    for at in (-300 * MS, 1000 * SECOND):
        rig = LoopRig(robot, targets={})
        rig.now = at
        rig.restart(q, at)
        if what == "trajectory":
            rig.trajectory(straight([0.0, 1.0], [q, q + 0.3]))
        else:
            rig.target(q + 0.3)
        rig.cycles(200)
        if what == "stop":
            rig.stop()
        rig.cycles(1500)
        rows.append(Record(rig))
    np.testing.assert_array_equal(rows[0].sent["drive_position"], rows[1].sent["drive_position"])
    assert np.ptp(rows[0].sent["drive_position"]) > 0.01


def test_a_stop_after_a_restart_does_not_go_on_from_a_trajectory_that_the_former_clock_played() -> None:
    """Its last command had the time at which the stop begins, on the clock that was set back."""
    rig = LoopRig("panda", targets={})
    rig.now = 100 * SECOND
    rig.restart(HOME, rig.now)
    rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.5]))
    while not rig.number("playing") or rig.number("path_time") < 0.5:
        rig.run()
    rig.stop()
    rig.cycles(1)
    last = int(rig.times[rig.count - 1])
    rig.cycles(1000)
    for stop_at in range(last - 3 * MS, last + 4 * MS, MS):
        rig.now = last - 500 * MS
        rig.restart(HOME, rig.now)
        first, k = rig.count, 0
        while rig.now <= stop_at:
            rig.refer(swing(1e-3 * k))
            rig.run()
            k += 1
        rig.stop()
        rig.cycles(600)
        q = Record(rig, first).setpoint["q"]
        assert np.abs(np.diff(q, axis=0)).max() < 2e-3, stop_at - last


def test_a_sample_of_the_former_clock_does_not_count_once_its_time_comes_again() -> None:
    rig = LoopRig("panda", stiffness=[100.0], mode="impedance")
    rig.now = 5 * SECOND
    sensed = rig.loop.vectors("sensed", dict.fromkeys(("q", "qd", "tau"), 7))
    sensed["q"][:] = HOME
    rig.restart(HOME)
    rig.loop.sense(rig.now, 1)
    rig.cycles(20, rest(HOME))
    rig.now = 0
    rig.cycles(200)
    unmeasured = [0.0] * 2
    for k, now in enumerate((4 * SECOND, 5 * SECOND)):
        rig.now = now
        before = rig.loop.record.unmeasured
        rig.cycles(10)
        unmeasured[k] = rig.loop.record.unmeasured - before
    assert unmeasured[0] == unmeasured[1]


def test_leads_of_stamps_before_time_zero_stay_within_their_array(tmp_path: Path) -> None:
    """By the sanitizer of the compiler, for clocks that go through zero, back and far ahead."""
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GLIBCXX_ASSERTIONS")
    if not supports(tmp_path, *flags):
        pytest.skip("the sanitizers are not installed, or do not run here")
    program = """
#include <eom/plausibility.hpp>
#include <cstdio>
int main()
{
    eom::StampLeads leads;
    int early = 0;
    const std::int64_t seconds[] = {1, -1, -3600, 0, -1, 1, 4000000000, -4000000000, 5};
    for (const std::int64_t start : seconds)
        for (std::int64_t k = 0; k < 3000; ++k)
            early += leads.is_early(1000000, start * 1000000000 + k * 1000000, true);
    std::printf("%d\\n", early);
    for (std::int64_t k = 0; k < 2; ++k) // ahead of those of the last second, also below zero
        early += leads.is_early(1000000 + 50000000 * k, -1000000000 + k, true);
    std::printf("%d\\n", early);
}
"""
    write({**loop_sources(), "main.cpp": program}, tmp_path)
    succeed(["c++", "-std=c++17", "-O1", *flags, "-Iinclude", "main.cpp", "-o", "main"], tmp_path)
    assert succeed([tmp_path / "main"], tmp_path).split() == ["0", "1"]
