# SPDX-License-Identifier: Apache-2.0
"""What is wrong with setpoints that the control loop finds not plausible: eom/plausibility.hpp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..robot import Robot
from .fields import STATE_FIELDS
from .settings import CONSISTENCY_TOLERANCE

_DEGREES = 180.0 / np.pi

# What factors mean, and how close they must be.
_MEANINGS = (
    (_DEGREES, "degrees instead of radians"),
    (1.0 / _DEGREES, "degrees instead of radians before"),
    (1e3, "millimetres, or milliseconds"),
    (1e-3, "millimetres, or milliseconds, before"),
    (-1.0, "opposite sign"),
)
_CLOSE = 0.02
_OTHER_PERIOD = 0.2  # relative deviation of a period from that of the file
_STAMPS = "do stamps advance with the motion?"
_SCALED = f"scaled; or {_STAMPS}"


def period_note(robot: Robot, period: float) -> list[str]:
    """A note on commands that come at another period, s, than the robot's file says; none without one."""
    if not robot.command_period or abs(period / robot.command_period - 1) < _OTHER_PERIOD:
        return []
    return [
        f"commands come every {1e3 * period:.3g} ms, but command_period of the robot is "
        f"{1e3 * robot.command_period:.3g} ms: set it, or send at its rate"
    ]


def inconsistency_text(
    names: Sequence[str], times: NDArray[np.int64], states: Array, field: int, joint: int, joints: int
) -> str:
    """What is wrong with a window of setpoints.

    Args:
        names: of the joints.
        times: stamps (N,), ns.
        states: q … qdddd (N, 5, n).
        field, joint: which field of which joint is not the rate of the field before.
        joints: how many joints are wrong.
    """
    # In a unit in which no number is larger than 1, so that no square overflows.
    x, dt = states / max(1.0, float(np.max(np.abs(states)))), np.diff(times) * 1e-9
    change = np.diff(x[:, field - 1, joint])
    integral = 0.5 * dt[:, None, None] * (x[1:] + x[:-1])
    others = f" (and {joints - 1} more joint{'s' if joints > 2 else ''})" if joints > 1 else ""
    cause = _cause(names, field, joint, dt, change, integral)
    return f"{STATE_FIELDS[field]} of {names[joint]}{others} {cause}, over {len(dt)} setpoints"


def _cause(names: Sequence[str], field: int, joint: int, dt: Array, change: Array, integral: Array) -> str:
    """In which way a field of a joint is wrong."""

    def fits(x: Array, y: Array) -> bool:
        return float(np.sum((x - y) ** 2)) <= CONSISTENCY_TOLERANCE**2 * max(float(x @ x), float(y @ y))

    rate, before = integral[:, field, joint], STATE_FIELDS[field - 1]
    for other, name in enumerate(names):
        if other != joint and fits(change, integral[:, field, other]):
            return f"is not the rate of {before}, which is in the place of {name}: joints swapped"
    for other, in_field in enumerate(STATE_FIELDS):
        if other != field and fits(change, integral[:, other, joint]):
            return f"is not the rate of {before}, which is in {in_field}: fields swapped"
    size = float(change @ change)
    factor = float(change @ rate) / size if size > 0 else 0.0
    if factor and fits(rate, factor * change):
        meaning = next((text for f, text in _MEANINGS if abs(factor / f - 1.0) < _CLOSE), _SCALED)
        return f"is {factor:.4g} times the rate of {before}: {meaning}"
    mean = np.divide(rate, dt, out=np.zeros_like(rate), where=dt != 0)  # no time between: no rate
    square = float(mean @ mean)
    step = float(mean @ change) / square if square > 0 else 0.0
    if step > 0 and fits(change, step * mean):
        return f"is the rate of {before} for steps of {step:.3g} s, which stamps do not have: {_STAMPS}"
    miss = np.sqrt(float(np.sum((change - rate) ** 2)) / max(size, float(rate @ rate)))
    return f"is not the rate of {before}: it differs by {100 * miss:.0f} %"
