# SPDX-License-Identifier: Apache-2.0
"""What a file of a bag gives, whatever its kind."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

# Lines on damage beyond these are counted.
_TOLD = 20


class Damage:
    """What could not be read."""

    def __init__(self) -> None:
        self.count = 0
        self._told: list[str] = []

    def add(self, line: str) -> None:
        """Take what could not be read at one place, on one line."""
        self.count += 1
        if len(self._told) < _TOLD:
            self._told.append(line)

    @property
    def lines(self) -> list[str]:
        """The first of them, and the number of the others."""
        return [*self._told, *([f"… and {self.count - _TOLD} more places"] if self.count > _TOLD else [])]


class StoredTopic(NamedTuple):
    """A topic in a file.

    Attributes:
        name, type: of the topic, and of its messages.
        definition: text of the type and of those that it needs; empty where the file has none.
        encoding: of its messages; ROS 2 writes ``cdr``.
    """

    name: str
    type: str
    definition: str
    encoding: str


class Block(NamedTuple):
    """Messages in the order in which they were recorded.

    Attributes:
        messages: number of the topic, time of recording in ns, and the serialised message.
        share: of the file that is behind, 0 to 1.
    """

    messages: list[tuple[int, int, bytes]]
    share: float


class StorageFile(Protocol):
    """A file of a bag.

    Attributes:
        topics: by their number in the file.
        damage: what could not be read so far.
    """

    topics: dict[int, StoredTopic]
    damage: Damage

    def __init__(self, path: Path) -> None: ...

    def blocks(self, topics: Collection[int]) -> Iterator[Block]:
        """The messages of some topics."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...
