# SPDX-License-Identifier: Apache-2.0
"""Spring whose effort is a polynomial of its deflection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.polynomial import polynomial

from ...arrays import Array
from ...elementary import select
from ...jet import Jet
from ..checks import refuse, row
from ..declared import SMALLEST
from .base import Parameter, Scalar
from .memoryless import MemorylessSpring

# The roots of its derivative take memory and time of the second and third power of the number.
_MOST_COEFFICIENTS = 40


@dataclass(frozen=True, eq=False)
class PolynomialSpring(MemorylessSpring, kind="polynomial"):
    """tau = c1 delta + c2 delta² + … , with positive stiffness at every deflection.

    Attributes:
        coefficients: (m,), c1 to cm, N m/rad^k (N/m^k).
    """

    coefficients: Annotated[Array, Parameter("coefficients", row, scales=True)]

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if the spring is not monotone."""
        super().__post_init__()
        _ = self.least_stiffness

    @cached_property
    def least_stiffness(self) -> float:
        """Least stiffness of all deflections, N m/rad (N/m)."""
        return _least_stiffness(self.coefficients)

    def law(self, delta: Jet) -> Jet:
        """The polynomial."""
        return delta * polynomial_at(self.coefficients.tolist(), delta)

    def energy_law(self, delta: Scalar) -> Scalar:
        """c1 delta²/2 + c2 delta³/3 + …"""
        weights = self.coefficients / np.arange(2, len(self.coefficients) + 2)
        return delta * delta * polynomial_at(weights.tolist(), delta)

    def bounds(self, tau: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
        """Bounds 0 and tau over the least stiffness; the initial value uses the stiffness at rest."""
        end = tau / self.least_stiffness
        return (select(tau, 0.0, end), select(tau, end, 0.0)), tau / float(self.coefficients[0])


def polynomial_at(coefficients: Sequence[Scalar], x: Any) -> Any:
    """Value of the polynomial with these coefficients, lowest power first, at a scalar or a jet."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = x * total + coefficient
    return total


def _least_stiffness(coefficients: Array) -> float:
    """Least stiffness (m,) of all deflections; raises ParameterError if it is not positive."""
    if len(coefficients) > _MOST_COEFFICIENTS:
        refuse("coefficients", f"must be at most {_MOST_COEFFICIENTS}, are {len(coefficients)}; use a table")
    with np.errstate(over="ignore"):
        stiffness = np.trim_zeros(coefficients * np.arange(1, len(coefficients) + 1), "b")
    if len(stiffness) % 2 == 0:
        refuse("coefficients", "the spring is not monotone: its highest power must be odd")
    with np.errstate(all="ignore"):
        try:
            turns = polynomial.polyroots(polynomial.polyder(stiffness)) if len(stiffness) > 1 else np.zeros(0)
        except np.linalg.LinAlgError:
            refuse("coefficients", "differ too much in size: whether the spring is monotone cannot be computed")
        # Double roots may have an imaginary part from rounding; the stiffness at their real part is as small.
        places = np.append(turns.real, 0.0)
        values = polynomial.polyval(places, stiffness)
    least, place = float(np.min(values)), float(places[np.argmin(values)])
    if not least > SMALLEST or stiffness[-1] < 0:
        refuse("coefficients", f"the spring is not monotone: its stiffness is {least:g} at a deflection of {place:g}")
    return least
