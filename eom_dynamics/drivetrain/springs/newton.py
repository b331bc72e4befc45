# SPDX-License-Identifier: Apache-2.0
"""Roots of increasing functions, to full precision: Halley's method inside a bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Bisection alone needs some 60 steps from a bracket to neighbouring numbers, of the size of a bracket's end; Halley
# inside it rarely needs six.
_MOST_STEPS = 100

# Halley triples the digits: after a step of this share of x, which is the last, what is left is rounding.
_LAST_STEP = 1e-7


def increasing_root(
    function: Callable[[Array], tuple[Array, Array, Array]],
    target: Array,
    bounds: tuple[Array, Array],
    start: Array,
) -> Array:
    """x with function(x)[0] = target, entry by entry, for an increasing function.

    W. H. Press et al., "Numerical Recipes" (2007), section 9.4: a step that leaves the bracket is replaced by a
    bisection. The bracket shrinks at each step, so it ends for every increasing function.

    Args:
        function: the function and its first (> 0) and second derivative, entry by entry.
        target: values to be met.
        bounds: arrays between which the roots lie; of the shape of ``target``.
        start: where to start.
    """
    low, high = bounds
    x = np.minimum(np.maximum(start, low), high)
    for _ in range(_MOST_STEPS):
        value, slope, curvature = function(x)
        residual = value - target
        newton = residual / slope
        # Newton's step, longer or shorter by the curvature; never more than twice or less than half of it.
        bend = np.minimum(np.maximum(0.5 * newton * curvature / slope, -1.0), 0.5)
        step = newton / (1.0 - bend)
        new = x - step
        if np.all(np.abs(step) <= _LAST_STEP * np.abs(x)):
            return new
        below = residual <= 0
        low, high = np.where(below, x, low), np.where(below, high, x)
        inside = (new >= low) & (new <= high)
        x = new if np.all(inside) else np.where(inside, new, 0.5 * (low + high))
    return x
