# SPDX-License-Identifier: Apache-2.0
"""Spring whose effort is a polynomial of its deflection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.polynomial import polynomial

from ...arrays import Array
from ..checks import refuse, row
from .base import Parameter
from .memoryless import MemorylessSpring
from .root_finding import increasing_root


@dataclass(eq=False)
class PolynomialSpring(MemorylessSpring, kind="polynomial"):
    """tau = c1 delta + c2 delta² + … , with positive stiffness at every deflection.

    Attributes:
        coefficients: (…, m), c1 to cm, N m/rad^k (N/m^k).
        least_stiffness: (…), least stiffness of all deflections, N m/rad (N/m).
    """

    coefficients: Annotated[Array, Parameter("coefficients", row, scales=True)]

    def __post_init__(self) -> None:
        """Derive the coefficients of all derivatives.

        Raises:
            ParameterError: coefficients are not finite, or the spring is not monotone.
        """
        super().__post_init__()
        self.least_stiffness = np.apply_along_axis(_least_stiffness, -1, self.coefficients)
        powers = np.arange(1, self.coefficients.shape[-1] + 1)
        zero = np.zeros((*self.coefficients.shape[:-1], 1))
        self._effort = np.concatenate([zero, self.coefficients], axis=-1)
        self._stiffness = self.coefficients * powers
        self._rate = self._stiffness[..., 1:] * powers[:-1] if len(powers) > 1 else zero
        self._derivatives = same_length(self._effort, self._stiffness, self._rate)
        self._energy = np.concatenate([zero, zero, self.coefficients / (powers + 1)], axis=-1)

    @classmethod
    def stacked(cls, springs: Sequence[Any]) -> PolynomialSpring:
        """One spring of many, short polynomials padded with zeros."""
        length = max(len(spring.coefficients) for spring in springs)
        return cls(np.stack([np.pad(x.coefficients, (0, length - len(x.coefficients))) for x in springs]))

    def effort(self, delta: Array) -> Array:
        """The polynomial."""
        return polynomial_at(self._effort, delta)

    def stiffness(self, delta: Array) -> Array:
        """c1 + 2 c2 delta + …"""
        return polynomial_at(self._stiffness, delta)

    def stiffness_rate(self, delta: Array) -> Array:
        """2 c2 + 6 c3 delta + …"""
        return polynomial_at(self._rate, delta)

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """Derivatives of the polynomial."""
        return polynomial_slopes(self._effort, delta, order)

    def energy(self, delta: Array) -> Array:
        """c1 delta²/2 + c2 delta³/3 + …"""
        return polynomial_at(self._energy, delta)

    def inverse(self, tau: Array) -> Array:
        """By Halley's method, between 0 and tau over the least stiffness."""
        tau = np.asarray(tau, dtype=float)
        end = tau / self.least_stiffness
        bounds = np.minimum(0.0, end), np.maximum(0.0, end)
        return increasing_root(
            lambda x: polynomials_at(self._derivatives, x), tau, bounds, tau / self._stiffness[..., 0]
        )

    def inverse_with_slopes(self, tau: Array) -> tuple[Array, Array, Array]:
        """The inverse, with both slopes by one evaluation."""
        delta = self.inverse(tau)
        _, stiffness, rate = polynomials_at(self._derivatives, delta)
        return delta, stiffness, rate


def polynomial_at(coefficients: Array, x: Array) -> Array:
    """Value of the polynomial with coefficients (…, m), lowest power first."""
    total = coefficients[..., -1] + np.zeros_like(x)
    for k in range(coefficients.shape[-1] - 2, -1, -1):
        total = total * x + coefficients[..., k]
    return total


def same_length(*rows: Array) -> Array:
    """Coefficients (…, m) of r polynomials as one array (…, r, m), padded with zeros."""
    longest = max(coefficients.shape[-1] for coefficients in rows)
    padded = [np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, longest - x.shape[-1])]) for x in rows]
    return np.stack(padded, axis=-2)


def polynomials_at(coefficients: Array, x: Array) -> tuple[Array, Array, Array]:
    """Values of three polynomials with coefficients (…, 3, m) at x (…)."""
    values = polynomial_at(coefficients, np.asarray(x)[..., np.newaxis])
    return values[..., 0], values[..., 1], values[..., 2]


def polynomial_slopes(coefficients: Array, x: Array, order: int) -> list[Array]:
    """The first ``order`` derivatives of the polynomial of :func:`polynomial_at`."""
    slopes = []
    for _ in range(order):
        powers = np.arange(1, coefficients.shape[-1])
        coefficients = coefficients[..., 1:] * powers if len(powers) else 0.0 * coefficients
        slopes.append(polynomial_at(coefficients, x))
    return slopes


def _least_stiffness(coefficients: Array) -> float:
    """Least stiffness (m,) of all deflections; raises ParameterError if it is not positive."""
    stiffness = np.trim_zeros(coefficients * np.arange(1, len(coefficients) + 1), "b")
    if len(stiffness) % 2 == 0:
        refuse("coefficients", "the spring is not monotone: its highest power must be odd")
    turns = polynomial.polyroots(polynomial.polyder(stiffness)) if len(stiffness) > 1 else np.zeros(0)
    # Double roots may have an imaginary part from rounding; the stiffness at their real part is as small.
    places = np.append(turns.real, 0.0)
    values = polynomial.polyval(places, stiffness)
    least, place = float(np.min(values)), float(places[np.argmin(values)])
    if least <= 0 or stiffness[-1] < 0:
        refuse("coefficients", f"the spring is not monotone: its stiffness is {least:g} at a deflection of {place:g}")
    return least
