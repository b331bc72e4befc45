# SPDX-License-Identifier: Apache-2.0
"""How many steps are due, so that a simulation keeps up with a clock."""

from __future__ import annotations

# How far the simulation may be behind the clock before it lets time go, s.
_LARGEST_BACKLOG = 0.1

# Of how much time steps are taken in one go, before others have their turn, s.
_ONE_GO = 0.02


class Pace:
    """Counts steps against a clock.

    After a hiccup it catches up; of a long one, or of a clock that jumps ahead, the time beyond 0.1 s is let go.

    Attributes:
        steps: that were due.
        late: of those, steps that came in one go with others: the simulation was behind.
        lost: that were let go.
    """

    def __init__(self, period: float) -> None:
        """The period of a step, s."""
        self._period = period
        self._most_at_once = max(1, round(_ONE_GO / period))
        self._backlog = max(self._most_at_once, round(_LARGEST_BACKLOG / period))
        self._start: float | None = None
        self._now = 0.0
        self._since_start = 0
        self.steps = self.late = self.lost = 0

    def due(self, now: float) -> int:
        """How many steps to take at a time of the clock, s. A clock that is set back starts anew."""
        if self._start is None or now < self._now:
            self._start, self._since_start = now, 0
        self._now = now
        # A hair before its time counts: sums of periods are rounded.
        behind = int((now - self._start) / self._period + 1e-6) - self._since_start
        if behind > self._backlog:
            self.lost += behind - self._backlog
            self._since_start += behind - self._backlog
            behind = self._backlog
        count = min(behind, self._most_at_once)
        self._since_start += count
        self.steps += count
        self.late += max(count - 1, 0)
        return count

    @property
    def lag(self) -> float:
        """By how much the steps taken were behind the clock at the last :meth:`due`, s."""
        return 0.0 if self._start is None else self._now - self._start - self._since_start * self._period
