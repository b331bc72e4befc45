# SPDX-License-Identifier: Apache-2.0
"""Messages of a recorded topic, in blocks of one layout, with their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .bag import Bag
from .layout import Bytes, Layout, LayoutError, Layouts, Rows
from .types import Topic


@dataclass(frozen=True)
class Stamps:
    """Times of N messages, ns.

    Attributes:
        recorded: (N,) times of recording.
        header: (N,) stamps of the headers.
    """

    recorded: NDArray[np.int64]
    header: NDArray[np.int64]

    def __getitem__(self, rows: Any) -> Stamps:
        return Stamps(self.recorded[rows], self.header[rows])

    @property
    def times(self) -> NDArray[np.int64]:
        """(N,) header stamps, or times of recording if all stamps are zero."""
        return self.header if self.header.any() else self.recorded


@dataclass(frozen=True)
class MessageBlock:
    """N consecutive messages of a topic that differ in numbers only.

    Attributes:
        recorded: (N,) times of recording, ns.
        layout: of the messages.
        rows: (N, size) bytes of the messages.
    """

    recorded: NDArray[np.int64]
    layout: Layout
    rows: Bytes

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def message(self) -> Any:
        """One of the messages, for its strings and lengths, which all share."""
        return self.layout.message

    def stamps(self) -> Stamps:
        """Times of messages with a header."""
        sec, nanosec = (self.layout.numbers(self.rows, f"header.stamp.{unit}")[:, 0] for unit in ("sec", "nanosec"))
        return Stamps(self.recorded, sec.astype(np.int64) * 1_000_000_000 + nanosec)

    def numbers(self, field: str) -> Array:
        """A field as floats (N, length of the field)."""
        return self.layout.numbers(self.rows, field).astype(float)

    def values(self, fields: Sequence[str], count: int) -> dict[str, Array]:
        """Fields (N, count) by their names; those with another number of entries are left out."""
        lengths = self.layout.fields()
        return {field: self.numbers(field) for field in fields if lengths.get(field) == count}


def read_blocks(bag: Bag, topic: Topic, unreadable: Callable[[str, int], object]) -> Iterator[MessageBlock]:
    """Read the messages of a topic in the order of recording.

    Args:
        unreadable: called for each message that cannot be read, with the reason and its time of recording, ns.

    Raises:
        BagError: the type is not known, or its messages are not serialised as CDR.
    """
    layouts = Layouts(topic.types(), topic.type)
    for times, messages in bag.messages(topic):
        recorded = np.array(times, dtype=np.int64)
        for found in layouts.rows(messages):
            if isinstance(found, Rows):
                start, layout, rows = found
                yield MessageBlock(recorded[start : start + len(rows)], layout, rows)
            else:
                place, error = found
                unreadable(str(error), times[place])


def read_messages(bag: Bag, topic: Topic, unreadable: Callable[[str, int], object]) -> Iterator[tuple[int, Any]]:
    """Read the messages of a topic one by one, with their times of recording, ns; arguments as of :func:`read_blocks`.

    For types of few messages, whose parts are messages themselves.
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
