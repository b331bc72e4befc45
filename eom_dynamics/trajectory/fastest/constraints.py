# SPDX-License-Identifier: Apache-2.0
"""Limits of a motion at nodes of a path, as functions of x and its derivatives 1 … 3.

A row is a quantity f of a joint or motor with |f| <= limit. For a rigid-body system without friction, acceleration and
effort are affine in x and x', jerk, effort rate and speeds of motors behind linear springs are √x times affine
functions A of x, x', x''. The former are convex limits; the latter are |A| <= limit/√x. The right side is convex, so
its tangent is a safe limit. Efforts of these motors are affine functions plus products of x and x' with others. The
coefficients of all these are constant; other rows come from the compiled feedforward.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arguments import all_finite
from ...arrays import EFFORT_NAMES, STATE_NAMES, Array
from ...elastic import ElasticArm
from ...elastic.limits import LimitCheck, own_efforts
from ...exceptions import StateError
from ..quantities import joint_efforts
from . import SETTINGS
from .path import GeometricPath, SquaredSpeed, chain, time_derivatives

_RATES = STATE_NAMES[1:]

_OF_MOTORS = ("motor_velocity", "motor_effort", "voltage")
_SUMS = "motor_sums"


class ConstraintRows(NamedTuple):
    """Two-sided limits at M nodes, |value| <= bound, both (R, M) or the bound broadcast to it.

    ``change`` are derivatives of the values by x and its first derivatives (K, R, M), empty if not requested;
    ``bound_change`` is the derivative of the bounds by x (R, M), None if they are constant.
    """

    value: Array
    bound: Array
    change: Array
    bound_change: Array | None


class _Kind(NamedTuple):
    """Limits of a state, or of a value of a feedforward, ``name``, by the ``columns`` of its joints or motors.

    Rows may be divided by √x (rooted), and may be polynomials of x and its derivatives then.
    """

    name: str
    quantity: str
    owners: tuple[str, ...]
    columns: NDArray[np.intp]
    limits: Array
    rooted: bool
    polynomial: bool


class Constraints:
    """Limits of an arm at nodes of a path, with positions q (M, n), and names of the rows.

    The first rows are polynomials, with the quadratic rows last, followed by the bound of x by velocities. Values
    ``at_rest`` use fractions of limits (R, M), 0 if unknown.
    """

    def __init__(self, arm: ElasticArm, path: GeometricPath, speed: SquaredSpeed, limits: LimitCheck) -> None:
        """Evaluate the path at the nodes of a speed, and collect the limits that there are."""
        self._arm = arm
        self.q, self._path = path.derivatives(speed.nodes)
        kinds, self._motor_sums = limited_kinds(arm, limits), limits.motor_sums
        ratios = np.abs(arm.robot.coupling[0])
        with np.errstate(divide="ignore", over="ignore"):
            most = np.min(limits.largest["velocity"][:, np.newaxis] / ratios, axis=0)
            largest = np.min((most / np.abs(self._path[0])) ** 2, axis=1)
        self.at_rest: Array = np.zeros((1, len(self.q)))
        self._general = [kind for kind in kinds if not kind.polynomial]
        self.polynomial = not self._general  # without friction, and with linear springs
        polynomials = [kind for kind in kinds if kind.polynomial]
        self._velocity = sum(len(kind.columns) for kind in polynomials)
        rows = [(kind, i) for kind in (*polynomials, *self._general) for i in kind.columns]
        names = [(f"{kind.quantity} of {kind.owners[i]}", kind.rooted) for kind, i in rows]
        names.insert(self._velocity, ("velocity", False))
        self.names = [name for name, _ in names]
        self._rooted: NDArray[np.bool_] = np.array([[rooted] for _, rooted in names])
        self._shares = np.ones((len(names), len(self.q)))
        coefficients, self._products = self._polynomials(polynomials)
        # Limits depend on x and x', those divided by √x on the second derivative, and others on the third.
        orders = 3 if np.any(self._rooted[: self._velocity]) else 2
        self._slopes = np.zeros(
            (4 if self._general or self._products.size else orders, self._velocity + 1, len(self.q))
        )
        self._slopes[:, :-1] = coefficients[1 : 1 + len(self._slopes)]
        self._slopes[0, -1] = 1 / speed.capped(np.minimum(largest, SETTINGS.largest_speed))
        self._offset = np.append(coefficients[0], np.zeros((1, len(self.q))), axis=0)

    def thinned(self, index: NDArray[np.intp]) -> Constraints:
        """The limits at some of the nodes."""
        thin = copy(self)
        thin.q, thin._path = self.q[index], self._path[:, index]
        for name in ("_slopes", "_offset", "_products", "_shares", "at_rest"):
            setattr(thin, name, getattr(self, name)[..., index])
        return thin

    def tighten(self, factors: Array) -> None:
        """Reduce limits by factors (R, M), the bound of x by their squares."""
        factors = np.broadcast_to(factors, self._shares.shape).copy()
        factors[self._velocity] **= 2
        # At most halfway to the values at rest, which no motion reduces.
        self._shares = np.maximum(self._shares * factors, 0.5 * (self._shares + self.at_rest))

    def loosen(self) -> None:
        """Undo half of the reduction of limits."""
        self._shares = np.where(self._shares < 1, np.sqrt(self._shares), self._shares)

    def follow(self, other: Constraints, place: NDArray[np.intp]) -> None:
        """Copy the reduction of limits from a problem with fewer nodes, which have these places among the nodes."""
        self._shares[:, place] = other._shares

    def rows_of(self, quantity: str) -> NDArray[np.bool_]:
        """True for rows (R,) that limit a quantity of :class:`.LimitCheck`."""
        words = {"motor_current": "motor torque"}.get(quantity, quantity.replace("_", " "))
        beginning = "velocity" if quantity == "velocity" else f"{words} of"
        return np.array([name.startswith(beginning) for name in self.names])

    def cap(self, x: float) -> None:
        """Reduce limits of x to a number."""
        self._slopes[0, self._velocity] = np.maximum(self._slopes[0, self._velocity], 1 / x)

    def largest_scale(self, x: Array) -> float:
        """Largest factor of x (M,) that its bound by velocities allows."""
        return float(1 / np.max(x * self._slopes[0, self._velocity] / self._shares[self._velocity]))

    def largest_constant(self) -> Array:
        """Largest x (M,) within the limits at each node, if x does not change, or less."""
        x = np.zeros((4, len(self.q)))
        high = np.log(self._shares[self._velocity] / self._slopes[0, self._velocity])
        low = high - SETTINGS.start_span
        for _ in range(SETTINGS.start_halvings):
            middle = 0.5 * (low + high)
            x[0] = np.exp(middle)
            used = self.used(x)
            inside = np.zeros(len(middle), dtype=bool) if used is None else np.max(used, axis=0) <= 1
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return np.exp(low)

    def used(self, x: Array) -> Array | None:
        """Values over limits (R, M) at x and its derivatives (4, M).

        None as for :meth:`rows`, or if an x is not positive.
        """
        rows = self.rows(x, changes=False) if np.min(x[0]) > 0 else None
        if rows is None:
            return None
        used = np.abs(rows.value) / rows.bound
        np.sqrt(used[self._velocity], out=used[self._velocity])
        return used

    def rows(self, x: Array, *, changes: bool) -> ConstraintRows | None:
        """Values at x and its derivatives (4, M); None if the springs or the motors cannot realize them."""
        slopes, factors = self._slopes, self._products
        quadratic = slice(self._velocity - factors.shape[2], self._velocity)
        if factors.size:
            slopes = slopes.copy()
            slopes[:, quadratic] += factors[0] * x[0] + factors[1] * x[1]
        value = self._offset + np.einsum("krm,km->rm", slopes, x[: len(slopes)])
        if factors.size and changes:
            slopes[:2, quadratic] += np.einsum("jkrm,km->jrm", factors, x)
        bound, bound_change = self._shares, None
        if np.any(self._rooted):
            root = 1 / np.sqrt(x[0])
            bound_change = np.where(self._rooted, -0.5 * root / x[0], 0.0) * bound
            bound = np.where(self._rooted, root, 1.0) * bound
        if self._general:
            try:
                general, by_x = self._evaluated(x, changes=changes)
            except StateError:
                return None
            value = np.concatenate([value, general])
            slopes = np.concatenate([slopes, by_x], axis=1) if changes else slopes
        if not all_finite(value):
            return None
        return ConstraintRows(value, bound, slopes if changes else np.zeros((0, *value.shape)), bound_change)

    def _polynomials(self, kinds: Sequence[_Kind]) -> tuple[Array, Array]:
        """Coefficients of polynomial rows relative to the limits: of 1 and of x and its derivatives (5, R, M).

        The last rows, for taudd, also have products of x and x' with these, with coefficients (2, 4, R', M), as in

            tau = a_0 + a_1 x + a_2 x',    taud = √x tau',    taudd = x tau'' + x' tau'/2,

        with tau' along the path, affine in x and its derivatives.
        """
        p, side, names = self._path.swapaxes(1, 2), self._arm.side, {kind.name for kind in kinds}
        acceleration = _along(np.array([0 * p[:2], p[1:3], 0.5 * p[:2]]))
        values: dict[str, Array] = dict(zip(_RATES[1:], acceleration, strict=False))
        if not names <= set(values):
            effort = self._efforts_along(1 + ("taud" in names) if names <= {*_RATES, *EFFORT_NAMES} else 3)
            values |= dict(zip(EFFORT_NAMES, effort, strict=False))
        rows, products = [np.zeros((5, 0, p.shape[-1]))], [np.zeros((2, 4, 0, p.shape[-1]))]
        for kind in kinds:
            if kind.name in values:
                rows.append(values[kind.name][:, kind.columns] / kind.limits[:, np.newaxis])
                continue
            (turn, twist), (_, load) = (np.split(matrix, 2, axis=1) for matrix in side.linear_map)
            of_motors = self._motor_sums if kind.name == _SUMS else np.eye(len(load))
            of_motors = of_motors[kind.columns] / kind.limits[:, np.newaxis]
            if kind.name == "motor_velocity":
                rows.append(of_motors @ twist @ effort[1])
                rows[-1][0] += of_motors @ turn @ p[0]
                continue
            of_rotors = of_motors * np.array(side.rotor_inertia)[side.motor_joint]
            by_x, by_xd = (of_rotors @ twist) @ np.array([effort[2], 0.5 * effort[1]])
            rows.append(of_motors @ load @ effort[0] + of_rotors @ turn @ acceleration[0])
            rows[-1][1:3] += by_x[0], by_xd[0]
            if np.any(twist):
                products.append(np.array([by_x[1:], by_xd[1:]]))
        return np.concatenate(rows, axis=1), np.concatenate(products, axis=2)

    def _efforts_along(self, orders: int) -> Array:
        """Coefficients of joint efforts and their first derivatives along the path, as of :func:`_along`."""
        efforts = []
        # Squared speeds 1, 4, and 1 with slope 2; the springs need not follow there.
        for rates in ((1.0, 0.0, 0.0, 0.0), (2.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)):
            states = (self.q, *chain(self._path, np.outer(rates, np.ones(len(self.q)))))
            efforts.append(np.array(joint_efforts(self._arm, states, rate=orders > 1)[:orders]).swapaxes(1, 2))
        slow, fast, turned = efforts
        by_x = (fast / 2.0 ** np.arange(orders)[:, np.newaxis, np.newaxis] - slow) / 3
        by_xd = 0.5 * (turned - slow)
        for k in range(1, orders):
            by_xd[k] -= k * by_x[k - 1] + 0.5 * (k - 1) * turned[1]
        return _along(np.array([slow - by_x, by_x, by_xd]))

    def _evaluated(self, x: Array, *, changes: bool) -> tuple[Array, Array]:
        """Values (R, M) of general rows relative to the limits, and derivatives by x … (4, R, M) if asked for.

        Rows of rooted kinds are divided by √x.
        """
        states = chain(self._path, time_derivatives(x))
        with np.errstate(all="ignore"):
            values = self._of_motors(self._arm.feedforward(self.q, *states)._asdict())
        slopes = self._changes(x, states) if changes else {}
        root = 1 / np.sqrt(x[0])
        value, change = [], []
        for kind in self._general:
            factor = (root if kind.rooted else 1.0) / kind.limits[:, np.newaxis]
            f = values[kind.name].T[kind.columns] * factor
            value.append(f)
            if changes:
                by_x = slopes[kind.name].transpose(0, 2, 1)[:, kind.columns] * factor
                if kind.rooted:
                    by_x[0] -= 0.5 * f / x[0]
                change.append(by_x)
        return np.concatenate(value), np.concatenate(change, axis=1) if changes else np.zeros((4, 0, len(self.q)))

    def _changes(self, x: Array, states: Array) -> dict[str, Array]:
        """Derivatives of the quantities by x and its derivatives, each (4, M, number of joints or motors)."""
        complex_steps = x + 1e-30j * np.eye(4)[..., np.newaxis]
        along = 1e30 * np.array([chain(self._path, time_derivatives(step)).imag for step in complex_steps])
        changes = [np.zeros((4, *self.q.shape)), *along.swapaxes(0, 1)]
        return self._of_motors(self._arm.feedforward_along((self.q, *states), changes)._asdict())

    def _of_motors(self, command: dict[str, Array]) -> dict[str, Array]:
        """The command with linear functions of it: voltage of the motors, and their effort at the joints."""
        command[_SUMS] = command["motor_effort"] @ self._motor_sums.T
        if np.any(self._arm.motor.voltage_limit < np.inf):
            ratio = self._arm.gear_ratio
            voltage: Any = self._arm.motor.voltage(command["motor_effort"] / ratio, command["motor_velocity"] * ratio)
            command["voltage"] = np.asarray(voltage)
        return command


def _along(terms: Array) -> Array:
    """Coefficients of 1 and of x and its derivatives (K, 5, n, M) in a_0 + a_1 x + a_2 x', and in its derivatives.

    Terms are a_0, a_1 and a_2, each with K - 1 derivatives along the path (3, K, n, M).
    """
    result = np.zeros((terms.shape[1], 5, *terms.shape[2:]))
    for k in range(len(result)):
        result[k, 0] = terms[0, k]
        for j in range(k + 1):
            result[k, 1 + j : 3 + j] += comb(k, j) * terms[1:, k - j]
    return result


def limited_kinds(arm: ElasticArm, limits: LimitCheck) -> list[_Kind]:
    """Kinds of rows with a limit.

    They are polynomials without friction and losses, and of motors behind linear springs.
    """
    largest, (_, acceleration, jerk) = limits.largest, limits.of_leaders[2]
    smooth = not arm.robot.joint_friction
    lossless = all(actuator.friction.is_none and actuator.gear.is_lossless for actuator in arm.side.actuators)
    linear = smooth and lossless and arm.rotors is None and arm.functions.is_linear
    linear = linear and not np.any(arm.variable | arm.damped)
    rows = (
        ("qdd", "acceleration", acceleration, False, True),
        ("tau", "effort", largest["effort"], False, smooth),
        ("qddd", "jerk", jerk, True, True),
        ("taud", "effort rate", largest["effort_rate"], True, smooth),
        ("motor_velocity", "motor speed", largest["motor_speed"] / np.abs(arm.gear_ratio), True, linear),
        ("motor_effort", "motor torque", own_efforts(arm), False, linear),
        (_SUMS, "motor effort", largest["motor_effort"], False, linear),
        ("voltage", "motor voltage", largest["motor_voltage"], False, False),
    )
    kinds = []
    for name, quantity, most, rooted, polynomial in rows:
        owners = arm.motor_names if name in _OF_MOTORS else arm.robot.joint_names
        limited = np.flatnonzero(most < np.inf)
        if len(limited):
            kinds.append(_Kind(name, quantity, owners, limited, most[limited], rooted, polynomial))
    return kinds
