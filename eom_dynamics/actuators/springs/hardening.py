# SPDX-License-Identifier: Apache-2.0
"""Hardening springs: cubic, polynomial, exponential, and with a dead zone, as of a joint with backlash."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.polynomial import polynomial

from ...arrays import Array, Scalar
from ...elementary import absolute, asinh, root, select, sinh_cosh, sqrt
from ...jet import Jet
from ...jet_functions import composed, hyperbolic_sine, inverted, quotient, square_root
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
        scale = math.sqrt(self.linear / self.cubic / 3) if self.cubic else math.inf
        if scale > _LINEAR:
            return tau / self.linear
        sinh, _ = sinh_cosh(asinh(tau * (1.5 / (self.linear * scale))) * (1 / 3))
        return sinh * (2 * scale)


# Deflection with a cubic term of a third of the linear term, rad or m: a spring with a larger value is linear.
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


@dataclass(frozen=True, eq=False)
class DeadZoneSpring(MemorylessSpring, kind="dead_zone"):
    """tau = k delta + (K - k) (h(delta - b) - h(-delta - b)), h(x) = (x + sqrt(x² + w²))/2.

    The stiffness rises from k within the gap to K beyond it. h is the positive part of x, smoothed over a width w; it
    is off by w/2 at x = 0 and by less than w²/(4|x|) elsewhere, and has all derivatives. The stiffness k > 0 of a seal
    or of grease determines the deflection within the gap; real backlash is the limit for small k.

    Attributes:
        outer: K, stiffness beyond the gap, N m/rad (N/m).
        inner: k, stiffness within the gap, 0 < k <= K.
        half_gap: b > 0, rad (m).
        width: w > 0, rad (m).
    """

    outer: Annotated[float, Parameter("stiffness", positive, scales=True)]
    inner: Annotated[float, Parameter("inner_stiffness", positive, scales=True)]
    half_gap: Annotated[float, Parameter("half_gap", positive)]
    width: Annotated[float, Parameter("width", positive)]

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if k exceeds K."""
        super().__post_init__()
        if self.inner > self.outer:
            refuse("inner_stiffness", f"must not exceed stiffness, {self.outer}, is {self.inner}")

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values with a gap of a fifth of the reach."""
        return {"outer": 1.2 * stiffness, "inner": 0.2 * stiffness, "half_gap": 0.2 * reach, "width": 0.1 * reach}

    def law(self, delta: Jet) -> Jet:
        """Effort without cancellation, with x = |delta| - b, X = sqrt(x² + w²), y = |delta| + b, Y = sqrt(y² + w²).

        The spring is odd, h' = h/X, h'' = w²/(2 X³), and X² - Y² = -4 b |delta| gives h(x) - h(-y) = |delta| (2 h(x) +
        2 h(-y))/(X + Y).
        """
        distance, square, more = absolute(delta[0]), self.width**2, self.outer - self.inner
        x, y = distance - self.half_gap, distance + self.half_gap
        X, Y = sqrt(x * x + square), sqrt(y * y + square)
        # One division for three quotients, and one division for two.
        whole, near, far = X + Y, select(x, 1.0, X - x), Y + y
        inverse, inverse_XY = 1.0 / (whole * near * far), 1.0 / (X * Y)
        first = 0.5 * select(x, x + X, square) * (inverse * whole * far)
        second = 0.5 * square * (inverse * whole * near)
        values: list[Any] = [delta[0] * (2 * more * (first + second) * (inverse * near * far) + self.inner)]
        if len(delta) > 1:
            by_x, by_y = inverse_XY * Y, inverse_XY * X
            values.append(more * (first * by_x + second * by_y) + self.inner)
        if len(delta) > 2:
            # X⁻³ - Y⁻³ = (Y - X)(X² + X Y + Y²)/(X Y)³, without the difference.
            cubes = (inverse_XY * inverse_XY * inverse_XY) * (whole * whole - X * Y)
            values.append((2 * more * square * self.half_gap) * (delta[0] * (inverse * near * far) * cubes))
        if len(delta) > 3:
            sides = [self._inverse_cube(delta[0] - edge, len(delta) - 2) for edge in (self.half_gap, -self.half_gap)]
            values += list((0.5 * more * square) * (sides[0] - sides[1]))[1:]
        return composed(values, delta)

    def _inverse_cube(self, x: Scalar, length: int) -> Jet:
        """(x² + w²)^(-3/2) and its derivatives with respect to x."""
        variable = Jet([x, 1.0, *([0.0] * (length - 2))])
        X = square_root(variable * variable + self.width**2)
        return quotient(Jet.constant(1.0, length), X * X * X)

    def energy_law(self, delta: Scalar) -> Scalar:
        """Integral of the effort, with the integral of h, (x² + x sqrt(x² + w²) + w² asinh(x/w))/4."""
        beyond = (
            self._integral(delta - self.half_gap)
            + self._integral(-delta - self.half_gap)
            - 2 * self._integral(-self.half_gap)
        )
        return 0.5 * self.inner * (delta * delta) + (self.outer - self.inner) * beyond

    def inverse_jet(self, tau: Jet) -> Jet:
        """Deflection by the root of a rational function, with f' and f'' free of square roots and cancellation.

        In elliptic coordinates about the edges of the gap, X + Y = 2 b (1 + 2 rho), delta = b (1 + 2 rho) c and, with y
        = rho + rho², XY = b² (4 y + 1 - c²). Hence y (1 - c²) = (w/2b)², and c (k/2K + rho) = tau/(2 K b).
        """
        if len(tau) > 3:
            return super().inverse_jet(tau)
        K, k, b = self.outer, self.inner, self.half_gap
        ratio, square = 0.5 * k / K, (0.5 * self.width / b) ** 2

        def squared_load(rho: Jet) -> Jet:
            stiffness = rho + ratio
            return stiffness * stiffness * (1.0 - quotient(Jet([square, 0.0, 0.0]), rho * rho + rho))

        share = tau[0] * (0.5 / (K * b))
        least, load = 2 * square / (1 + math.sqrt(1 + 4 * square)), absolute(share)
        # |c| is nearly 1 - least/(2 rho), which gives a quadratic equation.
        middle = load + (0.5 * least - ratio)
        start = 0.5 * (sqrt(middle * middle + 2 * ratio * least) + middle)
        rho = root(squared_load, share * share, (least, load + least), start)
        y = rho * rho + rho
        # One division for 1/y and for c.
        inverse = 1.0 / (y * (rho + ratio))
        g, c = inverse * (rho + ratio), share * (inverse * y)
        delta = b * (c * (2.0 * rho + 1.0))
        if len(tau) == 1:
            return Jet([delta])
        r, s = square * g, square * (g * g)
        near, far = s + 4.0, s * (rho + 1.0) + 2.0
        inverse_near_far = 1.0 / (near * far)
        slope = 2 * (K - k) * ((s * (2.0 - r) + 4.0) * inverse_near_far) + k
        g_near = g * (inverse_near_far * far)
        bend = (4 * (K - k) / b) * c * (g_near * g_near * (inverse_near_far * far) * (r * (4.0 - r) + 12 * square))
        return inverted(lambda _: Jet([tau[0], slope, bend][: len(tau)]), delta, tau)

    def inverse_law(self, tau: Scalar) -> Scalar:
        """Deflection under an effort, by the same method as :meth:`inverse_jet`."""
        return self.inverse_jet(Jet([tau]))[0]

    def _integral(self, x: Scalar) -> Scalar:
        """Integral of h from -infinity, up to a constant, by a form of h without cancellation."""
        square = self.width**2
        X = sqrt(x * x + square)
        h = select(x, 0.5 * (x + X), 0.5 * square / (X - select(x, 0.0, x)))
        return 0.25 * (2 * x * h + square * asinh(x / self.width))
