# SPDX-License-Identifier: Apache-2.0
"""Motion of a base on SE(3) and of joints, with exact derivatives of its twist."""

from collections.abc import Callable
from functools import cache
from math import factorial
from typing import NamedTuple

import numpy as np
from differences import polynomial_motion

from eom_dynamics import lie
from eom_dynamics.arrays import Array
from eom_dynamics.jet import Jet

_TERMS = 40


class FloatingState(NamedTuple):
    """Pose of the base, joint variables, and nu, nud, … (m, 6 + n)."""

    pose: Array
    q: Array
    rates: Array


def floating_motion(derivatives: Array) -> Callable[[float], FloatingState]:
    """Motion with pose exp(x(t)) and q(t), for polynomials (x, q) with these derivatives (m + 1, 6 + n) at time 0."""
    polynomial = polynomial_motion(derivatives)

    @cache
    def at(t: float) -> FloatingState:
        levels = polynomial(t)
        twists = _body_twists(levels[:, :6])
        return FloatingState(lie.exp(levels[0, :6]), levels[0, 6:], np.hstack([twists, levels[1:, 6:]]))

    return at


def _body_twists(x: Array) -> Array:
    """V = sum of (-ad x)^k dx/dt / (k + 1)! and its derivatives (m, 6), for x with m derivatives (m + 1, 6)."""
    A, term = Jet([lie.ad(-level) for level in x[:-1]]), Jet(list(x[1:]))
    total = term
    for k in range(1, _TERMS):
        term = A @ term
        total = total + Jet([level / float(factorial(k + 1)) for level in term])
    return np.array(list(total))
