# SPDX-License-Identifier: Apache-2.0
"""Clocks of a stream, which may stand still or jump."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...control.settings import LARGEST_CORRECTION

# Steady time without progress until the clock counts as stopped, ns: longer than between two readings of a
# simulation's clock.
_STANDSTILL = 500_000_000

# Longest time between two readings that counts, ns: after a stall of the process the latest reading may still wait.
_LONGEST_ADVANCE = 100_000_000

# Smallest rate of a clock that runs, in steady time: slower than any useful simulation.
_SLOWEST = 100


class WatchedClock:
    """Time that follows a clock, and the steady clock of the process while that clock stands still.

    Attributes:
        steady: reads the steady clock, ns.
        reading: last reading of the clock, ns.
        pauses: whether time stands still with the clock, as while a trajectory is played.
        resets: how often the clock went back by more than a correction, as at a reset of a simulation.
        stands_still: whether the clock stands still, runs at less than a hundredth of its rate, or cannot be read.
    """

    def __init__(self, read: Callable[[], int], steady: Callable[[], int] = time.monotonic_ns) -> None:
        """Watch the clock of ``read``, in ns; negative readings and exceptions are ignored."""
        self._read, self.steady = read, steady
        self.reading = self.resets = 0
        self.stands_still = self.pauses = False
        self._started = False
        self._latest = self._idle = self._time = 0

    def now(self) -> int:
        """Time since an arbitrary origin, ns; it never goes back."""
        steady = self.steady()
        try:
            reading = self._read()
        except Exception:  # of any clock that is broken
            reading = -1
        before = self.reading
        advance = reading - before if reading > before else 0
        passed, self._latest = steady - self._latest, steady
        if not self._idle and passed <= _SLOWEST * advance:  # as in a stream, which must not wait
            self._time += advance
        elif self._started:
            passed = min(passed, _LONGEST_ADVANCE)
            self._idle = min(max(self._idle + passed - _SLOWEST * advance, 0), _STANDSTILL)
            self.stands_still = self._idle == _STANDSTILL
            self._time += passed if self.stands_still and not self.pauses else advance
        if reading >= 0:
            self.resets += reading < before - LARGEST_CORRECTION
            self.reading = reading
        self._started = True
        return self._time

    def ahead(self) -> int:
        """The clock's reading less this time, ns: of one moment, as a process may be kept from running between two."""
        present = self.now()
        return self.reading - present
