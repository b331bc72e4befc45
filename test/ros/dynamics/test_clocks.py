# SPDX-License-Identifier: Apache-2.0
"""Clocks of a stream: standstill, jumps and stalls."""

import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.ros.dynamics.clocks import ClockWatch, WatchedClock

MS = 10**6


class Clocks:
    """A clock and the steady clock, both of the test."""

    def __init__(self) -> None:
        self.clock: int | Exception = 5 * 10**9
        self.steady = 10**12
        self.watched = WatchedClock(self._read, lambda: self.steady)
        self.watched.now()

    def _read(self) -> int:
        if isinstance(self.clock, Exception):
            raise self.clock
        return self.clock

    def pass_ms(self, steady: float, rate: float = 1.0) -> float:
        """Let steady time pass in steps of 2 ms, the clock at a rate; returns the time that has passed, ms."""
        begin = self.watched.now()
        for _ in range(round(steady / 2)):
            self.steady += 2 * MS
            if isinstance(self.clock, int):
                self.clock += round(2 * MS * rate)
            self.watched.now()
        return (self.watched.now() - begin) / MS


@pytest.mark.parametrize("rate", [1.0, 0.05, 10.0])
def test_time_is_that_of_a_clock_that_runs(rate: float) -> None:
    clocks = Clocks()
    assert clocks.pass_ms(2000, rate) == pytest.approx(2000 * rate)
    assert not clocks.watched.stands_still


@pytest.mark.parametrize("clock", [5 * 10**9, 0, -(10**9), ValueError("negative")], ids=str)
def test_the_steady_clock_takes_the_place_of_one_that_stands_still(clock: int | Exception) -> None:
    clocks = Clocks()
    clocks.pass_ms(100)
    clocks.clock = clock
    # A reading may be late.
    assert clocks.pass_ms(400, 0.0) == 0.0 and not clocks.watched.stands_still
    assert clocks.pass_ms(400, 0.0) == pytest.approx(300, abs=4) and clocks.watched.stands_still
    # And gives it back.
    clocks.clock = 6 * 10**9
    assert clocks.pass_ms(100, 0.5) >= 50
    assert clocks.pass_ms(100, 0.5) == pytest.approx(50) and not clocks.watched.stands_still


def test_a_clock_that_crawls_or_swings_stands_still() -> None:
    clocks = Clocks()
    clocks.pass_ms(600, 1e-6)
    assert clocks.watched.stands_still
    clocks = Clocks()
    for _ in range(300):
        clocks.pass_ms(2, 1e-4)
        clocks.pass_ms(2, -1e-4)
    assert clocks.watched.stands_still


def test_a_step_back_is_not_a_standstill() -> None:
    clocks = Clocks()
    clocks.clock = 10**9
    assert clocks.pass_ms(1000) == pytest.approx(1000, abs=2)


def test_a_stall_of_the_process_is_not_a_standstill() -> None:
    clocks = Clocks()
    clocks.steady += 10**10
    clocks.watched.now()  # before the reading of /clock that waits
    assert not clocks.watched.stands_still


LIMIT = 100


def jumps(*steps):
    """What the watch reports after each pair of steps of clock and steady clock."""
    watch = ClockWatch(LIMIT * 10**6)
    clock = steady = 10**12
    watch.restart(clock, steady)
    reported = []
    for of_clock, of_steady in steps:
        clock += of_clock * 10**6
        steady += of_steady * 10**6
        reported.append(watch.jump(clock, steady) // 10**6)
    return reported


@pytest.mark.parametrize(
    ("steps", "reported"),
    [
        pytest.param([(1, 1)] * 3 + [(1500, 1)] + [(1, 1)], [0, 0, 0, 1500, 0], id="jump"),
        pytest.param([(1, 1)] * 3 + [(1500, 1500)] + [(1, 1)], [0] * 5, id="stall"),
        pytest.param([(0, 1500), (700, 1), (700, 1)], [0, 0, 0], id="readings delivered one by one after a stall"),
        pytest.param([(1500, 1500), (1500, 1)], [0, 1500], id="jump right after a stall"),
        pytest.param([(0, 20)] * 100 + [(1500, 1)], [0] * 100 + [1500], id="jump after a pause of /clock"),
        pytest.param([(0, 1500)] + [(0, 20)] * 100 + [(1500, 1)], [0] * 101 + [1500], id="jump long after a stall"),
        pytest.param([(0, 20)] * 8 + [(160, 1)], [0] * 9, id="late reading of /clock"),
        pytest.param([(100, 20)] * 4, [0] * 4, id="sparse /clock"),
        pytest.param([(-1500, 1), (1, 1)], [0, 0], id="back"),
    ],
)
def test_a_jump_is_told_from_a_stall(steps, reported):
    assert jumps(*steps) == reported
