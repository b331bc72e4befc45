# SPDX-License-Identifier: Apache-2.0
"""Roots of increasing functions, to full precision: Newton's method inside a bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Bisection alone needs some 60 steps from a bracket to neighbouring numbers, of the size of a bracket's end; Newton
# inside it rarely needs ten.
_MOST_STEPS = 100


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]],
    target: Array,
    bounds: tuple[Array, Array],
    start: Array,
) -> Array:
    """x with function(x)[0] = target, entry by entry, for an increasing function.

    W. H. Press et al., "Numerical Recipes" (2007), section 9.4: a step of Newton that leaves the bracket is
    replaced by a bisection. The bracket shrinks at each step, so it ends for every increasing function.

    Args:
        function: the function and its derivative (> 0), entry by entry.
        target: values to be met.
        bounds: arrays between which the roots lie; of the shape of ``target``.
        start: where to start.
    """
    low, high = bounds
    x = np.clip(start, low, high)
    for _ in range(_MOST_STEPS):
        value, slope = function(x)
        residual = value - target
        new = x - residual / slope
        # Newton doubles the digits: after a step of 1e-9 of x, which is the last, what is left is rounding.
        if np.all(np.abs(new - x) <= 1e-9 * np.abs(x)):
            return new
        low, high = np.where(residual <= 0, x, low), np.where(residual >= 0, x, high)
        x = np.where((new < low) | (new > high), 0.5 * (low + high), new)
    return x
