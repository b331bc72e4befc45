# SPDX-License-Identifier: Apache-2.0
"""Rules of numbers, and the words in which errors state them; each layer adds where a number stands."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .exceptions import RobotDescriptionWarning
from .spelling import shown

_RULES: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "finite": (lambda x: True, ""),
    "positive": (lambda x: x > 0, "must be positive"),
    "not negative": (lambda x: x >= 0, "must not be negative"),
    "not zero": (lambda x: x != 0, "must not be 0"),
}


def violation(value: Any, rule: str = "finite", *, smallest: float = 0.0, largest: float = np.inf) -> str:
    """Reason why a number, or numbers of an array, break a rule, such as "must be positive, is -3"; empty if none does.

    Rules are finite, positive, not negative, not zero, and intervals, such as ``[0, 1)``. Computations neither overflow
    nor vanish with sizes from ``smallest`` to ``largest``. Bools and texts are no numbers.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        return f"must be {'numbers' if array.ndim else 'a number'}, is {shown(value)}"
    holds, words = _RULES.get(rule) or _interval(rule)
    if not np.all(np.isfinite(array)):
        return f"must be finite, is {_written(array)}"
    if np.any(np.abs(array) > largest):
        return f"must not exceed {largest:g} in SI units, is {shown(value)}"
    if not np.all(holds(array)):
        return f"{words}, is {_written(array)}"
    if np.any(np.abs(array) < smallest):
        return f"must be at least {smallest:g}, is {_written(array)}"
    return ""


def _interval(rule: str) -> tuple[Callable[[Any], Any], str]:
    """Test and words of an interval: a square bracket includes its end."""
    least, most = map(float, rule[1:-1].split(","))
    above = np.greater_equal if rule[0] == "[" else np.greater
    below = np.less_equal if rule[-1] == "]" else np.less
    return (lambda x: above(x, least) & below(x, most)), f"must be within {rule}"


def _written(array: np.ndarray) -> str:
    return str(array) if array.ndim else f"{float(array):g}"


LARGEST, SMALLEST = 1e12, 1e-12
"""Bounds of plausible values in SI units; products of values beyond them overflow."""


def warn_of_degrees(where: str, angles: Iterable[float]) -> None:
    """Warn of the first angle, rad, of more than a turn that is a usual number of degrees: a multiple of 2.5."""
    for angle in angles:
        if 2 * math.pi < abs(angle) <= 360 and angle % 2.5 == 0:
            reason = f"angle {angle:g} rad is more than a turn; if it is in degrees, it is {math.radians(angle):.4g}"
            warnings.warn(f"{where}: {reason}", RobotDescriptionWarning, stacklevel=3)
            return
