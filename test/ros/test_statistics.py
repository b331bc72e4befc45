# SPDX-License-Identifier: Apache-2.0
"""Counts, levels and values of the stream's diagnostics."""

from unittest.mock import MagicMock

import pytest

from eom_dynamics.elastic import LimitViolation
from eom_dynamics.ros.diagnostics import Level
from eom_dynamics.ros.dynamics.statistics import StreamStatistics


class Stream(StreamStatistics):
    """Statistics of setpoints that are answered within times, ns, refused, or answered beyond limits."""

    def answer(self, *times):
        self.received += len(times)
        self.published += len(times)
        for time in times:
            self.add_time(time)

    def turn_down(self, *reasons):
        self.received += len(reasons)
        for reason in reasons:
            self.refuse(reason)

    def go_beyond(self, ratio):
        """Exceed two limits; return the worst."""
        found = tuple(LimitViolation(name, "effort", ratio, 1.0, "N m", ratio) for name in ("elbow", "wrist"))
        loop = MagicMock(violations=lambda most=2: found[:most])
        loop.loop.settings = {"limits": "warn"}
        self.exceed(loop)
        return str(found[0])


@pytest.fixture
def stream():
    return Stream(MagicMock())


def test_figures_are_those_of_the_period(stream):
    stream.answer(9_000_000)
    stream.report(1.0)
    stream.answer(100_000, 300_000, 200_000, 50_000_000)
    level, message, values = stream.report(0.5)
    assert (level, message) == (Level.OK, "streaming")
    assert values["received"] == values["published"] == "5"
    assert (values["rate (Hz)"], values["load (%)"]) == ("8.0", "10.1")
    assert (values["compute time median (us)"], values["compute time max (us)"]) == ("250.0", "50000.0")
    level, message, values = stream.report(0.5)
    assert (level, message, values["received"]) == (Level.OK, "waiting for setpoints", "5")
    assert values["compute time median (us)"] == values["compute time max (us)"] == ""


REFUSED = "2 of 3 setpoints refused, the last: second"
# Events in successive periods, and the level and message of each.
PERIODS = {
    "refusals": [
        (lambda x: (x.answer(1), x.turn_down("first", "second")), Level.WARN, REFUSED),
        (lambda x: x.turn_down("third"), Level.ERROR, "1 of 1 setpoints refused, the last: third"),
        (lambda x: vars(x).update(received=8, ignored=4), Level.WARN, "4 setpoints ignored: the node is not active"),
        (lambda x: None, Level.OK, "waiting for setpoints"),
    ],
    "time": [
        (lambda x: x.answer(*[790_000] * 1000), Level.OK, "streaming"),
        (lambda x: x.answer(*[810_000] * 1000), Level.WARN, "busy for 81 % of the time: setpoints queue up"),
    ],
}


@pytest.mark.parametrize("periods", PERIODS.values(), ids=PERIODS)
def test_levels_and_messages_are_those_of_the_period(stream, periods):
    for happens, level, message in periods:
        happens(stream)
        assert stream.report(1.0)[:2] == (level, message)


def test_a_long_period_takes_bounded_memory_and_keeps_its_maximum(stream):
    stream.answer(5000, *[1000] * 30_000)
    assert len(stream._times) == 10_000
    values = stream.report(60.0).values
    assert (values["compute time median (us)"], values["compute time max (us)"]) == ("1.0", "5.0")


def test_exceeded_limits_warn_with_the_worst_of_the_period_but_for_refusals(stream):
    stream.answer(*[1] * 5)
    _, worst, _ = (stream.go_beyond(ratio) for ratio in (1.5, 3.0, 2.0))
    # Other texts are formatted when they are logged.
    kind, text = stream._node.warn.call_args.args
    in_full = stream._node.warn.call_args.kwargs["in_full"]
    assert (kind, text) == ("command exceeds limits", worst.replace("3", "2"))
    assert in_full() == f"{text}; {text.replace('elbow', 'wrist')}"
    level, message, values = stream.report(1.0)
    # Not of the setpoints, as responses to their loss also exceed limits.
    assert (level, message) == (Level.WARN, f"3 commands exceed limits, the worst: {worst}")
    assert (values["over limits"], values["worst violation"]) == ("3", worst)
    level, _, values = stream.report(1.0)
    assert (level, values["over limits"], values["worst violation"]) == (Level.OK, "3", "")
    stream.answer(1)
    stream.turn_down("why")
    little = stream.go_beyond(1.1)
    level, message, values = stream.report(1.0)
    assert (level, message) == (Level.WARN, "1 of 2 setpoints refused, the last: why")
    assert values["worst violation"] == little
