# SPDX-License-Identifier: Apache-2.0
"""Rigid joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...jet import Jet
from .base import EffortJets, Scalar, Spring


@dataclass(frozen=True, eq=False)
class RigidSpring(Spring, kind="rigid"):
    """Rigid joint: delta = 0 under any effort."""

    is_rigid = True

    @property
    def rest_stiffness(self) -> float | Array:
        """Infinite."""
        return np.inf

    def deflections(
        self, tau: Sequence[Jet], stiffness: Jet | None = None, state: Scalar | None = None
    ) -> tuple[Sequence[Jet], Sequence[Jet]]:
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
