# SPDX-License-Identifier: Apache-2.0
"""Limits of a motion along a path, at nodes of the path, as functions of x, x', x'', x''' there.

A row is a quantity f of a joint or motor with |f| <= limit. Where f is proportional to √x times an affine function A of
x … x'', as the jerk and the effort rate are, the row is |A| <= limit/√x: both sides are convex where the motion has to
stay below the right one, whose tangent is therefore safe. For other rows the factor is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import Bounds
from ...exceptions import StateError
from ...kinematics import Kinematics
from ...states import STATE_NAMES
from .path import GeometricPath, chain
from .speed import time_derivative_changes, time_derivatives

_RATES = STATE_NAMES[1:]

# Speeds above which a path is not limited in its velocity at a node: it hardly moves there.
_LARGEST_SPEED = 1e30


class ToolLimits(NamedTuple):
    """Limits of the origin of a frame.

    Attributes:
        speed: m/s.
        acceleration: m/s².
        frame: its name; None is the first tool.
    """

    speed: float = np.inf
    acceleration: float = np.inf
    frame: str | None = None


class Rows(NamedTuple):
    """Two-sided limits at M nodes: |value| <= bound, scaled so that the bound is about 1.

    Attributes:
        value, bound: (M, R).
        change: derivatives of the values by x … x''' (4, M, R); None if they were not asked for.
        bound_change: derivative of the bounds by x (M, R); likewise.
    """

    value: Array
    bound: Array
    change: Array | None
    bound_change: Array | None


class _Kind(NamedTuple):
    name: str
    columns: NDArray[np.intp]
    limits: Array
    rooted: bool


class Constraints:
    """Limits of an arm at nodes of a path.

    Attributes:
        largest: upper bound of x by velocities (M,).
    """

    def __init__(self, arm: ElasticArm, path: GeometricPath, nodes: Array, limits: Bounds, tool: ToolLimits) -> None:
        """Evaluate the path, and collect the limits that there are."""
        self._arm = arm
        self.q, self._path = path.derivatives(nodes)
        self._kinds = _kinds(arm, limits)
        ratios = np.abs(arm.robot.coupling[0])
        with np.errstate(divide="ignore", over="ignore"):
            most = np.min(limits.largest["velocity"][:, np.newaxis] / ratios, axis=0)
            self.largest = np.min((most / np.abs(self._path[0])) ** 2, axis=1)
        self._tool: tuple[Array, Array] | None = None
        if np.isfinite(tool.speed) or np.isfinite(tool.acceleration):
            _, V, Vd = Kinematics(arm.robot).motion(self.q, *self._path[:2], frame=tool.frame)
            with np.errstate(divide="ignore", over="ignore"):
                self.largest = np.minimum(self.largest, tool.speed**2 / np.sum(V[:, 3:] ** 2, axis=1))
            curved = Vd[:, 3:] + np.cross(V[:, :3], V[:, 3:])
            if np.isfinite(tool.acceleration):
                self._tool = 0.5 * V[:, 3:] / tool.acceleration, curved / tool.acceleration
        self.largest = np.minimum(self.largest, _LARGEST_SPEED)
        self._needs_arm = any(kind.name not in _RATES for kind in self._kinds)
        self._reference = np.ones((len(nodes), 1))
        self._shares: Array = np.ones(())

    def set_reference(self, x: Array) -> None:
        """Scale rows with a factor 1/√x so that it is 1 at these x (M,)."""
        self._reference = np.sqrt(x)[:, np.newaxis]

    def tighten(self, rows: Array, speeds: Array) -> None:
        """Reduce limits by factors: of the rows (M, R), and of speeds along the path (M,)."""
        self._shares = self._shares * rows
        self.largest = self.largest * speeds**2

    def rows(self, x: Array, *, changes: bool) -> Rows | None:
        """Values at x … x''' (4, M); None if the springs or the motors cannot realise them."""
        rates = time_derivatives(x)
        states = dict(zip(_RATES, chain(self._path, rates), strict=True))
        values: dict[str, Array] = dict(states)
        if self._needs_arm:
            try:
                with np.errstate(all="ignore"):
                    command = self._arm.feedforward(self.q, *states.values())
            except StateError:
                return None
            values |= self._with_voltage(command._asdict())
        slopes = self._changes(x, rates, states) if changes else {}
        root = self._reference / np.sqrt(x[0])[:, np.newaxis]
        value: list[Array] = []
        bound: list[Array] = []
        change: list[Array] = []
        bound_change: list[Array] = []
        for kind in self._kinds:
            f = values[kind.name][:, kind.columns] / kind.limits
            factor = root if kind.rooted else np.ones_like(root)
            value.append(f * factor)
            bound.append(np.broadcast_to(factor, f.shape))
            if changes:
                slope = -0.5 * root / x[0][:, np.newaxis] if kind.rooted else np.zeros_like(root)
                by_x = slopes[kind.name][:, :, kind.columns] / kind.limits * factor
                by_x[0] += f * slope
                change.append(by_x)
                bound_change.append(np.broadcast_to(slope, f.shape))
        if self._tool is not None:
            along, curved = self._tool
            a = along * x[1][:, np.newaxis] + curved * x[0][:, np.newaxis]
            value.append(np.sum(a * a, axis=1, keepdims=True))
            bound.append(np.ones_like(value[-1]))
            if changes:
                by_x = np.zeros((4, len(a), 1))
                by_x[0, :, 0], by_x[1, :, 0] = 2 * np.sum(a * curved, axis=1), 2 * np.sum(a * along, axis=1)
                change.append(by_x)
                bound_change.append(np.zeros_like(bound[-1]))
        none = np.zeros((len(self.q), 0))
        joined = np.concatenate([none, *value], axis=1), np.concatenate([none, *bound], axis=1) * self._shares
        if not np.all(np.isfinite(joined[0])):
            return None
        if not changes:
            return Rows(*joined, None, None)
        return Rows(
            *joined,
            np.concatenate([np.zeros((4, *none.shape)), *change], axis=2),
            np.concatenate([none, *bound_change], axis=1) * self._shares,
        )

    def _changes(self, x: Array, rates: Array, states: Mapping[str, Array]) -> dict[str, Array]:
        """Derivatives of the values by x … x''', each (4, M, number of joints or motors)."""
        p1, p2, p3, p4 = self._path
        a, b, c, _ = rates[..., np.newaxis]
        by_x: dict[str, list[Array]] = {name: [] for name in _RATES}
        for da, db, dc, dd in time_derivative_changes(x)[..., np.newaxis]:
            by_x["qd"].append(p1 * da)
            by_x["qdd"].append(2 * p2 * a * da + p1 * db)
            by_x["qddd"].append(3 * p3 * a**2 * da + 3 * p2 * (da * b + a * db) + p1 * dc)
            by_x["qdddd"].append(
                4 * p4 * a**3 * da
                + 6 * p3 * (2 * a * da * b + a**2 * db)
                + p2 * (6 * b * db + 4 * (da * c + a * dc))
                + p1 * dd
            )
        result: dict[str, Array] = {name: np.array(values) for name, values in by_x.items()}
        if self._needs_arm:
            changes = [np.zeros((4, *self.q.shape)), *result.values()]
            command = self._arm.feedforward_along((self.q, *states.values()), changes)
            result |= self._with_voltage(command._asdict())
        return result

    def _with_voltage(self, command: dict[str, Array]) -> dict[str, Array]:
        """The command with the voltage of the motors, a linear function of velocity and effort behind the gears."""
        if any(kind.name == "voltage" for kind in self._kinds):
            ratio = self._arm.gear_ratio
            found: Any = self._arm.motor.voltage(command["motor_effort"] / ratio, command["motor_velocity"] * ratio)
            command["voltage"] = np.asarray(found)
        return command


def _kinds(arm: ElasticArm, limits: Bounds) -> list[_Kind]:
    """Kinds of rows with a limit."""
    ratios = np.abs(arm.robot.coupling[0])
    motor, gear = arm.motor, np.abs(arm.gear_ratio)
    largest = limits.largest
    with np.errstate(divide="ignore", invalid="ignore"):
        of_leaders = {name: np.min(largest[name][:, np.newaxis] / ratios, axis=0) for name in ("acceleration", "jerk")}
        torque = np.fmin(motor.torque_limit, np.abs(motor.current_limit * motor.torque_constant))
    rows = (
        ("qdd", of_leaders["acceleration"], False),
        ("tau", largest["effort"], False),
        ("qddd", of_leaders["jerk"], True),
        ("taud", largest["effort_rate"], True),
        ("motor_velocity", largest["motor_speed"] / gear, True),
        ("motor_effort", np.broadcast_to(torque, gear.shape) * gear, False),
        ("voltage", largest["motor_voltage"], False),
    )
    kinds = [_Kind(name, np.flatnonzero(np.isfinite(most)), most[np.isfinite(most)], root) for name, most, root in rows]
    return [kind for kind in kinds if len(kind.columns)]
