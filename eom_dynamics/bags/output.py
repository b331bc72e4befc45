# SPDX-License-Identifier: Apache-2.0
"""Write bags, block by block; equal messages give identical bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer

from .bounds import UNQUOTED
from .layout import Bytes
from .types import typestore


class Storage(Enum):
    """Storage formats, by their names in metadata.yaml."""

    MCAP = "mcap"
    SQLITE3 = "sqlite3"


class BagWriter:
    """Writer of ``<name>.mcap`` or ``<name>.db3``, with the types of its topics, and of metadata.yaml.

    A context manager: the bag is complete when its context ends without an error.
    """

    def __init__(self, folder: Path, name: str, storage: Storage, topics: Mapping[str, str]) -> None:
        """Begin a bag.

        Args:
            folder: an empty folder to write to.
            name: of the bag; its file is named after it.
            storage: format of the bag.
            topics: types of the topics to write, by name.

        Raises:
            OSError: the folder cannot be written to.
        """
        # rosbags insists on a new folder, and names the file after it.
        self._folder, self._made = folder, folder / name
        if storage is Storage.SQLITE3 and (other := UNQUOTED & set(str(self._made))):
            raise OSError(f"rosbags writes no databases below folders with {' '.join(sorted(other))} in their names")
        self._writer = Writer(self._made, version=9, storage_plugin=StoragePlugin[storage.name])
        with _as_oserror():
            self._writer.open()
            self._connections = [
                self._writer.add_connection(topic, kind, typestore=typestore(kind)) for topic, kind in topics.items()
            ]

    def write(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        """Write N messages to each topic, interleaved by time.

        Args:
            times: (N,) times of recording, ns.
            rows: for each topic its serialised messages (N, size).

        Raises:
            OSError: the file cannot be written.
        """
        messages = [[message.tobytes() for message in part] for part in rows]
        write = self._writer.write
        with _as_oserror():
            for k, time in enumerate(times.tolist()):
                for connection, data in zip(self._connections, messages, strict=True):
                    write(connection, time, data[k])

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        """Complete the bag, or after an error close its incomplete file."""
        if kind is not None:
            self._writer.abort()
            return
        with _as_oserror():
            self._writer.close()
        for file in self._made.iterdir():
            file.replace(self._folder / file.name)
        self._made.rmdir()


@contextmanager
def _as_oserror() -> Iterator[None]:
    """Turn errors of SQLite, as on a full disk, into OSErrors, as other files raise them."""
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(str(error)) from None
