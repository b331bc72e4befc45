# SPDX-License-Identifier: Apache-2.0
"""Finite differences, independent of the library, and relative deviations."""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eom_dynamics.arrays import Array

# Central differences of order 10: f'(0) = sum of weight * (f(k h) - f(-k h)) / h, k = 1 … 5.
_WEIGHTS = (5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260)


def derivative(function: Callable[[float], Any], step: float = 0.01) -> Array:
    """Derivative of a smooth function of time at 0, with errors of order step^10, and 1e-16 / step from rounding."""
    total: Any = 0.0
    for k, weight in enumerate(_WEIGHTS, start=1):
        total = total + weight * (np.asarray(function(k * step)) - np.asarray(function(-k * step)))
    return np.asarray(total / step)


def gradient(function: Callable[[Array], Any], at: Array, step: float = 0.01) -> Array:
    """Partial derivatives of a function of several variables, along the last axis."""
    return np.stack([derivative(lambda t, e=e: function(at + t * e), step) for e in np.eye(len(at))], axis=-1)


def polynomial_motion(derivatives: Array) -> Callable[[float], Array]:
    """Polynomial motion with these derivatives (m + 1, n) at time 0: a function of time to all of its derivatives."""
    m = len(derivatives)
    powers = [[k - j if k >= j else 0 for k in range(m)] for j in range(m)]
    scales = np.array([[1 / factorial(k - j) if k >= j else 0.0 for k in range(m)] for j in range(m)])
    return lambda t: (scales * np.power(float(t), powers)) @ derivatives


def deviation(actual: ArrayLike, desired: ArrayLike, floor: float = 0.0) -> float:
    """Largest difference between two arrays, relative to the largest desired entry or ``floor``, whichever is larger.

    The floor is the magnitude of canceling terms, for the scale of rounding errors.
    """
    actual, desired = np.asarray(actual, dtype=float), np.asarray(desired, dtype=float)
    assert actual.shape == desired.shape, f"shapes {actual.shape} and {desired.shape} differ"
    difference = np.max(np.abs(actual - desired), initial=0.0)
    return float(difference / np.max(np.abs(desired), initial=floor)) if difference else 0.0
