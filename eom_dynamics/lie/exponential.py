# SPDX-License-Identifier: Apache-2.0
"""Exponential map of SE(3), its inverse, and its Jacobians.

With C(t) = exp(x(t)), the twist is J(x) dx/dt in the reference frame and J(-x) dx/dt in the moving frame. J(x) is the
left Jacobian, J(-x) the right Jacobian. As functions of A = ad(x),

    J = (exp(A) - 1) / A = sum over k of A^k / (k + 1)!,    1 / J = sum over k of B_k A^k / k!

with the Bernoulli numbers B_k. Since A⁵ = -2 a² A³ - a⁴ A with the angle a, both are polynomials of degree four in A:
J. M. Selig, "Geometric Fundamentals of Robotics", 2005; F. Bullo and R. M. Murray, "Proportional derivative (PD)
control on the Euclidean group", ECC 1995. Small angles need the series, since the closed form suffers cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, Array
from .poses import ad, pose, rotation_vector, sincos, skew

_EYE = np.eye(3, dtype=int)


def exp(screw: ArrayLike, q: Any = 1) -> AnyArray:
    """Exponential map of ``screw * q``: the motion of a joint, equations (10)-(14).

    Args:
        screw: joint screw or twist (…, 6); of symbols, its angular part must have unit length (revolute, helical) or
            be zero (prismatic).
        q: joint variable (…), rad; for a prismatic joint m.

    >>> quarter = exp([0.0, 0.0, 1.0, 0.0, -1.0, 0.0], np.pi / 2)  # about z through x = 1 m
    >>> (quarter @ [0.0, 0.0, 0.0, 1.0]).round(6).tolist()
    [1.0, -1.0, 0.0, 1.0]

    Returns:
        Pose (…, 4, 4).
    """
    X = np.asarray(screw)
    e, m = X[..., :3], X[..., 3:]
    if X.dtype != object:
        # With a unit vector, R and p lose no digits at small angles. The axis of a joint screw is a unit vector up to
        # rounding.
        length = np.linalg.norm(e, axis=-1)
        length = np.where((length == 0) | (np.abs(length - 1) < 4e-16), 1.0, length)
        if np.any(length != 1):
            e, m, q = e / length[..., np.newaxis], m / length[..., np.newaxis], q * length
    q = np.asarray(q)
    s, versine = _sine_and_versine(q)
    s, versine, q = (x[..., np.newaxis, np.newaxis] for x in (s, versine, q))
    E = skew(e)
    R = _EYE + s * E + versine * (E @ E)
    p = (q * _EYE + versine * E + (q - s) * (E @ E)) @ m[..., np.newaxis]
    return pose(R, p[..., 0])


def log(C: ArrayLike) -> Array:
    """Logarithm of a pose (…, 4, 4): twist (…, 6) with this exponential and an angle of at most pi.

    A rotation by pi has two logarithms, with opposite axes; either may be returned.

    >>> log(exp([0.0, 0.3, 0.0, 0.1, 0.0, 0.2])).round(6).tolist()
    [0.0, 0.3, 0.0, 0.1, 0.0, 0.2]
    """
    C = np.asarray(C, dtype=float)
    w = rotation_vector(C[..., :3, :3])
    angle = np.linalg.norm(w, axis=-1)[..., np.newaxis, np.newaxis]
    W = skew(w)
    # The factor of W² tends to 1/12; below this angle, rounding exceeds the next term of its expansion.
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    factor = np.where(small, 1 / 12, (1 - safe / 2 / np.tan(safe / 2)) / safe**2)
    v = (_EYE - 0.5 * W + factor * (W @ W)) @ C[..., :3, 3:]
    return np.concatenate([w, v[..., 0]], axis=-1)


def _sine_and_versine(q: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Sine of q, and 1 - cos(q) without cancellation."""
    if q.dtype != object:
        return np.sin(q), 2 * np.sin(q / 2) ** 2
    pairs = [sincos(angle) for angle in q.ravel()]
    s, c = (np.array(column, dtype=object).reshape(q.shape) for column in zip(*pairs, strict=True))
    return s, np.asarray(1 - c)


# Terms of the series: the last term of the inverse, (1 / 2 pi)^25, is below rounding for angles up to 1 rad.
_TERMS = 26


def left_jacobian(twist: ArrayLike) -> Array:
    """Left Jacobian (…, 6, 6) at a twist (…, 6): maps its rate to the space twist of its exponential."""
    return _polynomial(twist, _coefficients, _series(inverse=False))


def left_jacobian_inverse(twist: ArrayLike) -> Array:
    """Inverse (…, 6, 6) of the left Jacobian at a twist (…, 6) with an angle below 2 pi."""
    return _polynomial(twist, _inverse_coefficients, _series(inverse=True))


def right_jacobian(twist: ArrayLike) -> Array:
    """Right Jacobian (…, 6, 6) at a twist (…, 6): maps its rate to the body twist of its exponential."""
    return left_jacobian(-np.asarray(twist, dtype=float))


def right_jacobian_inverse(twist: ArrayLike) -> Array:
    """Inverse (…, 6, 6) of the right Jacobian at a twist (…, 6) with an angle below 2 pi."""
    return left_jacobian_inverse(-np.asarray(twist, dtype=float))


def _polynomial(twist: ArrayLike, closed: Callable[[Array], list[Array]], series: Sequence[Sequence[float]]) -> Array:
    """I + c1 A + c2 A² + c3 A³ + c4 A⁴, by the closed form of the coefficients, or their series at small angles."""
    x = np.asarray(twist, dtype=float)
    angle = np.linalg.norm(x[..., :3], axis=-1)
    small = angle < 1
    z = np.minimum(angle, 1.0) ** 2
    near_zero = [np.polynomial.polynomial.polyval(z, coefficients) for coefficients in series]
    A = ad(x)
    total = np.zeros_like(A)
    for near, far in zip(reversed(near_zero), reversed(closed(np.where(small, 1.0, angle))), strict=True):
        total = A @ total + np.where(small, near, far)[..., np.newaxis, np.newaxis] * A
    return np.eye(6) + total


def _coefficients(a: Array) -> list[Array]:
    s, c = np.sin(a), np.cos(a)
    return [
        (4 - a * s - 4 * c) / (2 * a**2),
        (4 * a - 5 * s + a * c) / (2 * a**3),
        (2 - a * s - 2 * c) / (2 * a**4),
        (2 * a - 3 * s + a * c) / (2 * a**5),
    ]


def _inverse_coefficients(a: Array) -> list[Array]:
    s, c = np.sin(a), np.cos(a)
    odd = [2 / a**2 + (a + 3 * s) / (4 * a * (c - 1)), 1 / a**4 + (a + s) / (4 * a**3 * (c - 1))]
    return [np.full_like(a, -0.5), odd[0], np.zeros_like(a), odd[1]]


@cache
def _series(*, inverse: bool) -> tuple[tuple[float, ...], ...]:
    """Coefficients of A … A⁴ as power series in the squared angle."""
    factors = _bernoulli_factors() if inverse else [1 / factorial(k + 1) for k in range(_TERMS)]
    # power[j][i] is the coefficient of z^i A^(j+1) in A^k.
    power = np.zeros((4, _TERMS))
    power[0, 0] = 1.0
    total = np.zeros_like(power)
    for factor in factors[1:]:
        total += factor * power
        once, twice = np.roll(power[3], 1), np.roll(power[3], 2)
        power = np.stack([-twice, power[0], power[1] - 2 * once, power[2]])
    return tuple(map(tuple, total[:, : _TERMS // 2].tolist()))


def _bernoulli_factors() -> list[float]:
    """B_k / k!, with B_1 = -1/2, by their recurrence: sum over j <= k of B_j (k+1 over j) is 0."""
    from fractions import Fraction

    numbers = [Fraction(1)]
    for k in range(1, _TERMS):
        numbers.append(-sum(comb(k + 1, j) * numbers[j] for j in range(k)) / Fraction(k + 1))
    return [float(number / factorial(k)) for k, number in enumerate(numbers)]
