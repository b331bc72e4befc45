# SPDX-License-Identifier: Apache-2.0
"""Time since the last valid setpoint."""

from __future__ import annotations

OBSERVATIONS = 10
"""Observations within a timeout."""


class SetpointAge:
    """Time since the last valid setpoint, on an observed clock.

    An observation adds at most half of the timeout: after a stall of the process, setpoints that wait in its queue are
    taken before the timeout is over. A clock that goes back adds nothing.

    Attributes:
        fed: set to True by whoever takes a valid setpoint; a store is all that costs.
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
