# SPDX-License-Identifier: Apache-2.0
"""Clocks of a stream, which may stand still or jump."""

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
        steady: reads the steady clock, ns.
        reading: last reading of the clock, ns.
        stands_still: whether the clock stands still, runs at less than a hundredth of its rate, or cannot be read.
    """

    def __init__(self, read: Callable[[], int], steady: Callable[[], int] = time.monotonic_ns) -> None:
        """Watch the clock of ``read``, in ns; negative readings and exceptions are ignored."""
        self._read, self.steady = read, steady
        self.reading = 0
        self.stands_still = False
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
            self._time += passed if self.stands_still else advance
        if reading >= 0:
            self.reading = reading
        self._started = True
        return self._time

    def ahead(self) -> int:
        """The clock's reading less this time, ns: of one moment, as a process may be kept from running between two."""
        own = self.now()
        return self.reading - own


# Lateness of a reading of /clock while this process does not stall, ns.
_LATENESS = 200_000_000


class ClockWatch:
    """Detects jumps of a clock by comparison with the steady clock.

    A process that stalls, such as under load, sees its clock jump forward, too, but then the steady clock has advanced
    as well: only an advance that steady time does not account for is a jump. This holds for simulated time, too, as the
    reading after a stall is the latest one of ``/clock``. In a simulation faster than real time, readings further apart
    than the limit are a jump, since the commands would be as far apart.

    Steady time is credited once, and for as long after a stall as that took, since readings may be delivered one by one
    after it. Otherwise only little of it is kept, for a late reading: a pause of ``/clock`` must not hide a later jump.
    """

    def __init__(self, limit: int) -> None:
        """Report jumps forward of more than ``limit`` ns."""
        self._limit = limit
        self._clock = self._steady = self._credit = self._most = 0

    def restart(self, clock: int, steady: int) -> None:
        """Restart the observation; arguments as for :meth:`jump`."""
        self._clock, self._steady = clock, steady
        self._credit = self._most = 0

    def jump(self, clock: int, steady: int) -> int:
        """Return by how much the clock has jumped forward since the last observation, ns; 0 within the limit.

        Args:
            clock: time of the clock, ns.
            steady: time of the steady clock, ns.
        """
        passed, advance = steady - self._steady, clock - self._clock
        self._clock, self._steady = clock, steady
        self._most = max(passed, self._most - passed, _LATENESS)
        credit = min(self._credit + passed, self._most)
        self._credit = max(credit - max(advance, 0), 0)
        return advance if advance - credit > self._limit else 0
