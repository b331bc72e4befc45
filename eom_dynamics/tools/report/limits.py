# SPDX-License-Identifier: Apache-2.0
"""Limit utilization of a record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import Bounds, bounds
from ...elastic.limit_violations import beyond, nearest_end, range_ratio
from ...robot import Robot
from ...trajectory.limits import Peak
from ..recordings import Stream
from .record import Record

_MOTION = ("position", "velocity", "acceleration", "jerk")


def limits_by_name(record: Record, what: str) -> dict[str, tuple[float, float]]:
    """Return lower and upper limits of a quantity by joint or motor; infinite if there is none."""
    return {} if record.arm is None else _ranges(bounds(record.arm), what)


def limit_utilization(record: Record) -> list[Peak]:
    """Compute the peak utilization of each limit by setpoints and commands, or measurements; highest first.

    Limits without a value are left out, and so are quantities without a limit; motors count before their gears.
    """
    arm = record.arm
    if arm is None:
        return []
    limits = bounds(arm)
    motion, efforts = record.setpoint or record.measured, record.command or record.measured
    found: list[Peak] = []
    for stream, quantities in ((motion, _MOTION), (efforts, ("effort", "effort_rate"))):
        for what in quantities:
            if stream is not None and what in stream.values and (what == "position" or limits.limited(what)):
                values = _of_joints(arm.robot, stream, what, limits.names[what])
                found += _of_values(limits, what, record.t(stream), values)
    if record.motors is not None and limits.of_motors:
        for what, values in _of_motors(arm, record.motors).items():
            found += _of_values(limits, what, record.t(record.motors), values)
    return sorted(found, key=lambda use: -use.ratio)


def _ranges(limits: Bounds, what: str) -> dict[str, tuple[float, float]]:
    lower, upper = (limits.lower, limits.upper) if what == "position" else (-limits.largest[what], limits.largest[what])
    return dict(zip(limits.names[what], zip(lower.tolist(), upper.tolist(), strict=True), strict=True))


def _of_joints(robot: Robot, stream: Stream, what: str, names: Sequence[str]) -> Array:
    """Values (N, number of names) of a field by joint; those of mimic joints follow from their leaders."""
    columns = []
    for name in names:
        joint = next(joint for joint in robot.joints if joint.name == name)
        mimic = joint.mimic
        leader = name if mimic is None else robot.joints[mimic.joint].name
        values = _column(stream, what, leader)
        if mimic is not None:
            values = mimic.ratio * values + (mimic.offset if what == "position" else 0.0)
        columns.append(values)
    return np.stack(columns, axis=1)


def _of_motors(arm: ElasticArm, motors: Stream) -> dict[str, Array]:
    """Values (N, m) of the motor shafts, before the gears, by quantity of the bounds; NaN where unknown."""
    velocity, effort = (
        np.stack([_column(motors, field, name) for name in arm.motor_names], axis=1)
        for field in ("motor_velocity", "motor_effort")
    )
    speed, torque = arm.gear_ratio * velocity, effort / arm.gear_ratio
    return {
        "motor_speed": speed,
        "motor_torque": torque,
        "motor_current": arm.motor.current(torque),
        "motor_voltage": arm.motor.voltage(torque, speed),
    }


def _column(stream: Stream, field: str, name: str) -> Array:
    """Values (N,) of a joint or motor; NaN if the stream lacks it."""
    if name not in stream.names or field not in stream.values:
        return np.full(len(stream), np.nan)
    return stream.values[field][:, stream.names.index(name)]


def _of_values(limits: Bounds, what: str, t: Array, values: Array) -> list[Peak]:
    found = []
    ranges = _ranges(limits, what).items()
    for (name, (lower, upper)), unit, x in zip(ranges, limits.units[what], values.T, strict=True):
        if not np.isfinite([lower, upper]).any() or np.isnan(x).all():
            continue
        distance = beyond(x, lower, upper)
        most = int(np.argmax(distance))
        value, ratio = float(x[most]), range_ratio(distance[most], lower, upper)
        limit = nearest_end(value, lower, upper)
        found.append(Peak(what, name, unit, value, limit, ratio, float(t[most]), most))
    return found


def percent_used(peak: Peak) -> str:
    """Return the utilization of a limit in words; a one-sided range is 0% or ``exceeded``."""
    return f"{peak.ratio:.0%}" if peak.ratio < np.inf else "exceeded"
