# SPDX-License-Identifier: Apache-2.0
"""Auxiliary inputs that come to rest."""

from collections.abc import Callable
from math import factorial

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from eom_dynamics.arrays import Array


def to_rest(x: ArrayLike, T: float) -> Callable[[ArrayLike], Array]:
    """X and its m derivatives (m + 1, ...) at times after the start; the rate fades to zero at T s.

    The rate is the Taylor polynomial of the derivatives times 1 - 10 u³ + 15 u⁴ - 6 u⁵, u = s/T.
    """
    x = np.array(x, dtype=float)
    m = len(x) - 1
    weight = Polynomial([1.0, 0.0, 0.0, -10.0 / T**3, 15.0 / T**4, -6.0 / T**5])
    columns = x[1:].reshape(m, -1).T
    rates = [weight * Polynomial([v / factorial(k) for k, v in enumerate(column)]) for column in columns]

    def at(s: ArrayLike) -> Array:
        time = np.minimum(s, T)
        rows = np.array([[rate.integ()(time), *(rate.deriv(k)(time) for k in range(m))] for rate in rates])
        rows = np.moveaxis(rows, 0, -1).reshape(m + 1, *np.shape(s), *x.shape[1:])
        rows[0] += x[0]
        rows[1:] *= np.reshape(np.less(s, T), (*np.shape(s), *[1] * (x.ndim - 1)))
        return rows

    return at
