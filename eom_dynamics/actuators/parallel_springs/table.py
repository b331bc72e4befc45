# SPDX-License-Identifier: Apache-2.0
"""Measured law: a smooth curve of any shape through a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from ...arrays import Array
from ...elementary import index, lookup
from ...jet import Jet
from ..checks import refuse, row
from ..declared import SMALLEST, Parameter
from ..springs.base import Scalar
from ..springs.memoryless import EffortLaw
from ..springs.polynomial import polynomial_at


@dataclass(frozen=True, eq=False)
class TableLaw(EffortLaw):
    """Natural cubic spline through a table, straight beyond its ends: C², and linear in the efforts of the table.

    Efforts and their first two time derivatives are continuous; the third derivative jumps at the points of the table.
    Unlike a spring between motor and link the curve needs neither rise nor pass through (0, 0).

    Attributes:
        delta, tau: the table, each (m,), m >= 2, rad or m and N m or N.
    """

    kind = "tabulated"

    delta: Annotated[Array, Parameter("deflections", row)]
    tau: Annotated[Array, Parameter("efforts", row, scales=True)]

    def __post_init__(self) -> None:
        """Check the table; raises ParameterError if rows differ in length, or deflections do not increase."""
        super().__post_init__()
        if self.delta.ndim != 1 or len(self.delta) < 2 or not np.all(np.diff(self.delta) > SMALLEST):
            refuse("deflections", f"must be a list of at least two increasing numbers, is {self.delta}")
        if self.tau.shape != self.delta.shape:
            refuse("efforts", f"must have as many entries as deflections, {len(self.delta)}; has {self.tau.size}")

    def law(self, delta: Jet) -> Jet:
        """Value of the curve."""
        return self._value(delta, self._pieces[0])

    def energy_law(self, delta: Scalar) -> Scalar:
        """Integral of the curve from 0."""
        return self._value(delta, self._pieces[1])

    def _value(self, delta: Scalar, coefficients: Array) -> Scalar:
        at = index(delta[0] if isinstance(delta, Jet) else delta, self.delta)
        distance = delta - lookup(at, np.append(self.delta[:1], self.delta))
        return polynomial_at([lookup(at, column) for column in coefficients.T], distance)

    @cached_property
    def _pieces(self) -> tuple[Array, Array]:
        """Coefficients of powers of the distance, of effort (m + 1, 4) and energy (m + 1, 5).

        Pieces are below the first point and from each point on, about that point.
        """
        from ..springs.natural_spline import natural_spline  # with SciPy, and few robots have tables

        h = np.diff(self.delta)
        slope, bend = natural_spline(h, np.diff(self.tau) / h)
        twist = np.append(np.diff(bend) / h, 0.0)
        inside = np.stack([self.tau, slope, bend / 2, twist / 6], axis=1)
        effort = np.vstack([[self.tau[0], slope[0], 0.0, 0.0], inside])
        energy = np.column_stack([np.zeros(len(effort)), effort / np.arange(1, 5)])
        rises = [polynomial_at(row.tolist(), width) for row, width in zip(energy[1:-1], h, strict=True)]
        energy[2:, 0] = np.cumsum(rises)
        at = int(np.searchsorted(self.delta, 0.0, side="right"))
        energy[:, 0] -= polynomial_at(energy[at].tolist(), -self.delta[max(at - 1, 0)])
        return effort, energy
