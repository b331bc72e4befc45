# SPDX-License-Identifier: Apache-2.0
"""Topics of a bag as arrays, with the joint names of a robot, in SI units, and counts of unusable messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..control.fields import EFFORT_FIELDS, MEASURED_FIELDS, MOTOR_FIELDS, MOTOR_SETPOINT_FIELDS, STATE_FIELDS
from ..elastic import ElasticArm
from ..robot import Robot
from ..spelling import duplicates, listed, without_numbers
from .bags import Bag, BagError, Topic
from .bags.layout import MessageBlock, read_blocks, read_messages
from .bags.types import COMMAND, JOINT_STATE, SETPOINT
from .drives import in_si_units
from .options import DEFAULT, Conventions
from .topics import is_motor_topic, is_sent

_MOST_REASONS = 50  # a damaged bag can have a reason of its own for each message


@dataclass(frozen=True)
class Stream:
    """N messages of one topic, or rows of a table, on one clock.

    Attributes:
        topic: its name.
        stamp: (N,) times of the headers, ns.
        recorded: (N,) times of recording, ns.
        names: of the joints or motors (n,).
        values: by field of the message, SI units: (N, n), NaN where a message lacks it; of setpoints (N, entries), of
            wrenches (N, entries, 6), moment first, and of the motion of a base (N, entries, 7, 3).
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
        """Stamps (N,) since another one, s."""
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
        details: for some reasons, what :meth:`text` adds to them, such as values of the worst message.
    """

    reasons: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, str] = field(default_factory=dict)

    def text(self, reason: str) -> str:
        """Return a reason with its detail."""
        return f"{reason}{self.details.get(reason, '')}"

    def add(self, reason: str, time: int, count: int = 1, detail: str = "") -> None:
        """Count messages, the first of them recorded at ``time``, ns; ``detail`` is of the first one with a reason."""
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
"""By type of message and kind of stream: the field with the names of joints or motors, and fields of numbers."""


class TopicReader:
    """Reader of a topic of a bag.

    Attributes:
        topic: which is read.
        refusals: messages that were left out, and why.
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
            refusals: to add messages to that are left out.
            of_motors: whether a topic of JointState is of motors regardless of its name.
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
        """Names of the robot for recorded ones."""
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
    """Join parts of a stream; it has all joints that any of them names, with NaN where a message lacks one."""
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
