# SPDX-License-Identifier: Apache-2.0
"""Time of a clock that may stop, such as simulated time that is not published."""

from __future__ import annotations

import time
from collections.abc import Callable

# Steady time without progress of the clock after which it stands still, ns: longer than readings of a simulation's
# clock are apart.
_STANDSTILL = 500_000_000

# Longest time between two readings that counts, ns: after a stall of the process the latest reading may still wait.
_LONGEST_ADVANCE = 100_000_000

# Smallest rate of a clock that runs, in steady time: slower than any useful simulation.
_SLOWEST = 100


class WatchedClock:
    """Time that follows a clock, and the steady clock of the process while that clock stands still.

    Attributes:
        reading: last reading of the clock, ns.
        stands_still: whether the clock stands still, runs at less than a hundredth of its rate, or cannot be read.
    """

    def __init__(self, read: Callable[[], int], steady: Callable[[], int] = time.monotonic_ns) -> None:
        """Watch the clock of ``read``, in ns; negative readings and exceptions are ignored."""
        self._read, self._steady = read, steady
        self.reading = 0
        self.stands_still = False
        self._latest: int | None = None
        self._idle = self._time = 0

    def now(self) -> int:
        """Time since an arbitrary origin, ns; it never goes back."""
        steady, reading = self._steady(), self._valid_reading()
        if self._latest is not None:
            passed, advance = min(steady - self._latest, _LONGEST_ADVANCE), max(reading - self.reading, 0)
            self._idle = min(max(self._idle + passed - _SLOWEST * advance, 0), _STANDSTILL)
            self.stands_still = self._idle == _STANDSTILL
            self._time += passed if self.stands_still else advance
        self._latest, self.reading = steady, reading
        return self._time

    def _valid_reading(self) -> int:
        try:
            reading = self._read()
        except Exception:  # of any clock that is broken
            return self.reading
        return reading if reading >= 0 else self.reading
