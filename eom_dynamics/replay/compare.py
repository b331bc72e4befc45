# SPDX-License-Identifier: Apache-2.0
"""Two bags with the same topics, number by number, within tolerances."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bag, BagError, Layout, Layouts, Rows, Topic
from ..bags.layout import Bytes
from ..stream.conversions import COMMAND_FIELDS
from .messages import FEEDFORWARD, JOINT_STATE, NUMBERS

Array = NDArray[np.float64]

TYPES = (FEEDFORWARD, JOINT_STATE, NUMBERS)
"""Types of the topics that are compared."""

FIELDS = (*COMMAND_FIELDS, "position", "velocity", "held", "header.stamp", "data")
"""Fields of numbers of these topics."""

DEFAULT = 1e-9
"""Tolerance, absolute and relative, where none is given: other compilers and processors round otherwise."""


class Match(Enum):
    """What tells which messages of two bags belong together."""

    RECORDED = "recorded"
    """Their times of recording."""

    STAMP = "stamp"
    """The stamps of their headers, and on topics without headers their places: for bags recorded live."""


@dataclass(frozen=True)
class Tolerances:
    """A number a differs from b of the golden bag where abs(a - b) > absolute + relative abs(b).

    Attributes:
        absolute, relative: by field; ``""`` is for all that are not named.
    """

    absolute: Mapping[str, float] = field(default_factory=dict)
    relative: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> tuple[float, float]:
        """Absolute and relative tolerance of a field."""
        absolute, relative = (x.get(name, x.get("", DEFAULT)) for x in (self.absolute, self.relative))
        return absolute, relative


@dataclass
class Difference:
    """What two bags differ by in one field of a topic.

    Attributes:
        topic, field: which; ``messages`` where they are there in one bag only, ``layout`` where names or the lengths
            of fields differ.
        compared: number of messages.
        largest: difference, in the unit of the field.
        beyond: number of messages with a difference beyond the tolerance.
        first: time of the first of those, ns, of recording or, where these match messages, the stamp; None where there
            is none.
    """

    topic: str
    field: str
    compared: int = 0
    largest: float = 0.0
    beyond: int = 0
    first: int | None = None

    def add(self, count: int, beyond: NDArray[np.bool_], times: NDArray[np.int64], largest: float = 0.0) -> None:
        """Take messages (N,) of ``times``, of which some are beyond the tolerance."""
        self.compared += count
        self.largest = max(self.largest, largest)
        if beyond.any():
            self.beyond += int(beyond.sum())
            if self.first is None:
                self.first = int(times[np.argmax(beyond)])


@dataclass
class _Part:
    times: NDArray[np.int64]
    layout: Layout
    rows: Bytes

    def split(self, count: int) -> tuple[_Part, _Part]:
        return (
            _Part(self.times[:count], self.layout, self.rows[:count]),
            _Part(self.times[count:], self.layout, self.rows[count:]),
        )


def check_golden(golden: Path, topics: Collection[str]) -> None:
    """Refuse what nothing can be compared with, before there is anything to compare.

    Args:
        golden: the bag.
        topics: names of those that will be compared.

    Raises:
        BagError: the bag cannot be read, is not whole as far as that is seen at once, or has none of the topics.
        OSError: a file cannot be read.
    """
    with Bag(golden) as bag:
        _refuse_damage(bag)
        _refuse_others(bag, topics)


def _refuse_damage(golden: Bag) -> None:
    if golden.damage:
        raise BagError(f"{golden.damage[0]}; a golden bag must be whole")


def _refuse_others(golden: Bag, topics: Collection[str]) -> None:
    if not any(topic.name in topics for topic in golden.topics):
        raise BagError(f"{golden.path}: has none of the topics {', '.join(topics)}")


def compare_bags(path: Path, golden: Path, tolerances: Tolerances, match: Match = Match.RECORDED) -> list[Difference]:
    """Compare the topics of a bag with those of the same names in a golden one.

    Messages are matched by their times, in the order in which they stand.

    Args:
        path: the bag.
        golden: what it is to be.
        tolerances: by field.
        match: which times.

    Returns:
        A row for each topic and field; those with ``beyond`` > 0 differ.

    Raises:
        BagError: a bag cannot be read, or the golden one has none of the topics.
    """
    with Bag(path) as bag, Bag(golden) as other:
        theirs = {topic.name: topic for topic in other.topics}
        pairs = [(topic, theirs.get(topic.name)) for topic in bag.topics if topic.type in TYPES]
        _refuse_others(other, [topic.name for topic, _ in pairs])
        results: list[Difference] = []
        for topic, known in pairs:
            if known is None or known.type != topic.type:
                results.append(Difference(topic.name, "messages", beyond=1))
            else:
                results += _compare_topic(bag, topic, other, known, tolerances, match)
        _refuse_damage(other)
    return results


def _compare_topic(
    bag: Bag, topic: Topic, other: Bag, known: Topic, tolerances: Tolerances, match: Match
) -> list[Difference]:
    found: dict[str, Difference] = {}

    def of(name: str) -> Difference:
        return found.setdefault(name, Difference(topic.name, name))

    of("messages")
    for mine, golden in _matched(_parts(bag, topic, match), _parts(other, known, match)):
        if mine is None or golden is None:
            times = (mine or golden).times  # type: ignore[union-attr]
            of("messages").add(len(times), np.ones(len(times), dtype=bool), times)
            continue
        count = len(mine.times)
        of("messages").compared += count
        fields = mine.layout.fields()
        different = golden.layout.fields() != fields or mine.layout.texts() != golden.layout.texts()
        of("layout").add(count, np.full(count, different), mine.times)
        if different:
            continue
        for name in fields:
            a, b = (part.layout.numbers(part.rows, name).astype(float) for part in (mine, golden))
            if a.shape[1]:
                group = "header.stamp" if name.startswith("header.stamp.") else name
                of(group).add(count, *_beyond(a, b, tolerances.of(group), mine.times))
    return list(found.values())


def _beyond(
    a: Array, b: Array, tolerance: tuple[float, float], times: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], float]:
    """Which rows differ by more than a tolerance, their times, and the largest difference of all."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    difference[same] = 0.0
    difference[np.isnan(difference)] = np.inf
    absolute, relative = tolerance
    beyond = ~(difference <= absolute + relative * np.nan_to_num(np.abs(b), nan=0.0)) & ~same
    return beyond.any(axis=1), times, float(difference.max())


def _parts(bag: Bag, topic: Topic, match: Match) -> Iterator[_Part]:
    layouts = Layouts(topic.types(), topic.type)
    place = 0
    for times, messages in bag.messages(topic):
        recorded = np.array(times, dtype=np.int64)
        for rows in layouts.rows(messages):
            if not isinstance(rows, Rows):
                raise BagError(f"{bag.path}: topic {topic.name}: {rows[1]}")
            count = len(rows.rows)
            keys = recorded[rows.start : rows.start + count] if match is Match.RECORDED else _stamps(rows, place)
            yield _Part(keys, rows.layout, rows.rows)
            place += count


def _stamps(rows: Rows, place: int) -> NDArray[np.int64]:
    """Stamps of the headers, ns; the places of the messages, from this one on, where they have no header."""
    if not rows.layout.has("header.stamp.sec"):
        return np.arange(place, place + len(rows.rows))
    sec, nanosec = (rows.layout.numbers(rows.rows, f"header.stamp.{unit}")[:, 0] for unit in ("sec", "nanosec"))
    stamps: NDArray[np.int64] = sec.astype(np.int64) * 1_000_000_000 + nanosec
    return stamps


def _matched(left: Iterator[_Part], right: Iterator[_Part]) -> Iterator[tuple[_Part | None, _Part | None]]:
    """Parts of equal lengths whose times agree one by one; and those that are on one side only."""
    sides: tuple[Any, Any] = (left, right)
    held: tuple[deque[_Part], deque[_Part]] = (deque(), deque())
    while True:
        for side, waiting in zip(sides, held, strict=True):
            if not waiting and (part := next(side, None)) is not None:
                waiting.append(part)
        if not held[0] or not held[1]:
            break
        a, b = held[0].popleft(), held[1].popleft()
        count = min(len(a.times), len(b.times))
        same = a.times[:count] == b.times[:count]
        agreeing = count if same.all() else int(np.argmin(same))
        if agreeing:
            (first, a), (second, b) = a.split(agreeing), b.split(agreeing)
            yield first, second
        else:
            # One side has messages that the other lacks.
            earlier = 0 if a.times[0] < b.times[0] else 1
            part, limit = ((a, b) if earlier == 0 else (b, a))[0], (b, a)[earlier].times[0]
            behind = part.times >= limit
            lacking, rest = part.split(int(np.argmax(behind)) if behind.any() else len(part.times))
            yield (lacking, None) if earlier == 0 else (None, lacking)
            a, b = (rest, b) if earlier == 0 else (a, rest)
        for part, waiting in ((a, held[0]), (b, held[1])):
            if len(part.times):
                waiting.appendleft(part)
    for k, (side, waiting) in enumerate(zip(sides, held, strict=True)):
        for part in (*waiting, *side):
            yield (part, None) if k == 0 else (None, part)
