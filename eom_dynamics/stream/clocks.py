# SPDX-License-Identifier: Apache-2.0
"""Clocks as a stream of setpoints sees them: standstill, jumps, and the time since the last valid setpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

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
        steady, reading = self._steady(), -1
        with suppress(Exception):  # of any clock that is broken
            reading = self._read()
        reading = reading if reading >= 0 else self.reading
        if self._latest is not None:
            passed, advance = min(steady - self._latest, _LONGEST_ADVANCE), max(reading - self.reading, 0)
            self._idle = min(max(self._idle + passed - _SLOWEST * advance, 0), _STANDSTILL)
            self.stands_still = self._idle == _STANDSTILL
            self._time += passed if self.stands_still else advance
        self._latest, self.reading = steady, reading
        return self._time


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


OBSERVATIONS = 10
"""Observations within a timeout."""


class SetpointAge:
    """Time since the last valid setpoint, on an observed clock.

    An observation adds at most half of the timeout: after a stall of the process, setpoints that wait in its queue are
    taken before the timeout is over. A clock that goes back adds nothing.

    Attributes:
        fed: whether a valid setpoint has arrived since the last observation; a stream only stores it.
    """

    def __init__(self, timeout: float) -> None:
        """Set the timeout, s; 0 for none."""
        # In ns, whose sums are exact.
        self._timeout = round(timeout * 1e9)
        self.fed = False
        self._age = 0
        self._latest: int | None = None

    def observe(self, now: int) -> bool:
        """Return whether the timeout has passed, at a time of the clock, ns."""
        if self.fed or self._latest is None:
            self.fed, self._age = False, 0
        else:
            step = max(now - self._latest, 0)
            self._age += min(step, self._timeout // 2) if self._timeout else step
        self._latest = now
        return 0 < self._timeout <= self._age

    @property
    def age(self) -> float:
        """Time since the observation after the last valid setpoint, s."""
        return self._age * 1e-9
