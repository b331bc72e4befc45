# SPDX-License-Identifier: Apache-2.0
"""A recording as arrays, by topic, with deviations, interruptions and limit utilization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from ...arrays import Array
from ...control.settings import Status
from ...elastic import ElasticArm
from ...elastic.bounds import Bounds, bounds
from ...elastic.limit_violations import beyond, nearest_end, range_ratio
from ...robot import Robot
from ...trajectory.limits import Peak
from ...units import unit
from ..quantity_text import milli
from ..recordings import Stream

_MOTION = ("position", "velocity", "acceleration", "jerk")
_REACH = 5.0  # a measured sample is compared if it is within this many usual intervals of a setpoint

DOING = {
    Status.STOPPING: "bring the arm to rest",
    Status.RAMPING: "fade efforts to zero",
    Status.HELD: "repeat an earlier one",
}
"""What commands of a status do after a loss of setpoints."""

_ANSWERING_NONE = [status.value for status in DOING]


@dataclass(frozen=True)
class Deviation:
    """A quantity minus its measurement, at the times of measurement.

    Attributes:
        t: (N,) s.
        names: of the joints (n,).
        value: (N, n); NaN where either is unknown.
    """

    t: Array
    names: tuple[str, ...]
    value: Array

    @property
    def rms(self) -> Array:
        """(n,) root mean square; NaN for a joint without a known deviation."""
        return _of_known(self.value, lambda x: np.sqrt(np.mean(x**2)))

    @property
    def peak(self) -> Array:
        """(n,) largest absolute value."""
        return _of_known(self.value, lambda x: np.max(np.abs(x)))

    @property
    def mean(self) -> Array:
        """(n,) mean."""
        return _of_known(self.value, np.mean)


@dataclass(frozen=True)
class Interruption:
    """Consecutive commands that do not answer setpoints, for one reason.

    Attributes:
        status: of the commands.
        start, end: times of the first of them and of the command after them, s.
        count: number of commands.
        lost: whether setpoints were lost: the arm is brought to rest in this phase, or in one that joins it.
        begins: whether it is the first phase of a loss.
    """

    status: Status
    start: float
    end: float
    count: int
    lost: bool
    begins: bool


def _of_known(values: Array, what: Callable[[Array], Any]) -> Array:
    columns = (column[~np.isnan(column)] for column in values.T)
    return np.array([what(column) if len(column) else np.nan for column in columns])


@dataclass(frozen=True)
class Record:
    """One recording, as a report shows it.

    Attributes:
        name: of the bag.
        robot: for units and limits; None if unknown.
        setpoint: position … snap, commanded or fitted to measured positions.
        command: effort, effort_rate, effort_acceleration of the joints.
        motors: motor_position, motor_velocity, motor_acceleration, motor_effort.
        measured: position, velocity, effort of the joints.
        status: of the commands, as a stream of one name, ``status``.
        computed_note: a sentence on what was computed instead of recorded; empty if nothing.
        notes: warnings, one line each.
        unread: those on messages that could not be read.
    """

    name: str
    robot: Robot | None = None
    setpoint: Stream | None = None
    command: Stream | None = None
    motors: Stream | None = None
    measured: Stream | None = None
    status: Stream | None = None
    computed_note: str = ""
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that have messages."""
        return tuple(filter(None, (self.setpoint, self.command, self.motors, self.measured)))

    @cached_property
    def arm(self) -> ElasticArm | None:
        """The arm of the robot; None if it is unknown."""
        return None if self.robot is None else ElasticArm(self.robot)

    @cached_property
    def is_rigid(self) -> bool:
        """Whether the robot is known and its motors move with its links."""
        if self.robot is None or self.robot.coupled_stiffness is not None:
            return False
        return all(joint.spring.is_rigid for joint in self.robot.joints)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """All joints named in messages: those of the robot first, in its order, then others, then motors."""
        known = () if self.robot is None else self.robot.joint_names
        named = [name for stream in self.streams for name in stream.names]
        return tuple(dict.fromkeys([name for name in known if name in named] + named))

    @cached_property
    def origin(self) -> int:
        """Zero of the time axis: the first stamp, ns."""
        return min(int(stream.stamp[0]) for stream in self.streams)

    def units(self, quantity: str, names: Sequence[str]) -> tuple[str, ...]:
        """Units of a position, its thousandth or an effort, by joint or motor; revolute if the robot is unknown."""
        if quantity == "milliposition":
            return milli(self.units("position", names))
        types = {} if self.robot is None else {joint.name: joint.type for joint in self.robot.independent_joints}
        # Motors of an antagonistic pair have the name of their joint with a suffix.
        joints = (name.removesuffix("_agonist").removesuffix("_antagonist") for name in names)
        return tuple(unit(quantity, types.get(joint, "revolute")) for joint in joints)

    def t(self, stream: Stream) -> Array:
        """Return the stamps of a stream since the origin (N,), s."""
        return stream.seconds(self.origin)

    @cached_property
    def position_deviation(self) -> Deviation | None:
        """Setpoint minus measured position; None if either is missing."""
        return self._deviation(self.setpoint, "position")

    @cached_property
    def effort_deviation(self) -> Deviation | None:
        """Commanded minus measured effort; None if either is missing."""
        return self._deviation(self.command, "effort")

    def _deviation(self, stream: Stream | None, field: str) -> Deviation | None:
        """A field of a stream minus the measured one.

        The stream is interpolated linearly at the times of measurement: exact where stamps agree, else with an error of
        at most h²/8 times the second derivative, for samples h apart; it is unknown outside, and within pauses.
        """
        measured = self.measured
        if not (stream and measured and field in stream.values and field in measured.values):
            return None
        names = tuple(name for name in stream.names if name in measured.names)
        values, theirs = stream.ordered(names).values[field], measured.ordered(names).values[field]
        t, wanted = self.t(stream), self.t(measured)
        interpolated = np.column_stack([np.interp(wanted, t, x, left=np.nan, right=np.nan) for x in values.T])
        if len(t) > 1:
            after = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
            pause = t[after] - t[after - 1] > _REACH * np.median(np.diff(t))
            interpolated[pause & (wanted != t[after]) & (wanted != t[after - 1])] = np.nan
        difference = interpolated - theirs
        return None if np.isnan(difference).all() else Deviation(wanted, names, difference)

    @cached_property
    def spring_deflection(self) -> tuple[Array, tuple[str, ...], Array] | None:
        """Times (N,), joints (n,) and motor minus link position (N, n) at common stamps; None if there are none."""
        if not (self.setpoint and "position" in self.setpoint.values):
            return None
        if not (self.motors and "motor_position" in self.motors.values):
            return None
        names = tuple(name for name in self.setpoint.names if name in self.motors.names)
        _, links, motors = np.intersect1d(self.setpoint.stamp, self.motors.stamp, return_indices=True)
        if not names or not len(links):
            return None
        theta = self.motors.ordered(names).values["motor_position"][motors]
        q = self.setpoint.ordered(names).values["position"][links]
        return self.t(self.motors)[motors], names, theta - q

    @cached_property
    def latency(self) -> tuple[Array, Array] | None:
        """Times (N,) and recorded delays from setpoint to command (N,), s; None if either is missing."""
        if not (self.setpoint and self.command and self.setpoint.is_recorded and self.command.is_recorded):
            return None
        _, setpoints, commands = np.intersect1d(self.setpoint.stamp, self.command.stamp, return_indices=True)
        if not len(setpoints):
            return None
        taken = self.command.recorded[commands] - self.setpoint.recorded[setpoints]
        return self.t(self.setpoint)[setpoints], np.multiply(taken, 1e-9, dtype=float)

    def intervals(self, stream: Stream) -> tuple[Array, Array]:
        """Return times (N - 1,) and the differences of stamps to the previous message (N - 1,), s."""
        return self.t(stream)[1:], np.diff(stream.stamp) * 1e-9

    @cached_property
    def interruptions(self) -> list[Interruption]:
        """The phases in which commands do not answer setpoints, in order."""
        if self.status is None:
            return []
        t, status = self.t(self.status), self.status.values["status"][:, 0]
        cuts = [0, *(np.flatnonzero(np.diff(status)) + 1).tolist(), len(status)]
        phases_of_loss: list[Interruption] = []
        for unanswered, group in groupby(pairwise(cuts), key=lambda phase: status[phase[0]] in _ANSWERING_NONE):
            phases = list(group) if unanswered else []  # without a fresh command between them
            lost = any(status[start] != Status.HELD.value for start, _ in phases)
            for k, (start, end) in enumerate(phases):
                what, until = Status(int(status[start])), float(t[min(end, len(t) - 1)])
                phases_of_loss.append(Interruption(what, float(t[start]), until, end - start, lost, lost and k == 0))
        return phases_of_loss

    @cached_property
    def duration(self) -> float:
        """Time from the first stamp to the last, s."""
        return max(float(self.t(stream)[-1]) for stream in self.streams)


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
    peaks: list[Peak] = []
    for stream, quantities in ((motion, _MOTION), (efforts, ("effort", "effort_rate"))):
        for what in quantities:
            if stream is not None and what in stream.values and (what == "position" or limits.limited(what)):
                values = _of_joints(arm.robot, stream, what, limits.names[what])
                peaks += _of_values(limits, what, record.t(stream), values)
    if record.motors is not None and limits.of_motors:
        for what, values in _of_motors(arm, record.motors).items():
            peaks += _of_values(limits, what, record.t(record.motors), values)
    return sorted(peaks, key=lambda use: -use.ratio)


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
    if name not in stream.names or field not in stream.values:
        return np.full(len(stream), np.nan)
    return stream.values[field][:, stream.names.index(name)]


def _of_values(limits: Bounds, what: str, t: Array, values: Array) -> list[Peak]:
    peaks = []
    for k, (name, (lower, upper)) in enumerate(_ranges(limits, what).items()):
        x = values[:, k]
        if not np.isfinite([lower, upper]).any() or np.isnan(x).all():
            continue
        distance = beyond(x, lower, upper)
        most = int(np.argmax(distance))
        value, ratio = float(x[most]), range_ratio(distance[most], lower, upper)
        limit = nearest_end(value, lower, upper)
        peaks.append(Peak(what, name, limits.units[what][k], value, limit, ratio, float(t[most]), most))
    return peaks


def percent_used(peak: Peak) -> str:
    """Return the utilization of a limit in words; a one-sided range is 0% or ``exceeded``."""
    return f"{peak.ratio:.0%}" if peak.ratio < np.inf else "exceeded"
