# SPDX-License-Identifier: Apache-2.0
"""Violations of limits of joints and motors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array


class LimitViolation(NamedTuple):
    """The worst sample of a quantity of a joint or motor that exceeds its limit.

    Attributes:
        name: name of the joint or motor.
        quantity: of a joint, ``position``, ``velocity``, ``acceleration``, ``jerk``, ``effort`` or ``effort_rate``; of
            a motor, before its gear, ``torque``, ``speed``, ``current`` or ``voltage``.
        value, limit: in ``unit``, with the sign of the value; the limit is the one that is exceeded.
        unit: such as ``rad/s``.
        ratio: |value - middle of the range| over half the range, > 1: value over limit if the range is symmetric.
            Infinite if the range has only one end.
        sample: index of the sample; 0 for a single state.
    """

    name: str
    quantity: str
    value: float
    limit: float
    unit: str
    ratio: float
    sample: int = 0

    @property
    def violation(self) -> float:
        """Distance of the value beyond the limit, in its unit."""
        return abs(self.value - self.limit)

    def __str__(self) -> str:
        return f"{self.name}: {self.quantity} {self.value:.4g} {self.unit}, limit {self.limit:.4g} {self.unit}"


def summary(violations: Sequence[object], shown: int = 5) -> str:
    """One line about violations, in their order; of many, only the first ``shown``."""
    more = len(violations) - shown
    text = "; ".join(map(str, violations[:shown]))
    return f"{text}; and {more} more" if more > 0 else text


def limit_violations(
    names: Sequence[str],
    quantity: str,
    units: Sequence[str],
    values: Array,
    lower: Array | float,
    upper: Array | float,
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
        # A state of a stream: without functions that release the interpreter, for which another thread may wait.
        columns = [i for i, exceeds in enumerate(outside[0].tolist()) if exceeds]
        worst = [0] * len(names)
    else:
        beyond = np.nan_to_num(np.maximum(values - upper, lower - values), nan=-np.inf, posinf=np.inf)
        worst = np.argmax(beyond, axis=0).tolist()
        columns = np.flatnonzero(outside.any(axis=0)).tolist()
    found = []
    for i in columns:
        row = worst[i]
        value, half = float(values[row, i]), float(upper[i] - lower[i]) / 2
        limit = float(upper[i] if value > upper[i] else lower[i])
        ratio = 1 + abs(value - limit) / half if 0 < half < np.inf else np.inf
        found.append(LimitViolation(names[i], quantity, value, limit, units[i], ratio, row))
    return found
