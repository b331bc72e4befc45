# SPDX-License-Identifier: Apache-2.0
"""Numerical differentiation by central differences on a regular grid.

Coefficients: B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids",
Mathematics of Computation 51 (1988), table 1.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array

REACH = 4
"""Samples on each side that a difference of the highest order needs."""

# Coefficients at 0, +1, +2, … steps by derivative and order; those at -1, -2, … mirror them.
_COEFFICIENTS: dict[tuple[int, int], tuple[float, ...]] = {
    (1, 6): (0, 3 / 4, -3 / 20, 1 / 60),
    (1, 8): (0, 4 / 5, -1 / 5, 4 / 105, -1 / 280),
    (2, 6): (-49 / 18, 3 / 2, -3 / 20, 1 / 90),
    (2, 8): (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}


def differentiate(samples: Array, step: float, derivative: int, order: int = 8) -> Array:
    """Differentiate samples that are ``step`` s apart.

    Args:
        samples: (N, n); a NaN makes the derivatives that depend on it NaN.
        derivative: 1 or 2.
        order: order of the error in ``step``, 6 or 8.

    Returns:
        (N, n), NaN in the first and last ``REACH`` rows.
    """
    rows = len(samples) - 2 * REACH
    result = np.full(samples.shape, np.nan)
    if rows > 0:
        terms = (c * samples[REACH + k : REACH + k + rows] for k, c in _stencil(derivative, order))
        result[REACH : REACH + rows] = sum(terms) / step**derivative
    return result


def rounding(step: float, derivative: int, magnitude: float) -> float:
    """Return the largest error in a derivative of order 8 from rounding samples of this magnitude."""
    return float(sum(abs(c) for _, c in _stencil(derivative, 8)) * np.finfo(float).eps * magnitude / step**derivative)


def _stencil(derivative: int, order: int) -> list[tuple[int, float]]:
    half = list(enumerate(_COEFFICIENTS[derivative, order]))
    mirror = 1 if derivative == 2 else -1
    return [(-k, mirror * c) for k, c in reversed(half[1:])] + half
