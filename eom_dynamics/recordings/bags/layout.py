# SPDX-License-Identifier: Apache-2.0
"""Byte layout of serialized messages, to read and write blocks of messages as arrays.

Messages of one type with equal strings and lengths have their numbers at the same offsets (CDR, OMG formal/02-06-51,
as used by DDS). The offsets follow from the definition of the type, and each layout is checked against rosbags: its
deserializer must find the same numbers, and its serializer write the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype
from rosbags.serde import SerdeError
from rosbags.typesys.base import normalize_fieldname
from rosbags.typesys.store import Typestore

from ...arrays import Array
from .bag import Bag
from .types import BagError, Topic, serialized, typestore

Bytes = NDArray[np.uint8]

_ENCAPSULATION = 4

# Serializers may pad the end, to four bytes. The serializer of rclpy aligns the elements of empty sequences when it
# reserves memory, and leaves unused bytes: up to four for a sequence, and as many for the aligned field after it.
_PADDING = 3
_PADDING_OF_SEQUENCE = 8

_TYPES = {
    **{name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
    **{"float32": "float32", "float64": "float64", "bool": "uint8", "byte": "uint8", "char": "uint8"},
}

# A message with new strings or lengths makes a new layout; a stream has few.
_KEPT_LAYOUTS = 32


class LayoutError(BagError):
    """A message does not fit the definition of its type."""


class _Place(NamedTuple):
    offset: int
    dtype: np.dtype[Any]
    length: int


class Layout:
    """Layout of a serialized message of a type, shared by all messages that differ from it only in numbers.

    Raises:
        LayoutError: it is not a message of this type.

    Attributes:
        template: (size,) bytes of the message.
        message: the message as rosbags reads it.
    """

    def __init__(self, store: Typestore, name: str, data: bytes) -> None:
        if len(data) <= _ENCAPSULATION:
            raise LayoutError("too short for a message")
        self.template: Bytes = np.frombuffer(data, np.uint8)
        self._order: Literal["<", ">"] = "<" if data[1] else ">"
        self._data, self._store = data, store
        self._places: dict[str, _Place] = {}
        self._mask = np.zeros(len(data), dtype=np.uint8)
        # The kind of encapsulation; its two bytes of options are ignored.
        self._mask[:2] = 0xFF
        self._covered = np.zeros(len(data), dtype=bool)
        self._sequences = 0
        try:
            end = self._walk_type("", name, _ENCAPSULATION)
            if len(data) - end > _PADDING + _PADDING_OF_SEQUENCE * self._sequences:
                raise SerdeError(f"it has {len(data):,} bytes, {len(data) - end:,} more than its fields take")
            self.message: Any = store.deserialize_cdr(data[:end], name)
        except (SerdeError, struct.error, AssertionError, UnicodeDecodeError, MemoryError) as error:
            raise LayoutError(f"not a message of type {name}: {' '.join(str(error).split())}") from None
        self._check(name, end)

    def fits(self, rows: Bytes) -> NDArray[np.bool_]:
        """Return which of the messages (N, size) differ from this one in numbers only, (N,)."""
        return np.asarray(np.any((rows ^ self.template) & self._mask, axis=1) == 0)

    def fields(self) -> dict[str, int]:
        """Return the length of each numeric field by path, such as ``header.stamp.sec``."""
        return {path: place.length for path, place in self._places.items()}

    def texts(self) -> bytes:
        """Return all strings and lengths of the message, for comparison."""
        return (self.template & self._mask)[2:][self._mask[2:] != 0].tobytes()

    def numbers(self, rows: Bytes, field: str) -> NDArray[Any]:
        """Read a field of the messages: (N, length of the field), in native byte order."""
        offset, dtype, count = self._places[field]
        part = np.ascontiguousarray(rows[:, offset : offset + dtype.itemsize * count])
        return part.view(dtype).astype(dtype.newbyteorder("="), copy=False).reshape(len(rows), count)

    @classmethod
    def of(cls, kind: str, **values: Any) -> Layout:
        """The layout of a message of a type that is written, with these fields, as of :func:`.serialized`."""
        return cls(typestore(kind), kind, serialized(kind, **values))

    def set_stamps(self, rows: Bytes, stamps: NDArray[np.int64]) -> None:
        """Write the stamps (N,) of the headers, ns."""
        for unit, values in zip(("sec", "nanosec"), np.divmod(stamps, 1_000_000_000), strict=True):
            self.set_numbers(rows, f"header.stamp.{unit}", values[:, np.newaxis])

    def set_numbers(self, rows: Bytes, field: str, values: NDArray[Any]) -> None:
        """Write a field of the messages; ``values`` are (N, length of the field)."""
        offset, dtype, count = self._places[field]
        part = np.ascontiguousarray(values, dtype=dtype).view(np.uint8).reshape(len(rows), -1)
        rows[:, offset : offset + dtype.itemsize * count] = part

    def _walk_type(self, path: str, name: str, at: int) -> int:
        for field, description in self._store.fielddefs[name][1]:
            attribute = normalize_fieldname(field)
            at = self._walk(f"{path}.{attribute}" if path else attribute, description, at)
        return at

    def _walk(self, path: str, description: Any, at: int) -> int:
        """Walk over a field that starts at byte ``at``, after alignment; returns its end."""
        kind, what = description
        if kind == Nodetype.BASE:
            if what[0] != "string":
                return self._numbers(path, what[0], at, 1)
            length, at = self._length(at)
            return self._fixed(at, at + length)
        if kind == Nodetype.NAME:
            return self._walk_type(path, what, at)
        (element, length) = what
        if kind == Nodetype.SEQUENCE:
            length, at = self._length(at)
            self._sequences += 1
        number, count = self._uniform(element)
        if number:
            return self._numbers(path, number, at, length * count)
        for k in range(length):
            at = self._walk(f"{path}[{k}]", element, at)
        return at

    def _uniform(self, description: Any) -> tuple[str, int]:
        """The type and the count of the numbers that an element consists of, if all are of one type; else ``""``, 0."""
        kind, what = description
        if kind == Nodetype.BASE:
            return ("", 0) if what[0] == "string" else (what[0], 1)
        if kind == Nodetype.NAME:
            parts = [self._uniform(field) for _, field in self._store.fielddefs[what][1]]
            names = {name for name, _ in parts}
            return (names.pop(), sum(count for _, count in parts)) if len(names) == 1 else ("", 0)
        return "", 0

    def _numbers(self, path: str, name: str, at: int, count: int) -> int:
        if name not in _TYPES:
            raise LayoutError(f"field {path} is of type {name}, which is not supported")
        dtype = np.dtype(_TYPES[name]).newbyteorder(self._order)
        if count:
            at = _aligned(at, dtype.itemsize)
        end = self._within(at + dtype.itemsize * count)
        self._places[path] = _Place(at, dtype, count)
        self._covered[at:end] = True
        return end

    def _length(self, at: int) -> tuple[int, int]:
        at = _aligned(at, 4)
        end = self._fixed(at, at + 4)
        return int(struct.unpack_from(f"{self._order}I", self._data, at)[0]), end

    def _fixed(self, start: int, end: int) -> int:
        self._mask[start : self._within(end)] = 0xFF
        self._covered[start:end] = True
        return end

    def _within(self, end: int) -> int:
        if end > len(self._data):
            raise SerdeError(f"a field ends at byte {end:,} of {len(self._data):,}")
        return end

    def _check(self, name: str, end: int) -> None:
        """Compare the layout of the bytes before ``end`` with rosbags."""
        again = np.frombuffer(
            self._store.serialize_cdr(self.message, name, little_endian=self._order == "<"), dtype=np.uint8
        )
        rows = self.template[np.newaxis]
        same = len(again) == end and bool(np.all(((rows[0, :end] ^ again) == 0) | ~self._covered[:end]))
        for path, place in self._places.items():
            if not same:
                break
            value = self.message
            for part in path.replace("]", "").replace("[", ".").split("."):
                value = value[int(part)] if part.isdigit() else getattr(value, part)
            known = _flat(value).astype(place.dtype.newbyteorder("="), copy=False)
            same = known.tobytes() == self.numbers(rows, path).tobytes()
        if not same:
            raise LayoutError(f"a message of type {name} is not serialized as CDR specifies")


@dataclass(frozen=True)
class MessageBlock:
    """N consecutive messages of a topic that differ in numbers only."""

    recorded: NDArray[np.int64]  # (N,) times of recording, ns
    layout: Layout
    rows: Bytes  # (N, size)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> MessageBlock:
        return MessageBlock(self.recorded[rows], self.layout, self.rows[rows])

    @property
    def message(self) -> Any:
        """One of the messages, for its strings and lengths, which all share."""
        return self.layout.message

    @property
    def stamp(self) -> NDArray[np.int64]:
        """(N,) times of headers, ns."""
        sec, nanosec = (self.layout.numbers(self.rows, f"header.stamp.{unit}")[:, 0] for unit in ("sec", "nanosec"))
        stamp: NDArray[np.int64] = sec.astype(np.int64) * 1_000_000_000 + nanosec
        return stamp

    def numbers(self, field: str) -> Array:
        """A field as floats (N, length of the field)."""
        return self.layout.numbers(self.rows, field).astype(float)

    def values(self, fields: Sequence[str], count: int) -> dict[str, Array]:
        """Fields (N, count) by their names; fields with another number of entries are omitted."""
        lengths = self.layout.fields()
        return {field: self.numbers(field) for field in fields if lengths.get(field) == count}


class Layouts:
    """Layouts of the messages of a topic."""

    def __init__(self, store: Typestore, name: str) -> None:
        self._store, self._name = store, name
        self._known: list[Layout] = []

    def blocks(
        self, times: Sequence[int], messages: Sequence[bytes], unreadable: Callable[[str, int], object]
    ) -> Iterator[MessageBlock]:
        """Yield messages, at least one, in order as blocks of one layout; ``unreadable`` as of :func:`read_blocks`."""
        recorded, sizes = np.array(times, dtype=np.int64), np.array([len(message) for message in messages])
        cuts = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
        for start, end in pairwise(cuts):
            rows = np.frombuffer(b"".join(messages[start:end]), np.uint8).reshape(end - start, sizes[start])
            while len(rows):
                count, at = 1, end - len(rows)
                try:
                    layout = self._layout(rows[0])
                except LayoutError as error:
                    unreadable(str(error), times[at])
                else:
                    count = _leading(layout, rows)
                    yield MessageBlock(recorded[at : at + count], layout, rows[:count])
                rows = rows[count:]

    def _layout(self, row: Bytes) -> Layout:
        for layout in self._known:
            if len(layout.template) == len(row) and layout.fits(row[np.newaxis])[0]:
                return layout
        layout = Layout(self._store, self._name, row.tobytes())
        self._known = [layout, *self._known[: _KEPT_LAYOUTS - 1]]
        return layout


def read_blocks(bag: Bag, topic: Topic, unreadable: Callable[[str, int], object]) -> Iterator[MessageBlock]:
    """Read the messages of a topic in the order of recording.

    Args:
        unreadable: called for each message that cannot be read, with the reason and its time of recording, ns.

    Raises:
        BagError: the type is not known, or its messages are not serialized as CDR.
    """
    layouts = Layouts(topic.types(), topic.type)
    for times, messages in bag.messages(topic):
        yield from layouts.blocks(times, messages, unreadable)


def read_messages(bag: Bag, topic: Topic, unreadable: Callable[[str, int], object]) -> Iterator[tuple[int, Any]]:
    """Read the messages of a topic one by one, with their times of recording, ns; arguments as of :func:`read_blocks`.

    For nested types and types with few messages.
    """
    store = topic.types()
    for times, messages in bag.messages(topic):
        for time, data in zip(times, messages, strict=True):
            try:
                message = Layout(store, topic.type, data).message
            except LayoutError as error:
                unreadable(str(error), time)
            else:
                yield time, message


def _leading(layout: Layout, rows: Bytes) -> int:
    """Count the rows, from the first on, with a layout; examines at most four times as many."""
    count, step = 1, 64
    while count < len(rows):
        fits = layout.fits(rows[count : count + step])
        if not fits.all():
            return count + int(np.argmin(fits))
        count, step = count + len(fits), 4 * step
    return count


def _flat(value: Any) -> NDArray[Any]:
    """The numbers of a field, of the messages in it one after the other."""
    if isinstance(value, list):
        return np.concatenate([_flat(message) for message in value]) if value else np.zeros(0)
    if is_dataclass(value):
        return np.concatenate([_flat(part) for name, part in vars(value).items() if name != "__msgtype__"])
    return np.atleast_1d(np.asarray(value))


def _aligned(at: int, size: int) -> int:
    return _ENCAPSULATION + -(-(at - _ENCAPSULATION) // size) * size
