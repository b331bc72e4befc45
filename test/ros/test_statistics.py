# SPDX-License-Identifier: Apache-2.0
"""Counts, levels and values of the stream's diagnostics."""

from unittest.mock import MagicMock

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from eom_dynamics.elastic import LimitViolation
from eom_dynamics.ros.diagnostics import Level
from eom_dynamics.ros.dynamics.statistics import StreamStatistics


@pytest.fixture
def statistics():
    return StreamStatistics(MagicMock(warning_period=1.0))


def exceeded(statistics, ratio):
    """A command with this ratio of an effort to its limit; returns the text of the violation."""
    violation = LimitViolation("elbow", "effort", ratio, 1.0, "N m", ratio)
    statistics.exceed((violation,), clips=False)
    return str(violation)


def answered(statistics, times):
    for time in times:
        statistics.received += 1
        statistics.published += 1
        statistics.add_time(time)


def refused(statistics, reasons):
    for reason in reasons:
        statistics.received += 1
        statistics.refuse(reason)


def test_figures_are_those_of_the_period(statistics):
    answered(statistics, [9_000_000])
    statistics.report(1.0)
    answered(statistics, [100_000, 300_000, 200_000, 50_000_000])
    level, message, values = statistics.report(0.5)
    assert (level, message) == (Level.OK, "streaming")
    assert values["received"] == values["published"] == "5"
    assert values["rate (Hz)"] == "8.0"
    assert values["compute time median (us)"] == "250.0"
    assert values["compute time max (us)"] == "50000.0"
    assert values["load (%)"] == "10.1"
    level, message, values = statistics.report(0.5)
    assert (level, message) == (Level.OK, "waiting for setpoints")
    assert values["compute time median (us)"] == values["compute time max (us)"] == ""
    assert values["received"] == "5"


def test_some_refused_warn_and_all_refused_are_an_error(statistics):
    answered(statistics, [1])
    refused(statistics, ["first", "second"])
    level, message, values = statistics.report(1.0)
    assert (level, message) == (Level.WARN, "2 of 3 setpoints refused, the last: second")
    assert (values["refused"], values["last refusal"]) == ("2", "second")
    refused(statistics, ["third"])
    assert statistics.report(1.0)[:2] == (Level.ERROR, "1 of 1 setpoints refused, the last: third")
    level, _, values = statistics.report(1.0)
    assert level == Level.OK
    assert (values["refused"], values["last refusal"]) == ("3", "third")


def test_ignored_setpoints_warn(statistics):
    statistics.received = statistics.ignored = 4
    assert statistics.report(1.0)[:2] == (Level.WARN, "4 setpoints ignored: the node is not active")
    assert statistics.report(1.0).level == Level.OK


@pytest.mark.parametrize(("busy", "level"), [(0.79, Level.OK), (0.81, Level.WARN)])
def test_too_little_time_warns(statistics, busy, level):
    answered(statistics, [round(busy * 1e6)] * 1000)
    assert statistics.report(1.0).level == level


def test_a_long_period_takes_bounded_memory_and_keeps_its_maximum(statistics):
    answered(statistics, [5000, *[1000] * 30_000])
    assert len(statistics._times) == 10_000
    values = statistics.report(60.0).values
    assert values["compute time median (us)"] == "1.0"
    assert values["compute time max (us)"] == "5.0"


def test_exceeded_limits_warn_with_the_worst_of_the_period(statistics):
    answered(statistics, [1] * 5)
    statistics.exceed((), clips=False)
    _, worst, _ = (exceeded(statistics, ratio) for ratio in (1.5, 3.0, 2.0))
    level, message, values = statistics.report(1.0)
    assert (level, message) == (Level.WARN, f"3 of 5 commands exceed limits, the worst: {worst}")
    assert (values["over limits"], values["worst violation"]) == ("3", worst)
    level, _, values = statistics.report(1.0)
    assert (level, values["over limits"], values["worst violation"]) == (Level.OK, "3", "")
    answered(statistics, [1])
    little = exceeded(statistics, 1.1)
    assert statistics.report(1.0).message == f"1 of 1 commands exceed limits, the worst: {little}"


def test_refusals_come_before_exceeded_limits(statistics):
    answered(statistics, [1])
    refused(statistics, ["why"])
    much = exceeded(statistics, 2.0)
    level, message, values = statistics.report(1.0)
    assert (level, message) == (Level.WARN, "1 of 2 setpoints refused, the last: why")
    assert values["worst violation"] == much
