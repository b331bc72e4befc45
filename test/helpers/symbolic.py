# SPDX-License-Identifier: Apache-2.0
"""Numbers of symbolic results."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from eom_dynamics.arrays import Array
from eom_dynamics.lagrange import Lagrangian, rate


def number(system: Lagrangian, expression: Any, *states: Array) -> Array:
    """Value of a scalar, matrix, array or vector for q, qd, … and the numbers of the system's parameters.

    SymPy's columns (n, 1) with n > 1 become vectors (n,).
    """
    symbols, vector = [], system.q
    for _ in states:
        symbols += vector
        vector = tuple(map(rate, vector))
    values = [float(x) for vector in states for x in vector]
    array = np.array(expression.tolist() if hasattr(expression, "tolist") else expression, dtype=object)
    known = list(system.values)
    function = sp.lambdify([*symbols, *known], list(array.flat), "numpy")
    numbers = function(*values, *(float(system.values[s]) for s in known))
    shape = array.shape[:-1] if array.ndim == 2 and array.shape[1] == 1 < array.shape[0] else array.shape
    return np.array(numbers, dtype=float).reshape(shape)
