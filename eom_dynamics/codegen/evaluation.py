# SPDX-License-Identifier: Apache-2.0
"""Rows of states that kernels read, and arrays for their results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from ..states import sequence


def rows_of(x: Array) -> Array:
    """The array (N, size) with contiguous, aligned rows; copied only if necessary."""
    fits = x.flags.aligned and x.strides[1] == x.itemsize and x.strides[0] >= 0
    return x if fits else x.copy()


def unaliased(rows: Array, out: Sequence[Array] | None, *, in_place: bool) -> Array:
    """The array, or a copy if writing a result would overwrite rows that are not yet read.

    Args:
        rows: (N, size).
        out: arrays for the results.
        in_place: whether a result may overwrite the same rows, since they are read before it is written.
    """
    for array in out or ():
        same_place = rows.ctypes.data == array.ctypes.data and rows.size == array.size
        if np.may_share_memory(rows, array) and not (in_place and same_place):
            return rows.copy()
    return rows


def outputs(shapes: Sequence[tuple[int, ...]], out: Sequence[Array] | None) -> tuple[Array, ...]:
    """Result arrays of these shapes: ``out``, or new ones.

    Raises:
        StateError: ``out`` is not C-contiguous arrays of the shapes with memory of their own.
    """
    if out is None:
        # Allocated together: the allocator keeps one large block for the next call but returns three to the system, and
        # clearing fresh memory costs as much as the computation.
        ends = np.cumsum([prod(shape) for shape in shapes]).tolist()
        whole = np.empty(ends[-1])
        return tuple(whole[a:b].reshape(x) for a, b, x in zip([0, *ends], ends, shapes, strict=False))
    arrays = sequence(out, "out", f"{len(shapes)} arrays", least=len(shapes), most=len(shapes))
    for k, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64
        if not fits or not array.flags.carray:
            raise StateError(f"out[{k}] must be a writable C-contiguous float64 array of shape {shape}")
    for (i, first), (k, second) in combinations(enumerate(arrays), 2):
        if np.may_share_memory(first, second):  # exact for contiguous arrays
            raise StateError(f"out[{i}] and out[{k}] share memory; give each result an array of its own")
    return tuple(arrays)
