# SPDX-License-Identifier: Apache-2.0
"""Pacing of a simulation by a clock."""

from __future__ import annotations

# Largest delay behind the clock before steps are dropped, s.
_LARGEST_BACKLOG = 0.1

# Longest simulated time per call, so that other callbacks run in between, s.
_ONE_GO = 0.02


class Pace:
    """Number of steps due.

    After a stall the simulation catches up. Of a long stall, or of a clock that jumps ahead, the time beyond 0.1 s is
    dropped.

    Attributes:
        steps: number of steps taken.
        late: number of those that were taken together with an earlier one, to catch up.
        lost: number of dropped steps.
    """

    def __init__(self, period: float) -> None:
        """Set the step size, s."""
        self._period = period
        self._most_at_once = max(1, round(_ONE_GO / period))
        self._backlog = max(self._most_at_once, round(_LARGEST_BACKLOG / period))
        self._start: float | None = None
        self._now = 0.0
        self._since_start = 0
        self.steps = self.late = self.lost = 0

    def due(self, now: float) -> int:
        """Return how many steps to take at clock time ``now``, s. A clock that goes back restarts the count."""
        if self._start is None or now < self._now:
            self._start, self._since_start = now, 0
        self._now = now
        # Allow for rounding.
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
        """Delay of the simulation behind the clock at the last :meth:`due`, s."""
        return 0.0 if self._start is None else self._now - self._start - self._since_start * self._period
