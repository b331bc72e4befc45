# SPDX-License-Identifier: Apache-2.0
"""Joint states and wrenches as arrays: one place where their shapes and values are checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .exceptions import StateError

Array = NDArray[Any]

STATE_NAMES = ("q", "qd", "qdd", "qddd", "qdddd")
"""Names of the joint variables and their time derivatives."""

WRENCH_NAMES = ("W", "Wd", "Wdd")
"""Names of the tool wrench and its time derivatives."""

EFFORT_NAMES = ("tau", "taud", "taudd")
"""Names of the joint efforts and their time derivatives."""


def joint_vectors(n: int, *vectors: ArrayLike, first: int = 0) -> list[Array]:
    """The vectors as arrays (n,) of finite numbers; symbols pass as they are.

    Args:
        n: number of joints.
        vectors: q and its time derivatives, from the one of order ``first`` on.
        first: order of the first of them.

    Raises:
        StateError: one has another shape, or is not finite.
    """
    return [_checked(vector, _name(STATE_NAMES, k), (n,)) for k, vector in enumerate(vectors, start=first)]


def joint_states(n: int, *vectors: ArrayLike, finite: bool = True) -> list[NDArray[np.float64]]:
    """q and its time derivatives as arrays of finite numbers, all (n,) or all (N, n).

    Args:
        n: number of joints.
        vectors: q and its time derivatives.
        finite: whether to look; not where a kernel looks later.

    Raises:
        StateError: one has another shape, or is not finite.
    """
    names = [_name(STATE_NAMES, k) for k in range(len(vectors))]
    shape = np.shape(_array(vectors[0], names[0]))
    if len(shape) not in (1, 2) or shape[-1] != n:
        raise StateError(f"{names[0]} must have shape ({n},) or (N, {n}), has {shape}")
    return [
        _checked(vector, name, shape, symbols=False, finite=finite) for vector, name in zip(vectors, names, strict=True)
    ]


def wrenches(
    wrench: Sequence[ArrayLike],
    count: int,
    shape: tuple[int, ...] = (6,),
    samples: tuple[int, ...] = (),
    *,
    finite: bool = True,
) -> list[Array]:
    """A wrench and its time derivatives as ``count`` arrays; what is not given is zero.

    Args:
        wrench: those that are given, each of the given shape, or of the shape and one more axis of samples.
        count: how many there are to be.
        shape: (6,), or (number of tools, 6).
        samples: () or (N,), the leading axis of the result.
        finite: whether to look if they are; not where a kernel looks later.

    Raises:
        StateError: one has another shape, or is not finite.
    """
    given = []
    for k, W in enumerate(wrench):
        name = f"wrench {_name(WRENCH_NAMES, k)}"
        for_each = samples if _array(W, name).ndim > len(shape) else ()
        given.append(np.broadcast_to(_checked(W, name, for_each + shape, finite=finite), samples + shape))
    return (given + [np.broadcast_to(np.zeros(shape), samples + shape)] * count)[:count]


def all_finite(arrays: Sequence[Array]) -> bool:
    """Whether every number of every array is finite."""
    return all(bool(np.all(np.isfinite(array))) for array in arrays)


def _checked(
    value: ArrayLike, name: str, shape: tuple[int, ...], *, symbols: bool = True, finite: bool = True
) -> Array:
    array = _array(value, name)
    if array.shape != shape:
        raise StateError(f"{name} must have shape {shape}, has {array.shape}")
    if symbols and array.dtype == object:
        return array
    if array.dtype.kind not in "biuf":
        raise StateError(f"{name} must be real numbers, is of type {array.dtype}")
    array = np.ascontiguousarray(array, dtype=float)
    if finite and not np.all(np.isfinite(array)):
        index = np.argwhere(~np.isfinite(array))[0]
        raise StateError(f"{name} must be finite; entry {index.tolist()} is {array[tuple(index)]}")
    return array


def _array(value: ArrayLike, name: str) -> Array:
    try:
        return np.asarray(value)
    except ValueError:  # rows of different lengths
        raise StateError(f"{name} is not an array of numbers") from None


def _name(names: Sequence[str], order: int) -> str:
    return names[order] if order < len(names) else f"{names[0]}, derivative {order},"
