# SPDX-License-Identifier: Apache-2.0
"""Linear springs: rigid, of one joint, and coupled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array, Scalar
from ...jet import Jet
from ..parameters import positive
from .base import EffortJets, Jets, Parameter, Spring
from .memoryless import MemorylessSpring


@dataclass(frozen=True, eq=False)
class RigidSpring(Spring, kind="rigid"):
    """Rigid joint: delta = 0 under any effort."""

    is_rigid = True

    @property
    def rest_stiffness(self) -> float | Array:
        """Infinite."""
        return np.inf

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Zero."""
        return [Jet.constant(0.0, len(tau[0]))], tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """NaN on the link, since no deflection determines the effort; zero at the motor."""
        length = len(delta[0])
        return EffortJets([Jet([np.nan] * length)], [Jet([0.0] * length)])

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """Zero."""
        return 0.0


RIGID = RigidSpring()
"""The spring of joints without elasticity."""


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
