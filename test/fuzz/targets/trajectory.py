# SPDX-License-Identifier: Apache-2.0
"""Trajectory requests: waypoints of joints, states at knots, and poses of a tool."""

from __future__ import annotations

from array import array
from functools import cache
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np
from byte_values import ByteValues

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.control.joint_order import JointOrder
from eom_dynamics.control.measured import JointTolerances
from eom_dynamics.control.trajectories import read_points, read_spline, read_times
from eom_dynamics.ros.planning.trajectories import tool_motion
from eom_dynamics.trajectory import Spline, through
from eom_dynamics.trajectory.feedforward import trajectory_feedforward

from .promises import refused

TOKENS = ()

_MOST_POINTS = 12
_MOST_SAMPLES = 2000  # of an answer; the service allows 100,000, which takes longer and tells no more


def check(data: bytes) -> None:
    values = ByteValues(data)
    arm = _arm(values.choice(("sea_planar_2r", "vsa_planar_2r", "planar_pr")))
    motion = values.choice((_of_waypoints, _of_waypoints, _of_waypoints, _of_states, _of_tool))
    with refused():
        times, spline = motion(values, arm)
        rate = values.choice((0.0, 10.0, 100.0, values.number()))
        found = trajectory_feedforward(arm, spline, times, rate=rate, most=_MOST_SAMPLES)
        assert np.isfinite(found.efforts).all()
        for numbers in (*found.samples, *found.command):
            assert np.isfinite(numbers).all()
        assert not np.isnan([peak.ratio for peak in found.verdict.exceeded]).any()
        path = JointTolerances.read("path_tolerance", _tolerances(values, arm), arm.robot.joint_names)
        path.violation(spline.derivatives(spline.start, 2))


def _of_waypoints(values: ByteValues, arm: ElasticArm) -> tuple[Any, Spline]:
    message = SimpleNamespace(joint_names=_names(values, arm), points=_points(values, arm.robot.n))
    order = JointOrder.of(arm, message.joint_names)
    times = read_times(message)
    positions, velocities, accelerations = (
        read_points(message, field, order) for field in ("positions", "velocities", "accelerations")
    )
    if positions is None:
        positions = np.zeros((len(times), arm.robot.n))
    ends, follow = values.choice(("rest", "free")), values.below(3)
    rates = {"velocities": velocities if follow > 0 else None, "accelerations": accelerations if follow > 1 else None}
    return times, through(times, positions, **rates, ends=ends)


def _of_states(values: ByteValues, arm: ElasticArm) -> tuple[Any, Spline]:
    knots = list(accumulate([values.number(), *values.numbers(values.below(4))]))
    count = len(knots) * arm.robot.n
    rows = {field: array("d", values.numbers(values.length(count))) for field in STATE_FIELDS}
    message = SimpleNamespace(joint_names=_names(values, arm), knots=array("d", knots), **rows)
    spline = read_spline(message, arm.robot.joint_names)
    return spline.t, spline


def _of_tool(values: ByteValues, arm: ElasticArm) -> tuple[Any, Spline]:
    points = []
    for _ in range(values.below(4)):
        turn = values.number()
        quaternion = dict(zip("xyzw", values.numbers(4), strict=True))
        if values.below(8):
            quaternion = {"x": 0.0, "y": 0.0, "z": float(np.sin(turn / 2)), "w": float(np.cos(turn / 2))}
        transform = SimpleNamespace(translation=_vector(values), rotation=SimpleNamespace(**quaternion))
        point = SimpleNamespace(
            transforms=[transform] * values.length(1),
            velocities=[_twist(values)] if values.below(4) == 3 else [],
            accelerations=[_twist(values)] if values.below(8) == 7 else [],
            time_from_start=_duration(values, len(points)),
        )
        points.append(point)
    message = SimpleNamespace(joint_names=[values.text()] if values.below(8) == 7 else [], points=points)
    with np.errstate(all="ignore"):
        start = np.clip(np.nan_to_num(values.numbers(arm.robot.n)), -3, 3)
    return tool_motion(arm.robot, message, start)


def _points(values: ByteValues, n: int) -> list[Any]:
    points = []
    for k in range(values.below(_MOST_POINTS + 1)):
        given = values.below(8)
        fields = {
            "positions": array("d", values.numbers(values.length(n))),
            "velocities": array("d", values.numbers(n if given > 3 else 0)),
            "accelerations": array("d", values.numbers(n if given > 5 else 0)),
        }
        points.append(SimpleNamespace(time_from_start=_duration(values, k), **fields))
    return points


def _duration(values: ByteValues, k: int) -> Any:
    """Mostly behind that of the point before, by 0 to 1 s."""
    kind = values.below(256)
    if kind < 240:
        nanoseconds = k * 10**9 + kind * 4_000_000
        return SimpleNamespace(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
    return SimpleNamespace(
        sec=int.from_bytes(values.bytes(4), "little", signed=True), nanosec=int.from_bytes(values.bytes(4), "little")
    )


def _names(values: ByteValues, arm: ElasticArm) -> list[str]:
    names = list(arm.robot.joint_names)
    return values.choice((names, names, [], names[::-1], [*names[:-1], values.text()]))


def _tolerances(values: ByteValues, arm: ElasticArm) -> list[Any]:
    return [
        SimpleNamespace(
            name=values.choice((*arm.robot.joint_names, "other")),
            **dict(zip(("position", "velocity", "acceleration"), values.numbers(3), strict=True)),
        )
        for _ in range(values.below(3))
    ]


def _vector(values: ByteValues) -> Any:
    return SimpleNamespace(**dict(zip("xyz", values.numbers(3), strict=True)))


def _twist(values: ByteValues) -> Any:
    return SimpleNamespace(linear=_vector(values), angular=_vector(values))


@cache
def _arm(name: str) -> ElasticArm:
    return ElasticArm(load_robot(name))
