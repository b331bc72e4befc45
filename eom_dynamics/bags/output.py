# SPDX-License-Identifier: Apache-2.0
"""Write bags, block by block; equal messages give identical bytes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer

from .layout import Bytes
from .mcap_writer import McapWriter
from .types import OutputTopic


class SqliteWriter:
    """Writer of ``<name>.db3`` and metadata.yaml."""

    def __init__(self, folder: Path, name: str, topics: Sequence[OutputTopic]) -> None:
        """Begin the bag; OSError if it cannot be written."""
        # rosbags insists on a new folder, and names the file after it.
        self._folder, self._made = folder, folder / name
        self._writer = Writer(self._made, version=9, storage_plugin=StoragePlugin.SQLITE3)
        self._writer.open()
        self._connections = [
            self._writer.add_connection(topic.name, topic.type, msgdef=topic.definition, rihs01=topic.hash)
            for topic in topics
        ]

    def write(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        """Write messages as :meth:`BagWriter.write` does."""
        messages = [_each(part) for part in rows]
        write = self._writer.write
        with _as_oserror():
            for k, time in enumerate(times.tolist()):
                for connection, data in zip(self._connections, messages, strict=True):
                    write(connection, time, data[k])

    def close(self, custom_data: Mapping[str, str]) -> None:
        """Complete the database and write metadata.yaml."""
        for key, value in custom_data.items():
            self._writer.set_custom_data(key, value)
        with _as_oserror():
            self._writer.close()
        for file in self._made.iterdir():
            shutil.move(file, self._folder / file.name)
        self._made.rmdir()

    def abort(self) -> None:
        """Close the incomplete database."""
        self._writer.abort()


@contextmanager
def _as_oserror() -> Iterator[None]:
    """Turn errors of SQLite, as on a full disk, into OSErrors, as other files raise them."""
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(str(error)) from None


def _each(rows: Bytes) -> list[bytes]:
    data, size = rows.tobytes(), rows.shape[1]
    return [data[at : at + size] for at in range(0, len(data), size)]


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
