# SPDX-License-Identifier: Apache-2.0
"""Comparison of the topics of two bags, number by number, within tolerances."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import UNITS, Array
from ...control.fields import COMMAND_FIELDS
from ...control.settings import Status
from ...recordings.bags import Bag, BagError, Topic
from ...recordings.bags.layout import MessageBlock, read_blocks
from ...recordings.bags.types import COMMAND, JOINT_STATE, NUMBERS
from ...recordings.streams import KINDS
from ..quantity_text import unit_at

_TYPES = (COMMAND, JOINT_STATE, NUMBERS)  # types of the topics that are compared

FIELDS = (*COMMAND_FIELDS, "position", "velocity", "held", "header.stamp", "data")
"""Fields of numbers of these topics."""

_DEFAULT = 1e-9  # default tolerance, absolute and relative: compilers and processors differ in rounding

MISSING = "missing"
"""Name of the difference if the golden bag lacks the topic."""


@dataclass(frozen=True)
class Tolerances:
    """Tolerances: a number a differs from the golden b if abs(a - b) > absolute + relative abs(b).

    Attributes:
        absolute, relative: by field; the entry of None holds for all other fields.
    """

    absolute: Mapping[str | None, float] = field(default_factory=dict)
    relative: Mapping[str | None, float] = field(default_factory=dict)

    def of(self, name: str) -> tuple[float, float]:
        """Absolute and relative tolerance of a field."""
        absolute, relative = (x.get(name, x.get(None, _DEFAULT)) for x in (self.absolute, self.relative))
        return absolute, relative


@dataclass
class Difference:
    """The differences of two bags in one field of a topic.

    Attributes:
        topic: its name.
        field: its name; ``messages`` for messages in one bag only, ``layout`` for different names, frames or lengths
            of fields, :data:`MISSING` for a topic that the golden bag lacks, which is not a difference.
        compared: number of messages.
        largest: difference, in the unit of the field.
        beyond: number of messages with a difference beyond the tolerance.
        first: time of the first such message, ns: of recording, or the stamp if messages are matched by stamps; None
            without differences.
        absolute, relative: the tolerance.
        worst: joint or motor, or index, of the largest difference; empty if there is no difference.
        unit: unit of the largest difference; empty if unknown, or for counts of messages.
        worst_at: its time, ns, counted like the first.
        match: criterion that matched the messages: ``recorded``, by their times of recording, or ``stamp``.
    """

    topic: str
    field: str
    compared: int = 0
    largest: float = 0.0
    beyond: int = 0
    first: int | None = None
    absolute: float = 0.0
    relative: float = 0.0
    worst: str = ""
    unit: str = ""
    worst_at: int | None = None
    match: str = "recorded"

    @property
    def text(self) -> str:
        """The difference, on one line, without the topic."""
        if self.field == MISSING:
            return "not compared: the golden bag has no such topic"
        if not self.compared:
            return "the golden bag has a topic of this name and another type"
        if self.field == "messages":
            text = f"{self.beyond:,} messages are in one bag only"
            if self.match == "recorded" and self.beyond == self.compared:
                text += "; no time of recording is in both: compare with a bag that was recorded live by --match stamp"
            return text
        if self.field == "layout":
            return f"names, frames or lengths of fields differ in {self.beyond:,} messages: is it the same robot?"
        return (
            f"{self.field} differs in {self.beyond:,} messages, by up to {self.difference}"
            f"{f' of {self.worst}' if self.worst else ''}, tolerance {self.absolute:g} + {self.relative:g} relative"
        )

    @property
    def difference(self) -> str:
        """The largest difference with its unit."""
        return f"{self.largest:.3g} {self.unit}".rstrip()

    def add(self, beyond: NDArray[np.bool_], times: NDArray[np.int64]) -> None:
        """Count messages (N,) at these times, and those beyond the tolerance."""
        self.compared += len(times)
        if beyond.any():
            self.beyond += int(beyond.sum())
            if self.first is None:
                self.first = int(times[np.argmax(beyond)])

    def add_numbers(
        self, a: Array, b: Array, times: NDArray[np.int64], names: Sequence[str], unit_of: Callable[[str], str]
    ) -> None:
        """Compare numbers (N, k) with the golden numbers; NaN equals NaN; ``unit_of``: unit for a joint or motor."""
        with np.errstate(invalid="ignore"):
            difference = np.abs(a - b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        difference[same] = 0.0
        difference[np.isnan(difference)] = np.inf
        allowed = self.absolute + self.relative * np.nan_to_num(np.abs(b), nan=0.0)
        self.add((~(difference <= allowed) & ~same).any(axis=1), times)
        row, column = divmod(int(np.argmax(difference)), difference.shape[1])
        if difference[row, column] > self.largest:
            self.largest, self.worst_at = float(difference[row, column]), int(times[row])
            self.worst = names[column] if len(names) == a.shape[1] else f"[{column}]" if a.shape[1] > 1 else ""
            self.unit = unit_of(self.worst)


@dataclass(frozen=True)
class Golden:
    """Golden bag, and how to compare with it.

    Attributes:
        path: of the bag.
        tolerances: allowed differences.
        match: ``recorded`` to match messages by times of recording; or ``stamp`` to match header stamps, on topics
            without headers the order, for bags that were recorded live. The last command of a node has no setpoint, so
            a replay lacks it: it is not compared.
    """

    path: Path
    tolerances: Tolerances = field(default_factory=Tolerances)
    match: str = "recorded"

    def check(self, output: Path, topics: Collection[str]) -> None:
        """Raise BagError if the bag is the output, cannot be read, or lacks all topics."""
        if self.path.resolve() == output.resolve():
            raise BagError(f"golden bag {self.path}: is the output itself; name another golden bag, or another output")
        with Bag(self.path) as bag:
            _refuse_other_topics(bag, topics)

    @np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
    def differences(self, path: Path, joint_types: Mapping[str, str]) -> list[Difference]:
        """Compare the topics of a bag with the golden bag's topics of the same names.

        Messages are matched by their times, in the order of the bags. Only common topics are compared: a golden bag may
        have been recorded with some of the topics.

        Args:
            path: of the bag.
            joint_types: types of the robot's joints by name, for the units; empty if unknown.

        Returns:
            A row for each topic and field; those with ``beyond`` > 0 differ.

        Raises:
            BagError: a bag cannot be read, or the golden bag lacks all topics.
        """
        with Bag(path) as bag, Bag(self.path) as other:
            known = {topic.name: topic for topic in other.topics}
            topics = [topic for topic in bag.topics if topic.type in _TYPES]
            _refuse_other_topics(other, [topic.name for topic in topics])
            last = _last_commands(other) if self.match == "stamp" else set()
            results: list[Difference] = []
            for topic in topics:
                if topic.name not in known:
                    results.append(Difference(topic.name, MISSING))
                elif known[topic.name].type == topic.type:
                    mine, theirs = _parts(bag, topic, self.match), _parts(other, known[topic.name], self.match)
                    results += _differences(topic, _without(last, _matched(mine, theirs)), self, joint_types)
                else:
                    results.append(Difference(topic.name, "messages", beyond=1))
        return results


def _refuse_other_topics(golden: Bag, topics: Collection[str]) -> None:
    if not any(topic.name in topics for topic in golden.topics):
        raise BagError(f"{golden.path}: lacks the topics {', '.join(topics)}")


class _Part(NamedTuple):
    """Messages of a topic that differ in numbers only, and the times (N,) to match them by, ns."""

    times: NDArray[np.int64]
    block: MessageBlock

    def rows(self, rows: slice) -> _Part:
        return _Part(self.times[rows], self.block[rows])

    def numbers(self) -> dict[str, Array]:
        """Fields (N, length); both of a stamp are one."""
        columns: dict[str, list[Array]] = {}
        for name in self.block.layout.fields():
            key = "header.stamp" if name.startswith("header.stamp.") else name
            columns.setdefault(key, []).append(self.block.numbers(name))
        return {field: np.hstack(x) for field, x in columns.items()}


# Parts with equal times; None for a part in one bag only.
_Pair = tuple[_Part | None, _Part | None]


def _differences(
    topic: Topic, pairs: Iterator[_Pair], golden: Golden, joint_types: Mapping[str, str]
) -> list[Difference]:
    rows: dict[str, Difference] = {}

    def of(name: str) -> Difference:
        if name not in rows:
            absolute, relative = golden.tolerances.of(name)
            rows[name] = Difference(topic.name, name, absolute=absolute, relative=relative, match=golden.match)
        return rows[name]

    of("messages")
    for mine, theirs in pairs:
        part = mine or theirs
        assert part is not None
        everywhere, nowhere = np.ones(len(part.times), dtype=bool), np.zeros(len(part.times), dtype=bool)
        if mine is None or theirs is None:
            of("messages").add(everywhere, part.times)
            continue
        of("messages").add(nowhere, part.times)
        first, second = mine.block.layout, theirs.block.layout
        same = first.fields() == second.fields() and first.texts() == second.texts()
        of("layout").add(nowhere if same else everywhere, part.times)
        values, message = theirs.numbers() if same else {}, mine.block.message
        kinds = KINDS.get(topic.type, {}).values()
        names = {name: getattr(message, named) for named, fields in kinds for name in fields}
        for name, x in mine.numbers().items() if same else ():
            if x.shape[1]:
                unit_of = partial(_unit, topic.type, name, joint_types)
                of(name).add_numbers(x, values[name], part.times, names.get(name, ()), unit_of)
    return list(rows.values())


def _unit(kind: str, field: str, joint_types: Mapping[str, str], name: str) -> str:
    """Unit of a field of a message of this type at a joint or motor."""
    if kind == COMMAND:
        return unit_at(field, name, joint_types) if joint_types and field in UNITS else ""
    return "" if field == "header.stamp" else "drive units"


def _parts(bag: Bag, topic: Topic, match: str) -> Iterator[_Part]:
    def refuse(reason: str, time: int) -> None:
        raise BagError(f"{bag.path}: topic {topic.name}: {reason}")

    place = 0
    for block in read_blocks(bag, topic, refuse):
        keys = block.recorded
        if match == "stamp":
            has_header = "header.stamp.sec" in block.layout.fields()
            keys = block.stamp if has_header else np.arange(place, place + len(block))
        yield _Part(keys, block)
        place += len(block)


def _matched(left: Iterator[_Part], right: Iterator[_Part]) -> Iterator[_Pair]:
    """Pair parts with equal times, in the order of the bags."""
    a, b = next(left, None), next(right, None)
    while a is not None and b is not None:
        count = min(len(a.times), len(b.times))
        same = a.times[:count] == b.times[:count]
        first, second = (count if same.all() else int(np.argmin(same)),) * 2
        if not first and a.times[0] < b.times[0]:
            first = _before(a, b.times[0])
        elif not first:
            second = _before(b, a.times[0])
        yield a.rows(slice(first)) if first else None, b.rows(slice(second)) if second else None
        a = a.rows(slice(first, None)) if first < len(a.times) else next(left, None)
        b = b.rows(slice(second, None)) if second < len(b.times) else next(right, None)
    yield from ((part, None) for part in chain([a], left) if part is not None)
    yield from ((None, part) for part in chain([b], right) if part is not None)


def _last_commands(bag: Bag) -> set[int]:
    """Stamps, ns, and indices of the last messages of commands that are held, as a node sends them at its end."""
    result: set[int] = set()
    for topic in bag.topics:
        status, count, stamp = 0.0, 0, 0
        for part in _parts(bag, topic, "stamp") if topic.type == COMMAND else ():
            status, stamp = float(part.block.numbers("status")[-1, 0]), int(part.times[-1])
            count += len(part.times)
        result |= {stamp, count - 1} if status == Status.HELD else set()
    return result


def _without(last: set[int], pairs: Iterator[_Pair]) -> Iterator[_Pair]:
    """Pairs without the last message of the golden bag, by its stamp or index, if it is in this bag only."""
    for mine, theirs in pairs:
        if mine is None and theirs is not None and int(theirs.times[-1]) in last:
            theirs = theirs.rows(slice(-1))
        if mine is not None or (theirs is not None and len(theirs.times)):
            yield mine, theirs


def _before(part: _Part, time: np.int64) -> int:
    behind = part.times >= time
    return int(np.argmax(behind)) if behind.any() else len(part.times)


def time_text(time: int) -> str:
    """Format a time in ns as seconds, with all digits."""
    return f"{time // 1_000_000_000}.{time % 1_000_000_000:09d}"
