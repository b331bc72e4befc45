# SPDX-License-Identifier: Apache-2.0
"""Fixed-step integrators for y' = f(t, y), beside SciPy's; each function takes one step.

A row of y has k positions, k velocities, and quadratures that the others do not depend on:

    y = (x, v, w),    x' = a function of x and v,    v' = f_v(t, x, v),    w' = f_w(t, x, v).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from ..arguments import choice, positive
from ..arrays import Array
from ..exceptions import StateError
from ..number_rules import violation
from ..spelling import shown

Rate: TypeAlias = Callable[[float, Array], Array]
"""f: rates (N, columns) of N rows at a time."""


def euler(f: Rate, t: float, y: Array, h: float, k: int) -> Array:
    """Explicit Euler, y + h f(t, y): first order, adds energy to every vibration."""
    return y + h * f(t, y)


def semi_implicit_euler(f: Rate, t: float, y: Array, h: float, k: int) -> Array:
    """Semi-implicit Euler: explicit velocities, then positions by the new velocities; first order.

    It is symplectic for a constant mass matrix alone.
    """
    velocities = (..., slice(k, 2 * k))
    moved = y.copy()
    moved[velocities] += h * f(t, y)[velocities]
    after: Array = y + h * f(t, moved)
    after[velocities] = moved[velocities]
    return after


def rk4(f: Rate, t: float, y: Array, h: float, k: int) -> Array:
    """The classical Runge-Kutta method of fourth order, for efforts and commands that bend at samples."""
    first = f(t, y)
    second = f(t + h / 2, y + h / 2 * first)
    third = f(t + h / 2, y + h / 2 * second)
    fourth = f(t + h, y + h * third)
    return y + h / 6 * (first + 2 * second + 2 * third + fourth)


class FixedStep(NamedTuple):
    """An integrator of fixed step.

    Attributes:
        order: of the error over a given time, in the step.
        step: y(t + h) from f, t, y, h and k, see the module.
    """

    order: int
    step: Callable[[Rate, float, Array, float, int], Array]


FIXED_STEP: Mapping[str, FixedStep] = MappingProxyType(
    {
        "euler": FixedStep(1, euler),
        "semi_implicit_euler": FixedStep(1, semi_implicit_euler),
        "rk4": FixedStep(4, rk4),
    }
)
"""Integrators of fixed step by name."""

ADAPTIVE = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")
"""SciPy's integrators by name, which choose their steps by tolerances."""

LONGEST = 1e7
"""Longest simulation, s, so that each one ends."""

MOST_STEPS = 10_000_000
"""Most steps of fixed length in a simulation: some ten of them take a millisecond."""


def check_method(method: str, step: float | None) -> None:
    """Raise StateError unless the method is known, and a step is given exactly for fixed-step methods."""
    choice(method, "method", (*ADAPTIVE, *FIXED_STEP))
    if method in ADAPTIVE and step is not None:
        raise StateError(f"{method} chooses its steps by tolerances; omit step, or use {', '.join(FIXED_STEP)}")
    if method in FIXED_STEP and violation(step, "positive"):
        raise StateError(f"{method} needs a step, a number of seconds > 0, is {shown(step)}")


def check_tolerances(relative: float, absolute: float) -> None:
    """Raise StateError unless both tolerances are finite and positive."""
    positive(relative, "relative_tolerance")
    positive(absolute, "absolute_tolerance")


def check_times(times: Array, step: float | None) -> None:
    """Raise StateError if a simulation over these times is too long, or has too many steps of fixed length."""
    duration = float(times[-1] - times[0])
    if not duration <= LONGEST:
        raise StateError(f"t must span at most {LONGEST:g} s, spans {duration:.3g} s; choose a larger unit of time")
    if step is not None and not duration <= step * MOST_STEPS:
        raise StateError(
            f"step must be so long that there are at most {MOST_STEPS:,} of them; {float(step):g} s is too short for "
            f"{duration:.6g} s"
        )


def even_steps(start: float, end: float, step: float) -> int:
    """Number of equal steps from start to end, none longer than ``step`` (up to rounding)."""
    return max(1, int(np.ceil((end - start) / step * (1 - 1e-9))))
