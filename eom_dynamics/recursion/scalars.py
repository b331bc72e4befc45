# SPDX-License-Identifier: Apache-2.0
"""Vectors and matrices of scalars of any type with + and *, and rotation of jet vectors by joints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import comb, pi
from typing import Any, TypeAlias

from ..jet import Jet
from ..lie import sincos

Scalar: TypeAlias = Any

Numbers: TypeAlias = list[Scalar]
"""Entries of a vector: three for a position, six for a twist."""

Matrix: TypeAlias = list[Numbers]


def plus(a: Sequence[Scalar], b: Sequence[Scalar]) -> Numbers:
    """a + b."""
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Sequence[Scalar], b: Sequence[Scalar]) -> Numbers:
    """a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """a' b."""
    total: Scalar = 0  # not 0.0, which would round SymPy's fractions
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def cross(a: Sequence[Scalar], b: Sequence[Scalar]) -> Numbers:
    """a x b."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def leibniz_sum(
    first: Sequence[Numbers], second: Sequence[Numbers], order: int, multiply: Callable[[Numbers, Numbers], Numbers]
) -> Numbers:
    """Derivative of a product of vectors with time derivatives, by Leibniz' rule."""
    total: Numbers = []
    for j in range(order + 1):
        term = [comb(order, j) * x for x in multiply(first[j], second[order - j])]
        total = plus(total, term) if total else term
    return total


def product(matrix: Sequence[Sequence[Scalar]], vector: Sequence[Scalar]) -> Numbers:
    """A b."""
    return [dot(row, vector) for row in matrix]


def transposed(matrix: Sequence[Sequence[Scalar]]) -> Matrix:
    """A'."""
    return [list(column) for column in zip(*matrix, strict=True)]


def entries(rows: Iterable[Sequence[Scalar]]) -> Numbers:
    """Entries of a matrix in row-major order."""
    return [x for row in rows for x in row]


def transposed_product(matrix: Sequence[Sequence[Scalar]], vector: Sequence[Scalar]) -> Numbers:
    """A' b."""
    return product(transposed(matrix), vector)


Vector: TypeAlias = list[Jet]


class Angle:
    """Rotation about z by the jet of an angle q.

    With the coordinates x and y of a vector as a complex number u = x + i y, its coordinates in the rotated frame are
    exp(-i q) u, with the time derivatives exp(-i q) D^k u, D = d/dt - i dq/dt. The powers of D are expanded so that
    each derivative of q is a factor only once.
    """

    def __init__(self, sine: Scalar, cosine: Scalar, rates: Jet) -> None:
        self._sine, self._cosine, self._rates = sine, cosine, rates

    def back(self) -> Angle:
        """Inverse rotation."""
        return Angle(-self._sine, self._cosine, -self._rates)

    def turned(self, vector: Vector) -> Vector:
        """Coordinates of a vector in the rotated frame."""
        u = list(zip(vector[0], vector[1], strict=True))
        D: list[list[tuple[Scalar, Scalar]]] = [u]  # D[a][b]: b-th derivative of D^a u
        for a in range(1, len(u)):
            D.append([self._power(D, a, b) for b in range(len(u) - a)])
        s, c = self._sine, self._cosine
        turned = [(c * x + s * y, c * y - s * x) for x, y in (powers[0] for powers in D)]
        return [Jet([x for x, _ in turned]), Jet([y for _, y in turned]), vector[2]]

    def _power(self, D: list[list[tuple[Scalar, Scalar]]], a: int, b: int) -> tuple[Scalar, Scalar]:
        # (d/dt)^b D^a = (d/dt)^(a+b) + sum over j < a of (d/dt)^(b+j) (D - d/dt) D^(a-1-j).
        x, y = D[0][a + b]
        for m in range(a + b):
            terms = [(comb(b + j, m), D[a - 1 - j][b + j - m]) for j in range(a) if b + j >= m]
            sum_x = sum_y = 0.0
            for factor, (term_x, term_y) in terms:
                sum_x, sum_y = sum_x + factor * term_x, sum_y + factor * term_y
            x, y = x + self._rates[m] * sum_y, y - self._rates[m] * sum_x
        return x, y


def shifted_sincos(q: Scalar, angle: float) -> tuple[Scalar, Scalar]:
    """Sine and cosine of q + angle, without rounding if the angle is a multiple of pi/2."""
    quarters = angle / (pi / 2)
    if quarters != round(quarters):
        return sincos(q + angle)
    s, c = sincos(q)
    return ((s, c), (c, -s), (-s, -c), (-c, s))[round(quarters) % 4]
