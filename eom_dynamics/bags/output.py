# SPDX-License-Identifier: Apache-2.0
"""Bags to write, block by block. The same messages make the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .layout import Bytes
from .mcap_writer import McapWriter
from .sqlite_writer import SqliteWriter
from .types import typestore


class Storage(Enum):
    """Kinds of bags, by their name in metadata.yaml."""

    MCAP = "mcap"
    SQLITE3 = "sqlite3"


class OutputTopic(NamedTuple):
    """A topic to write.

    Attributes:
        name, type: of the topic, and of its messages.
        definition: text of the type and of those that it needs.
        hash: of the type, as ROS 2 computes it (REP 2016).
    """

    name: str
    type: str
    definition: str
    hash: str

    @classmethod
    def of(cls, name: str, kind: str) -> OutputTopic:
        """A topic of a type that is known here."""
        store = typestore(kind)
        return cls(name, kind, store.generate_msgdef(kind, ros_version=2)[0], store.hash_rihs01(kind))


class BagWriter(Protocol):
    """Writes a bag."""

    def write(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        """Write N messages to each topic, the first of each topic first.

        Args:
            times: (N,) of recording, ns.
            rows: (N, size) for each topic, serialised messages.
        """
        ...

    def close(self, remarks: Mapping[str, str]) -> None:
        """Complete the bag; ``remarks`` go to its metadata.yaml, as custom_data."""
        ...

    def abort(self) -> None:
        """Let go of the files, which are no bag."""
        ...


def open_writer(folder: Path, name: str, storage: Storage, topics: Sequence[OutputTopic]) -> BagWriter:
    """Begin a bag.

    Args:
        folder: an empty one, to write to.
        name: of the bag, from which those of its files are made.
        storage: its kind.
        topics: to write.

    Raises:
        OSError: the folder cannot be written to.
    """
    kind = McapWriter if storage is Storage.MCAP else SqliteWriter
    return kind(folder, name, topics)
