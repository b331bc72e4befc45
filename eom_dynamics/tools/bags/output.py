# SPDX-License-Identifier: Apache-2.0
"""Write bags, block by block; equal messages give identical bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .layout import Bytes
from .mcap_writer import McapWriter
from .sqlite_writer import SqliteWriter
from .types import OutputTopic


class Storage(Enum):
    """Storage formats, by their names in metadata.yaml."""

    MCAP = "mcap"
    SQLITE3 = "sqlite3"


class BagWriter(Protocol):
    """Writer of one bag."""

    def write(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        """Write N messages to each topic, interleaved by time.

        Args:
            times: (N,) times of recording, ns.
            rows: for each topic its serialised messages (N, size).

        Raises:
            OSError: the file cannot be written.
        """
        ...

    def close(self, custom_data: Mapping[str, str]) -> None:
        """Complete the bag; ``custom_data`` goes to its metadata.yaml."""
        ...

    def abort(self) -> None:
        """Close the incomplete files."""
        ...


def open_writer(folder: Path, name: str, storage: Storage, topics: Sequence[OutputTopic]) -> BagWriter:
    """Begin a bag.

    Args:
        folder: an empty folder to write to.
        name: of the bag; its files are named after it.
        storage: format of the bag.
        topics: to write.

    Raises:
        OSError: the folder cannot be written to.
    """
    kind = McapWriter if storage is Storage.MCAP else SqliteWriter
    return kind(folder, name, topics)
