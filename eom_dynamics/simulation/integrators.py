# SPDX-License-Identifier: Apache-2.0
"""Integrators for y' = f(t, y): SciPy's, which choose their steps by tolerances, and two of fixed step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import choice, positive
from ..arrays import Array
from ..exceptions import SimulationError, StateError
from ..number_rules import violation
from ..spelling import shown
from ..states import real_array

Rate: TypeAlias = Callable[[float, Array], Array]
"""f: rates (N, columns) of N rows at a time."""

ADAPTIVE = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")  # SciPy's integrators by name
LONGEST = 1e7  # longest simulation, s, so that each one ends
MOST_STEPS = 10_000_000  # most steps of fixed length in a simulation: some ten of them take a millisecond

# Evaluations of the rate at one time, in all and for each entry of y, after which no progress is expected.
_STANDING = 1000, 200


def euler(f: Rate, t: float, y: Array, h: float) -> Array:
    """Explicit Euler, y + h f(t, y): first order, adds energy to every vibration."""
    return y + h * f(t, y)


def rk4(f: Rate, t: float, y: Array, h: float) -> Array:
    """The classical Runge-Kutta method of fourth order, for efforts and commands that bend at samples."""
    first = f(t, y)
    second = f(t + h / 2, y + h / 2 * first)
    third = f(t + h / 2, y + h / 2 * second)
    fourth = f(t + h, y + h * third)
    return y + h / 6 * (first + 2 * second + 2 * third + fourth)


FIXED_STEP: Mapping[str, Callable[[Rate, float, Array, float], Array]] = MappingProxyType({"euler": euler, "rk4": rk4})
"""Integrators of fixed step by name: y(t + h) from f, t, y and h."""


def check_method(method: str, step: float | None, **tolerances: float) -> None:
    """Raise StateError unless the method is known, a step given for fixed steps alone, and tolerances positive."""
    choice(method, "method", (*ADAPTIVE, *FIXED_STEP))
    if method in ADAPTIVE and step is not None:
        raise StateError(f"{method} chooses its steps by tolerances; omit step, or use {', '.join(FIXED_STEP)}")
    if method in FIXED_STEP and violation(step, "positive"):
        raise StateError(f"{method} needs a step, a number of seconds > 0, is {shown(step)}")
    for name, tolerance in tolerances.items():
        positive(tolerance, name)


def even_steps(start: float, end: float, step: float) -> int:
    """Number of equal steps from start to end, none longer than ``step`` (up to rounding)."""
    return max(1, int(np.ceil((end - start) / step * (1 - 1e-9))))


def integrated(
    robot: str, rate: Callable[[float, Array], Array], span: tuple[float, float], y: Array, **options: Any
) -> Any:
    """Result of SciPy's ``solve_ivp`` for a rate that is NaN where the integrator shall try a shorter step.

    Raises SimulationError, with the name of the robot, if the rate at the start is not finite, or the integrator cannot
    continue.
    """
    from scipy.integrate import solve_ivp  # here for its import, which would double the start of every command

    now, inside, place, standing = span[0], False, np.inf, 0
    spacing, most = 1e-15 * (span[1] - span[0]), _STANDING[0] + _STANDING[1] * y.size

    def watched(t: float, y: Array) -> Array:
        nonlocal now, inside, place, standing
        now, inside = t, True
        # Not from the latest time reached: a first step that is too long and rejected may lie far ahead.
        standing = standing + 1 if abs(t - place) <= spacing else 0
        place = place if standing else t
        # LSODA shortens its steps without end.
        if standing > most:
            raise SimulationError(_located(robot, now, "the motion leaves all bounds"))
        rates = rate(t, y)
        inside = False
        return rates

    # With a rate of NaN at the start SciPy looks for a first step without end.
    if not np.all(np.isfinite(watched(span[0], y))):
        raise SimulationError(_located(robot, now, "accelerations are not finite"))
    try:
        solution = solve_ivp(watched, span, y, **options)
    except (ValueError, np.linalg.LinAlgError):
        # Errors of the rate itself pass; the implicit methods raise others for matrices that are not finite.
        if inside:
            raise
        raise SimulationError(_located(robot, now, "the motion leaves all bounds, or needs another method")) from None
    if not solution.success:
        raise SimulationError(_located(robot, now, solution.message))
    return solution


def _located(robot: str, now: float, reason: str) -> str:
    return f"{robot}: at {now:.6g} s: {reason}" if robot else f"at {now:.6g} s: {reason}"


def output_times(t: ArrayLike, step: float | None = None) -> Array:
    """Times (T,) as an array.

    Raises:
        StateError: they are not finite, do not increase, or span too much time, or too many steps of fixed length.
    """
    times = real_array(t, "t")
    if np.ndim(t) != 1 or not len(times) or np.any(np.diff(times) <= 0):
        raise StateError(f"t must be finite, increase and have shape (T,), T > 0; has shape {np.shape(t)}")
    duration = float(times[-1] - times[0])
    if not duration <= LONGEST:
        raise StateError(f"t must span at most {LONGEST:g} s, spans {duration:.3g} s; choose a larger unit of time")
    if step is not None and not duration <= step * MOST_STEPS:
        raise StateError(
            f"step must be so long that there are at most {MOST_STEPS:,} of them; {float(step):g} s is too short for "
            f"{duration:.6g} s"
        )
    return times
