# SPDX-License-Identifier: Apache-2.0
"""Comparison of the topics of two bags, or of two Parquet tables of commands, number by number, within tolerances."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...bags import Bag, BagError, Topic
from ...bags.layout import read_blocks
from ...bags.types import COMMAND, JOINT_STATE, NUMBERS
from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS, MEASURED_FIELDS, MOTOR_FIELDS
from ...extras import require

_TYPES = (COMMAND, JOINT_STATE, NUMBERS)  # types of the topics that are compared

FIELDS = (*COMMAND_FIELDS, "position", "velocity", "held", "header.stamp", "data")
"""Fields of numbers of these topics."""

_DEFAULT = 1e-9  # default tolerance, absolute and relative: compilers and processors differ in rounding


MISSING = "missing"
"""Stands for a field where the golden bag has no topic of that name."""


@dataclass(frozen=True)
class Tolerances:
    """Tolerances: a number a differs from the golden b where abs(a - b) > absolute + relative abs(b).

    Attributes:
        absolute, relative: by field; None holds for all fields that are not named.
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
        field: its name; ``messages`` for those in one bag only, ``layout`` for names, frames or lengths of
            fields that differ, :data:`MISSING` for a topic that the golden bag lacks, which is no difference.
        compared: number of messages.
        largest: difference, in the unit of the field.
        beyond: number of messages with a difference beyond the tolerance.
        first: time of the first of those, ns: of recording, or the stamp where messages are matched by stamps; None
            without any.
        absolute, relative: the tolerance.
        worst: joint or motor, or index, of the largest difference; empty where there is none.
        worst_at: its time, ns, as that of the first.
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
    worst_at: int | None = None
    match: str = "recorded"

    @property
    def text(self) -> str:
        """What differs, on one line, without the topic."""
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
            f"{self.field} differs in {self.beyond:,} messages, by up to {self.largest:.3g}"
            f"{f' of {self.worst}' if self.worst else ''}, tolerance {self.absolute:g} + {self.relative:g} relative"
        )

    def add(self, beyond: NDArray[np.bool_], times: NDArray[np.int64]) -> None:
        """Count messages (N,) at these times, and those beyond the tolerance."""
        self.compared += len(times)
        if beyond.any():
            self.beyond += int(beyond.sum())
            if self.first is None:
                self.first = int(times[np.argmax(beyond)])

    def add_numbers(self, a: Array, b: Array, times: NDArray[np.int64], names: Sequence[str]) -> None:
        """Compare numbers (N, k) with golden ones; NaN equals NaN."""
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


class MatchedRows(NamedTuple):
    """Consecutive rows with the same texts and lengths of fields.

    Attributes:
        times: (N,) to match them by.
        texts: everything besides numbers that must be equal.
        numbers: (N, length of the field) by field.
        names: of the entries by field.
    """

    times: NDArray[np.int64]
    texts: bytes
    numbers: Mapping[str, Array]
    names: Mapping[str, Sequence[str]]

    def part(self, rows: slice) -> MatchedRows:
        """Some of the rows."""
        numbers = {field: x[rows] for field, x in self.numbers.items()}
        return self._replace(times=self.times[rows], numbers=numbers)

    def split(self, count: int) -> tuple[MatchedRows, MatchedRows]:
        """Split after ``count`` rows."""
        return self.part(slice(count)), self.part(slice(count, None))


def check_golden(golden: Path, topics: Collection[str]) -> None:
    """Raise BagError if a golden bag cannot be read, is visibly damaged, or has none of the topics."""
    with Bag(golden) as bag:
        _refuse_damage(bag)
        _refuse_other_topics(bag, topics)


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def compare_bags(path: Path, golden: Path, tolerances: Tolerances, match: str = "recorded") -> list[Difference]:
    """Compare the topics of a bag with those of the same names in a golden one.

    Messages are matched by their times, in the order of the bags. Compared is what both have: a golden bag may have
    been recorded with some of the topics only.

    Args:
        match: ``recorded`` for times of recording; or ``stamp`` for those of headers, on topics without headers the
            order, for bags that were recorded live.

    Returns:
        A row for each topic and field; those with ``beyond`` > 0 differ.

    Raises:
        BagError: a bag cannot be read, or the golden one has none of the topics.
    """
    with Bag(path) as bag, Bag(golden) as other:
        known = {topic.name: topic for topic in other.topics}
        topics = [topic for topic in bag.topics if topic.type in _TYPES]
        _refuse_other_topics(other, [topic.name for topic in topics])
        results: list[Difference] = []
        for topic in topics:
            if topic.name not in known:
                results.append(Difference(topic.name, MISSING))
            elif known[topic.name].type == topic.type:
                parts = matched(_parts(bag, topic, match), _parts(other, known[topic.name], match))
                results += differences(topic.name, parts, tolerances, match)
            else:
                results.append(Difference(topic.name, "messages", beyond=1))
        _refuse_damage(other)
    return results


def _refuse_damage(golden: Bag) -> None:
    if golden.damage:
        raise BagError(f"{golden.damage[0]}; a golden bag must be undamaged")


def _refuse_other_topics(golden: Bag, topics: Collection[str]) -> None:
    if not any(topic.name in topics for topic in golden.topics):
        raise BagError(f"{golden.path}: has none of the topics {', '.join(topics)}")


def differences(
    topic: str, parts: Iterator[tuple[MatchedRows | None, MatchedRows | None]], tolerances: Tolerances, match: str
) -> list[Difference]:
    """Compare pairs from :func:`matched`; returns a row for each field of ``topic``."""
    rows: dict[str, Difference] = {}

    def of(name: str) -> Difference:
        if name not in rows:
            absolute, relative = tolerances.of(name)
            rows[name] = Difference(topic, name, absolute=absolute, relative=relative, match=match)
        return rows[name]

    of("messages")
    for mine, golden in parts:
        part = mine or golden
        assert part is not None
        everywhere, nowhere = np.ones(len(part.times), dtype=bool), np.zeros(len(part.times), dtype=bool)
        if mine is None or golden is None:
            of("messages").add(everywhere, part.times)
            continue
        of("messages").add(nowhere, part.times)
        lengths = [{field: x.shape[1] for field, x in side.numbers.items()} for side in (mine, golden)]
        same = lengths[0] == lengths[1] and mine.texts == golden.texts
        of("layout").add(nowhere if same else everywhere, part.times)
        for name, x in mine.numbers.items() if same else ():
            if x.shape[1]:
                of(name).add_numbers(x, golden.numbers[name], part.times, part.names.get(name, ()))
    return list(rows.values())


def _parts(bag: Bag, topic: Topic, match: str) -> Iterator[MatchedRows]:
    def refuse(reason: str, time: int) -> None:
        raise BagError(f"{bag.path}: topic {topic.name}: {reason}")

    place = 0
    for block in read_blocks(bag, topic, refuse):
        keys = block.recorded
        if match == "stamp":
            has_header = "header.stamp.sec" in block.layout.fields()
            keys = block.stamps().header if has_header else np.arange(place, place + len(block))
        numbers: dict[str, list[Array]] = {}
        for name in block.layout.fields():
            key = "header.stamp" if name.startswith("header.stamp.") else name
            numbers.setdefault(key, []).append(block.numbers(name))
        joined = {field: np.hstack(columns) for field, columns in numbers.items()}
        yield MatchedRows(keys, block.layout.texts(), joined, _names(topic.type, block.message))
        place += len(block)


def _names(kind: str, message: Any) -> dict[str, Sequence[str]]:
    if kind == JOINT_STATE:
        return dict.fromkeys(MEASURED_FIELDS, message.name)
    if kind != COMMAND:
        return {}
    return {**dict.fromkeys(EFFORT_FIELDS, message.joint_names), **dict.fromkeys(MOTOR_FIELDS, message.motor_names)}


def matched(
    left: Iterator[MatchedRows], right: Iterator[MatchedRows]
) -> Iterator[tuple[MatchedRows | None, MatchedRows | None]]:
    """Yield pairs of parts with equal times; a part on one side only is paired with None."""
    a, b = next(left, None), next(right, None)
    while a is not None and b is not None:
        count = min(len(a.times), len(b.times))
        same = a.times[:count] == b.times[:count]
        agreeing = count if same.all() else int(np.argmin(same))
        if agreeing:
            (first, a), (second, b) = a.split(agreeing), b.split(agreeing)
            yield first, second
        elif a.times[0] < b.times[0]:
            lone, a = a.split(_before(a, b.times[0]))
            yield lone, None
        else:
            lone, b = b.split(_before(b, a.times[0]))
            yield None, lone
        a = a if len(a.times) else next(left, None)
        b = b if len(b.times) else next(right, None)
    yield from ((part, None) for part in chain([a], left) if part is not None)
    yield from ((None, part) for part in chain([b], right) if part is not None)


def _before(part: MatchedRows, time: np.int64) -> int:
    behind = part.times >= time
    return int(np.argmax(behind)) if behind.any() else len(part.times)


_TABLE = "table"  # stands for a topic in the results
_TIMES = ("recorded", "stamp")
_BLOCK = 4096  # rows read at a time


def check_golden_table(golden: Path) -> None:
    """Raise BagError if a golden table has no comparable columns."""
    with _reading(golden):
        _columns(golden, _open(golden).schema_arrow)


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def compare_tables(path: Path, golden: Path, tolerances: Tolerances, match: str = "recorded") -> list[Difference]:
    """Compare a table of commands, as a replay writes it, with a golden one; as :func:`compare_bags`."""
    return differences(_TABLE, matched(_table_parts(path, match), _table_parts(golden, match)), tolerances, match)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn pyarrow's errors into a BagError of the file; OSErrors of the system stay."""
    require("parquet")
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split())
        raise BagError(f"{path}: cannot be read as a Parquet table: {reason:.300}") from None


def _open(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    if not path.is_file():
        reason = "is not a Parquet file" if path.exists() else "there is no such table"
        raise BagError(f"{path}: {reason}; compare tables with tables, bags with bags")
    return ParquetFile(path)


def _columns(path: Path, schema: Any) -> dict[str, list[str]]:
    """Return the columns of commands by field; BagError if the table is not one of commands."""
    import pyarrow as pa

    kinds = dict(zip(schema.names, schema.types, strict=True))
    wanted = {
        **dict.fromkeys(_TIMES, lambda kind: str(kind).startswith("timestamp[ns")),
        "frame": pa.types.is_string,
        "held": pa.types.is_boolean,
    }
    by_field: dict[str, list[str]] = {}
    for name in sorted(kinds.keys() - wanted.keys()):
        if (field := name.partition(".")[0]) in COMMAND_FIELDS:
            wanted[name] = pa.types.is_float64
            by_field.setdefault(field, []).append(name)
    wrong = [name for name, test in wanted.items() if name not in kinds or not test(kinds[name])]
    if wrong or not by_field:
        reason = f"column {wrong[0]} is {kinds.get(wrong[0], 'missing')}" if wrong else "it has no commands"
        raise BagError(f"{path}: is not a table of commands: {reason}; name one that eom_dynamics replay wrote")
    return {field: by_field[field] for field in COMMAND_FIELDS if field in by_field} | {"held": ["held"]}


def _table_parts(path: Path, match: str) -> Iterator[MatchedRows]:
    with _reading(path):
        file = _open(path)
        columns = _columns(path, file.schema_arrow)
        names = [name for of_field in columns.values() for name in of_field]
        entries = {field: [name.partition(".")[2] for name in of_field] for field, of_field in columns.items()}
        for batch in file.iter_batches(_BLOCK, columns=[*_TIMES, "frame", *names]):
            times = {name: _times(path, batch.column(name), name) for name in _TIMES}
            values = {name: batch.column(name).to_numpy(zero_copy_only=False).astype(float) for name in names}
            numbers = {key: np.column_stack([values[name] for name in of_key]) for key, of_key in columns.items()}
            numbers["header.stamp"] = np.column_stack(np.divmod(times["stamp"], 1_000_000_000)).astype(float)
            keys = times[match]
            frames = np.array(batch.column("frame").to_pylist(), dtype=object)
            cuts = [0, *(np.flatnonzero(frames[1:] != frames[:-1]) + 1).tolist(), len(frames)]
            for first, end in pairwise(cuts):
                if first < end:
                    texts = "\0".join([str(frames[first]), *names]).encode()
                    yield MatchedRows(keys, texts, numbers, entries).part(slice(first, end))


def _times(path: Path, column: Any, name: str) -> NDArray[np.int64]:
    if column.null_count:
        raise BagError(f"{path}: column {name} lacks values; write the table anew")
    return np.asarray(column.cast("int64"))
