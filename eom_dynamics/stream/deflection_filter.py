# SPDX-License-Identifier: Apache-2.0
"""The deflections of springs with dampers along a stream: their memory goes from setpoint to setpoint."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from ..drivetrain.springs import DampedSpring

Array = NDArray[np.float64]

LONGEST_STEP = 0.1
"""Between two setpoints, s. Over a longer one the efforts at its ends no longer say what was between them."""


class DeflectionFilter:
    """Runs the filters from effort to deflection of an arm's springs with dampers, by the stamps of setpoints.

    A step goes from the last setpoint that was answered to the next, with the efforts between them as
    :meth:`ElasticArm.deflections_over_time` takes them. Without a stamp (0), and where the stamp goes back or more
    than LONGEST_STEP ahead, the deflection is that without transient. Where the stamp stays, so does the deflection.
    """

    def __init__(self, arm: ElasticArm) -> None:
        damped = [(i, spring) for i, spring in enumerate(arm.springs) if isinstance(spring, DampedSpring)]
        self.needed = bool(damped)
        """Whether the arm has such springs."""
        self._n = arm.robot.n
        self._joints = [i for i, _ in damped]
        self._spring = DampedSpring.stacked([spring for _, spring in damped]) if damped else None
        self._last: tuple[int, Array, Array] | None = None

    def at(self, stamp: int, efforts: Array) -> Array:
        """The deflections (n,) at a stamp in ns; those of springs without damper are zero.

        Args:
            stamp: ns.
            efforts: tau, taud, taudd (3, n).
        """
        deflections = np.zeros(self._n)
        if self._spring:
            deflections[self._joints] = self._of(self._spring, stamp, efforts[:, self._joints])
        return deflections

    def _of(self, spring: DampedSpring, stamp: int, efforts: Array) -> Array:
        if stamp and self._last:
            before, then, start = self._last
            step = (stamp - before) * 1e-9
            if step == 0:
                return start
            if 0 < step <= LONGEST_STEP:
                return spring.advance(start, tuple(then), tuple(efforts), step)
        return spring.settled(*efforts)

    def keep(self, stamp: int, efforts: Array, deflections: Array) -> None:
        """Take the next step from here, once the setpoint of that stamp has been answered."""
        joints = self._joints
        self._last = (stamp, efforts[:, joints], deflections[joints]) if stamp else None

    def forget(self) -> None:
        """Begin anew: without transient."""
        self._last = None
