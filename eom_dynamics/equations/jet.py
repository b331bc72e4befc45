# SPDX-License-Identifier: Apache-2.0
"""Quantities with their time derivatives, multiplied by Leibniz' rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Jet(Sequence[Array]):
    """A matrix or vector with its time derivatives: ``jet[k]`` is the k-th.

    Sums and products of jets reach as far as the shorter of the two. A plain array counts as a constant,
    of every order.
    """

    # Keeps NumPy from taking `array @ jet` apart element by element.
    __array_ufunc__ = None

    def __init__(self, derivatives: Sequence[Array]) -> None:
        self._derivatives = tuple(derivatives)

    def __getitem__(self, k: Any) -> Any:
        return self._derivatives[k]

    def __len__(self) -> int:
        return len(self._derivatives)

    def __iter__(self) -> Iterator[Array]:
        return iter(self._derivatives)

    @property
    def T(self) -> Jet:
        """The transpose of every derivative."""
        return Jet([x.T for x in self])

    @property
    def rate(self) -> Jet:
        """The time derivative, known to one order less."""
        return Jet(self._derivatives[1:])

    def __neg__(self) -> Jet:
        return Jet([-x for x in self])

    def __add__(self, other: Jet) -> Jet:
        return Jet([x + y for x, y in zip(self, other, strict=False)])

    def __sub__(self, other: Jet) -> Jet:
        return Jet([x - y for x, y in zip(self, other, strict=False)])

    def __mul__(self, factor: float) -> Jet:
        return Jet([x * factor for x in self])

    __rmul__ = __mul__

    def __matmul__(self, other: Jet | Array) -> Jet:
        if isinstance(other, np.ndarray):
            return Jet([x @ other for x in self])
        return Jet([leibniz(self, other, k) for k in range(min(len(self), len(other)))])

    def __rmatmul__(self, constant: Array) -> Jet:
        return Jet([constant @ x for x in self])


def leibniz(left: Sequence[Array], right: Sequence[Array], k: int) -> Array:
    """The k-th derivative of ``left @ right``: sum over j of binomial(k, j) left[j] @ right[k - j]."""
    total = left[0] @ right[k]
    for j in range(1, k + 1):
        total = total + comb(k, j) * (left[j] @ right[k - j])
    return total
