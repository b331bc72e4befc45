# SPDX-License-Identifier: Apache-2.0
"""How near a record comes to the limits of its robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .record import Array, Record, Stream


@dataclass(frozen=True)
class Use:
    """How much of one limit of a joint is used, at the time when it is most.

    Attributes:
        joint: its name.
        what: position, velocity or effort.
        value: rad, m, rad/s, m/s, N m or N.
        limit: that it comes nearest to.
        share: of what the limit allows: 1 is at the limit. Of a position from the middle of its range.
        t: s.
    """

    joint: str
    what: str
    value: float
    limit: float
    share: float
    t: float


def bands(record: Record, what: str) -> dict[str, tuple[float, float]]:
    """The limits of position, velocity or effort by joint; infinite where there is none."""
    if record.robot is None:
        return {}
    joints = record.robot.independent_joints
    if what == "position":
        return {joint.name: (joint.limits.lower, joint.limits.upper) for joint in joints}
    return {joint.name: (-getattr(joint.limits, what), getattr(joint.limits, what)) for joint in joints}


def uses(record: Record) -> list[Use]:
    """The most that each joint uses of each limit, by setpoints and commands; as measured where those are missing."""
    return [
        use
        for what, stream, field in (
            ("position", record.setpoint or record.measured, "position"),
            ("velocity", record.setpoint or record.measured, "velocity"),
            ("effort", record.command or record.measured, "effort"),
        )
        if stream is not None and field in stream.values
        for use in _of_stream(record, stream, what, field)
    ]


def _of_stream(record: Record, stream: Stream, what: str, field: str) -> list[Use]:
    t, limits = record.t(stream), bands(record, what)
    found = []
    for joint, values in zip(stream.names, stream.values[field].T, strict=True):
        lower, upper = limits.get(joint, (-np.inf, np.inf))
        share = _share(values, lower, upper)
        if not np.isfinite([lower, upper]).any() or np.isnan(share).all():
            continue
        most = int(np.nanargmax(share))
        limit = lower if abs(values[most] - lower) < abs(values[most] - upper) else upper
        found.append(Use(joint, what, float(values[most]), float(limit), float(share[most]), float(t[most])))
    return found


def _share(values: Array, lower: float, upper: float) -> Array:
    """(N,) how much of a range is used: 1 at its bounds; of a range that is open to one side measured from 0."""
    if np.isinf(lower) or np.isinf(upper):
        return values / (upper if np.isinf(lower) else lower)
    half = (upper - lower) / 2
    return np.abs(values - (lower + upper) / 2) / half
