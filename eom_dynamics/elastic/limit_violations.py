# SPDX-License-Identifier: Apache-2.0
"""Violations of limits of joints and motors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..exceptions import LimitError, StateError
from ..robot import Robot

TURN = 2 * np.pi
"""Largest distance of an angle beyond its range, rad, that indicates an error of the motion rather than of the unit."""

MANY_TURNS = 8 * np.pi
"""Largest plausible motion of a joint without limits, rad; larger numbers are most likely in degrees."""

IN_DEGREES = "more than a turn beyond its limit: angles are in rad, not in degrees"
"""Reason to refuse a position."""


def refuse_degrees(robot: Robot, q: Array, lower: Array, upper: Array, here: Array | float = 0.0) -> None:
    """Raise StateError for an angle of q (…, n) more than a turn beyond its range, or without limits, from ``here``."""
    low, high = np.where(np.isfinite(lower), lower, here - TURN), np.where(np.isfinite(upper), upper, here + TURN)
    for place in np.argwhere((q < low - TURN) | (q > high + TURN)).tolist():
        x, i = q[tuple(place)], place[-1]
        if robot.independent_joints[i].type != "prismatic":
            raise StateError(
                f"{robot.joint_names[i]} at {x:.4g} rad is {abs(x) / TURN:.3g} turns from zero: was that in degrees? "
                "Angles are in rad; if it is right, give the joint limits that allow it"
            )


class LimitViolation(NamedTuple):
    """Limit violation: worst sample of a quantity of a joint or motor beyond its limit.

    Attributes:
        name: name of the joint or motor.
        quantity: of a joint, ``position``, ``velocity``, ``acceleration``, ``jerk``, ``effort`` or ``effort_rate``; of
            a motor, or both of a joint, ``motor_effort``, and before the gear ``torque``, ``speed``, ``current`` or
            ``voltage``; of a joint of a setpoint, ``stopping position``, its position after a brake.
        value, limit: value and exceeded limit in ``unit``, with the sign of the value.
        unit: such as ``rad/s``.
        ratio: ``|value - middle of the range|`` over half the range, > 1: value over limit if the range is symmetric.
            Infinite if the range has only one end.
        sample: index of the sample; 0 for a single state.
        remark: text to append, such as a remedy.
    """

    name: str
    quantity: str
    value: float
    limit: float
    unit: str
    ratio: float
    sample: int = 0
    remark: str = ""

    @property
    def violation(self) -> float:
        """Distance of the value beyond the limit, in its unit."""
        return abs(self.value - self.limit)

    @property
    def numbers(self) -> str:
        """Value and limit, such as ``2.5 rad/s, limit 2 rad/s``."""
        return f"{self.value:.4g} {self.unit}, limit {self.limit:.4g} {self.unit}"

    def error(self, message: str) -> LimitError:
        """Error with this message for a motion with this worst violation."""
        return LimitError(message, f"{self.name}: {self.quantity}", self.numbers, self.ratio)

    def __str__(self) -> str:
        return f"{self.name}: {self.quantity} {self.numbers}{self.remark}"


# A tenth of a velocity limit, in degrees.
_MANY_TIMES = 5.0


def question_of_speed(violations: Sequence[Any]) -> str:
    """Question about degrees at the end of a message, if a joint or motor is too fast by such a factor; else empty."""
    fast = any(x.quantity.endswith(("velocity", "speed")) and x.ratio > _MANY_TIMES for x in violations)
    return "; was that in degrees? Angles are in rad" if fast else ""


def summary(violations: Sequence[object], shown: int = 5) -> str:
    """One line about violations, in their order; at most ``shown`` of them."""
    more = len(violations) - shown
    text = "; ".join(map(str, violations[:shown]))
    return f"{text}; and {more} more" if more > 0 else text


def beyond(values: Array, lower: Array | float, upper: Array | float) -> Array:
    """Distance of values beyond the nearest end of a range; negative within, -inf for NaN or without limits."""
    with np.errstate(invalid="ignore"):  # infinite values without limits
        distance = np.maximum(values - upper, lower - values)
    return np.where(np.isnan(distance), -np.inf, distance)


def nearest_end(value: float, lower: float, upper: float) -> float:
    """End of a range that a value exceeds, or the nearest end."""
    return float(upper if value - upper >= lower - value else lower)


def range_ratio(distance: float, lower: float, upper: float) -> float:
    """Distance from the middle of a range over half the range, > 1 beyond it.

    If the range has only one end, 0 within and infinite beyond; if it is a point, 1 there.

    Args:
        distance: distance of the value beyond the nearest end of the range, from :func:`beyond`.
        lower, upper: the range.
    """
    half = (float(upper) - float(lower)) / 2
    if 0 < half < np.inf:
        return max(1 + float(distance) / half, 0.0)
    if distance > 0:
        return np.inf
    return 0.0 if half else 1.0


def limit_violations(
    names: Sequence[str], quantity: str, units: Sequence[str], values: Array, lower: Array | float, upper: Array | float
) -> list[LimitViolation]:
    """Find the worst violation of each name; NaN violates nothing.

    Args:
        names: k joints or motors.
        quantity: as in :class:`LimitViolation`.
        units: k units.
        values: (k,) or (N, k).
        lower, upper: limits, each a number or (k,).
    """
    values = np.atleast_2d(values)
    outside = (values > upper) | (values < lower)
    if not outside.any():
        return []
    lower, upper = np.broadcast_to(lower, values.shape[1:]), np.broadcast_to(upper, values.shape[1:])
    if len(values) == 1:
        # A streamed state: avoid functions that release the interpreter, since another thread may be waiting for it.
        columns = [i for i, exceeds in enumerate(outside[0].tolist()) if exceeds]
        worst = [0] * len(names)
    else:
        columns = np.flatnonzero(outside.any(axis=0)).tolist()
        worst = np.argmax(beyond(values, lower, upper), axis=0).tolist()
    violations = []
    for i in columns:
        row = worst[i]
        value = float(values[row, i])
        limit = float(upper[i] if value > upper[i] else lower[i])
        ratio = range_ratio(abs(value - limit), lower[i], upper[i])
        violations.append(LimitViolation(names[i], quantity, value, limit, units[i], ratio, row))
    return violations
