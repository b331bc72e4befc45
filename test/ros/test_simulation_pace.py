# SPDX-License-Identifier: Apache-2.0
"""Pace and watchdog of the simulated robot."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from eom_dynamics.ros.simulated_robot_node import CommandPhase, CommandWatchdog, Pace


def test_it_counts_the_periods_of_a_steady_clock():
    pace = Pace(1e-3)
    assert pace.due(5.0) == 0
    assert [pace.due(5.0 + 1e-3 * k) for k in range(1, 5000)] == [1] * 4999
    assert (pace.steps, pace.late, pace.lost) == (4999, 0, 0)
    assert abs(pace.lag) < 1e-9


def test_between_two_periods_nothing_is_due():
    pace = Pace(1e-3)
    pace.due(0.0)
    assert [pace.due(t) for t in (0.0004, 0.0011, 0.0015, 0.0021)] == [0, 1, 0, 1]
    assert pace.lag == pytest.approx(1e-4)


def test_after_a_hiccup_it_catches_up_in_goes_of_20_ms():
    pace = Pace(1e-3)
    pace.due(0.0)
    assert [pace.due(0.050) for _ in range(4)] == [20, 20, 10, 0]
    assert (pace.steps, pace.late, pace.lost) == (50, 19 + 19 + 9, 0)


def test_of_a_long_one_the_time_beyond_100_ms_is_let_go():
    pace = Pace(1e-3)
    pace.due(0.0)
    assert sum(pace.due(7.0) for _ in range(10)) == 100
    assert pace.lost == 6900
    assert pace.due(7.001) == 1


def test_a_clock_that_is_set_back_starts_anew():
    pace = Pace(1e-3)
    pace.due(100.0)
    assert pace.due(100.001) == 1
    assert pace.due(3.0) == 0
    assert pace.due(3.002) == 2
    assert pace.lost == 0


def test_slow_steps_are_taken_one_at_a_time():
    pace = Pace(0.1)
    pace.due(0.0)
    assert [pace.due(t) for t in (0.05, 0.1, 0.35, 0.35, 0.35)] == [0, 1, 1, 0, 0]
    assert pace.lost == 1


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
