# SPDX-License-Identifier: Apache-2.0
"""Limit utilization of a record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from .record import Record, Stream


@dataclass(frozen=True)
class Use:
    """Largest utilization of one limit of a joint.

    Attributes:
        joint: its name.
        what: position, velocity or effort.
        value: rad, m, rad/s, m/s, N m or N.
        limit: the nearer one.
        fraction: of the limit: 1 is at the limit. A position counts from the middle of its range.
        t: time of the largest utilization, s.
    """

    joint: str
    what: str
    value: float
    limit: float
    fraction: float
    t: float


def bands(record: Record, what: str) -> dict[str, tuple[float, float]]:
    """Return lower and upper limits of position, velocity or effort by joint; infinite if there is none."""
    if record.robot is None:
        return {}
    joints = record.robot.independent_joints
    if what == "position":
        return {joint.name: (joint.limits.lower, joint.limits.upper) for joint in joints}
    return {joint.name: (-getattr(joint.limits, what), getattr(joint.limits, what)) for joint in joints}


def uses(record: Record) -> list[Use]:
    """Compute the largest utilization of each limit by setpoints and commands, else by measurements; highest first."""
    found = [
        use
        for what, stream, field in (
            ("position", record.setpoint or record.measured, "position"),
            ("velocity", record.setpoint or record.measured, "velocity"),
            ("effort", record.command or record.measured, "effort"),
        )
        if stream is not None and field in stream.values
        for use in _of_stream(record, stream, what, field)
    ]
    return sorted(found, key=lambda use: -use.fraction)


def _of_stream(record: Record, stream: Stream, what: str, field: str) -> list[Use]:
    t, limits = record.t(stream), bands(record, what)
    found = []
    for joint, values in zip(stream.names, stream.values[field].T, strict=True):
        lower, upper = limits.get(joint, (-np.inf, np.inf))
        fraction = _fraction(values, lower, upper)
        if not np.isfinite([lower, upper]).any() or np.isnan(fraction).all():
            continue
        most = int(np.nanargmax(fraction))
        limit = lower if abs(values[most] - lower) < abs(values[most] - upper) else upper
        found.append(Use(joint, what, float(values[most]), float(limit), float(fraction[most]), float(t[most])))
    return found


def _fraction(values: Array, lower: float, upper: float) -> Array:
    """Compute the utilization of a range (N,): 1 at its bounds; from 0 if the range is open to one side."""
    if np.isinf(lower) or np.isinf(upper):
        return values / (upper if np.isinf(lower) else lower)
    half = (upper - lower) / 2
    return np.abs(values - (lower + upper) / 2) / half
