# SPDX-License-Identifier: Apache-2.0
"""Deflections of damped springs along a stream of setpoints."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..elastic import ElasticArm

LONGEST_GAP = 0.1
"""Longest time between two setpoints of one stream, s: those at its ends do not determine the motion over more."""


class DeflectionFilter:
    """Effort-to-deflection filters of an arm's damped springs, driven by the stamps of setpoints.

    A step goes from the last answered setpoint to the next, with the efforts between them interpolated as in
    :meth:`ElasticArm.deflections_over_time`. Without a stamp (0), and where the stamp goes back or more than
    LONGEST_GAP ahead, the deflection is that without transient. With the same stamp it stays the same.

    Attributes:
        needed: whether the arm has such springs.
        memory: of the last answered setpoint (4 n,): deflections, tau, taud, taudd. Compiled calls read and write it,
            too.
        stamp: its stamp, ns (1,); 0 for none.
    """

    def __init__(self, arm: ElasticArm) -> None:
        self._springs, self._n = arm.spring_set, arm.robot.n
        self.needed = bool(np.any(arm.damped))
        self.memory = np.zeros(4 * self._n)
        self.stamp = np.zeros(1, dtype=np.int64)

    def at(self, stamp: int, efforts: Array) -> Array:
        """Deflections (n,), rad or m, at a stamp, ns, under tau, taud, taudd (3, n); zero for undamped springs."""
        before, step = int(self.stamp[0]), -1.0
        if stamp and before and 0 <= (stamp - before) * 1e-9 <= LONGEST_GAP:
            step = (stamp - before) * 1e-9
        last = self.memory.reshape(4, -1)
        return self._springs.filtered(last[0], last[1:], efforts, step)

    def keep(self, stamp: int, efforts: Array, deflections: Array) -> None:
        """Keep the present state as the start of the next step; call it once the setpoint has been answered."""
        self.memory[: self._n], self.memory[self._n :] = deflections, efforts.ravel()
        self.stamp[0] = stamp

    def forget(self) -> None:
        """Restart the filters without transient."""
        self.stamp[0] = 0
