# SPDX-License-Identifier: Apache-2.0
"""Numbers and units as text, and numbers for JSON: three significant digits, a dash or null if unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import unit
from ..robot import Robot

NOTHING = "–"
"""Text of an unknown number."""

_MILLI = {"rad": "mrad", "m": "mm"}


def number(value: float) -> str:
    """Format three significant digits: ``1,230``, ``12.3``, ``0.00123``; with an exponent outside 1e-4 to 1e7."""
    if math.isnan(value):
        return NOTHING
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    exponent = math.floor(math.log10(abs(value)))
    if not -4 <= exponent <= 6:
        return f"{value:.2e}"
    digits = 2 - math.floor(math.log10(abs(float(f"{value:.2e}"))))  # after rounding: 9.996 is 10.0
    return f"{round(value, digits):,.{max(0, digits)}f}"


def relative(value: float) -> str:
    """Format a relative deviation: two digits."""
    if math.isnan(value):
        return NOTHING
    return f"{value:.1e}" if value else "0"


def percent(value: float) -> str:
    """Format a share as a percentage without decimals."""
    return f"{100 * value:.0f} %" if math.isfinite(value) else NOTHING


def with_deviation(value: float, deviation: float) -> str:
    """Format a number with its standard deviation: ``?`` if not identifiable; the number alone if it is unknown (NaN).

    A deviation of zero means a parameter at its bound.
    """
    if not deviation or math.isnan(deviation):
        return number(value) if deviation else f"{number(value)}, at its bound"
    return f"{number(value)} ± {number(deviation) if math.isfinite(deviation) else '?'}"


def microseconds(seconds: float) -> str:
    """Format a duration: µs below 10 ms, else ms."""
    if math.isnan(seconds):
        return NOTHING
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.1f} ms"


def for_json(values: ArrayLike) -> Any:
    """Return a number or an array of numbers as JSON takes them: None for NaN and infinity."""
    known = np.asarray(values, dtype=float)
    return np.where(np.isfinite(known), known, None).tolist()  # type: ignore[call-overload]


def position_units(robot: Robot) -> tuple[str, ...]:
    """Return the unit of each independent joint variable (n,): rad if revolute, m if prismatic."""
    return tuple(unit("position", joint.type) for joint in robot.independent_joints)


def effort_units(robot: Robot) -> tuple[str, ...]:
    """Return the unit of each independent joint's effort (n,): N m if revolute, N if prismatic."""
    return tuple(unit("effort", joint.type) for joint in robot.independent_joints)


def unit_at(quantity: str, name: str, joint_types: Mapping[str, str]) -> str:
    """Return the unit of a quantity at a joint or motor; revolute if unknown."""
    # Motors of an antagonistic pair have the name of their joint with a suffix.
    joint = name.removesuffix("_agonist").removesuffix("_antagonist")
    return unit(quantity, joint_types.get(joint, "revolute"))


def milli(units: Sequence[str]) -> tuple[str, ...]:
    """Return a thousandth of each unit of position."""
    return tuple(_MILLI[unit] for unit in units)


def together(units: Sequence[str]) -> str:
    """Join the units of quantities on one axis: ``rad``, ``m``, or ``rad or m``."""
    return " or ".join(dict.fromkeys(units))
