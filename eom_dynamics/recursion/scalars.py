# SPDX-License-Identifier: Apache-2.0
"""Vectors and matrices of scalars of any type that adds and multiplies: numbers, expressions, jets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Scalar: TypeAlias = Any

Numbers: TypeAlias = list[Scalar]
"""Entries of a vector: three of a position, six of a twist."""

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


def vector_cross(a: Sequence[Scalar], b: Sequence[Scalar]) -> Numbers:
    """a x b."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


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
