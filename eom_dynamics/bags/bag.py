# SPDX-License-Identifier: Apache-2.0
"""A bag: a folder with metadata.yaml, one that a recorder which was killed left without it, or one file of a bag."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import yaml
import zstandard
from rosbags.typesys.store import Typestore

from .errors import BagError
from .mcap_file import McapFile
from .sqlite_file import SqliteFile
from .storage import StorageFile
from .types import typestore

METADATA = "metadata.yaml"

_KINDS: dict[str, type[StorageFile]] = {".db3": SqliteFile, ".mcap": McapFile}
_PACKED = ".zstd"

# A bag's metadata.yaml has some hundred bytes a topic.
_LARGEST_METADATA = 64 * 2**20


class Topic(NamedTuple):
    """A topic of a bag.

    Attributes:
        name, type: of the topic, and of its messages.
        definition: text of the type as the bag holds it; empty where it holds none.
    """

    name: str
    type: str
    definition: str

    def types(self) -> Typestore:
        """What to read its messages by; BagError as for :func:`typestore`."""
        try:
            return typestore(self.type, self.definition)
        except BagError as error:
            raise BagError(f"topic {self.name}: {error}") from None


class Bag:
    """A bag to read from; a context, which closes its files.

    Attributes:
        path: of the bag.
        topics: in it.
    """

    def __init__(self, path: Path) -> None:
        """Open the bag and find its topics. What cannot be read of it is in :attr:`damage`.

        Raises:
            BagError: it is no bag, or too damaged to say what is in it.
            OSError: a file cannot be read.
        """
        self.path = path
        self._stack = ExitStack()
        self._damage: list[str] = []
        self._files: list[StorageFile] = []
        self._packed_messages = False
        self._remarks: dict[str, str] = {}
        try:
            for file in self._paths():
                self._open(file)
        except BaseException:
            self._stack.close()
            raise
        if not self._files:
            self._stack.close()
            raise BagError(self._damage[-1] if self._damage else f"{path}: is no bag: there is no .db3 or .mcap in it")
        found = {Topic(*topic[:3]) for file in self._files for topic in file.topics.values()}
        self.topics = sorted(found)

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @property
    def remarks(self) -> dict[str, str]:
        """What the custom_data of its metadata.yaml says."""
        return self._remarks

    @property
    def damage(self) -> list[str]:
        """What could not be read so far, one line each."""
        return self._damage + [line for file in self._files for line in file.damage.lines]

    def messages(
        self, topic: Topic, progress: Callable[[float], None] | None = None
    ) -> Iterator[tuple[list[int], list[bytes]]]:
        """The messages of a topic as they were recorded, in blocks: their times of recording, ns, and their bytes.

        Args:
            topic: one of :attr:`topics`.
            progress: is told the share of the bag that is behind, 0 to 1.

        Raises:
            BagError: the messages are not serialised as CDR.
        """
        unpack = zstandard.ZstdDecompressor().decompressobj if self._packed_messages else None
        for place, file in enumerate(self._files):
            numbers = [number for number, stored in file.topics.items() if Topic(*stored[:3]) == topic]
            for number in numbers:
                if file.topics[number].encoding != "cdr":
                    raise BagError(
                        f"topic {topic.name}: messages are serialised as {file.topics[number].encoding!r:.40}, not cdr"
                    )
            if not numbers:
                continue
            for block in file.blocks(numbers):
                times = [message[1] for message in block.messages]
                data = [message[2] for message in block.messages]
                if unpack:
                    data = [_unpacked(unpack(), message) for message in data]
                if progress:
                    progress((place + block.share) / len(self._files))
                yield times, data

    def _paths(self) -> list[Path]:
        if not self.path.is_dir():
            if not self.path.exists():
                raise BagError(f"{self.path}: there is no such bag")
            if not self.path.is_file() or not {self.path.suffix, Path(self.path.stem).suffix} & set(_KINDS):
                raise BagError(f"{self.path}: is no bag: neither a folder nor a .db3 or .mcap file")
            return [self.path]
        metadata = self._metadata()
        if metadata is None:
            return sorted(p for p in self.path.iterdir() if {p.suffix, Path(p.stem).suffix} & set(_KINDS))
        self._packed_messages = str(metadata.get("compression_mode", "")).lower() == "message"
        if isinstance(remarks := metadata.get("custom_data"), dict):
            self._remarks = {str(key): str(value) for key, value in remarks.items()}
        # By their names alone, as a bag's files may lie nowhere else.
        return [self.path / Path(name).name for name in metadata["relative_file_paths"]]

    def _metadata(self) -> dict[str, Any] | None:
        path = self.path / METADATA
        reason = "there is none"
        if path.is_file() and path.stat().st_size <= _LARGEST_METADATA:
            try:
                metadata = yaml.safe_load(path.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
                names = metadata["relative_file_paths"]
                if isinstance(names, list) and all(isinstance(name, str) and "\0" not in name for name in names):
                    return dict(metadata)
                reason = "relative_file_paths is no list of names"
            except (KeyError, TypeError, RecursionError):
                reason = "is not that of a bag"
            except (yaml.YAMLError, ValueError) as error:
                reason = f"cannot be read: {' '.join(str(error).split())}"
        self._damage.append(f"{path}: {reason}; the files of the folder are read in the order of their names")
        return None

    def _open(self, path: Path) -> None:
        try:
            if path.suffix == _PACKED:
                path = self._unpacked_file(path)
            if path.stat().st_size == 0:
                raise BagError(f"{path}: is empty")
            kind = _KINDS.get(path.suffix)
            if kind is None:
                raise BagError(f"{path}: is neither a .db3 nor a .mcap file")
            file = kind(path)
        except (BagError, FileNotFoundError) as error:
            reason = str(error) if isinstance(error, BagError) else f"{path}: is missing"
            self._damage.append(reason)
            return
        self._stack.callback(file.close)
        self._files.append(file)

    def _unpacked_file(self, path: Path) -> Path:
        """A file that is compressed as a whole, decompressed as far as it goes, for as long as the bag is open."""
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-"))
        file = Path(folder) / path.stem
        with path.open("rb") as packed, file.open("wb") as plain:
            try:
                zstandard.ZstdDecompressor().copy_stream(packed, plain)
            except zstandard.ZstdError as error:
                self._damage.append(f"{path}: cannot be decompressed any further: {error}")
        return file


def _unpacked(decompressor: Any, message: bytes) -> bytes:
    """The message, or nothing where it cannot be decompressed, which is then no message."""
    try:
        return bytes(decompressor.decompress(message))
    except zstandard.ZstdError:
        return b""
