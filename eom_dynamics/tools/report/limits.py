# SPDX-License-Identifier: Apache-2.0
"""Limit utilization of a record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...elastic.limit_violations import beyond, nearest_end, range_ratio
from .record import Record, Stream


@dataclass(frozen=True)
class Use:
    """Largest utilization of one limit of a joint.

    Attributes:
        joint: its name.
        what: position, velocity or effort.
        value: rad, m, rad/s, m/s, N m or N.
        limit: the nearer one.
        fraction: of the limit: 1 is at the limit. A position counts from the middle of its range; if the range has
            only one end, 0 within and infinite beyond.
        t: time of the largest utilization, s.
    """

    joint: str
    what: str
    value: float
    limit: float
    fraction: float
    t: float

    def __str__(self) -> str:
        return f"{self.fraction:.0%}" if self.fraction < np.inf else "exceeded"


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
        if not np.isfinite([lower, upper]).any() or np.isnan(values).all():
            continue
        distance = beyond(values, lower, upper)
        most = int(np.argmax(distance))
        value, fraction = float(values[most]), range_ratio(distance[most], lower, upper)
        found.append(Use(joint, what, value, nearest_end(value, lower, upper), fraction, float(t[most])))
    return found
