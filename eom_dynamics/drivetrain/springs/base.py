# SPDX-License-Identifier: Apache-2.0
"""What all springs between a motor and its link have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...jet import Jet
from ..series import inverted

Array = NDArray[np.float64]

Deflection = tuple[Array, Array, Array]
"""delta, deltad, deltadd: deflection motor minus link, rad or m, and its time derivatives."""


class Spring(ABC):
    """A spring without memory, tau = f(delta) with f(0) = 0 and f' > 0; delta = theta - q, motor minus link.

    All functions work entry by entry. A spring made of numbers takes deflections of any shape; one made of many
    (:meth:`stacked`) takes a last axis with an entry for each.

    Units: delta rad (prismatic: m), tau N m (N).
    """

    kind: ClassVar[str]
    """Its name in a robot's file."""

    parameters: ClassVar[tuple[str, ...]]
    """Names of the attributes that make it up, in the order of the constructor."""

    @abstractmethod
    def effort(self, delta: Array) -> Array:
        """f(delta)."""

    @abstractmethod
    def stiffness(self, delta: Array) -> Array:
        """f'(delta), N m/rad (N/m)."""

    @abstractmethod
    def stiffness_rate(self, delta: Array) -> Array:
        """f''(delta), N m/rad² (N/m²)."""

    @abstractmethod
    def energy(self, delta: Array) -> Array:
        """The integral of f from 0 to delta, J."""

    @abstractmethod
    def inverse(self, tau: Array) -> Array:
        """delta with f(delta) = tau."""

    def deflection(self, tau: Array, taud: Array, taudd: Array) -> Deflection:
        """The deflection under an effort, and its rates, from tau = f(delta) and its time derivatives.

        taud = f' deltad, taudd = f' deltadd + f'' deltad².

        Args:
            tau, taud, taudd: effort and its time derivatives, of one shape.
        """
        delta = self.inverse(tau)
        stiffness = self.stiffness(delta)
        deltad = taud / stiffness
        return delta, deltad, (taudd - self.stiffness_rate(delta) * deltad**2) / stiffness

    @abstractmethod
    def slopes(self, delta: Array, order: int) -> list[Array]:
        """f', f'', …: the first ``order`` derivatives of f at delta."""

    def deflection_series(self, tau: Jet) -> Jet:
        """The deflection under an effort with as many time derivatives as that has."""
        delta = self.inverse(tau[0])
        return inverted(delta, self.slopes(delta, len(tau) - 1), tau)

    @property
    def rest_stiffness(self) -> float | Array:
        """The stiffness without load."""
        return self.stiffness(np.zeros(()))

    @classmethod
    def stacked(cls, springs: Sequence[Any]) -> Any:
        """One spring of many of this kind, for deflections (…, number of springs)."""
        return cls(*(np.stack([getattr(spring, name) for spring in springs]) for name in cls.parameters))
