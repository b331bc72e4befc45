# SPDX-License-Identifier: Apache-2.0
"""Clocks of a stream: standstill and stalls."""

import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.ros.dynamics.clocks import WatchedClock

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
        """Advance steady time in steps of 2 ms, the clock at a rate; returns the time that has passed, ms."""
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
