# SPDX-License-Identifier: Apache-2.0
"""Limits of an arm's joints and motors, and the check of states and commands against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ..arguments import mapping, number_by_rule
from ..arrays import EFFORT_NAMES, MOTION, SHAFT_UNITS, STATE_NAMES, Array, at_joint, unit
from ..exceptions import StateError, TrajectoryError
from ..filling import TOLERANCE as TOLERANCE
from ..robot import Robot
from ..robot.model import ENDS, NO_LIMITS, Limits
from ..robot.task_space import independent_ranges
from ..spelling import hint
from .elastic_arm import ElasticArm, require_arm
from .feedforward import Feedforward
from .limit_violations import IN_DEGREES, TURN, LimitViolation, limit_violations
from .motor_programs import MOTOR_NAMES

RATES = MOTION[1:4]
"""Joint rates with limits."""

_OF_JOINTS = ("position", *RATES, "effort", "effort_rate", "motor_effort")

UNITS = {name: unit(name) for name in _OF_JOINTS} | {f"motor_{name}": text for name, text in SHAFT_UNITS.items()}
"""Units of the limited quantities; for prismatic joints, m and N replace rad and N m."""

GivenLimits = Mapping[str, Limits | Mapping[str, float]]
"""Overrides of limits in the robot's file, by joint name: all limits of a joint, or single limits by name."""


def joint_limits(robot: Robot, limits: GivenLimits | None) -> dict[str, Limits]:
    """Limits of all joints by name, in the order of the robot.

    Args:
        robot: the robot with the limits of its file.
        limits: overrides by joint name: numbers by attribute of :class:`.Limits`, such as ``{"velocity": 1.0}``, or a
            ``Limits`` that replaces all limits of the joint.

    Raises:
        TrajectoryError: a joint or a limit is unknown, or not usable.
    """
    by_joint = {joint.name: joint.limits for joint in robot.joints}
    for name, entry in mapping({} if limits is None else limits, "limits", "names of joints", TrajectoryError).items():
        if name not in by_joint:
            raise TrajectoryError(f"limits of unknown joint {name!r}; {robot.name} has {', '.join(by_joint)}")
        overrides = vars(entry) if isinstance(entry, Limits) else entry
        of = "their names to numbers, such as {'velocity': 1.0}, or Limits"
        for quantity, value in mapping(overrides, f"limits of {name!r}", of, TrajectoryError).items():
            if quantity not in vars(NO_LIMITS):
                raise TrajectoryError(f"{name}: no limit is named {quantity!r}; {hint(quantity, vars(NO_LIMITS))}")
            rule, unlimited = "finite" if quantity in ENDS else "not negative", getattr(NO_LIMITS, quantity)
            number_by_rule(value, f"{name}: limit {quantity}", TrajectoryError, rule=rule, unlimited=unlimited)
        by_joint[name] = new = replace(by_joint[name], **overrides)
        if new.lower > new.upper:
            raise TrajectoryError(f"{name}: lower {new.lower:g} must not exceed upper {new.upper:g}")
    return by_joint


def own_efforts(arm: ElasticArm) -> Array:
    """Largest effort of each motor (m,) by its torque and current limits, link side, N m or N."""
    motor = arm.motor
    torque = np.fmin(motor.torque_limit, np.abs(np.multiply(motor.current_limit, motor.torque_constant)))
    return np.asarray(np.abs(arm.gear_ratio) * torque)


class LimitCheck:
    """Limits of an arm: the table of joints and motors for planners and control loop, and its check.

    Motors without a limit of torque or current have the effort limit of their joint. ``motor_effort`` is the total
    effort of a joint's motors, on the link side of the gears and through the transmission; efforts of a pair against
    each other cancel.

    All limits except voltage and total motor effort are ranges of single entries of a row q … qdddd, tau … taudd,
    theta, thetad, thetadd, tau_m (8n + 4m,). The limit of a mimic joint is such a range of its leader. A row within
    these ranges violates nothing; violations are determined only for other rows.

    Attributes:
        names: names of joints or motors, by quantity.
        units: unit for each name, by quantity.
        largest: largest magnitude for each name, by quantity except the position; infinite without a limit.
        lower, upper: range of the position for each joint, mimic joints included.
        effort_rms: largest root mean square of the effort of each motor over a motion, on the link side of its gear.
        motor_effort: largest motor effort (n,) at each joint, N m or N; infinite if all motors have individual limits.
            ``largest`` omits it at joints with motors without inertia, friction and loss: there it equals the limit of
            joint effort.
        motor_sums: matrix (n, m) from the efforts of motors to those at the joints.
    """

    def __init__(self, arm: ElasticArm, limits: GivenLimits | None = None) -> None:
        """Read the limits of an arm, with overrides and errors as in :func:`joint_limits`."""
        require_arm(arm)
        self._arm, by_joint = arm, joint_limits(arm.robot, limits)
        every, m = tuple(by_joint), len(arm.motor_names)
        self.names, self.largest = {"position": every}, dict[str, Array]()
        limited = dict.fromkeys(RATES, every) | dict.fromkeys(("effort", "effort_rate"), arm.robot.joint_names)
        for quantity, of in limited.items():
            self.names[quantity] = of
            self.largest[quantity] = np.array([getattr(by_joint[name], quantity) for name in of])
        for quantity in ("speed", "torque", "current", "voltage"):
            self.names[f"motor_{quantity}"] = arm.motor_names
            limit = np.asarray(getattr(arm.motor, f"{quantity}_limit"), dtype=float)
            self.largest[f"motor_{quantity}"] = np.broadcast_to(limit, (m,))
        self.motor_sums = np.array(arm.side.motor_sums(list(np.eye(m))))
        moves, motor_limits = self.motor_sums != 0, own_efforts(arm)
        ideal = np.array([arm.side.is_ideal(joint) for joint in arm.motor_joint])
        self.motor_effort = np.where((moves & np.isinf(motor_limits)).any(axis=1), self.largest["effort"], np.inf)
        self.largest["motor_effort"] = np.where((moves & ~ideal).any(axis=1), self.motor_effort, np.inf)
        of_joints = (np.flatnonzero(arm.motor_joint == joint) for joint in range(arm.robot.n))
        self.names["motor_effort"] = tuple("+".join(arm.motor_names[i] for i in motors) for motors in of_joints)
        self.lower, self.upper = (np.array([getattr(by_joint[name], side) for name in every]) for side in ENDS)
        types = {joint.name: joint.type for joint in arm.robot.joints}
        owned = self.names | {"motor_effort": arm.robot.joint_names}
        self.units = {
            quantity: tuple(at_joint(text, types[name]) if quantity in _OF_JOINTS else text for name in owned[quantity])
            for quantity, text in UNITS.items()
        }
        owners = [arm.robot.joint_names[i] for i in arm.motor_joint]
        self.names["effort_rms"] = arm.motor_names
        self.units["effort_rms"] = tuple(unit("effort", types[name]) for name in owners)
        self.effort_rms = np.array([by_joint[name].effort_rms for name in owners])

    @cached_property
    def of_leaders(self) -> tuple[Array, Array, Array]:
        """Range ends of the independent joints (n,), and their largest velocity, acceleration and jerk (3, n).

        Limits of mimic joints are included, as limits of their leaders.
        """
        robot = self._arm.robot
        ratios = np.abs(robot.coupling[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.array([np.min(self.largest[name][:, None] / ratios, axis=0) for name in RATES])
        return *independent_ranges(robot, self.lower, self.upper), rates

    @cached_property
    def ends(self) -> dict[str, Array]:
        """Lower and upper ends (2, size) of each part of a row with limits, by name, widened by the tolerance."""
        lower, upper, rates = self.of_leaders
        largest = dict(zip(STATE_NAMES[1:4], rates, strict=True))
        largest |= {"tau": self.largest["effort"], "taud": self.largest["effort_rate"]}
        largest["motor_velocity"] = self.largest["motor_speed"] / np.abs(self._arm.gear_ratio)
        largest["motor_effort"] = own_efforts(self._arm)
        ends = {"q": np.array([lower, upper])} | {name: np.array([-x, x]) for name, x in largest.items()}
        return {name: x + [[-TOLERANCE], [TOLERANCE]] * np.abs(x) for name, x in ends.items()}

    @cached_property
    def rows(self) -> Array:
        """Range ends of each entry of a row (2, 8n + 4m); infinite without a limit."""
        n, m = self._arm.robot.n, len(self._arm.motor_names)
        sizes = dict.fromkeys((*STATE_NAMES, *EFFORT_NAMES), n) | dict.fromkeys(MOTOR_NAMES, m)
        free = np.array([[-np.inf], [np.inf]])
        return np.hstack([self.ends.get(name, np.repeat(free, size, axis=1)) for name, size in sizes.items()])

    def limited(self, *quantities: str) -> bool:
        """True if any of these quantities has a limit."""
        return any(bool((self.largest[quantity] < np.inf).any()) for quantity in quantities)

    @property
    def quantities(self) -> list[str]:
        """Quantities with a limit, except the position."""
        return [quantity for quantity in self.largest if self.limited(quantity)]

    @property
    def of_motors(self) -> bool:
        """True if any motor has limits."""
        return self.limited("motor_effort", *(f"motor_{name}" for name in SHAFT_UNITS))

    @property
    def of_rms(self) -> NDArray[np.bool_]:
        """Flags (m,) of motors with a limit of root-mean-square effort."""
        return self.effort_rms < np.inf

    @cached_property
    def any(self) -> bool:
        """True if a state and its command can violate any limit."""
        return self.limited("motor_voltage") or bool((np.abs(self.rows) < np.inf).any())

    def prepare(self) -> None:
        """Compile the checks and reports, so that the first violation causes no delay."""
        if self.any:
            _ = self._violations
            for name, details in (("shafts", {"clip": False}), ("drive", {})):
                self._arm.functions.call(name, **details)

    @property
    def rate_limits(self) -> Array:
        """Limits of velocity, acceleration and jerk of the joints (3, n), mimic joints included.

        Speed limits of motors limit the joint velocity through the transmission.
        """
        arm, speeds = self._arm, self.ends["motor_velocity"][1]
        rates = np.array([self.ends[name][1] for name in STATE_NAMES[1:4]])
        sides = np.abs(arm.side.joint_sides(list(np.eye(len(speeds)))))
        of_sides = [float(np.sum(row[row > 0] * speeds[row > 0])) for row in sides]
        np.minimum.at(rates[0], arm.motor_joint, of_sides)
        return rates

    def violated(self, rows: Array) -> np.bool_ | NDArray[np.bool_]:
        """Flags (…,) of states with commands (…, 8n + 4m) that violate a limit."""
        return self._violations(rows)[0][..., 0] > 0

    @cached_property
    def turn(self) -> Array:
        """Smallest refused distance of positions beyond their range (n,), rad; infinite for lengths.

        Without a range, finite for continuous joints only.
        """
        robot = self._arm.robot
        rotary = np.array([joint.type != "prismatic" for joint in robot.independent_joints])
        return np.where(rotary & (np.isfinite(self.ends["q"]).any(axis=0) | robot.continuous), TURN, np.inf)

    def far(self, q: Array) -> NDArray[np.bool_]:
        """Flags of positions (…, n) more than a turn beyond their range, including the ranges of mimic joints."""
        lower, upper = self.ends["q"]
        return (q < lower - self.turn) | (q > upper + self.turn)

    def refuse_far(self, q: Array) -> None:
        """Raise StateError for a position (n,) that is more than a turn beyond its range."""
        for i in np.flatnonzero(self.far(q))[:1]:
            lower, upper = self.ends["q"][:, i]
            raise StateError(
                f"position of {self._arm.robot.joint_names[i]} is {q[i]:.4g} rad, its range {lower:.4g} to "
                f"{upper:.4g} rad, {IN_DEGREES}; set limits to ignore to accept it"
            )

    @cached_property
    def _violations(self) -> Callable[[Array], tuple[Array, ...]]:
        """Number of limits that rows violate; compiled at first use."""
        ranges = tuple(map(tuple, self.rows.T.tolist()))
        limits = {"voltage": self.largest["motor_voltage"], "sums": self.largest["motor_effort"] * (1 + TOLERANCE)}
        return self._arm.functions.call(
            "violations", ranges=ranges, **{name: tuple(x.tolist()) for name, x in limits.items()}
        )

    def violations(self, states: Array | Sequence[Array], command: Feedforward) -> tuple[LimitViolation, ...]:
        """Worst violation of each quantity of each joint and motor, in descending order.

        Args:
            states: q, qd, qdd, qddd and possibly more, each (n,) or (N, n).
            command: the feedforward of the states.
        """
        E, e = self._arm.robot.coupling
        worst = limit_violations(
            self.names["position"],
            "position",
            self.units["position"],
            states[0] @ E.T + e,
            self.lower - TOLERANCE * np.abs(self.lower),
            self.upper + TOLERANCE * np.abs(self.upper),
        )
        values = {name: x @ E.T for name, x in zip(RATES, states[1:4], strict=True)}
        values |= {"effort": command.tau, "effort_rate": command.taud}
        values["motor_effort"] = command.motor_effort @ self.motor_sums.T
        for name, x in values.items():
            most = self.largest[name] * (1 + TOLERANCE)
            worst += limit_violations(self.names[name], name, self.units[name], x, -most, most)
        worst += self._arm.drive(command).exceeded
        return tuple(sorted(worst, key=lambda violation: -violation.ratio))


def arm_limits(arm: ElasticArm, limits: GivenLimits | None = None) -> LimitCheck:
    """Limits of an arm with overrides, as in :class:`LimitCheck`."""
    require_arm(arm)
    return _own_limits(arm) if limits is None else LimitCheck(arm, limits)


_own_limits = lru_cache(maxsize=8)(LimitCheck)
"""Cached limits of arms without overrides, since each trajectory check needs them."""
