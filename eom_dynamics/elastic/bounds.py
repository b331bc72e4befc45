# SPDX-License-Identifier: Apache-2.0
"""Limits of an arm's joints and motors, and the check of states and commands against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import mapping, number_by_rule
from ..arrays import SHAFT_UNITS, Array, at_joint, unit
from ..exceptions import StateError, TrajectoryError
from ..filling import TOLERANCE as TOLERANCE
from ..robot import Robot
from ..robot.model import NO_LIMITS, Limits
from ..robot.task_space import independent_ranges
from ..spelling import hint
from .elastic_arm import ElasticArm, require_arm
from .feedforward import Feedforward
from .limit_violations import IN_DEGREES, TURN, LimitViolation, limit_violations

_OF_JOINTS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "motor_effort")

_ENDS = ("lower", "upper")
_RATES = ("velocity", "acceleration", "jerk")

UNITS = {name: unit(name) for name in _OF_JOINTS} | {f"motor_{name}": text for name, text in SHAFT_UNITS.items()}
"""Units of the limited quantities; for prismatic joints, read m and N in place of rad and N m."""

GivenLimits = Mapping[str, Limits | Mapping[str, float]]
"""Limits by name of joint, in place of those in the robot's file: all of a joint's, or single ones by name."""


class Bounds(NamedTuple):
    """Limits of an arm: the one table of joints and motors, which planners and the control loop read.

    Motors without a limit of torque or current have the effort limit of their joint: ``motor_effort`` is that of a
    joint's motors together, on the link side of the gears and through the transmission, in which efforts of a pair
    against each other cancel.

    Attributes:
        names: by quantity, names of its joints or motors.
        units: by quantity, a unit for each name.
        largest: by quantity except the position, largest magnitude for each name; infinite without a limit.
        lower, upper: range of the position for each joint.
        effort_rms: largest root mean square of the effort of each motor over a motion, on the link side of its gear.
        motor_effort: largest motor effort (n,) at each joint, N m or N; infinite where all motors have their own limit.
            ``largest`` leaves it out at joints whose motors have neither inertia, friction nor loss, where it is the
            limit of the joint's effort.
        motor_sums: matrix (n, m) from the efforts of motors to those at the joints.
    """

    names: dict[str, tuple[str, ...]]
    units: dict[str, tuple[str, ...]]
    largest: dict[str, Array]
    lower: Array
    upper: Array
    effort_rms: Array
    motor_effort: Array
    motor_sums: Array

    def limited(self, *quantities: str) -> bool:
        """Whether any of these quantities has a limit."""
        return any(bool((self.largest[quantity] < np.inf).any()) for quantity in quantities)

    @property
    def quantities(self) -> list[str]:
        """Those with a limit, except the position."""
        return [quantity for quantity in self.largest if self.limited(quantity)]

    @property
    def of_motors(self) -> bool:
        """Whether any motor has limits."""
        return self.limited("motor_effort", *(f"motor_{name}" for name in SHAFT_UNITS))


def joint_limits(robot: Robot, limits: GivenLimits | None) -> dict[str, Limits]:
    """Limits of all joints by name, in the order of the robot.

    Args:
        robot: the robot, with those of its file.
        limits: by name of joint, in place of these: numbers by name of attribute of :class:`.Limits`, such as
            ``{"velocity": 1.0}``, or ``Limits`` in place of all of the joint's.

    Raises:
        TrajectoryError: a joint or a limit is unknown, or not usable.
    """
    by_joint = {joint.name: joint.limits for joint in robot.joints}
    for name, entry in mapping({} if limits is None else limits, "limits", "names of joints", TrajectoryError).items():
        if name not in by_joint:
            raise TrajectoryError(f"limits of unknown joint {name!r}; {robot.name} has {', '.join(by_joint)}")
        given = vars(entry) if isinstance(entry, Limits) else entry
        of = "their names to numbers, such as {'velocity': 1.0}, or Limits"
        for quantity, value in mapping(given, f"limits of {name!r}", of, TrajectoryError).items():
            if quantity not in vars(NO_LIMITS):
                raise TrajectoryError(f"{name}: no limit is named {quantity!r}; {hint(quantity, vars(NO_LIMITS))}")
            rule, unlimited = "finite" if quantity in _ENDS else "not negative", getattr(NO_LIMITS, quantity)
            number_by_rule(value, f"{name}: limit {quantity}", TrajectoryError, rule=rule, unlimited=unlimited)
        by_joint[name] = new = replace(by_joint[name], **given)
        if new.lower > new.upper:
            raise TrajectoryError(f"{name}: lower {new.lower:g} must not exceed upper {new.upper:g}")
    return by_joint


def bounds(arm: ElasticArm, limits: GivenLimits | None = None) -> Bounds:
    """Limits of an arm, including those of mimic joints.

    Args:
        arm: the arm.
        limits: as of :func:`joint_limits`, whose errors it raises.
    """
    require_arm(arm)
    return _own_bounds(arm) if limits is None else _bounds(arm, limits)


@lru_cache(maxsize=8)  # each check of a trajectory asks for them
def _own_bounds(arm: ElasticArm) -> Bounds:
    return _bounds(arm, None)


def _bounds(arm: ElasticArm, limits: GivenLimits | None) -> Bounds:
    joints, by_joint = arm.robot.joints, joint_limits(arm.robot, limits)
    every = tuple(by_joint)
    names, largest = {"position": every}, {}
    limited = dict.fromkeys(_RATES, every) | dict.fromkeys(("effort", "effort_rate"), arm.robot.joint_names)
    for quantity, of in limited.items():
        names[quantity], largest[quantity] = of, np.array([getattr(by_joint[name], quantity) for name in of])
    for quantity in ("speed", "torque", "current", "voltage"):
        names[f"motor_{quantity}"] = arm.motor_names
        limit = getattr(arm.motor, f"{quantity}_limit")
        largest[f"motor_{quantity}"] = np.broadcast_to(np.asarray(limit, dtype=float), (len(arm.motor_names),))
    sums = np.array(arm.side.motor_sums(list(np.eye(len(arm.motor_names)))))
    moves, own = sums != 0, np.isfinite(own_efforts(arm))
    ideal = np.array([arm.side.is_ideal(joint) for joint in arm.motor_joint])
    motor_effort = np.where((moves & ~own).any(axis=1), largest["effort"], np.inf)
    largest["motor_effort"] = np.where((moves & ~ideal).any(axis=1), motor_effort, np.inf)
    of_joints = (np.flatnonzero(arm.motor_joint == joint) for joint in range(arm.robot.n))
    names["motor_effort"] = tuple("+".join(arm.motor_names[i] for i in motors) for motors in of_joints)
    lower, upper = (np.array([getattr(by_joint[name], side) for name in every]) for side in _ENDS)
    types = {joint.name: joint.type for joint in joints}
    owned = names | {"motor_effort": arm.robot.joint_names}
    units = {
        quantity: tuple(at_joint(text, types[name]) if quantity in _OF_JOINTS else text for name in owned[quantity])
        for quantity, text in UNITS.items()
    }
    owners = [arm.robot.joint_names[i] for i in arm.motor_joint]
    names["effort_rms"], units["effort_rms"] = arm.motor_names, tuple(unit("effort", types[name]) for name in owners)
    effort_rms = np.array([by_joint[name].effort_rms for name in owners])
    return Bounds(names, units, largest, lower, upper, effort_rms, motor_effort, sums)


def own_efforts(arm: ElasticArm) -> Array:
    """Largest effort of each motor (m,) by its own limits of torque and current, link side, N m or N."""
    motor = arm.motor
    torque = np.fmin(motor.torque_limit, np.abs(np.multiply(motor.current_limit, motor.torque_constant)))
    return np.asarray(np.abs(arm.gear_ratio) * torque)


def independent_limits(robot: Robot, limits: Bounds) -> tuple[Array, Array, Array]:
    """Ends of the ranges of the independent joints (n,), and their largest velocity, acceleration and jerk (3, n).

    Limits of mimic joints are included, as limits of their leaders.
    """
    ratios = np.abs(robot.coupling[0])
    with np.errstate(divide="ignore"):
        rates = np.array([np.min(limits.largest[name][:, None] / ratios, axis=0) for name in _RATES])
    return *independent_ranges(robot, limits.lower, limits.upper), rates


class LimitCheck:
    """Limits of joints and motors, arranged to check one state in some microseconds.

    All limits but that of the voltage are ranges of single entries of a row q … qdddd, tau … taudd, theta, thetad,
    thetadd, tau_m (8n + 4m,); so is the limit of a mimic joint, for its leader. A row within these ranges violates
    nothing; only for others are violations determined.

    Attributes:
        limited: whether there is any limit.
        has_voltage: whether the voltage is limited, which is not a range of a single entry.
        lower, upper: ends of the ranges (8n + 4m,), infinite where there is no limit.
        voltage: largest voltage of the motors (m,), V; infinite where there is no limit.
        most_effort: largest effort of the joints (n,), N m or N, to which efforts are clipped.
        motor_effort: the same of the motors at each joint, see :class:`Bounds`.
        turn: distance of positions beyond their range (n,) from which on they are refused, rad; infinite for lengths.
    """

    def __init__(self, arm: ElasticArm) -> None:
        self._arm, self._bounds = arm, bounds(arm)
        self.has_voltage = bool(np.isfinite(arm.motor.voltage_limit).any())
        self.lower, self.upper = self._ranges()
        self.voltage = np.broadcast_to(np.asarray(arm.motor.voltage_limit, dtype=float), arm.motor_joint.shape)
        self.most_effort = np.ascontiguousarray(self._bounds.largest["effort"])
        self.motor_effort = self._bounds.motor_effort * (1 + TOLERANCE)
        rotary = [joint.type != "prismatic" for joint in arm.robot.independent_joints]
        self.turn = np.where(rotary, TURN, np.inf)
        self.limited = self.has_voltage or bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def prepare(self) -> None:
        """Compile everything that checks, reports and clips, so that the first violation causes no delay."""
        if self.limited:
            _ = self._violations, self._clip
            for name, details in (("shafts", {"clip": False}), ("drive", {})):
                self._arm.functions.call(name, **details)

    @property
    def rate_limits(self) -> Array:
        """Limits of velocity, acceleration and jerk of the joints (3, n), mimic joints included.

        A joint has at most the velocity of its motors at their speed limit, through the transmission.
        """
        arm, n, m = self._arm, self._arm.robot.n, len(self.voltage)
        rates = self.upper[n : 4 * n].reshape(3, n).copy()
        sides = np.abs(arm.side.joint_sides(list(np.eye(m))))
        speeds = self.upper[-3 * m : -2 * m]
        of_sides = [float(np.sum(row[row > 0] * speeds[row > 0])) for row in sides]
        np.minimum.at(rates[0], arm.motor_joint, of_sides)
        return rates

    @property
    def unclipped(self) -> list[str]:
        """Names of the joints whose effort no limit of the joint, and of its motors, clips."""
        arm, m = self._arm, len(self.voltage)
        bounded = np.isfinite(self.most_effort)
        bounded[arm.motor_joint[np.isfinite(self.upper[-m:]) | np.isfinite(self.voltage)]] = True
        return [name for name, limited in zip(arm.robot.joint_names, bounded, strict=True) if not limited]

    def violated(self, rows: Array) -> np.bool_ | NDArray[np.bool_]:
        """Whether states with their commands (…, 8n + 4m) violate a limit; shape (…,)."""
        return self._violations(rows)[0][..., 0] > 0

    def far(self, q: Array) -> NDArray[np.bool_]:
        """Which positions (…, n) are more than a turn beyond their range, the one of joints that follow included."""
        n = self._arm.robot.n
        return (q < self.lower[:n] - self.turn) | (q > self.upper[:n] + self.turn)

    def refuse_far(self, q: Array) -> None:
        """Raise StateError for a position (n,) that is more than a turn beyond its range."""
        for i in np.flatnonzero(self.far(q))[:1]:
            raise StateError(
                f"position of {self._arm.robot.joint_names[i]} is {q[i]:.4g} rad, its range {self.lower[i]:.4g} to "
                f"{self.upper[i]:.4g} rad, {IN_DEGREES}; set limits to ignore to take it all the same"
            )

    @cached_property
    def _violations(self) -> Callable[[Array], tuple[Array, ...]]:
        """Number of limits that rows violate; compiled at first use."""
        ranges = tuple(zip(self.lower.tolist(), self.upper.tolist(), strict=True))
        limits = {"voltage": self.voltage, "sums": self._bounds.largest["motor_effort"] * (1 + TOLERANCE)}
        return self._arm.functions.call(
            "violations", ranges=ranges, **{name: tuple(x.tolist()) for name, x in limits.items()}
        )

    def violations(self, states: Array | Sequence[Array], command: Feedforward) -> tuple[LimitViolation, ...]:
        """Worst violation of each quantity of each joint and motor, the worst first.

        Args:
            states: q, qd, qdd, qddd and possibly more, each (n,) or (N, n).
            command: the feedforward of the states.
        """
        limits = self._bounds
        E, e = self._arm.robot.coupling
        worst = limit_violations(
            limits.names["position"],
            "position",
            limits.units["position"],
            states[0] @ E.T + e,
            limits.lower - TOLERANCE * np.abs(limits.lower),
            limits.upper + TOLERANCE * np.abs(limits.upper),
        )
        values = {name: x @ E.T for name, x in zip(_RATES, states[1:4], strict=True)}
        values |= {"effort": command.tau, "effort_rate": command.taud}
        values["motor_effort"] = command.motor_effort @ limits.motor_sums.T
        for name, x in values.items():
            most = limits.largest[name] * (1 + TOLERANCE)
            worst += limit_violations(limits.names[name], name, limits.units[name], x, -most, most)
        worst += self._arm.drive(command).exceeded
        return tuple(sorted(worst, key=lambda violation: -violation.ratio))

    def clipped(self, command: Feedforward) -> Feedforward:
        """The command with tau and tau_m clipped to the limits of effort, and of torque, current and voltage.

        What motors of a joint exceed its limit by is taken from them in equal parts.
        """
        tau, effort = self._clip(command.tau, command.motor_velocity, command.motor_effort)
        return command._replace(tau=tau, motor_effort=effort)

    @cached_property
    def _clip(self) -> Callable[..., tuple[Array, ...]]:
        """Clipped efforts of joints and motors; compiled at first use."""
        most, sums = self.most_effort.tolist(), self.motor_effort.tolist()
        return self._arm.functions.call("clipped_efforts", most=tuple(most), sums=tuple(sums))

    def _ranges(self) -> tuple[Array, Array]:
        """Lower and upper end (8n + 4m,) for each entry of a row."""
        arm, limits = self._arm, self._bounds
        n, m = arm.robot.n, len(arm.motor_names)
        upper = np.full((8, n), np.inf)
        start, upper[0], upper[1:4] = independent_limits(arm.robot, limits)
        upper[5], upper[6] = limits.largest["effort"], limits.largest["effort_rate"]
        lower = np.vstack((start, -upper[1:]))
        motors = np.full((4, m), np.inf)
        motors[1] = arm.motor.speed_limit / np.abs(arm.gear_ratio)
        motors[3] = own_efforts(arm)
        ends = np.concatenate((lower.ravel(), -motors.ravel())), np.concatenate((upper.ravel(), motors.ravel()))
        return ends[0] - TOLERANCE * np.abs(ends[0]), ends[1] + TOLERANCE * np.abs(ends[1])
