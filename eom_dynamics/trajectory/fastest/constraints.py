# SPDX-License-Identifier: Apache-2.0
"""Limits of a motion at nodes of a path, as functions of x and its derivatives 1 … 3.

A row is a quantity f of a joint or motor with |f| <= limit. Of a rigid-body system without friction, acceleration and
effort are affine in x and x', jerk and effort rate are √x times affine functions A of x, x', x''. The former are convex
limits; the latter are |A| <= limit/√x, where the right side is convex, and its tangent therefore safe. The derivatives
of all these by x … are constant; those of motors come from the compiled feedforward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import Bounds, own_efforts
from ...exceptions import StateError
from ...states import EFFORT_NAMES, STATE_NAMES
from ..quantities import joint_efforts
from .path import GeometricPath, chain
from .settings import SETTINGS
from .speed import SquaredSpeed, time_derivative_changes, time_derivatives

_RATES = STATE_NAMES[1:]

_OF_MOTORS = ("motor_velocity", "motor_effort", "voltage")
_SUMS = "motor_sums"


class ConstraintRows(NamedTuple):
    """Two-sided limits at M nodes, |value| <= bound, both (R, M) or the bound broadcast to it.

    ``change`` are derivatives of the values by x and its first derivatives (K, R, M), none of them if not asked for;
    ``bound_change`` is that of the bounds by x (R, M), None if they are constant.
    """

    value: Array
    bound: Array
    change: Array
    bound_change: Array | None


class _Kind(NamedTuple):
    """Limits of a state, or of a value of a feedforward, ``name``, by the ``columns`` of its joints or motors.

    Rows may be divided by √x (rooted), and affine then.
    """

    name: str
    quantity: str
    owners: tuple[str, ...]
    columns: NDArray[np.intp]
    limits: Array
    rooted: bool
    affine: bool

    @property
    def rows(self) -> list[tuple[str, bool]]:
        """Name of each row, and whether it is rooted."""
        return [(f"{self.quantity} of {self.owners[i]}", self.rooted) for i in self.columns]


class Constraints:
    """Limits of an arm at nodes of a path, with positions q (M, n), and names of the rows.

    The first rows are affine; their last one is the bound of x by velocities. Values ``at_rest`` take shares of limits
    (R, M), 0 if unknown.
    """

    def __init__(self, arm: ElasticArm, path: GeometricPath, speed: SquaredSpeed, limits: Bounds) -> None:
        """Evaluate the path at the nodes of a speed, and collect the limits that there are."""
        self._arm = arm
        self.q, self._path = path.derivatives(speed.nodes)
        kinds, self._motor_sums = _kinds(arm, limits), limits.motor_sums
        ratios = np.abs(arm.robot.coupling[0])
        with np.errstate(divide="ignore", over="ignore"):
            most = np.min(limits.largest["velocity"][:, np.newaxis] / ratios, axis=0)
            largest = np.min((most / np.abs(self._path[0])) ** 2, axis=1)
        self.at_rest: Array = np.zeros((1, len(self.q)))
        self._general = [kind for kind in kinds if not kind.affine]
        self.affine = not self._general  # without friction and motors
        affine = [kind for kind in kinds if kind.affine]
        rows = [row for kind in affine for row in kind.rows]
        self._velocity = len(rows)
        rows += [("velocity", False), *(row for kind in self._general for row in kind.rows)]
        self._rooted: NDArray[np.bool_] = np.array([[rooted] for _, rooted in rows])
        self._shares = np.ones((len(rows), len(self.q)))
        self.names = [name for name, _ in rows]
        unit = np.zeros((4, len(self.q)))
        unit[0] = 1.0
        value, _ = self._evaluated(affine, unit, changes=False)
        # Limits depend on x and x', those divided by √x on the second derivative, and general ones on the third.
        orders = 3 if np.any(self._rooted[: self._velocity]) else 2
        self._slopes = np.zeros((4 if self._general else orders, self._velocity + 1, len(self.q)))
        for k in range(orders):
            self._slopes[k, :-1] = self._evaluated(affine, unit + np.eye(4)[:, [k]], changes=False)[0] - value
        self._offset = np.append(value - self._slopes[0, :-1], np.zeros((1, len(self.q))), axis=0)
        self._slopes[0, -1] = 1 / speed.capped(np.minimum(largest, SETTINGS.largest_speed))

    def thinned(self, index: NDArray[np.intp]) -> Constraints:
        """The limits at some of the nodes."""
        thin = copy(self)
        thin.q, thin._path = self.q[index], self._path[:, index]
        thin._slopes, thin._offset, thin._shares = (x[..., index] for x in (self._slopes, self._offset, self._shares))
        thin.at_rest = self.at_rest[:, index]
        return thin

    def tighten(self, factors: Array) -> None:
        """Reduce limits by factors (R, M), the bound of x by their squares."""
        factors = np.broadcast_to(factors, self._shares.shape).copy()
        factors[self._velocity] **= 2
        # At most halfway to the values at rest, which no motion reduces.
        self._shares = np.maximum(self._shares * factors, 0.5 * (self._shares + self.at_rest))

    def loosen(self) -> None:
        """Take back half of what limits were reduced by."""
        self._shares = np.where(self._shares < 1, np.sqrt(self._shares), self._shares)

    def follow(self, other: Constraints, place: NDArray[np.intp]) -> None:
        """Reduce limits as those at fewer nodes were, which have these places among the nodes."""
        self._shares[:, place] = other._shares

    def rows_of(self, quantity: str) -> NDArray[np.bool_]:
        """Which rows (R,) limit a quantity of :class:`.Bounds`."""
        words = {"motor_current": "motor torque"}.get(quantity, quantity.replace("_", " "))
        beginning = "velocity" if quantity == "velocity" else f"{words} of"
        return np.array([name.startswith(beginning) for name in self.names])

    def cap(self, x: float) -> None:
        """Reduce limits of x to a number."""
        self._slopes[0, self._velocity] = np.maximum(self._slopes[0, self._velocity], 1 / x)

    def largest_scale(self, x: Array) -> float:
        """Largest factor of x (M,) that its bound by velocities allows."""
        return float(1 / np.max(x * self._slopes[0, self._velocity] / self._shares[self._velocity]))

    def used(self, x: Array) -> Array | None:
        """Values over limits (R, M) at x and its derivatives (4, M).

        None as for :meth:`rows`, or if an x is not positive.
        """
        if not np.min(x[0]) > 0:
            return None
        rows = self.rows(x, changes=False)
        if rows is None:
            return None
        used = np.abs(rows.value) / rows.bound
        np.sqrt(used[self._velocity], out=used[self._velocity])
        return used

    def rows(self, x: Array, *, changes: bool) -> ConstraintRows | None:
        """Values at x and its derivatives (4, M); None if the springs or the motors cannot realise them."""
        affine = self._offset + np.einsum("krm,km->rm", self._slopes, x[: len(self._slopes)])
        values, bound = [affine], self._shares
        change, bound_change = [self._slopes] if changes else [], None
        if np.any(self._rooted):
            root = 1 / np.sqrt(x[0])
            bound_change = np.where(self._rooted, -0.5 * root / x[0], 0.0) * bound
            bound = np.where(self._rooted, root, 1.0) * bound
        if self._general:
            try:
                general, by_x = self._evaluated(self._general, x, changes=changes)
            except StateError:
                return None
            values.append(general)
            change.append(by_x)
        value = np.concatenate(values) if len(values) > 1 else values[0]
        if not np.all(np.isfinite(value)):
            return None
        if changes:
            slopes = np.concatenate(change, axis=1) if len(change) > 1 else change[0]
        else:
            slopes = np.zeros((0, *value.shape))
        return ConstraintRows(value, bound, slopes, bound_change)

    def _evaluated(self, kinds: Sequence[_Kind], x: Array, *, changes: bool) -> tuple[Array, Array]:
        """Values (R, M) relative to the limits, and derivatives by x and its derivatives (4, R, M) if asked for.

        Those of rooted kinds are divided by √x.
        """
        orders = 2 + any(kind.rooted for kind in kinds) if all(kind.affine for kind in kinds) else 4
        rates = time_derivatives(x)[:orders]
        states = dict(zip(_RATES, chain(self._path, rates), strict=False))
        values: dict[str, Array] = dict(states)
        needs_arm = any(kind.name not in _RATES for kind in kinds)
        if needs_arm and self._arm.rotors is None and all(kind.affine for kind in kinds):
            # The springs need not follow at the speed of a slope.
            rate = any(kind.name == "taud" for kind in kinds)
            efforts = joint_efforts(self._arm, (self.q, *states.values()), rate=rate)
            values |= dict(zip(EFFORT_NAMES, efforts, strict=False))
        elif needs_arm:
            with np.errstate(all="ignore"):
                values |= self._of_motors(self._arm.feedforward(self.q, *states.values())._asdict())
        slopes = self._changes(x, rates, states, needs_arm=needs_arm) if changes else {}
        root = 1 / np.sqrt(x[0])
        none = np.zeros((0, len(self.q)))
        value, change = [none], [np.zeros((4, *none.shape))]
        for kind in kinds:
            factor = (root if kind.rooted else 1.0) / kind.limits[:, np.newaxis]
            f = values[kind.name].T[kind.columns] * factor
            value.append(f)
            if changes:
                by_x = slopes[kind.name].transpose(0, 2, 1)[:, kind.columns] * factor
                if kind.rooted:
                    by_x[0] -= 0.5 * f / x[0]
                change.append(by_x)
        return np.concatenate(value), np.concatenate(change, axis=1)

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
            result |= self._of_motors(command._asdict())
        return result

    def _of_motors(self, command: dict[str, Array]) -> dict[str, Array]:
        """The command with linear functions of it: voltage of the motors, and their effort at the joints."""
        command[_SUMS] = command["motor_effort"] @ self._motor_sums.T
        if np.any(np.isfinite(self._arm.motor.voltage_limit)):
            ratio = self._arm.gear_ratio
            voltage: Any = self._arm.motor.voltage(command["motor_effort"] / ratio, command["motor_velocity"] * ratio)
            command["voltage"] = np.asarray(voltage)
        return command


def _kinds(arm: ElasticArm, limits: Bounds) -> list[_Kind]:
    """Kinds of rows with a limit."""
    ratios = np.abs(arm.robot.coupling[0])
    gear, largest = np.abs(arm.gear_ratio), limits.largest
    with np.errstate(divide="ignore", invalid="ignore"):
        of_leaders = {name: np.min(largest[name][:, np.newaxis] / ratios, axis=0) for name in ("acceleration", "jerk")}
    smooth = not arm.robot.joint_friction
    rows = (
        ("qdd", "acceleration", of_leaders["acceleration"], False, True),
        ("tau", "effort", largest["effort"], False, smooth),
        ("qddd", "jerk", of_leaders["jerk"], True, True),
        ("taud", "effort rate", largest["effort_rate"], True, smooth),
        ("motor_velocity", "motor speed", largest["motor_speed"] / gear, True, False),
        ("motor_effort", "motor torque", own_efforts(arm), False, False),
        (_SUMS, "motor effort", largest["motor_effort"], False, False),
        ("voltage", "motor voltage", largest["motor_voltage"], False, False),
    )
    kinds = []
    for name, quantity, most, rooted, affine in rows:
        owners = arm.motor_names if name in _OF_MOTORS else arm.robot.joint_names
        limited = np.flatnonzero(np.isfinite(most))
        if len(limited):
            kinds.append(_Kind(name, quantity, owners, limited, most[limited], rooted, affine))
    return kinds
