# SPDX-License-Identifier: Apache-2.0
"""Recordings as arrays: streams of messages, and motors in SI units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..control.fields import EFFORT_FIELDS, MEASURED_FIELDS, MOTOR_FIELDS, STATE_FIELDS
from ..elastic import DriveState, ElasticArm
from ..recordings.bags import Bag, BagError, Topic
from ..recordings.bags.layout import read_blocks
from ..recordings.bags.types import COMMAND, JOINT_STATE, SETPOINT
from ..robot import Robot
from ..spelling import duplicates, listed

_MOTOR_TOPICS = ("motor_setpoint", "motor_states")  # both are JointStates: of the node, and of a simulated robot
# Endings of topics of JointState that were sent: those of the node, and by default others.
_SENT = (_MOTOR_TOPICS[0], "setpoint", "setpoints", "command", "commands", "desired")


@dataclass(frozen=True)
class Stream:
    """N messages of one topic, or rows of a table.

    Attributes:
        topic: its name.
        stamp: (N,) times of the headers, ns; those of recording if no message has a stamp.
        recorded: (N,) times of recording, ns.
        names: of the joints or motors (n,).
        values: (N, n) by field of the message, SI units; NaN where a message lacks it.
        unreadable: number of messages or rows that could not be read, and are left out.
    """

    topic: str
    stamp: NDArray[np.int64]
    recorded: NDArray[np.int64]
    names: tuple[str, ...]
    values: Mapping[str, Array]
    unreadable: int = 0

    def __len__(self) -> int:
        return len(self.stamp)

    def __getitem__(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Stream:
        values = {field: values[rows] for field, values in self.values.items()}
        return replace(self, stamp=self.stamp[rows], recorded=self.recorded[rows], values=values)

    def ordered(self, names: tuple[str, ...]) -> Stream:
        """Select and order the columns by ``names``, all of which the stream has."""
        columns = [self.names.index(name) for name in names]
        values = {field: values[:, columns] for field, values in self.values.items()}
        return replace(self, names=names, values=values)

    def seconds(self, origin: int) -> Array:
        """Stamps (N,) since another one, s."""
        return np.multiply(self.stamp - origin, 1e-9, dtype=float)


# By type of message and kind of stream: the field with the names of joints or motors, and fields of numbers.
_STREAMS: Mapping[str, Mapping[str, tuple[str, Sequence[str]]]] = {
    SETPOINT: {"setpoint": ("joint_names", STATE_FIELDS)},
    COMMAND: {
        "command": ("joint_names", EFFORT_FIELDS),
        "motors": ("motor_names", MOTOR_FIELDS),
        "status": ("", ("status",)),
    },
    JOINT_STATE: {"measured": ("name", MEASURED_FIELDS)},
}


def read_streams(
    bag: Bag, topic: Topic, renamed: Callable[[Sequence[str]], Sequence[str]] = tuple
) -> tuple[dict[str, Stream], list[str]]:
    """Read the streams of a topic by kind, without fields of another length, and why messages cannot be read.

    Kinds are ``setpoint``; ``command``, ``motors`` and ``status``, of one name; or ``measured``. ``renamed`` returns
    the names of joints or motors for recorded ones.
    """
    parts: dict[str, list[Stream]] = {}
    unreadable: list[str] = []
    for block in read_blocks(bag, topic, lambda reason, time: unreadable.append(reason)):
        stamps = block.stamps()
        for kind, (named, fields) in _STREAMS[topic.type].items():
            names = tuple(renamed(getattr(block.message, named))) if named else (kind,)
            if twice := duplicates(names):
                unreadable.extend([f"{named}: {listed(twice)} listed twice"] * len(block))
                continue
            values = block.values(fields, len(names))
            parts.setdefault(kind, []).append(Stream(topic.name, stamps.header, stamps.recorded, names, values))
    return {kind: joined(topic.name, of_kind) for kind, of_kind in parts.items()}, unreadable


def joined(topic: str, parts: Sequence[Stream]) -> Stream:
    """Join parts of a stream; it has all joints that any of them names, with NaN where a message lacks one."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    stamp, recorded = (
        np.concatenate([np.zeros(0, dtype=np.int64), *times])
        for times in ([part.stamp for part in parts], [part.recorded for part in parts])
    )
    fields = {field: np.full((len(stamp), len(names)), np.nan) for part in parts for field in part.values}
    start = 0
    for part in parts:
        rows = slice(start, start := start + len(part))
        columns = [names.index(name) for name in part.names]
        for field, numbers in part.values.items():
            fields[field][rows, columns] = numbers
    return Stream(topic, stamp if stamp.any() else recorded, recorded, names, fields)


def is_motor_topic(topic: Topic) -> bool:
    """Whether a topic of JointState has positions of motors rather than links, judged by its name."""
    return topic.type == JOINT_STATE and topic.name.endswith(_MOTOR_TOPICS)


def is_sent(topic: Topic) -> bool:
    """Whether a topic of JointState is ``motor_setpoint``, of the node's commands."""
    return topic.type == JOINT_STATE and topic.name.endswith(_SENT[0])


def measured_states(bag: Bag) -> list[Topic]:
    """The topics of JointState, but those of commands, judged by their names."""
    return [topic for topic in bag.topics if topic.type == JOINT_STATE and not topic.name.endswith(_SENT)]


def topics_of_states(bag: Bag, name: str | None = None, option: str = "--topic") -> list[Topic]:
    """The topics of measured joint states, of a name if an ``option`` gives one; raises BagError if there are none."""
    topics = [topic for topic in (bag.topics if name is None else bag.named(name)) if topic.type == JOINT_STATE]
    if not topics:
        wanted = f"topic {name}" if name else "topic"
        raise BagError(f"{bag.path}: has no {wanted} of type {JOINT_STATE}; it has {bag.topics_in_words}")
    if measured := measured_states(bag) if name is None else [topic for topic in topics if not is_sent(topic)]:
        return measured
    raise BagError(
        f"{bag.path}: {listed(topic.name for topic in topics)} has commands, not measurements; record joint_states, or "
        f"name the topic of what was measured, {option}; it has {bag.topics_in_words}"
    )


def only_one(bag: Bag, topics: Sequence[Topic], kind: str, option: str) -> Topic:
    """The topic of this kind; raises BagError if there are several, of which an option names one."""
    names = sorted({topic.name for topic in topics})
    if len(names) > 1:
        raise BagError(f"{bag.path}: has {len(names)} topics {kind}; name one of them, {option}: {listed(names)}")
    if len(topics) > 1:
        raise BagError(f"{bag.path}: topic {names[0]} was recorded with several definitions; split the bag by them")
    return topics[0]


def arm_with_own_drives(robot: Robot | None) -> ElasticArm | None:
    """The arm of a robot whose drives have units of their own; None for other robots."""
    return ElasticArm(robot, backend="numpy") if robot is not None and robot.has_own_drives else None


def in_si_units(
    arm: ElasticArm | None, topic: Topic, names: Sequence[str], values: Mapping[str, Array], *, of_motors: bool = False
) -> dict[str, Array]:
    """Convert the fields of a JointState, each (N, length), of motors of an arm to SI units on the link side.

    Efforts of a topic ``motor_setpoint`` were sent: those that the robot adds itself are added, at the positions of the
    motors brought to the joints; they are NaN where these are unknown. Others are measured, and whole. Motors that are
    not named count as at rest at zero, those of others are left as they are.

    Args:
        arm: see :func:`arm_with_own_drives`; None for no conversion.
        of_motors: whether the topic is of motors whatever its name.
    """
    result = dict(values)
    converted = is_motor_topic(topic) or (of_motors and topic.type == JOINT_STATE)
    if arm is None or not values or not converted:
        return result
    motors = [k for k, name in enumerate(arm.motor_names) if name in names]
    if not motors:
        return result
    columns = [list(names).index(arm.motor_names[k]) for k in motors]
    shape = len(next(iter(values.values()))), len(arm.motor_names)
    # In the place of unknown numbers: those of drives at zero, which has an offset.
    numbers = [x.copy() for x in arm.drive_report(DriveState(*np.zeros((len(MEASURED_FIELDS), *shape))))]
    known = np.zeros((len(MEASURED_FIELDS), shape[0], len(motors)), dtype=bool)
    for k, name in enumerate(MEASURED_FIELDS):
        if name in values:
            recorded = values[name][:, columns]
            known[k] = np.isfinite(recorded)
            numbers[k][:, motors] = np.where(known[k], recorded, numbers[k][:, motors])
    state = arm.drive_state(*numbers)
    if is_sent(topic):
        # References are those of the age of the drives' feedback.
        theta = state.motor_position + arm.robot.drive_feedback_delay.position * state.motor_velocity
        state = state._replace(motor_position=theta)
        if added := arm.robot.compensated_by_robot:
            at = joints_of_motors(arm, state.motor_position), joints_of_motors(arm, state.motor_velocity)
            state = state._replace(motor_effort=arm.drive_state(*numbers, sent_at=at).motor_effort)
            known[2] &= np.all(known[: 1 if added == ("gravity",) else 2], axis=(0, 2), keepdims=True)[0]
    for name, is_known, x in zip(MEASURED_FIELDS, known, state, strict=True):
        if name in values:
            result[name] = values[name].copy()
            result[name][:, columns] = np.where(is_known, x[:, motors], np.nan)
    return result


def joints_of_motors(arm: ElasticArm, x: Array) -> Array:
    """Joint positions (N, n), or rates, of motors (N, m) on undeflected springs; of two motors their mean."""
    sides = np.transpose(arm.side.joint_sides(list(x.T)))
    return np.column_stack([sides[:, arm.motor_joint == joint].mean(axis=1) for joint in range(arm.robot.n)])
