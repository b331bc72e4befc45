# SPDX-License-Identifier: Apache-2.0
"""Linear spring of a series elastic actuator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...jet import Jet
from ..checks import positive
from .base import Parameter, Scalar, Spring
from .memoryless import MemorylessSpring
from .rigid import RIGID


@dataclass(frozen=True, eq=False)
class LinearSpring(MemorylessSpring, kind="linear"):
    """tau = K delta.

    Attributes:
        constant: K > 0, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]

    def law(self, delta: Jet) -> Jet:
        """K delta."""
        return delta * self.constant

    def energy_law(self, delta: Scalar) -> Scalar:
        """K delta²/2."""
        return 0.5 * self.constant * (delta * delta)

    def inverse_law(self, tau: Scalar) -> Scalar:
        """tau/K."""
        return tau / self.constant


def spring_of_stiffness(stiffness: float) -> Spring:
    """Linear spring of this stiffness, or rigid joint if it is infinite."""
    return RIGID if stiffness == np.inf else LinearSpring(stiffness)
