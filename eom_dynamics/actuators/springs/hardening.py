# SPDX-License-Identifier: Apache-2.0
"""Hardening springs: cubic, polynomial and exponential."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Annotated, Any

import numpy as np
from numpy.polynomial import polynomial

from ...arrays import Array, Scalar
from ...elementary import asinh, select, sinh_cosh
from ...jet import Jet
from ...jet_functions import hyperbolic_sine
from ..parameters import SMALLEST, not_negative, positive, refuse, row
from .base import MemorylessSpring, Parameter


@dataclass(frozen=True, eq=False)
class CubicSpring(MemorylessSpring, kind="cubic"):
    """tau = K delta + K3 delta³.

    T. D. Tuttle, W. P. Seering, "A nonlinear model of a harmonic drive gear transmission", IEEE Trans. Robotics and
    Automation 12 (1996).

    Attributes:
        linear: K > 0, N m/rad (N/m).
        cubic: K3 >= 0, N m/rad³ (N/m³); a softening spring would not be monotone.
    """

    linear: Annotated[float, Parameter("stiffness", positive, scales=True)]
    cubic: Annotated[float, Parameter("cubic", not_negative, scales=True)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values with a cubic term of three tenths of the effort at the reach."""
        return {"linear": 0.7 * stiffness, "cubic": 0.3 * stiffness / reach**2}

    def law(self, delta: Jet) -> Jet:
        """K delta + K3 delta³."""
        return delta * (delta * delta * self.cubic + self.linear)

    def energy_law(self, delta: Scalar) -> Scalar:
        """K delta²/2 + K3 delta⁴/4."""
        square = delta * delta
        return square * (0.25 * self.cubic * square + 0.5 * self.linear)

    def inverse_law(self, tau: Scalar) -> Scalar:
        """The only real root, by hyperbolic functions, without cancellation.

        With delta = 2 s sinh u and s² = K/(3 K3) the equation is sinh 3u = tau / (2 K3 s³), and 2 K3 s³ = 2 K s/3.
        """
        scale = sqrt(self.linear / self.cubic / 3) if self.cubic else inf
        if scale > _LINEAR:
            return tau / self.linear
        sinh, _ = sinh_cosh(asinh(tau * (1.5 / (self.linear * scale))) * (1 / 3))
        return sinh * (2 * scale)


# Deflection, rad or m, at which the cubic term is a third of the linear term: a spring with a larger value is linear.
_LINEAR = 1e100


# The roots of the derivative take memory and time of the second and third power of the number.
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
        _ = self.least_stiffness  # refuses

    @cached_property
    def least_stiffness(self) -> float:
        """Least stiffness of all deflections, N m/rad (N/m); raises ParameterError if it is not positive."""
        coefficients = self.coefficients
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
            reason = f"the spring is not monotone: its stiffness is {least:g} at a deflection of {place:g}"
            refuse("coefficients", reason)
        return least

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


@dataclass(frozen=True, eq=False)
class ExponentialSpring(MemorylessSpring, kind="exponential"):
    """tau = K/a sinh(a delta): two opposed exponential springs K/(2a) exp(a delta).

    Attributes:
        constant: K > 0, stiffness at rest, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]
    growth: Annotated[float, Parameter("growth", positive)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values with the stiffness grown by a factor of e at the reach."""
        return {"constant": 0.7 * stiffness, "growth": 1 / reach}

    def law(self, delta: Jet) -> Jet:
        """K/a sinh(a delta)."""
        return hyperbolic_sine(delta * self.growth) * (self.constant / self.growth)

    def energy_law(self, delta: Scalar) -> Scalar:
        """K/a² (cosh(a delta) - 1), as 2 K/a² sinh²(a delta/2), which does not cancel."""
        sinh, _ = sinh_cosh(delta * (0.5 * self.growth))
        return sinh * sinh * (2 * self.constant / self.growth**2)

    def inverse_law(self, tau: Scalar) -> Scalar:
        """asinh(a tau/K)/a."""
        return asinh(tau * (self.growth / self.constant)) / self.growth
