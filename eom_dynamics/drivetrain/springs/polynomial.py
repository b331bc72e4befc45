# SPDX-License-Identifier: Apache-2.0
"""A spring whose effort is a polynomial of its deflection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from ..checks import refuse
from .base import Array, Deflection, Spring
from .newton import increasing_root


class PolynomialSpring(Spring):
    """tau = c1 delta + c2 delta² + … , with a stiffness above 0 at every deflection.

    Attributes:
        coefficients: (…, m), c1 to cm, N m/rad^k (N/m^k).
        least: the least stiffness of all deflections, N m/rad (N/m).
    """

    kind = "polynomial"
    parameters = ("coefficients", "least")

    def __init__(self, coefficients: ArrayLike, least: ArrayLike | None = None) -> None:
        """Take coefficients; ``least`` where it is known.

        Raises:
            RobotDescriptionError: they are not finite, or the spring is not monotone.
        """
        self.coefficients = np.asarray(coefficients, dtype=float)
        self.least = np.asarray(_least_stiffness(self.coefficients) if least is None else least)
        powers = np.arange(1, self.coefficients.shape[-1] + 1)
        zero = np.zeros((*self.coefficients.shape[:-1], 1))
        self._effort = np.concatenate([zero, self.coefficients], axis=-1)
        self._stiffness = self.coefficients * powers
        self._rate = self._stiffness[..., 1:] * powers[:-1] if len(powers) > 1 else zero
        self._derivatives = same_length(self._effort, self._stiffness, self._rate)
        self._energy = np.concatenate([zero, zero, self.coefficients / (powers + 1)], axis=-1)

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
        """Those of the polynomial."""
        return polynomial_slopes(self._effort, delta, order)

    def energy(self, delta: Array) -> Array:
        """c1 delta²/2 + c2 delta³/3 + …"""
        return polynomial_at(self._energy, delta)

    def inverse(self, tau: Array) -> Array:
        """By Halley's method, between 0 and tau over the least stiffness."""
        tau = np.asarray(tau, dtype=float)
        end = tau / self.least
        bounds = np.minimum(0.0, end), np.maximum(0.0, end)
        return increasing_root(
            lambda x: polynomials_at(self._derivatives, x), tau, bounds, tau / self._stiffness[..., 0]
        )

    def deflection(self, tau: Array, taud: Array, taudd: Array) -> Deflection:
        """As of :class:`Spring`, stiffness and its rate at once."""
        delta = self.inverse(tau)
        _, stiffness, rate = polynomials_at(self._derivatives, delta)
        deltad = taud / stiffness
        return delta, deltad, (taudd - rate * deltad**2) / stiffness

    @classmethod
    def stacked(cls, springs: Sequence[Any]) -> PolynomialSpring:
        """One spring of many, for deflections (…, number of springs); short polynomials end in zeros."""
        length = max(len(spring.coefficients) for spring in springs)
        rows = [np.pad(spring.coefficients, (0, length - len(spring.coefficients))) for spring in springs]
        return cls(np.stack(rows), np.stack([spring.least for spring in springs]))


def polynomial_at(coefficients: Array, x: Array) -> Array:
    """The polynomial with these coefficients (…, m), lowest power first."""
    total = coefficients[..., -1] + np.zeros_like(x)
    for k in range(coefficients.shape[-1] - 2, -1, -1):
        total = total * x + coefficients[..., k]
    return total


def same_length(*rows: Array) -> Array:
    """Coefficients (…, m) of r polynomials together, (…, r, m); the short ones end in zeros."""
    longest = max(row.shape[-1] for row in rows)
    filled = [np.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, longest - row.shape[-1])]) for row in rows]
    return np.stack(filled, axis=-2)


def polynomials_at(coefficients: Array, x: Array) -> tuple[Array, Array, Array]:
    """Three polynomials with coefficients (…, 3, m) at x (…)."""
    values = polynomial_at(coefficients, np.asarray(x)[..., np.newaxis])
    return values[..., 0], values[..., 1], values[..., 2]


def polynomial_slopes(coefficients: Array, x: Array, order: int) -> list[Array]:
    """The first derivatives of the polynomial, as of :func:`polynomial_at`."""
    slopes = []
    for _ in range(order):
        powers = np.arange(1, coefficients.shape[-1])
        coefficients = coefficients[..., 1:] * powers if len(powers) else 0.0 * coefficients
        slopes.append(polynomial_at(coefficients, x))
    return slopes


def _least_stiffness(coefficients: Array) -> float:
    if coefficients.ndim != 1 or not len(coefficients) or not np.all(np.isfinite(coefficients)):
        refuse("coefficients", f"must be one row of finite numbers, is {coefficients}")
    stiffness = np.trim_zeros(coefficients * np.arange(1, len(coefficients) + 1), "b")
    if len(stiffness) % 2 == 0:
        refuse("coefficients", "the spring is not monotone: its highest power must be odd")
    turns = polynomial.polyroots(polynomial.polyder(stiffness)) if len(stiffness) > 1 else np.zeros(0)
    # Rounding lends double turns an imaginary part; their real part is then as good a place to look at.
    values = polynomial.polyval(np.append(turns.real, 0.0), stiffness)
    least, place = float(np.min(values)), float(np.append(turns.real, 0.0)[np.argmin(values)])
    if least <= 0 or stiffness[-1] < 0:
        refuse("coefficients", f"the spring is not monotone: its stiffness is {least:g} at a deflection of {place:g}")
    return least
