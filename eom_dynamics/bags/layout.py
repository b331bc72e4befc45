# SPDX-License-Identifier: Apache-2.0
"""Where the numbers of a serialised message stand, so that a block of messages is read and written as one array.

Messages of one type whose strings and lengths agree have their numbers in the same places (CDR, OMG formal/02-06-51,
as DDS uses it). The places are found by the type's definition, and each layout is held against rosbags: its
deserialiser must find the same numbers, and its serialiser write the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype
from rosbags.serde import SerdeError
from rosbags.typesys.base import normalize_fieldname
from rosbags.typesys.store import Typestore

from .errors import BagError

Bytes = NDArray[np.uint8]

_ENCAPSULATION = 4

_TYPES = {
    **{name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
    **{"float32": "float32", "float64": "float64", "bool": "uint8", "byte": "uint8", "char": "uint8"},
}

# A message whose strings differ from all that were before makes a layout; a stream has few.
_KEPT_LAYOUTS = 32


class LayoutError(BagError):
    """A message cannot be read by the definition of its type."""


class _Place(NamedTuple):
    offset: int
    dtype: np.dtype[Any]
    length: int


class Layout:
    """The layout of one message, and of all that differ from it in numbers only.

    Attributes:
        template: (size,) the message.
        message: the message as rosbags reads it.
    """

    def __init__(self, store: Typestore, name: str, data: bytes) -> None:
        """Find the numbers in a message.

        Args:
            store: holds the type.
            name: of the type.
            data: the serialised message.

        Raises:
            LayoutError: it is no message of this type.
        """
        try:
            self.message: Any = store.deserialize_cdr(data, name)
        except (SerdeError, struct.error, AssertionError, UnicodeDecodeError, MemoryError) as error:
            raise LayoutError(f"not a message of type {name}: {' '.join(str(error).split())}") from None
        self.template: Bytes = np.frombuffer(data, np.uint8)
        self._order: Literal["<", ">"] = "<" if data[1] else ">"
        self._data, self._store = data, store
        self._places: dict[str, _Place] = {}
        self._mask = np.zeros(len(data), dtype=np.uint8)
        # The kind of encapsulation; its two bytes of options are not looked at.
        self._mask[:2] = 0xFF
        self._covered = np.zeros(len(data), dtype=bool)
        self._walk_type("", name, _ENCAPSULATION)
        self._check(name)

    def fits(self, rows: Bytes) -> NDArray[np.bool_]:
        """Whether each of the messages (N, size) differs from this one in numbers only."""
        return np.asarray(np.any((rows ^ self.template) & self._mask, axis=1) == 0)

    def has(self, field: str) -> bool:
        """Whether there is a field of numbers of that path, such as ``header.stamp.sec``."""
        return field in self._places

    def fields(self) -> dict[str, int]:
        """The paths of all fields of numbers, and the length of each."""
        return {path: place.length for path, place in self._places.items()}

    def texts(self) -> bytes:
        """All strings and lengths of the message, in a form that can be compared."""
        return (self.template & self._mask)[2:][self._mask[2:] != 0].tobytes()

    def numbers(self, rows: Bytes, field: str) -> NDArray[Any]:
        """A field of the messages: (N, its length), in native byte order."""
        offset, dtype, count = self._places[field]
        part = np.ascontiguousarray(rows[:, offset : offset + dtype.itemsize * count])
        return part.view(dtype).astype(dtype.newbyteorder("="), copy=False).reshape(len(rows), count)

    def set_numbers(self, rows: Bytes, field: str, values: NDArray[Any]) -> None:
        """Write a field of the messages; ``values`` are (N, its length)."""
        offset, dtype, count = self._places[field]
        part = np.ascontiguousarray(values, dtype=dtype).view(np.uint8).reshape(len(rows), -1)
        rows[:, offset : offset + dtype.itemsize * count] = part

    def _walk_type(self, path: str, name: str, at: int) -> int:
        for field, description in self._store.fielddefs[name][1]:
            attribute = normalize_fieldname(field)
            at = self._walk(f"{path}.{attribute}" if path else attribute, description, at)
        return at

    def _walk(self, path: str, description: Any, at: int) -> int:
        """Go over a field that starts at a byte or, aligned, soon after; returns where it ends."""
        kind, what = description
        if kind == Nodetype.BASE:
            return self._string(at) if what[0] == "string" else self._numbers(path, what[0], at, 1)
        if kind == Nodetype.NAME:
            return self._walk_type(path, what, at)
        (element, length) = what
        if kind == Nodetype.SEQUENCE:
            length, at = self._length(at)
        if element[0] == Nodetype.BASE and element[1][0] != "string":
            return self._numbers(path, element[1][0], at, length)
        for k in range(length):
            at = self._walk(f"{path}[{k}]", element, at)
        return at

    def _numbers(self, path: str, name: str, at: int, count: int) -> int:
        if name not in _TYPES:
            raise LayoutError(f"field {path} is of type {name}, which is not supported")
        dtype = np.dtype(_TYPES[name]).newbyteorder(self._order)
        if count:
            at = _aligned(at, dtype.itemsize)
        end = at + dtype.itemsize * count
        self._places[path] = _Place(at, dtype, count)
        self._covered[at:end] = True
        return end

    def _length(self, at: int) -> tuple[int, int]:
        at = _aligned(at, 4)
        self._fixed(at, at + 4)
        return int(struct.unpack_from(f"{self._order}I", self._data, at)[0]), at + 4

    def _string(self, at: int) -> int:
        length, at = self._length(at)
        self._fixed(at, at + length)
        return at + length

    def _fixed(self, start: int, end: int) -> None:
        self._mask[start:end] = 0xFF
        self._covered[start:end] = True

    def _check(self, name: str) -> None:
        """Hold the layout against rosbags."""
        again = np.frombuffer(
            self._store.serialize_cdr(self.message, name, little_endian=self._order == "<"), dtype=np.uint8
        )
        rows = self.template[np.newaxis]
        # Serialisers may fill up the end.
        same = 0 <= len(rows[0]) - len(again) < _ENCAPSULATION and bool(
            np.all(((rows[0, : len(again)] ^ again) == 0) | ~self._covered[: len(again)])
        )
        for path, place in self._places.items():
            if not same:
                break
            value = self.message
            for part in path.replace("]", "").replace("[", ".").split("."):
                value = value[int(part)] if part.isdigit() else getattr(value, part)
            known = np.atleast_1d(np.asarray(value)).astype(place.dtype.newbyteorder("="), copy=False)
            same = known.tobytes() == self.numbers(rows, path).tobytes()
        if not same:
            raise LayoutError(f"a message of type {name} is not serialised as CDR says")


class Rows(NamedTuple):
    """Messages that follow on each other and have one layout.

    Attributes:
        start: place of the first of them in the block.
        layout: theirs.
        rows: (N, size) their bytes.
    """

    start: int
    layout: Layout
    rows: Bytes


class Layouts:
    """The layouts of a topic."""

    def __init__(self, store: Typestore, name: str) -> None:
        self._store, self._name = store, name
        self._known: list[Layout] = []

    def rows(self, block: Sequence[bytes]) -> Iterator[Rows | tuple[int, LayoutError]]:
        """The messages of a block, in their order, in rows; or the place of one that cannot be read, and why."""
        sizes = np.fromiter(map(len, block), np.intp, len(block))
        changes = np.flatnonzero(np.diff(sizes)) + 1
        for start, end in zip([0, *changes.tolist()], [*changes.tolist(), len(block)], strict=True):
            if sizes[start] <= _ENCAPSULATION:
                yield from ((place, LayoutError("too short for a message")) for place in range(start, end))
                continue
            rows = np.frombuffer(b"".join(block[start:end]), np.uint8).reshape(end - start, sizes[start])
            yield from self._of_one_size(start, rows)

    def _of_one_size(self, start: int, rows: Bytes) -> Iterator[Rows | tuple[int, LayoutError]]:
        at = 0
        while at < len(rows):
            try:
                layout = self._layout(rows[at])
            except LayoutError as error:
                yield start + at, error
                at += 1
                continue
            count = _leading(layout, rows[at:])
            yield Rows(start + at, layout, rows[at : at + count])
            at += count

    def _layout(self, row: Bytes) -> Layout:
        for layout in self._known:
            if len(layout.template) == len(row) and layout.fits(row[np.newaxis])[0]:
                return layout
        layout = Layout(self._store, self._name, row.tobytes())
        self._known = [layout, *self._known[: _KEPT_LAYOUTS - 1]]
        return layout


def _leading(layout: Layout, rows: Bytes) -> int:
    """How many rows, from the first on, have a layout. Looks at no more than four times as many."""
    count, step = 1, 64
    while count < len(rows):
        fits = layout.fits(rows[count : count + step])
        if not fits.all():
            return count + int(np.argmin(fits))
        count, step = count + len(fits), 4 * step
    return count


def _aligned(at: int, size: int) -> int:
    return _ENCAPSULATION + -(-(at - _ENCAPSULATION) // size) * size
