# SPDX-License-Identifier: Apache-2.0
"""When commands are obeyed, and when they are missing."""

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from eom_dynamics.ros.simulated_robot.watchdog import CommandPhase, CommandWatchdog


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
