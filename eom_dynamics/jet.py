# SPDX-License-Identifier: Apache-2.0
"""Jets: quantities with their time derivatives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import Any


class Jet(Sequence[Any]):
    """Scalar, vector or matrix with its time derivatives: ``jet[k]`` is the k-th derivative.

    Products follow Leibniz' rule. Sums and products have the lower order of the two jets; a term or factor that is not
    a jet is constant. Entries may be numbers, arrays or symbols, anything with ``+`` and ``*``.
    """

    __slots__ = ("_derivatives",)

    # Makes NumPy leave `array @ jet` to __rmatmul__ instead of looping over the jet.
    __array_ufunc__ = None

    def __init__(self, derivatives: Sequence[Any]) -> None:
        self._derivatives = tuple(derivatives)

    @classmethod
    def constant(cls, value: Any, length: int) -> Jet:
        """Jet of a constant, with ``length - 1`` zero derivatives."""
        return cls([value] + [0.0] * (length - 1))

    def __getitem__(self, k: Any) -> Any:
        return self._derivatives[k]

    def __len__(self) -> int:
        return len(self._derivatives)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._derivatives)

    @property
    def T(self) -> Jet:
        """Transpose of each derivative."""
        return Jet([x.T for x in self])

    @property
    def rate(self) -> Jet:
        """Time derivative, of one order less."""
        return Jet(self._derivatives[1:])

    def __neg__(self) -> Jet:
        return Jet([-x for x in self])

    def __add__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet([self[0] + other, *self[1:]])
        return Jet([x + y for x, y in zip(self, other, strict=False)])

    __radd__ = __add__

    def __sub__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet([self[0] - other, *self[1:]])
        return Jet([x - y for x, y in zip(self, other, strict=False)])

    def __rsub__(self, constant: Any) -> Jet:
        return -self + constant

    def __mul__(self, other: Any) -> Jet:
        return self._product(other, operator.mul)

    def __rmul__(self, constant: Any) -> Jet:
        return Jet([constant * x for x in self])

    def __matmul__(self, other: Any) -> Jet:
        return self._product(other, operator.matmul)

    def __rmatmul__(self, constant: Any) -> Jet:
        return Jet([constant @ x for x in self])

    def _product(self, other: Any, multiply: Callable[[Any, Any], Any]) -> Jet:
        if not isinstance(other, Jet):
            return Jet([multiply(x, other) for x in self])
        return Jet([leibniz(self, other, k, multiply) for k in range(min(len(self), len(other)))])


def leibniz(
    first: Sequence[Any], second: Sequence[Any], k: int, multiply: Callable[[Any, Any], Any] = operator.matmul
) -> Any:
    """k-th derivative of a product: sum over j of binomial(k, j) first[j] second[k - j]."""
    total = multiply(first[0], second[k])
    for j in range(1, k + 1):
        term = multiply(first[j], second[k - j])
        total = total + (term if j == k else comb(k, j) * term)
    return total
