# SPDX-License-Identifier: Apache-2.0
"""Linear spring of a series elastic actuator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ..checks import positive
from .base import Deflections, Parameter, Spring
from .memoryless import MemorylessSpring
from .rigid import RIGID


@dataclass(frozen=True, eq=False)
class LinearSpring(MemorylessSpring, kind="linear"):
    """tau = K delta.

    Attributes:
        constant: K > 0, N m/rad (N/m).
    """

    is_linear = True

    constant: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]

    def effort(self, delta: Array) -> Array:
        """K delta."""
        return self.constant * delta

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """K and zeros."""
        shape = np.broadcast(self.constant, delta).shape
        return [np.broadcast_to(self.constant, shape), *([np.zeros(shape)] * (order - 1))][:order]

    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """K, no damping."""
        return self.constant, 0.0

    def energy(self, delta: Array) -> Array:
        """K delta²/2."""
        return 0.5 * self.constant * np.square(delta)

    def inverse(self, tau: Array) -> Array:
        """tau/K."""
        return tau / self.constant

    def deflections(
        self, efforts: tuple[Array, Array, Array], stiffness: Sequence[Array] = (), state: Array | None = None
    ) -> Deflections:
        """Efforts over K."""
        tau, taud, taudd = efforts
        return Deflections(tau / self.constant, taud / self.constant, taudd / self.constant, tau)


def spring_of_stiffness(stiffness: float) -> Spring:
    """Linear spring of this stiffness, or rigid joint if it is infinite."""
    return RIGID if stiffness == np.inf else LinearSpring(stiffness)
