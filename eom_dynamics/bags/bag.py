# SPDX-License-Identifier: Apache-2.0
"""Read a bag: a folder, even without the metadata.yaml that a killed recorder has not written, or one file."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
import zstandard

from .compression import Allowance, TooLargeError, unpack_file, unpack_message
from .mcap_file import McapFile
from .sqlite_file import SqliteFile
from .storage import BagError, Block
from .types import Topic

METADATA = "metadata.yaml"

StorageFile = SqliteFile | McapFile
"""A file of a bag: its topics by number, blocks of messages, what could not be read, and custom data."""

_FORMATS: dict[str, type[StorageFile]] = {".db3": SqliteFile, ".mcap": McapFile}
_COMPRESSED = ".zstd"

ENDINGS = tuple(_FORMATS)
"""Of the names of files of a bag, before that of a compressed one."""

# Large robots have some hundred; the messages of each are read separately.
_MOST_TOPICS = 10_000

_LISTED_TOPICS = 20

# metadata.yaml takes some hundred bytes for each topic.
_LARGEST_METADATA = 64 * 2**20

# Messages in a block, and bytes, beyond which a block ends.
_BLOCK = 2048
_BLOCK_BYTES = 2**26

# Times of recording are from 1970 on, ns; the sum of two of them fits 64 bits.
_TIMES = range(2**62)


class Bag:
    """Bag reader; a context manager that closes its files.

    Attributes:
        path: of the bag.
        topics: in the bag.
        custom_data: of its metadata.yaml, or of its only file.
        progress: called with the fraction of the bag read, 0 to 1, for each topic that is read; None by default.
    """

    def __init__(self, path: Path) -> None:
        """Open the bag and list its topics; :attr:`damage` reports what could not be read.

        Raises:
            BagError: it is not a bag, or too damaged to list its topics.
            OSError: a file cannot be read.
        """
        self.path = path
        self.custom_data: dict[str, str] = {}
        self.progress: Callable[[float], None] | None = None
        self._stack = ExitStack()
        self._damage: list[str] = []
        self._files: list[StorageFile] = []
        self._compressed_messages = False
        try:
            for file in self._paths():
                self._open(file)
            if not self._files:
                raise BagError(self._damage[-1] if self._damage else f"{path}: not a bag: no .db3 or .mcap file in it")
            if self._files[0].path == path:
                self.custom_data = self._files[0].custom_data
            self.topics = sorted({topic for file in self._files for topic in file.topics.values()})
            if (count := sum(len(file.topics) for file in self._files)) > _MOST_TOPICS:
                raise BagError(f"{path}: has {count:,} topics, more than the {_MOST_TOPICS:,} that are read")
            if not self.topics and self.damage:
                raise BagError(self.damage[-1])
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def named(self, name: str) -> list[Topic]:
        """Topics of a name, which may lack its leading slash; several, if it was recorded with several types."""
        return [topic for topic in self.topics if topic.name.lstrip("/") == name.lstrip("/")]

    @property
    def topics_in_words(self) -> str:
        """The first topics with their types, for messages."""
        return ", ".join(f"{topic.name} ({topic.type})" for topic in self.topics[:_LISTED_TOPICS]) or "no topics"

    @property
    def damage(self) -> list[str]:
        """Parts that could not be read so far, one line each."""
        return self._damage + [line for file in self._files for line in file.damage.lines]

    def messages(self, topic: Topic) -> Iterator[tuple[list[int], list[bytes]]]:
        """Read the messages of one of :attr:`topics` in the order of recording, in blocks.

        Yields:
            Times of recording, ns, and bytes of the messages.

        Raises:
            BagError: the messages are not serialised as CDR.
        """
        if topic.encoding != "cdr":
            raise BagError(f"topic {topic.name}: messages are serialised as {topic.encoding!r:.40}, not cdr")
        for place, file in enumerate(self._files):
            numbers = [number for number, stored in file.topics.items() if stored == topic]
            if not numbers:
                continue
            blocks = file.blocks(numbers)
            if self._compressed_messages:
                blocks = self._decompressed(blocks, topic, file)
            misdated = 0
            for times, messages, fraction in _of_one_size(blocks):
                if self.progress:
                    self.progress((place + fraction) / len(self._files))
                if min(times) not in _TIMES or max(times) not in _TIMES:
                    kept = [k for k, time in enumerate(times) if time in _TIMES]
                    misdated += len(times) - len(kept)
                    times, messages = [times[k] for k in kept], [messages[k] for k in kept]
                if times:
                    yield times, messages
            if misdated:
                self._report(
                    f"{file.path}: {misdated:,} messages of topic {topic.name} are left out: they were recorded before "
                    "1970 or after 2116"
                )

    def _decompressed(self, blocks: Iterator[Block], topic: Topic, file: StorageFile) -> Iterator[Block]:
        """Decompress messages; one that cannot be decompressed becomes empty, which is not a message."""
        allowance, decompressor = Allowance(file.path.stat().st_size), zstandard.ZstdDecompressor()
        for block in blocks:
            times: list[int] = []
            messages: list[bytes] = []
            size = 0
            for time, message in zip(block.times, block.messages, strict=True):
                try:
                    plain = unpack_message(decompressor, message, allowance)
                except (TooLargeError, zstandard.ZstdError) as error:
                    self._report(f"{file.path}: topic {topic.name}: messages that cannot be decompressed: {error}")
                    plain = b""
                times.append(time)
                messages.append(plain)
                size += len(plain)
                if size > _BLOCK_BYTES:
                    yield Block(times, messages, block.fraction)
                    times, messages, size = [], [], 0
            if times:
                yield Block(times, messages, block.fraction)

    def _report(self, line: str) -> None:
        """Take down damage, once: a topic may be read several times."""
        if line not in self._damage:
            self._damage.append(line)

    def _paths(self) -> list[Path]:
        if not self.path.is_dir():
            if not self.path.exists():
                raise BagError(f"{self.path}: there is no such bag")
            if not self.path.is_file() or not is_storage(self.path):
                raise BagError(f"{self.path}: not a bag: neither a folder nor a .db3 or .mcap file")
            return [self.path]
        metadata = self._metadata()
        if metadata is None:
            return sorted(path for path in self.path.iterdir() if is_storage(path))
        mode, custom_data = metadata.get("compression_mode"), metadata.get("custom_data")
        self._compressed_messages = isinstance(mode, str) and mode.lower() == "message"
        if isinstance(custom_data, dict):
            self.custom_data = {key: value for key, value in custom_data.items() if isinstance(value, str)}
        # By name alone: the files of a bag are in its folder.
        return [self.path / Path(name).name for name in metadata["relative_file_paths"]]

    def _metadata(self) -> dict[str, Any] | None:
        path = self.path / METADATA
        reason = "missing"
        if path.is_file() and path.stat().st_size <= _LARGEST_METADATA:
            try:
                metadata = yaml.safe_load(path.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
                names = metadata["relative_file_paths"]
                if isinstance(names, list) and all(isinstance(name, str) and "\0" not in name for name in names):
                    return dict(metadata)
                reason = "relative_file_paths is not a list of names"
            except (KeyError, TypeError, RecursionError):
                reason = "not the metadata of a bag"
            except (yaml.YAMLError, ValueError) as error:
                reason = f"cannot be read: {' '.join(str(error).split())}"
        remedy = f"to write it anew: ros2 bag reindex {shlex.quote(str(self.path))}"
        self._damage.append(f"{path}: {reason}; all files of the folder are read, by name; {remedy}")
        return None

    def _open(self, path: Path) -> None:
        source = path
        try:
            if path.suffix == _COMPRESSED:
                path = self._decompressed_file(path)
            if path.stat().st_size == 0:
                raise BagError(f"{source}: is empty")
            storage = _FORMATS.get(path.suffix)
            if storage is None:
                raise BagError(f"{source}: is neither a .db3 nor a .mcap file")
            file = storage(path, source)
        except (BagError, FileNotFoundError) as error:
            self._damage.append(str(error) if isinstance(error, BagError) else f"{source}: is missing")
            return
        self._stack.callback(file.close)
        self._files.append(file)

    def _decompressed_file(self, path: Path) -> Path:
        """Decompress a file, as far as it goes, for as long as the bag is open."""
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-"))
        file = Path(folder, path.stem)
        try:
            unpack_file(path, file)
        except (TooLargeError, zstandard.ZstdError) as error:
            self._damage.append(f"{path}: cannot be decompressed any further: {error}")
        return file


def is_storage(path: Path) -> bool:
    """Whether a path is named like a bag's storage file, compressed or not."""
    return path.name.removesuffix(_COMPRESSED).endswith(ENDINGS)


def _of_one_size(parts: Iterator[Block]) -> Iterator[tuple[list[int], list[bytes], float]]:
    """Regroup messages into blocks of one size; the last one, and those of large messages, may be smaller."""
    times: list[int] = []
    messages: list[bytes] = []
    fraction = 0.0
    size = 0
    for part in parts:
        times += part.times
        messages += part.messages
        fraction = part.fraction
        size += sum(map(len, part.messages))
        whole = len(times) // _BLOCK * _BLOCK if size < _BLOCK_BYTES else len(times)
        for start in range(0, whole, _BLOCK):
            yield times[start : min(whole, start + _BLOCK)], messages[start : min(whole, start + _BLOCK)], fraction
        del times[:whole], messages[:whole]
        if whole:
            size = sum(map(len, messages))
    if times:
        yield times, messages, fraction
