# SPDX-License-Identifier: Apache-2.0
"""Evaluation of kernels on arrays of states."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..arrays import AnyArray, Array
from ..exceptions import StateError
from ..states import sequence
from .backends import Kernel


def evaluate(
    kernel: Kernel,
    samples: tuple[int, ...],
    inputs: Sequence[AnyArray],
    shapes: Sequence[tuple[int, ...]],
    out: Sequence[Array] | None = None,
) -> tuple[Array, ...] | None:
    """Run a kernel on one state or a batch.

    Args:
        kernel: the kernel.
        samples: () or (N,).
        inputs: with these leading axes.
        shapes: of the results of one state.
        out: C-contiguous arrays for the results, in their shapes.

    Returns:
        The results, (*samples, *shape) each; None if an input is not finite.

    Raises:
        StateError: ``out`` does not fit.
    """
    count = samples[0] if samples else 1
    results = _outputs([samples + shape for shape in shapes], out)
    if not count:
        return results
    rows = [_unaliased(_rows(np.reshape(x, (*samples, -1))), out) for x in inputs]
    finite = kernel(count, rows, [result.reshape(count, -1) for result in results])
    return results if finite else None


def _rows(x: Array) -> Array:
    """The array as (N, size) with contiguous rows of aligned numbers; copied only if they are not."""
    rows = np.atleast_2d(x)
    fits = rows.flags.aligned and rows.strides[1] == rows.itemsize and rows.strides[0] >= 0
    return rows if fits else rows.copy()


def _unaliased(rows: Array, out: Sequence[Array] | None) -> Array:
    """The array, or a copy if writing a result would overwrite rows that are not yet read."""
    for array in out or ():
        same_place = rows.ctypes.data == array.ctypes.data and rows.size == array.size
        if np.may_share_memory(rows, array) and not same_place:
            return rows.copy()
    return rows


def _outputs(shapes: Sequence[tuple[int, ...]], out: Sequence[Array] | None) -> tuple[Array, ...]:
    if out is None:
        if len(set(shapes)) > 1 or not shapes[0]:  # numbers are arrays, too
            return tuple(np.empty(shape) for shape in shapes)
        # Allocated together: the allocator keeps one large block for the next call but returns three to the system, and
        # clearing fresh memory costs as much as the computation.
        return tuple(np.empty((len(shapes), *shapes[0])))
    arrays = sequence(out, "out", f"{len(shapes)} arrays", least=len(shapes), most=len(shapes))
    for k, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64
        if not fits or not array.flags.carray:
            raise StateError(f"out[{k}] must be a writable C-contiguous float64 array of shape {shape}")
    for (i, first), (k, second) in combinations(enumerate(arrays), 2):
        if np.may_share_memory(first, second):  # exact for contiguous arrays
            raise StateError(f"out[{i}] and out[{k}] share memory; give each result an array of its own")
    return tuple(arrays)
