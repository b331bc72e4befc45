# SPDX-License-Identifier: Apache-2.0
"""Jumps of a node's clock, distinguished from stalls of the process."""

from __future__ import annotations

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
