# SPDX-License-Identifier: Apache-2.0
"""The linear spring of a series elastic actuator, and the rigid joint."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...exceptions import StateError
from ...jet import Jet
from ..checks import positive
from .base import Array, Deflection, Spring


class LinearSpring(Spring):
    """tau = K delta.

    Attributes:
        constant: K > 0, N m/rad (N/m).
    """

    kind = "linear"
    parameters = ("constant",)

    def __init__(self, constant: ArrayLike) -> None:
        """Raises RobotDescriptionError where K is not positive and finite."""
        self.constant = positive("stiffness", constant)

    def effort(self, delta: Array) -> Array:
        """K delta."""
        return self.constant * delta

    def stiffness(self, delta: Array) -> Array:
        """K."""
        return np.broadcast_to(self.constant, np.broadcast(self.constant, delta).shape)

    def stiffness_rate(self, delta: Array) -> Array:
        """Zero."""
        return np.zeros(np.broadcast(self.constant, delta).shape)

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """K and zeros."""
        return [self.stiffness(delta), *([self.stiffness_rate(delta)] * (order - 1))][:order]

    def energy(self, delta: Array) -> Array:
        """K delta²/2."""
        return 0.5 * self.constant * np.square(delta)

    def inverse(self, tau: Array) -> Array:
        """tau / K."""
        return tau / self.constant

    def deflection(self, tau: Array, taud: Array, taudd: Array) -> Deflection:
        """The efforts over K."""
        return tau / self.constant, taud / self.constant, taudd / self.constant


class RigidSpring(Spring):
    """No spring at all: delta = 0 under any effort."""

    kind = "rigid"
    parameters = ()

    def effort(self, delta: Array) -> Array:
        """Not determined by the deflection.

        Raises:
            StateError: always; the effort in a rigid joint follows from the motion.
        """
        raise StateError("the effort in a rigid joint does not follow from its deflection")

    def stiffness(self, delta: Array) -> Array:
        """Infinite."""
        return np.full(np.shape(delta), np.inf)

    def stiffness_rate(self, delta: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(delta))

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """Infinite, and zeros."""
        return [self.stiffness(delta), *([self.stiffness_rate(delta)] * (order - 1))][:order]

    def deflection_series(self, tau: Jet) -> Jet:
        """Zero."""
        return 0.0 * tau

    def energy(self, delta: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(delta))

    def inverse(self, tau: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(tau))

    def deflection(self, tau: Array, taud: Array, taudd: Array) -> Deflection:
        """Zero."""
        zero = np.zeros(np.shape(tau))
        return zero, zero, zero

    @classmethod
    def stacked(cls, springs: object) -> RigidSpring:
        """One for all."""
        return cls()
