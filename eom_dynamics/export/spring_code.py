# SPDX-License-Identifier: Apache-2.0
"""Springs in exported code: the hand-written functions of each kind, and the constants that they take.

The functions are in ``templates/motors``, one file a kind and language. They give the deflection and its two time
derivatives from the effort and its own, by the formulas of :mod:`eom_dynamics.actuators.springs`. A new kind needs its
two files there and an entry in :data:`SPRING_CODE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import factorial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..actuators.springs import CoupledSpring, PolynomialSpring, Spring, TabulatedSpring
from ..arrays import Array

_QUINTIC = 5


def _parameters(spring: Spring) -> list[Array]:
    """Its parameters but the nominal stiffness, in place of which exported functions have an input."""
    return [getattr(spring, name) for name in spring.parameters() if name != "nominal"]


def _polynomial(spring: PolynomialSpring) -> list[Array]:
    """Coefficients from the constant one on, and the least stiffness."""
    return [np.append(0.0, spring.coefficients), np.asarray(spring.least_stiffness)]


def _tabulated(spring: TabulatedSpring) -> list[Array]:
    """Points (m,) and (m,), coefficients (m - 1, 6) of powers in each interval, and stiffness beyond both ends."""
    left = spring.delta[:-1]
    derivatives = [spring.effort(left), *spring.slopes(left, _QUINTIC)]
    quintics = np.stack([x / factorial(k) for k, x in enumerate(derivatives)], axis=-1)
    beyond = spring.slopes(spring.delta[[0, -1]] + [-1.0, 1.0], 1)[0]
    return [spring.delta, spring.tau, quintics, beyond[0], beyond[1]]


def _coupled(spring: CoupledSpring) -> list[Array]:
    return [spring.compliance]


class SpringCode(NamedTuple):
    """How exported code computes a kind of spring.

    Attributes:
        uses: names of further templates that its own uses, in order.
        constants: function that returns the numbers and arrays that its function takes.
    """

    uses: Sequence[str] = ()
    constants: Callable[..., Sequence[Array]] = _parameters


SPRING_CODE: Mapping[str, SpringCode] = MappingProxyType(
    {
        "rigid": SpringCode(),
        "linear": SpringCode(["memoryless"]),
        "cubic": SpringCode(["memoryless"]),
        "exponential": SpringCode(["memoryless"]),
        "dead_zone": SpringCode(["memoryless", "root"]),
        "polynomial": SpringCode(["memoryless", "root", "polynomial_value"], _polynomial),
        "tabulated": SpringCode(["memoryless", "root", "polynomial_value"], _tabulated),
        "damped": SpringCode(),
        "variable": SpringCode(["undefined"]),
        "antagonistic_exponential": SpringCode(["undefined"]),
        "antagonistic_quadratic": SpringCode(["undefined"]),
        "coupled": SpringCode(constants=_coupled),
    }
)
"""Code of all springs by kind; the template of a kind has its name."""
