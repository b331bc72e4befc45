# SPDX-License-Identifier: Apache-2.0
"""Deflections of springs with dampers along a stream of setpoints."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..elastic import ElasticArm

LONGEST_STEP = 0.1
"""Longest time between two setpoints of a stream, s: efforts at its ends do not determine those between over more."""


class DeflectionFilter:
    """Filters from effort to deflection for the springs with dampers of an arm, driven by the stamps of setpoints.

    A step goes from the last answered setpoint to the next, with the efforts between them interpolated as in
    :meth:`ElasticArm.deflections_over_time`. Without a stamp (0), and where the stamp goes back or more than
    LONGEST_STEP ahead, the deflection is that without transient. With the same stamp it stays the same.
    """

    def __init__(self, arm: ElasticArm) -> None:
        self.needed = bool(np.any(arm.damped))
        """Whether the arm has such springs."""
        self._springs = arm.spring_set
        self._last: tuple[int, Array, Array] | None = None

    def at(self, stamp: int, efforts: Array) -> Array:
        """Deflections (n,) at a stamp, rad or m; zero for springs without damper.

        Args:
            stamp: ns.
            efforts: tau, taud, taudd (3, n).
        """
        if stamp and self._last:
            before, then, start = self._last
            step = (stamp - before) * 1e-9
            if step == 0:
                return start
            if 0 < step <= LONGEST_STEP:
                return self._springs.filtered(start, then, efforts, step)
        return self._springs.settled(efforts)

    def keep(self, stamp: int, efforts: Array, deflections: Array) -> None:
        """Start the next step here; call it when the setpoint of that stamp has been answered."""
        self._last = (stamp, efforts.copy(), deflections) if stamp else None

    def forget(self) -> None:
        """Start again without transient."""
        self._last = None
