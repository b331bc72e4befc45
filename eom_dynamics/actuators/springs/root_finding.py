# SPDX-License-Identifier: Apache-2.0
"""Halley's method inside a bracket, for roots of increasing functions to full precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays import Array

# Bisection alone takes some 60 steps to neighbouring floating-point numbers; Halley's method rarely takes six.
_MOST_STEPS = 100

# Halley's method triples the number of correct digits: after a step this small, relative to x, only rounding is left.
_LAST_STEP = 1e-7


def increasing_root(
    function: Callable[[Array], tuple[Array, Array, Array]],
    target: Array,
    bounds: tuple[Array, Array],
    start: Array,
) -> Array:
    """Solve function(x)[0] = target, entry by entry, for an increasing function.

    W. H. Press et al., "Numerical Recipes" (2007), section 9.4: a step that leaves the bracket is replaced by a
    bisection. The bracket shrinks at each step, so the iteration ends for every increasing function.

    Args:
        function: the function and its first (> 0) and second derivative, entry by entry.
        target: right-hand sides.
        bounds: lower and upper bounds of the roots, of the shape of ``target``.
        start: initial guess.
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
