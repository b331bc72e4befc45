# SPDX-License-Identifier: Apache-2.0
"""Limits of a motion at nodes of a path, as functions of x and its derivatives 1 … 3.

A row is a quantity f of a joint or motor with |f| <= limit. Of a rigid-body system without friction, acceleration and
effort are affine in x and x', jerk and effort rate are √x times affine functions A of x, x', x''. The former are convex
limits; the latter are |A| <= limit/√x, where the right side is convex, and its tangent therefore safe. The derivatives
of all these by x … are constant; those of motors come from the compiled feedforward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import Bounds
from ...exceptions import StateError
from ...kinematics import Kinematics
from ...states import EFFORT_NAMES, STATE_NAMES
from .path import GeometricPath, chain
from .speed import SquaredSpeed, time_derivative_changes, time_derivatives

_RATES = STATE_NAMES[1:]

_OF_MOTORS = ("motor_velocity", "motor_effort", "voltage")

# Squared speeds above which a path is not limited in its velocity at a node: it hardly moves there.
_LARGEST_SPEED = 1e30


class ToolLimits(NamedTuple):
    """Speed and acceleration limits of a tool, for the origin of its frame.

    Attributes:
        speed: m/s.
        acceleration: m/s².
        frame: its name; None is the first tool.
    """

    speed: float = np.inf
    acceleration: float = np.inf
    frame: str | None = None


def tool_slowdowns(arm: ElasticArm, tool: ToolLimits, states: Sequence[Array]) -> Array:
    """Factors (N,) by which states q, qd, qdd, …, each (N, n), must be slowed down for the limits of a tool."""
    if not (np.isfinite(tool.speed) or np.isfinite(tool.acceleration)):
        return np.zeros(len(states[0]))
    _, V, Vd = Kinematics(arm.robot).motion(*states[:3], frame=tool.frame)
    acceleration = Vd[:, 3:] + np.cross(V[:, :3], V[:, 3:])
    return np.maximum(
        np.linalg.norm(V[:, 3:], axis=1) / tool.speed,
        np.sqrt(np.linalg.norm(acceleration, axis=1) / tool.acceleration),
    )


class ConstraintRows(NamedTuple):
    """Two-sided limits at M nodes: |value| <= bound, scaled so that the bound is about 1.

    Attributes:
        value, bound: (M, R).
        change: derivatives of the values by x and its derivatives (4, M, R); zeros if they were not asked for.
        bound_change: derivative of the bounds by x (M, R).
        heat: efforts over their limits of RMS (M, H), and derivatives (4, M, H) likewise.
    """

    value: Array
    bound: Array
    change: Array
    bound_change: Array
    heat: tuple[Array, Array]


class _Kind(NamedTuple):
    """Limits of a quantity.

    Attributes:
        name: of the state, or the value of a feedforward.
        quantity: in words.
        owners: names of its joints or motors.
        columns: those with a limit.
        limits: of these.
        rooted: whether rows are divided by √x.
        affine: whether they are affine then.
    """

    name: str
    quantity: str
    owners: tuple[str, ...]
    columns: NDArray[np.intp]
    limits: Array
    rooted: bool
    affine: bool


class Constraints:
    """Limits of an arm at nodes of a path.

    Attributes:
        names: of the rows, and of the bound of x.
        at_rest: shares of limits that values at rest take (M, R), 0 if unknown.
    """

    def __init__(
        self, arm: ElasticArm, path: GeometricPath, speed: SquaredSpeed, limits: Bounds, tool: ToolLimits
    ) -> None:
        """Evaluate the path at the nodes of a speed, and collect the limits that there are."""
        nodes = speed.nodes
        self._arm = arm
        self.q, self._path = path.derivatives(nodes)
        kinds = _kinds(arm, limits)
        ratios = np.abs(arm.robot.coupling[0])
        with np.errstate(divide="ignore", over="ignore"):
            most = np.min(limits.largest["velocity"][:, np.newaxis] / ratios, axis=0)
            largest = np.min((most / np.abs(self._path[0])) ** 2, axis=1)
        self._tool: tuple[Array, Array] | None = None
        if np.isfinite(tool.speed) or np.isfinite(tool.acceleration):
            _, V, Vd = Kinematics(arm.robot).motion(self.q, *self._path[:2], frame=tool.frame)
            with np.errstate(divide="ignore", over="ignore"):
                largest = np.minimum(largest, tool.speed**2 / np.sum(V[:, 3:] ** 2, axis=1))
            curved = Vd[:, 3:] + np.cross(V[:, :3], V[:, 3:])
            if np.isfinite(tool.acceleration):
                self._tool = 0.5 * V[:, 3:] / tool.acceleration, curved / tool.acceleration
        self._largest = speed.capped(np.minimum(largest, _LARGEST_SPEED))
        self._allowed = 1.0
        self._reference = np.ones((len(nodes), 1))
        self._shares: Array = np.ones(())
        self.at_rest: Array = np.zeros(())
        hot = np.flatnonzero(np.isfinite(limits.effort_rms))
        owners = limits.names["effort_rms"]
        self._heat = _Kind(
            "motor_effort", "RMS effort", owners, hot, limits.effort_rms[hot], rooted=False, affine=False
        )
        self._steps = speed.steps[:, np.newaxis]
        self._general = [kind for kind in kinds if not kind.affine]
        affine = [kind for kind in kinds if kind.affine]
        self.names = [f"{each.quantity} of {each.owners[i]}" for each in affine + self._general for i in each.columns]
        self.names += [*["acceleration of the tool"] * (self._tool is not None), "velocity"]
        self.names += [f"RMS effort of {owners[i]}" for i in hot]
        self._rooted, self._general_rooted = _rooted(affine), _rooted(self._general)
        unit = np.zeros((4, len(nodes)))
        unit[0] = 1.0
        value, _ = self._evaluated(affine, unit, changes=False)
        self._slopes = np.zeros((4, *value.shape))
        # By x, x', and of rows divided by √x by x''.
        for k in range(3 if np.any(self._rooted) else 2):
            self._slopes[k] = self._evaluated(affine, unit + np.eye(4)[:, [k]], changes=False)[0] - value
        self._offset = value - self._slopes[0]
        self._affine_heat = self._affine_efforts() if len(hot) else None

    def _affine_efforts(self) -> tuple[Array, Array] | None:
        """Slopes (4, M, H) and offset (M, H) of efforts with limits of RMS that are affine in x and x', else None."""
        unit = np.zeros((4, len(self.q)))
        unit[0] = 1.0
        try:
            value, ahead, beside, other = (
                self._evaluated([self._heat], unit + np.reshape(step, (4, 1)), changes=False)[0]
                for step in ([0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1.3, -1.7, 2.0, 5.0])
            )
        except StateError:
            return None
        slopes = np.stack([ahead - value, beside - value, 0 * value, 0 * value])
        expected = value + 1.3 * slopes[0] - 1.7 * slopes[1]
        scale = np.max(np.abs(value) + np.abs(slopes[0]) + np.abs(slopes[1]))
        return (slopes, value - slopes[0]) if np.max(np.abs(other - expected)) < 1e-9 * scale else None

    def set_reference(self, x: Array) -> None:
        """Rescale the rows with a factor 1/√x so that this factor is 1 at these x (M,)."""
        self._reference = np.sqrt(x)[:, np.newaxis]

    def tighten(self, rows: Array, speeds: Array) -> None:
        """Reduce limits by factors: of the rows (M, R), and of speeds along the path (M,)."""
        # At most halfway to the values at rest, which no motion reduces.
        self._shares = np.maximum(self._shares * rows, 0.5 * (self._shares + self.at_rest))
        self._largest = self._largest * speeds**2

    def cap(self, x: float) -> None:
        """Reduce limits of x to a number."""
        self._largest = np.minimum(self._largest, x)

    def allow(self, factor: float) -> None:
        """Multiply all limits by a factor, until it is set again."""
        self._allowed = factor

    @property
    def largest(self) -> Array:
        """Upper bound of x by velocities (M,)."""
        found: Array = self._largest * self._allowed**2
        return found

    @property
    def heat_limits(self) -> Array:
        """Limits of RMS efforts (H,)."""
        return self._heat.limits

    def tighten_heat(self, factors: Array) -> None:
        """Reduce limits of RMS efforts by factors (H,)."""
        self._heat = self._heat._replace(limits=self._heat.limits * factors)
        if self._affine_heat is not None:
            self._affine_heat = self._affine_heat[0] / factors, self._affine_heat[1] / factors

    def heat(self, x: Array, rows: ConstraintRows) -> tuple[Array, Array, Array]:
        """Distances from the limits of RMS efforts.

        Args:
            x: x and its derivatives at the nodes (4, M).
            rows: there.

        Returns:
            1 - (RMS/limit)² (H,) times the duration, derivatives by x and its derivatives (4, M, H), and by pairs of
            them, without those of the duration (M, 4, 4, H).
        """
        f, change = rows.heat
        x0 = x[0][:, np.newaxis]
        weights = self._steps / np.sqrt(x0)
        by_x = -2 * weights * f * change
        by_x[0] -= 0.5 * weights * (1 - f**2) / x0
        # Of f²/√x, by squares.
        inner = change.copy()
        inner[0] -= 0.5 * f / x0
        curvature = -2 * np.einsum("mh,kmh,lmh->mklh", weights, inner, inner)
        curvature[:, 0, 0] -= 0.25 * weights * f**2 / x0**2
        return np.sum(weights * (1 - f**2), axis=0), by_x, curvature

    def used(self, x: Array) -> Array | None:
        """Values over limits (M, number of names) at x and its derivatives (4, M).

        None as for :meth:`rows`, or if an x is not positive.
        """
        if not np.min(x[0]) > 0:
            return None
        self.set_reference(x[0])
        rows = self.rows(x, changes=False)
        if rows is None:
            return None
        weights = self._steps / np.sqrt(x[0])[:, np.newaxis]
        rms = np.sqrt(np.sum(weights * rows.heat[0] ** 2, axis=0) / np.sum(weights))
        speeds = np.sqrt(x[0] / self.largest)[:, np.newaxis]
        return np.concatenate(
            [np.abs(rows.value) / rows.bound, speeds, np.broadcast_to(rms, (len(speeds), len(rms)))], axis=1
        )

    def rows(self, x: Array, *, changes: bool) -> ConstraintRows | None:
        """Values at x and its derivatives (4, M); None if the springs or the motors cannot realise them."""
        root = self._reference / np.sqrt(x[0])[:, np.newaxis]
        slope = -0.5 * root / x[0][:, np.newaxis]
        factor = np.where(self._rooted, self._reference, 1.0)
        value = [(np.einsum("kmr,km->mr", self._slopes, x) + self._offset) * factor]
        bound, bound_change = [np.where(self._rooted, root, 1.0)], [np.where(self._rooted, slope, 0.0)]
        change = [self._slopes * factor] if changes else []
        count = len(self._heat.columns)
        heat = np.zeros((len(self.q), count)), np.zeros((4, len(self.q), count))
        kinds = self._general
        if self._affine_heat is not None:
            slopes, offset = self._affine_heat
            heat, count = (np.einsum("kmh,km->mh", slopes, x) + offset, slopes), 0
        elif count:
            kinds = [*kinds, self._heat]
        if kinds:
            try:
                general, by_x = self._evaluated(kinds, x, changes=changes)
            except StateError:
                return None
            first = general.shape[1] - count
            if count:
                heat = general[:, first:], by_x[:, :, first:] if changes else heat[1]
            general, by_x = general[:, :first], by_x[:, :, :first]
            factor = np.where(self._general_rooted, self._reference, 1.0)
            value.append(general * factor)
            bound.append(np.where(self._general_rooted, root, 1.0))
            bound_change.append(np.where(self._general_rooted, slope, 0.0))
            change.append(by_x * factor if changes else by_x)
        if self._tool is not None:
            along, curved = self._tool
            a = along * x[1][:, np.newaxis] + curved * x[0][:, np.newaxis]
            value.append(np.sum(a * a, axis=1, keepdims=True))
            bound.append(np.ones_like(value[-1]))
            bound_change.append(np.zeros_like(value[-1]))
            of_tool = np.zeros((4, len(a), 1))
            of_tool[0, :, 0], of_tool[1, :, 0] = 2 * np.sum(a * curved, axis=1), 2 * np.sum(a * along, axis=1)
            change.append(of_tool)
        values = np.concatenate(value, axis=1)
        if not np.all(np.isfinite(values)):
            return None
        shares = self._shares * self._allowed
        return ConstraintRows(
            values,
            np.concatenate(bound, axis=1) * shares,
            np.concatenate(change, axis=2) if changes else np.zeros((4, *values.shape)),
            np.concatenate(bound_change, axis=1) * shares,
            heat,
        )

    def _evaluated(self, kinds: Sequence[_Kind], x: Array, *, changes: bool) -> tuple[Array, Array]:
        """Values (M, R) relative to the limits, and derivatives by x and its derivatives (4, M, R) if asked for.

        Those of rooted kinds are divided by √x.
        """
        rates = time_derivatives(x)
        states = dict(zip(_RATES, chain(self._path, rates), strict=True))
        values: dict[str, Array] = dict(states)
        needs_arm = any(kind.name not in _RATES for kind in kinds)
        if needs_arm and self._arm.rotors is None and all(kind.affine for kind in kinds):
            # The springs need not follow at the speed of a slope.
            values |= dict(zip(EFFORT_NAMES, self._arm.efforts(self.q, *states.values()), strict=True))
        elif needs_arm:
            with np.errstate(all="ignore"):
                values |= self._with_voltage(self._arm.feedforward(self.q, *states.values())._asdict())
        slopes = self._changes(x, rates, states, needs_arm=needs_arm) if changes else {}
        root = 1 / np.sqrt(x[0])[:, np.newaxis]
        none = np.zeros((len(self.q), 0))
        value, change = [none], [np.zeros((4, *none.shape))]
        for kind in kinds:
            factor = root if kind.rooted else np.ones_like(root)
            f = values[kind.name][:, kind.columns] / kind.limits * factor
            value.append(f)
            if changes:
                by_x = slopes[kind.name][:, :, kind.columns] / kind.limits * factor
                if kind.rooted:
                    by_x[0] -= 0.5 * f / x[0][:, np.newaxis]
                change.append(by_x)
        return np.concatenate(value, axis=1), np.concatenate(change, axis=2)

    def _changes(self, x: Array, rates: Array, states: Mapping[str, Array], *, needs_arm: bool) -> dict[str, Array]:
        """Derivatives of the quantities by x and its derivatives, each (4, M, number of joints or motors)."""
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
        if needs_arm:
            changes = [np.zeros((4, *self.q.shape)), *result.values()]
            command = self._arm.feedforward_along((self.q, *states.values()), changes)
            result |= self._with_voltage(command._asdict())
        return result

    def _with_voltage(self, command: dict[str, Array]) -> dict[str, Array]:
        """The command with the voltage of the motors, a linear function of velocity and effort behind the gears."""
        if np.any(np.isfinite(self._arm.motor.voltage_limit)):
            ratio = self._arm.gear_ratio
            found: Any = self._arm.motor.voltage(command["motor_effort"] / ratio, command["motor_velocity"] * ratio)
            command["voltage"] = np.asarray(found)
        return command


def _rooted(kinds: Sequence[_Kind]) -> NDArray[np.bool_]:
    """Which rows of kinds are divided by √x."""
    return np.repeat([kind.rooted for kind in kinds], [len(kind.columns) for kind in kinds]).astype(bool)


def _kinds(arm: ElasticArm, limits: Bounds) -> list[_Kind]:
    """Kinds of rows with a limit."""
    ratios = np.abs(arm.robot.coupling[0])
    motor, gear = arm.motor, np.abs(arm.gear_ratio)
    largest = limits.largest
    with np.errstate(divide="ignore", invalid="ignore"):
        of_leaders = {name: np.min(largest[name][:, np.newaxis] / ratios, axis=0) for name in ("acceleration", "jerk")}
        torque = np.fmin(motor.torque_limit, np.abs(motor.current_limit * motor.torque_constant))
    smooth = not arm.robot.joint_friction
    rows = (
        ("qdd", "acceleration", of_leaders["acceleration"], False, True),
        ("tau", "effort", largest["effort"], False, smooth),
        ("qddd", "jerk", of_leaders["jerk"], True, True),
        ("taud", "effort rate", largest["effort_rate"], True, smooth),
        ("motor_velocity", "motor speed", largest["motor_speed"] / gear, True, False),
        ("motor_effort", "motor torque", np.broadcast_to(torque, gear.shape) * gear, False, False),
        ("voltage", "motor voltage", largest["motor_voltage"], False, False),
    )
    return [
        _Kind(
            name,
            quantity,
            arm.motor_names if name in _OF_MOTORS else arm.robot.joint_names,
            np.flatnonzero(np.isfinite(most)),
            most[np.isfinite(most)],
            rooted,
            affine,
        )
        for name, quantity, most, rooted, affine in rows
        if np.any(np.isfinite(most))
    ]
