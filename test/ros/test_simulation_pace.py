# SPDX-License-Identifier: Apache-2.0
"""Pace and watchdog of the simulated robot."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from eom_dynamics.ros.simulated_robot_node import CommandPhase, CommandWatchdog, Pace

MS = 1e-3
# Period; readings of the clock, after the first of which no period is due; periods due at the others; steps; those that
# came late, and those that were let go.
PACES = {
    "a steady clock": (MS, [5.0 + MS * k for k in range(5000)], [1] * 4999, 4999, 0, 0),
    "between two periods nothing is due": (MS, [0.0, 0.0004, 0.0011, 0.0015, 0.0021], [0, 1, 0, 1], 2, 0, 0),
    "after a hiccup it catches up in goes of 20 ms": (MS, [0.0, *[0.05] * 4], [20, 20, 10, 0], 50, 19 + 19 + 9, 0),
    "time beyond 100 ms is let go": (MS, [0.0, *[7.0] * 6, 7.001], [20] * 5 + [0, 1], 101, 5 * 19, 6900),
    "a clock that is set back starts anew": (MS, [100.0, 100.001, 3.0, 3.002], [1, 0, 2], 3, 1, 0),
    "slow steps are taken one at a time": (0.1, [0.0, 0.05, 0.1, 0.35, 0.35, 0.35], [0, 1, 1, 0, 0], 2, 0, 1),
}


@pytest.mark.parametrize(("period", "clock", "due", "steps", "late", "lost"), PACES.values(), ids=PACES)
def test_periods_are_counted(period, clock, due, steps, late, lost):
    pace = Pace(period)
    assert [pace.due(t) for t in clock] == [0, *due]
    assert (pace.steps, pace.late, pace.lost) == (steps, late, lost)
    if period == MS:
        assert pace.lag == pytest.approx(1e-4 if steps == 2 else 0.0, abs=1e-9)


def test_before_the_first_command_none_is_missing():
    watchdog = CommandWatchdog(0.1)
    assert not watchdog.missed(1000.0)
    assert watchdog.phase is CommandPhase.WAITING


def test_missing_commands_are_noticed_once_and_the_next_one_is_obeyed():
    watchdog = CommandWatchdog(0.1)
    assert watchdog.command(1.0)
    assert not watchdog.missed(1.09)
    assert watchdog.missed(1.11) and not watchdog.missed(1.12)
    assert watchdog.phase is CommandPhase.LOST
    assert watchdog.command(2.0) and watchdog.phase is CommandPhase.FOLLOWING


def test_without_a_timeout_none_is_ever_missing():
    watchdog = CommandWatchdog(0.0)
    watchdog.command(1.0)
    assert not watchdog.missed(1e6)


def test_a_clock_that_is_set_back_keeps_nobody_waiting():
    watchdog = CommandWatchdog(0.1)
    watchdog.command(100.0)
    assert not watchdog.missed(1.0)
    assert not watchdog.missed(1.09)
    assert watchdog.missed(1.11)


@pytest.mark.parametrize(("timeout", "pause"), [(0.1, 0.11), (0.0, 1.01)])
def test_after_a_stop_commands_are_obeyed_when_they_have_paused(timeout, pause):
    watchdog = CommandWatchdog(timeout)
    watchdog.command(1.0)
    watchdog.stop(1.0)
    for now in (1.05, 1.1, 1.15):
        assert not watchdog.command(now) and not watchdog.missed(now)
    assert watchdog.phase is CommandPhase.STOPPED
    assert not watchdog.missed(1.15 + pause)
    assert watchdog.phase is CommandPhase.WAITING
    assert watchdog.command(1.15 + pause)
