# SPDX-License-Identifier: Apache-2.0
"""Rigid joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array
from ...exceptions import StateError
from ...jet import Jet
from .base import Spring


@dataclass(frozen=True, eq=False)
class RigidSpring(Spring, kind="rigid"):
    """delta = 0 under any effort, which follows from the motion of the arm alone."""

    is_rigid = True
    is_linear = True

    @property
    def rest_stiffness(self) -> float | Array:
        """Infinite."""
        return np.inf

    @classmethod
    def stacked(cls, springs: Sequence[Any]) -> RigidSpring:
        """Rigid joints are all the same."""
        return cls()

    def deflection_jet(self, tau: Jet, stiffness: Jet | None = None, state: Array | None = None) -> tuple[Jet, Jet]:
        """Zero."""
        return 0.0 * tau, tau

    def effort_jet(self, delta: Jet, stiffness: Jet | None = None) -> tuple[Jet, Jet | None]:
        """Raises StateError: no deflection determines the effort."""
        raise StateError("the effort in a rigid joint does not follow from its deflection")

    def load(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """Raises StateError, see :meth:`effort_jet`."""
        raise StateError("the effort in a rigid joint does not follow from its deflection")

    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """Raises StateError, see :meth:`effort_jet`."""
        raise StateError("a rigid joint has no tangents")

    def energy(self, delta: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(delta))


RIGID = RigidSpring()
"""The spring of joints without elasticity."""
