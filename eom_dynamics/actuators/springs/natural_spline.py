# SPDX-License-Identifier: Apache-2.0
"""Natural cubic spline: the C² curve of least mean squared second derivative through given points."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from ...arrays import Array


def natural_spline(h: Array, secant: Array) -> Array:
    """Slopes and second derivatives (2, m) at the points, from widths and secants (m - 1,), m >= 2."""
    bend = np.zeros(len(h) + 1)
    if len(h) > 1:
        diagonals = np.zeros((3, len(h) - 1))
        diagonals[0, 1:], diagonals[1], diagonals[2, :-1] = h[1:-1], 2 * (h[:-1] + h[1:]), h[1:-1]
        bend[1:-1] = solve_banded((1, 1), diagonals, 6 * np.diff(secant))
    start, end = secant - h * (2 * bend[:-1] + bend[1:]) / 6, secant + h * (bend[:-1] + 2 * bend[1:]) / 6
    return np.stack([np.append(start, end[-1]), bend])
