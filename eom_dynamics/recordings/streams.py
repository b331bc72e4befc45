# SPDX-License-Identifier: Apache-2.0
"""Topics of a bag, chosen and read as arrays, with a robot's joint names, in SI units; counts of unusable messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..control.fields import EFFORT_FIELDS, MEASURED_FIELDS, MOTOR_FIELDS, MOTOR_SETPOINT_FIELDS, STATE_FIELDS
from ..elastic import DriveState, ElasticArm
from ..robot import Robot
from ..spelling import duplicates, listed, without_numbers
from . import DEFAULT, Conventions
from .bags import Bag, BagError, Topic
from .bags.layout import MessageBlock, read_blocks, read_messages
from .bags.types import COMMAND, JOINT_STATE, JOINT_TRAJECTORY, SETPOINT


def in_si_units(
    arm: ElasticArm, names: Sequence[str], values: Mapping[str, Array], *, sent: bool = False
) -> dict[str, Array]:
    """Convert the fields of JointStates, each (N, length), of motors of an arm to SI units on the link side.

    ``sent`` efforts do not include efforts that the robot adds itself: they are added here, at the motor positions
    converted to the joints; NaN if these are unknown. Measured efforts are complete. Motors that are not named count as
    at rest at zero; columns of other motors are unchanged.
    """
    result = dict(values)
    motors = [k for k, name in enumerate(arm.motor_names) if name in names]
    if not motors:
        return result
    columns = [list(names).index(arm.motor_names[k]) for k in motors]
    shape = len(next(iter(values.values()))), len(arm.motor_names)
    # Unknown numbers are replaced by the reports of drives at zero, which have an offset.
    numbers = [x.copy() for x in arm.drive_report(DriveState(*np.zeros((len(MEASURED_FIELDS), *shape))))]
    known = np.zeros((len(MEASURED_FIELDS), shape[0], len(motors)), dtype=bool)
    for k, name in enumerate(MEASURED_FIELDS):
        if name in values:
            recorded = values[name][:, columns]
            known[k] = np.isfinite(recorded)
            numbers[k][:, motors] = np.where(known[k], recorded, numbers[k][:, motors])
    state = arm.drive_state(*numbers)
    if sent:
        # References refer to the age of the drives' feedback.
        theta = state.motor_position + arm.robot.drive_feedback_delay.position * state.motor_velocity
        state = state._replace(motor_position=theta)
        if added := arm.robot.compensated_by_robot:
            at = _joints_of_motors(arm, state.motor_position), _joints_of_motors(arm, state.motor_velocity)
            state = state._replace(motor_effort=arm.drive_state(*numbers, sent_at=at).motor_effort)
            known[2] &= np.all(known[: 1 if added == ("gravity",) else 2], axis=(0, 2), keepdims=True)[0]
    for name, is_known, x in zip(MEASURED_FIELDS, known, state, strict=True):
        if name in values:
            result[name] = values[name].copy()
            result[name][:, columns] = np.where(is_known, x[:, motors], np.nan)
    return result


def _joints_of_motors(arm: ElasticArm, x: Array) -> Array:
    """Joint positions (N, n), or rates, of motors (N, m) on undeflected springs; of two motors their mean."""
    sides = np.transpose(arm.side.joint_sides(list(x.T)))
    return np.column_stack([sides[:, arm.motor_joint == joint].mean(axis=1) for joint in range(arm.robot.n)])


# Both are JointStates: of the node, and of a simulated robot.
_MOTOR_TOPICS = ("motor_setpoint", "motor_states")
# Endings of JointState topics with commands, of this node and of other common nodes.
_SENT = (_MOTOR_TOPICS[0], "setpoint", "setpoints", "command", "commands", "desired")
# Types of messages that describe a motion, in order of preference.
_INPUT_TYPES = (SETPOINT, JOINT_TRAJECTORY, JOINT_STATE)


def is_motor_topic(topic: Topic) -> bool:
    """Return whether a topic of JointState has motor positions rather than link positions, by its name."""
    return topic.type == JOINT_STATE and topic.name.endswith(_MOTOR_TOPICS)


def is_sent(topic: Topic) -> bool:
    """Return whether a topic of JointState is ``motor_setpoint``, the node's commands."""
    return topic.type == JOINT_STATE and topic.name.endswith(_SENT[0])


def measured_states(bag: Bag) -> list[Topic]:
    """Return the topics of JointState without commands, by their names."""
    return [topic for topic in bag.topics if topic.type == JOINT_STATE and not topic.name.endswith(_SENT)]


def topics_of_states(bag: Bag, name: str | None = None, option: str = "--topic") -> list[Topic]:
    """Topics of measured joint states, or the topic ``name`` of an ``option``; BagError if there is no topic."""
    topics = [topic for topic in (bag.topics if name is None else bag.named(name)) if topic.type == JOINT_STATE]
    if not topics:
        wanted = f"topic {name}" if name else "topic"
        raise bag.lacks(f"has no {wanted} of type {JOINT_STATE}")
    if measured := measured_states(bag) if name is None else [topic for topic in topics if not is_sent(topic)]:
        return measured
    raise bag.lacks(
        f"{listed(topic.name for topic in topics)} has commands, not measurements; record joint_states, or name the "
        f"topic of measurements, {option}"
    )


def only_one(bag: Bag, topics: Sequence[Topic], kind: str, option: str) -> Topic:
    """Return the only topic of this kind; raises BagError for several, with the ``option`` that selects one."""
    names = sorted({topic.name for topic in topics})
    if len(names) > 1:
        raise BagError(f"{bag.path}: has {len(names)} topics {kind}; name one of them, {option}: {listed(names)}")
    if len(topics) > 1:
        raise BagError(f"{bag.path}: topic {names[0]} was recorded with several definitions; split the bag by them")
    return topics[0]


def beside(bag: Bag, topic: Topic, kind: str) -> list[Topic]:
    """Topics of type ``kind`` in the namespace of ``topic``."""
    space = topic.name.rpartition("/")[0]
    return [other for other in bag.topics if other.type == kind and other.name.rpartition("/")[0] == space]


def choose_topic(bag: Bag, name: str | None = None) -> Topic:
    """Choose the topic to replay: the topic ``name``, or the only topic of the first type in _INPUT_TYPES.

    Topics of motors do not count. Raises BagError if there is no such topic, or more than one.
    """
    usable = [topic for topic in bag.topics if topic.type in _INPUT_TYPES]
    if name is not None:
        named = bag.named(name)
        chosen = [topic for topic in named if topic in usable]
        if named and not chosen:
            raise BagError(f"{bag.path}: topic {name} is of type {named[0].type}, not one of {', '.join(_INPUT_TYPES)}")
    else:
        # Motor positions differ from link positions by the deflection of the springs.
        of_links = [topic for topic in usable if not is_motor_topic(topic)]
        kinds = [kind for kind in _INPUT_TYPES if any(topic.type == kind for topic in of_links)]
        chosen = [topic for topic in of_links if topic.type == kinds[0]] if kinds else []
    if not chosen:
        wanted = f"topic {name}" if name is not None else f"topic of type {' or '.join(_INPUT_TYPES)}"
        motors = listed(topic.name for topic in usable if is_motor_topic(topic)) if name is None else ""
        remedy = f"; {motors}: motor positions, replayed only if named with --topic" if motors else ""
        raise bag.lacks(f"has no {wanted}", remedy)
    if chosen[0].type == JOINT_STATE and name is None:
        _refuse_separate_joints(bag, chosen)
    return only_one(bag, chosen, f"of type {chosen[0].type}", "--topic")


def _refuse_separate_joints(bag: Bag, topics: Sequence[Topic]) -> None:
    """Raise BagError if topics have different joints each, as of the arms of one robot, or of a gripper."""
    first = {topic.name: next(read_blocks(bag, topic, lambda reason, time: None), None) for topic in topics}
    joints = {name: [*block.message.name] for name, block in first.items() if block is not None}
    every = [joint for names in joints.values() for joint in names]
    if len(joints) > 1 and len(every) == len({*every}):
        each = "; ".join(f"{name} has {listed(names)}" for name, names in joints.items())
        raise BagError(
            f"{bag.path}: joints are in separate topics, {each}; record all joints of a robot in one topic, or name "
            "the topic with all joints, --topic"
        )


_MOST_REASONS = 50  # a damaged bag can have a reason of its own for each message


@dataclass(frozen=True)
class Stream:
    """N messages of one topic, or rows of a table, on one clock.

    Attributes:
        topic: its name.
        stamp: (N,) times of the headers, ns.
        recorded: (N,) times of recording, ns.
        names: of the joints or motors (n,).
        values: by field of the message, SI units: (N, n), NaN if missing in a message; (N, entries) of setpoints,
            (N, entries, 6) of wrenches, moment first, and (N, entries, 7, 3) of a base motion.
        frame: frame_id.
    """

    topic: str
    stamp: NDArray[np.int64]
    recorded: NDArray[np.int64]
    names: tuple[str, ...]
    values: Mapping[str, Array]
    frame: str = ""

    def __len__(self) -> int:
        return len(self.stamp)

    def __getitem__(self, rows: Any) -> Stream:
        values = {field: values[rows] for field, values in self.values.items()}
        return replace(self, stamp=self.stamp[rows], recorded=self.recorded[rows], values=values)

    @property
    def times(self) -> NDArray[np.int64]:
        """(N,) stamps, or times of recording if all stamps are zero."""
        return self.stamp if self.stamp.any() else self.recorded

    def seconds(self, origin: int) -> Array:
        """Stamps (N,) since ``origin``, s."""
        return np.multiply(self.stamp - origin, 1e-9, dtype=float)

    def entries(self, field: str) -> int:
        """Number of entries of a field in each message."""
        return self.values[field].shape[1] if field in self.values else 0

    def ordered(self, names: Sequence[str]) -> Stream:
        """Select and order the columns by ``names``; NaN in columns that were not recorded."""
        place = {name: k for k, name in enumerate(self.names)}
        lacking = [name not in place for name in names]
        columns = [place.get(name, 0) for name in names]
        values = {field: np.where(lacking, np.nan, x.take(columns, axis=1)) for field, x in self.values.items()}
        return replace(self, names=tuple(names), values=values)

    def with_fields(self, names: Mapping[str, str]) -> Stream:
        """Select fields, and name them by ``names``."""
        return replace(self, values={name: self.values[field] for field, name in names.items() if field in self.values})


@dataclass
class Refusals:
    """Counts of unusable messages, by reason.

    Reasons that differ in their numbers alone, such as the stiffness of each setpoint, are one; its text is the first.

    Attributes:
        reasons: number of messages by reason.
        first: time of recording of the first of them by reason, ns.
        details: additions to the texts of some reasons, such as values of the worst message.
    """

    reasons: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, str] = field(default_factory=dict)

    def text(self, reason: str) -> str:
        """Return a reason with its detail."""
        return f"{reason}{self.details.get(reason, '')}"

    def add(self, reason: str, time: int, count: int = 1, detail: str = "") -> None:
        """Count messages, the first of them recorded at ``time``, ns; the first ``detail`` of a reason is kept."""
        kind = without_numbers(reason)
        if kind not in self._kinds and len(self._kinds) >= _MOST_REASONS:
            reason = "other reasons"
        else:
            reason = self._kinds.setdefault(kind, reason)
            if detail:
                self.details.setdefault(reason, detail)
        self.first.setdefault(reason, time)
        self.reasons[reason] = self.reasons.get(reason, 0) + count

    def ranked(self) -> list[tuple[str, int]]:
        """Reasons with their counts, the most frequent first."""
        return sorted(self.reasons.items(), key=lambda item: -item[1])

    @property
    def total(self) -> int:
        """Number of refused messages."""
        return sum(self.reasons.values())


KINDS: Mapping[str, Mapping[str, tuple[str, Sequence[str]]]] = {
    SETPOINT: {"setpoint": ("joint_names", STATE_FIELDS)},
    COMMAND: {"command": ("joint_names", EFFORT_FIELDS), "motors": ("motor_names", MOTOR_FIELDS)},
    JOINT_STATE: {"measured": ("name", MEASURED_FIELDS)},
}
"""Field with the names of joints or motors, and fields of numbers, by message type and kind of stream."""


class TopicReader:
    """Reader of a topic of a bag.

    Attributes:
        topic: which is read.
        refusals: omitted messages, with reasons.
    """

    def __init__(
        self,
        bag: Bag,
        topic: Topic,
        conventions: Conventions = DEFAULT,
        robot: Robot | None = None,
        refusals: Refusals | None = None,
        *,
        of_motors: bool = False,
    ) -> None:
        """Prepare to read a topic of a bag.

        Args:
            conventions: of the recording; joints and motors get the names of the robot, and efforts of joint states
                are scaled.
            robot: its drives may have other units; the values of its motors are converted.
            refusals: omitted messages are added to it.
            of_motors: True if a JointState topic is of motors regardless of its name.
        """
        self._bag, self.topic, self._conventions = bag, topic, conventions
        self.refusals, self._arm = refusals or Refusals(), None
        converted = is_motor_topic(topic) or (of_motors and topic.type == JOINT_STATE)
        if converted and robot is not None and robot.has_own_drives:
            self._arm = ElasticArm(robot, backend="numpy")

    def streams(self) -> dict[str, Stream]:
        """Read the topic by kind, without fields of another length than names, and messages that repeat a name.

        Kinds are ``setpoint``; ``command`` and ``motors``, of one message; or ``measured``.
        """
        parts: dict[str, list[Stream]] = {}
        for block in self.blocks():
            for kind, (named, fields) in KINDS[self.topic.type].items():
                part = self.stream(block, named, fields)
                if twice := duplicates(part.names):
                    self.refusals.add(f"{named}: {listed(twice)} listed twice", int(part.recorded[0]), len(part))
                else:
                    parts.setdefault(kind, []).append(part)
        streams = {kind: self._converted(joined(self.topic.name, of_kind)) for kind, of_kind in parts.items()}
        return {kind: replace(stream, stamp=stream.times) for kind, stream in streams.items()}

    def motion(self) -> Stream:
        """Read positions, velocities and efforts of joint states, or of commands to motors; BagError for others."""
        name, kind = self.topic.name, self.topic.type
        if kind not in (JOINT_STATE, COMMAND):
            raise BagError(f"{self._bag.path}: topic {name} is of type {kind}, not {JOINT_STATE} or {COMMAND}")
        streams = self.streams()
        if kind == JOINT_STATE:
            return streams.get("measured", joined(name, ()))
        fields = {field: name for name, field in MOTOR_SETPOINT_FIELDS.items()}
        return streams.get("motors", joined(name, ())).with_fields(fields)

    def measured(self, fields: Sequence[str]) -> Iterator[tuple[MessageBlock, Stream]]:
        """Read fields of a topic of JointState block by block, each with its messages."""
        for block in self.blocks():
            yield block, self._converted(self.stream(block, "name", fields))

    def blocks(self) -> Iterator[MessageBlock]:
        """Read the messages in blocks, of the same names each."""
        return read_blocks(self._bag, self.topic, self.refusals.add)

    def messages(self) -> Iterator[tuple[int, Any]]:
        """Read the messages one by one, with their times of recording, ns."""
        return read_messages(self._bag, self.topic, self.refusals.add)

    def names(self, recorded: Sequence[str]) -> tuple[str, ...]:
        """Names of the robot for recorded names."""
        return tuple(self._conventions.names(recorded))

    def stream(self, block: MessageBlock, named: str, fields: Sequence[str] = ()) -> Stream:
        """Fields of a block that have an entry for each name, in recorded units."""
        names = self.names(getattr(block.message, named))
        values, frame = block.values(fields, len(names)), block.message.header.frame_id
        return Stream(self.topic.name, block.stamp, block.recorded, names, values, frame)

    def _converted(self, stream: Stream) -> Stream:
        if self.topic.type != JOINT_STATE:
            return stream
        values = dict(stream.values)
        if self._arm is not None and values:
            values = in_si_units(self._arm, stream.names, values, sent=is_sent(self.topic))
        if "effort" in values:
            values["effort"] = self._conventions.efforts(stream.names, values["effort"])
        return replace(stream, values=values)


def joined(topic: str, parts: Sequence[Stream]) -> Stream:
    """Join parts of a stream; the result has the joints of all parts, NaN for joints missing in a message."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    none = np.zeros(0, dtype=np.int64)
    stamp, recorded = (np.concatenate([none, *(getattr(part, x) for part in parts)]) for x in ("stamp", "recorded"))
    fields = {field: np.full((len(stamp), len(names)), np.nan) for part in parts for field in part.values}
    start = 0
    for part in parts:
        rows = slice(start, start := start + len(part))
        columns = [names.index(name) for name in part.names]
        for name, numbers in part.values.items():
            fields[name][rows, columns] = numbers
    return Stream(topic, stamp, recorded, names, fields)
