# SPDX-License-Identifier: Apache-2.0
"""Polynomials that come to rest."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly

from eom_dynamics.arrays import Array


def to_rest(x: ArrayLike, T: float) -> Callable[[ArrayLike], Array]:
    """X and its m derivatives (m + 1, ...) at times of the motion from these to rest at T s, of degree 2m."""
    x = np.array(x, dtype=float)
    m = len(x) - 1
    rate = BPoly.from_derivatives([0.0, T], np.stack([x[1:], np.zeros_like(x[1:])]))
    parts = [rate.antiderivative(), *(rate.derivative(k) for k in range(m))]

    def at(s: ArrayLike) -> Array:
        rows = np.stack([part(np.minimum(s, T)) for part in parts])
        rows[0] += x[0]
        rows[1:] *= np.reshape(np.less(s, T), (*np.shape(s), *[1] * (x.ndim - 1)))
        return rows

    return at
