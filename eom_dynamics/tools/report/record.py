# SPDX-License-Identifier: Apache-2.0
"""A recording as arrays, by topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...bags import message_blocks
from ...elastic import ElasticArm
from ...robot import Robot
from ...units import unit
from ..quantity_text import effort_units, milli, position_units
from .findings import Deviation, Interruption, interpolated, interruptions

Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """N messages of one topic, in the order of their stamps.

    Attributes:
        topic: its name; of computed samples a description.
        stamp: (N,) times of the headers, ns.
        recorded: (N,) times of recording, ns.
        names: of the joints or motors (n,).
        values: (N, n) by field of the message, SI units; NaN where a message lacks it.
        is_recorded: False if the samples were computed from other messages.
        is_fitted: whether they are a fit to measured positions.
    """

    topic: str
    stamp: Nanoseconds
    recorded: Nanoseconds
    names: tuple[str, ...]
    values: Mapping[str, Array]
    is_recorded: bool = True
    is_fitted: bool = False

    def __len__(self) -> int:
        return len(self.stamp)

    def ordered(self, names: tuple[str, ...]) -> Stream:
        """Select and order the columns by ``names``, all of which the stream has."""
        columns = [self.names.index(name) for name in names]
        values = {field: values[:, columns] for field, values in self.values.items()}
        return replace(self, names=names, values=values)


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
        everything = (self.setpoint, self.command, self.motors, self.measured)
        return tuple(stream for stream in everything if stream)

    @cached_property
    def arm(self) -> ElasticArm | None:
        """The arm of the robot; None if it is unknown."""
        return None if self.robot is None else ElasticArm(self.robot)

    @cached_property
    def is_rigid(self) -> bool:
        """Whether the robot is known and its motors move with its links."""
        robot = self.robot
        rigid = robot is not None and robot.coupled_stiffness is None
        return rigid and robot is not None and all(joint.spring.is_rigid for joint in robot.joints)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """All joints named in messages: those of the robot first, in its order, then others, then motors."""
        known = [] if self.robot is None else list(self.robot.joint_names)
        named = [name for stream in self.streams for name in stream.names]
        return tuple(dict.fromkeys([name for name in known if name in named] + named))

    @cached_property
    def origin(self) -> int:
        """Zero of the time axis: the first stamp, ns."""
        return min(int(stream.stamp[0]) for stream in self.streams)

    def t(self, stream: Stream) -> Array:
        """Return the stamps of a stream since the origin (N,), s."""
        since: Array = np.multiply(stream.stamp - self.origin, 1e-9, dtype=float)
        return since

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
        at most h²/8 times the second derivative, for samples h apart.
        """
        measured = self.measured
        if stream is None or measured is None or not len(stream) or not len(measured):
            return None
        if field not in stream.values or field not in measured.values:
            return None
        names = tuple(name for name in stream.names if name in measured.names)
        values, theirs = stream.ordered(names).values[field], measured.ordered(names).values[field]
        difference = interpolated(self.t(stream), values, self.t(measured)) - theirs
        return None if np.isnan(difference).all() else Deviation(self.t(measured), names, difference, theirs)

    @cached_property
    def spring_deflection(self) -> tuple[Array, tuple[str, ...], Array] | None:
        """Times (N,), joints (n,) and motor minus link position (N, n) at common stamps; None if there are none."""
        if self.setpoint is None or self.motors is None:
            return None
        if "position" not in self.setpoint.values or "motor_position" not in self.motors.values:
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
        if self.setpoint is None or self.command is None:
            return None
        if not (self.setpoint.is_recorded and self.command.is_recorded):
            return None
        _, setpoints, commands = np.intersect1d(self.setpoint.stamp, self.command.stamp, return_indices=True)
        if not len(setpoints):
            return None
        taken = self.command.recorded[commands] - self.setpoint.recorded[setpoints]
        return self.t(self.setpoint)[setpoints], np.multiply(taken, 1e-9, dtype=float)

    def intervals(self, stream: Stream) -> tuple[Array, Array]:
        """Return times (N - 1,) and the differences of stamps to the previous message (N - 1,), s."""
        apart: Array = np.diff(stream.stamp) * 1e-9
        return self.t(stream)[1:], apart

    @cached_property
    def interruptions(self) -> list[Interruption]:
        """The phases in which commands do not answer setpoints, in order."""
        stream = self.status
        return [] if stream is None else interruptions(self.t(stream), stream.values["status"][:, 0])

    @cached_property
    def duration(self) -> float:
        """Time from the first stamp to the last, s."""
        return max(float(self.t(stream)[-1]) for stream in self.streams)


def joined(topic: str, parts: Sequence[Stream], *, is_recorded: bool = True, is_fitted: bool = False) -> Stream:
    """Join messages into one stream, in the order of their stamps, or of recording if no message has a stamp.

    If messages name different joints, the stream has all of them, with NaN where a message lacks one.
    """
    names, values = message_blocks.joined([(len(part), part.names, part.values) for part in parts])
    recorded = np.concatenate([part.recorded for part in parts])
    stamp = np.concatenate([part.stamp for part in parts])
    order = np.argsort(stamp if stamp.any() else recorded, kind="stable")
    values = {field: x[order] for field, x in values.items()}
    recorded = recorded[order]
    return Stream(topic, stamp[order] if stamp.any() else recorded, recorded, names, values, is_recorded, is_fitted)


_PAIR = ("_agonist", "_antagonist")


class Units:
    """Units by joint; those of revolute joints if the robot is unknown."""

    def __init__(self, record: Record) -> None:
        robot = record.robot
        names = () if robot is None else robot.joint_names
        self._position = {} if robot is None else dict(zip(names, position_units(robot), strict=True))
        self._effort = {} if robot is None else dict(zip(names, effort_units(robot), strict=True))

    def position(self, joints: Sequence[str], suffix: str = "") -> tuple[str, ...]:
        """Return rad or m for each joint or motor, with a suffix such as ``/s``."""
        return tuple(self._position.get(_joint(name), unit("position")) + suffix for name in joints)

    def milli(self, joints: Sequence[str]) -> tuple[str, ...]:
        """Return mrad or mm for each joint."""
        return milli(self.position(joints))

    def effort(self, joints: Sequence[str], suffix: str = "") -> tuple[str, ...]:
        """Return N m or N for each joint or motor, with a suffix."""
        return tuple(self._effort.get(_joint(name), unit("effort")) + suffix for name in joints)


def _joint(motor: str) -> str:
    """Return the joint of a motor: of the same name, or without the suffix of an antagonistic pair."""
    return next((motor[: -len(end)] for end in _PAIR if motor.endswith(end)), motor)
