# SPDX-License-Identifier: Apache-2.0
"""Read and write bags by rosbags.

A bag is a file, or a folder with metadata.yaml. A damaged bag is refused with the command that recovers it. Equal
messages are written as identical bytes.
"""

from __future__ import annotations

import errno
import shlex
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from .bounds import LARGEST, UNQUOTED, HostileError, StepLimit, check_index, chunks_in, most_bytes, unpack, unpack_file
from .types import BagError, Topic, typestore

METADATA = "metadata.yaml"

_MCAP, _SQLITE = ".mcap", ".db3"
_COMPRESSED = ".zstd"

# Endings of storage files; a compressed file has one more.
ENDINGS = (_SQLITE, _MCAP)

# Large robots have some hundred; the messages of each are read separately.
_MOST_TOPICS = 10_000

_LISTED_TOPICS = 20

# Head of a journal in use; SQLite overwrites it if it keeps the file.
_HOT_JOURNAL = bytes.fromhex("d9d505f920a163d7")

# metadata.yaml takes some hundred bytes for each topic.
_LARGEST_METADATA = 8 * 2**20

# Maximum number of messages, and of bytes, of a block.
_BLOCK = 2048
_BLOCK_BYTES = 2**26

# Times of recording are from 1970 on, ns; the sum of two of them fits 64 bits.
_LATEST = 2**62


class Bag:
    """Bag reader; a context manager that closes its files.

    Raises:
        BagError: it is not a bag, or rosbags cannot read it.
        OSError: a file cannot be read.

    Attributes:
        path: of the bag.
        topics: in the bag.
        progress: called with the fraction of the topic read, 0 to 1, for each topic that is read; None by default.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.progress: Callable[[float], None] | None = None
        self._compressed_messages = False
        with ExitStack() as stack:
            files = self._paths()
            self._files = [_File(file, stack, _reindex(self.path)) for file in files]
            if (count := sum(len(file.topics) for file in self._files)) > _MOST_TOPICS:
                raise BagError(f"{path}: has {count:,} topics, more than the {_MOST_TOPICS:,} that are read")
            self.topics = sorted({topic for file in self._files for topic in file.topics})
            self._stack = stack.pop_all()

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def named(self, name: str) -> list[Topic]:
        """Topics of a name, which may lack its leading slash; several, if it was recorded with several types."""
        return [topic for topic in self.topics if topic.name.lstrip("/") == name.lstrip("/")]

    def lacks(self, what: str, remedy: str = "") -> BagError:
        """BagError for a missing topic: the missing topic, the first topics of the bag, and a remedy."""
        topics = ", ".join(f"{topic.name} ({topic.type})" for topic in self.topics[:_LISTED_TOPICS]) or "no topics"
        return BagError(f"{self.path}: {what}; it has {topics}{remedy}")

    def messages(self, topic: Topic) -> Iterator[tuple[list[int], list[bytes]]]:
        """Read the messages of one of :attr:`topics` by their times of recording, in blocks.

        Yields:
            Times of recording, ns, and bytes of the messages.

        Raises:
            BagError: the messages are not serialized as CDR, or cannot be read.
        """
        if topic.encoding != "cdr":
            raise BagError(f"topic {topic.name}: messages are serialized as {topic.encoding!r:.40}, not cdr")
        read, total = 0, max(1, sum(file.count(topic) for file in self._files))
        for file in self._files:
            for times, messages in file.blocks(topic, compressed=self._compressed_messages):
                read += len(times)
                if self.progress:
                    self.progress(min(1.0, read / total))
                yield times, messages

    def _paths(self) -> list[Path]:
        if not self.path.is_dir():
            if not self.path.exists():
                raise BagError(f"{self.path}: there is no such bag")
            if not self.path.is_file() or not is_storage(self.path):
                if self.path.suffix == ".bag":
                    new = self.path.with_suffix("")
                    raise BagError(f"{self.path}: ROS 1 bag; run: rosbags-convert --src {self.path} --dst {new}")
                raise BagError(f"{self.path}: not a bag: neither a folder nor a .db3 or .mcap file")
            return [self.path]
        if not any(map(is_storage, self.path.iterdir())):
            raise BagError(f"{self.path}: not a bag: no .db3 or .mcap file in it")
        metadata = self._metadata()
        mode = metadata.get("compression_mode")
        self._compressed_messages = isinstance(mode, str) and mode.lower() == "message"
        # By name alone: the files of a bag are in its folder.
        return [self.path / Path(name).name for name in metadata["relative_file_paths"]]

    def _metadata(self) -> dict[str, Any]:
        path = self.path / METADATA
        reason = "missing"
        if path.is_file() and path.stat().st_size <= _LARGEST_METADATA:
            try:
                metadata = yaml.safe_load(path.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
                names = metadata["relative_file_paths"]
                if names and isinstance(names, list) and all(isinstance(x, str) and "\0" not in x for x in names):
                    return dict(metadata)
                reason = "relative_file_paths is not a list of names"
            except (KeyError, TypeError, RecursionError):
                reason = "not the metadata of a bag"
            except (yaml.YAMLError, ValueError) as error:
                reason = f"cannot be read: {' '.join(str(error).split())}"
        raise BagError(f"{path}: {reason}; {_reindex(self.path)}")


def _reindex(path: Path) -> str:
    return f"to rewrite it: ros2 bag reindex {shlex.quote(str(path))}"


class _File:
    """Storage file; if rosbags cannot read all of it, it is refused with the command that recovers it.

    Attributes:
        topics: in the file.
    """

    def __init__(self, path: Path, stack: ExitStack, reindex: str) -> None:
        self._path = self._read_from = path
        if not path.is_file():
            raise BagError(f"{path}: is missing; {reindex}")
        self._remedy = _remedy(path)
        with self._reading():
            if path.suffix == _COMPRESSED:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-"))
                path = Path(folder, path.stem)
                unpack_file(self._path, path)
            elif path.suffix == _SQLITE and UNQUOTED & set(str(path)):
                link = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-")), "bag.db3")
                link.symlink_to(path.resolve())
                path = link
        self._read_from = path
        if path.suffix not in ENDINGS:
            raise BagError(f"{self._path}: is neither a .db3 nor a .mcap file")
        if not path.stat().st_size:
            raise BagError(f"{self._path}: is empty")
        self._steps = StepLimit(path)
        # A database stores each byte; a damaged one can lead to the same message again and again.
        self._most = path.stat().st_size if path.suffix == _SQLITE else most_bytes(path)
        self._most_unpacked = most_bytes(path)
        with self._reading():
            self._reader = Reader(path)
            if path.suffix == _SQLITE:
                self._check_log()
                with self._steps.limit():
                    stack.enter_context(self._reader)
            else:
                there = chunks_in(path)
                stack.enter_context(self._reader)
                check_index(getattr(self._reader.storage, "chunks", []), there)
            self._connections: dict[Topic, list[Any]] = {}
            for connection in self._reader.connections:
                self._connections.setdefault(Topic.of(connection), []).append(connection)
        self.topics = list(self._connections)

    def count(self, topic: Topic) -> int:
        """Number of messages of a topic."""
        return sum(connection.msgcount for connection in self._connections.get(topic, ()))

    def blocks(self, topic: Topic, *, compressed: bool) -> Iterator[tuple[list[int], list[bytes]]]:
        """Read the messages of a topic, in blocks."""
        if topic not in self._connections:
            return
        self._steps.begin()
        read, left = 0, self._most_unpacked if compressed else self._most
        times: list[int] = []
        messages: list[bytes] = []
        size = 0
        with self._reading():
            for _, time, message in self._reader.messages(self._connections[topic]):
                if type(time) is not int or not 0 <= time < _LATEST or type(message) is not bytes:
                    raise ValueError("a message is damaged, or was recorded before 1970 or after 2116")
                data = unpack(message, LARGEST) if compressed else message
                times.append(time)
                messages.append(data)
                size += len(data)
                if len(times) == _BLOCK or size > _BLOCK_BYTES:
                    read, left = read + len(times), left - size
                    if left < 0:
                        raise HostileError("its messages take more bytes than a file of its size can hold")
                    yield times, messages
                    times, messages, size = [], [], 0
            if read + len(times) != self.count(topic):
                raise ValueError(f"{read + len(times):,} of {self.count(topic):,} messages of {topic.name} can be read")
        if times:
            yield times, messages

    def _check_log(self) -> None:
        """Refuse a database with its last messages in a log, which rosbags does not read."""
        for log, begin in ((Path(f"{self._path}-wal"), b""), (Path(f"{self._path}-journal"), _HOT_JOURNAL)):
            if not log.exists():
                continue
            with log.open("rb") as file:
                head = file.read(8)
            if head and head.startswith(begin):
                command = f"sqlite3 {shlex.quote(str(self._path))} 'SELECT count(*) FROM messages'"
                raise BagError(f"{self._path}: was not closed: {log} has to be merged into it; try: {command}")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn any exception of rosbags for a damaged file into a BagError; OSErrors of the system stay."""
        try:
            yield
        except BagError:
            raise
        except Exception as error:  # it takes bytes, texts and numbers apart unchecked
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            text = str(error).replace(str(self._read_from), str(self._path))
            reason = " ".join(text.split()) or type(error).__name__
            raise BagError(f"{self._path}: cannot be read: {reason:.300}; {self._remedy}") from None


def _remedy(source: Path) -> str:
    """Shell commands that recover as much of a file as possible; a compressed file is unpacked first."""
    unpack_first, file = "", shlex.quote(str(source))
    if source.suffix == _COMPRESSED:
        kind = Path(source.stem).suffix
        unpack_first, file = f"zstd -dc {file} > unpacked{kind}; ", f"unpacked{kind}"
    if source.name.removesuffix(_COMPRESSED).endswith(_MCAP):
        return f"try: {unpack_first}mcap recover {file} -o recovered.mcap"
    # Ubuntu's sqlite3 lacks .recover; ros2 bag reindex wants the number in the file name.
    return (
        f"try: {unpack_first}mkdir recovered; sqlite3 {file} .dump | sed 's/^ROLLBACK.*/COMMIT;/' | "
        "sqlite3 recovered/recovered_0.db3; ros2 bag reindex recovered"
    )


def is_storage(path: Path) -> bool:
    """Return whether a path is named like a bag's storage file, compressed or not."""
    return path.name.removesuffix(_COMPRESSED).endswith(ENDINGS)


def find_bags(path: Path) -> list[Path]:
    """Find the bags at a path: itself, or all in the folder and its subfolders, sorted.

    A folder is a bag if it has metadata.yaml, or if all its storage files are named after it, as after a recorder
    was killed. Raises BagError without bags.
    """
    if not path.is_dir() or _is_bag(path):
        return [path]
    bags = list(_bags_in(path))
    if not bags:
        raise BagError(f"{path}: has no bags in it")
    return bags


def _is_bag(folder: Path) -> bool:
    if (folder / METADATA).is_file():
        return True
    files = [file for file in folder.iterdir() if is_storage(file) and file.is_file()]
    return bool(files) and all(file.name.startswith(f"{folder.name}_") for file in files)


def _bags_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):  # such as an output that is being written
            continue
        if path.is_dir() and not path.is_symlink():
            yield from [path] if _is_bag(path) else _bags_in(path)
        elif is_storage(path) and path.is_file():
            yield path


class Storage(Enum):
    """Storage formats, by their names in metadata.yaml."""

    MCAP = "mcap"
    SQLITE3 = "sqlite3"


class BagWriter:
    """Writer of ``<name>.mcap`` or ``<name>.db3``, with the types of its topics, and of metadata.yaml.

    A context manager: the bag is complete when its context ends without an error.

    Args:
        folder: an empty folder to write to.
        name: of the bag, and of its file.
        topics: types of the topics to write, by name.
        about: names and values for ``custom_data`` of the metadata.

    Raises:
        OSError: the folder cannot be written to.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        storage: Storage,
        topics: Mapping[str, str],
        about: Mapping[str, str] | None = None,
    ) -> None:
        # rosbags insists on a new folder, and names the file after it.
        self._folder, self._made = folder, folder / name
        if storage is Storage.SQLITE3 and (other := UNQUOTED & set(str(self._made))):
            raise OSError(f"rosbags writes no databases below folders with {' '.join(sorted(other))} in their names")
        self._writer = Writer(self._made, version=9, storage_plugin=StoragePlugin[storage.name])
        for key, value in (about or {}).items():
            self._writer.set_custom_data(key, value)
        with _as_oserror():
            self._writer.open()
            self._connections = [
                self._writer.add_connection(topic, kind, typestore=typestore(kind)) for topic, kind in topics.items()
            ]

    def write(self, times: NDArray[np.int64], rows: Sequence[NDArray[np.uint8]]) -> None:
        """Write N messages to each topic, interleaved by time.

        Args:
            times: (N,) times of recording, ns.
            rows: for each topic its serialized messages (N, size).

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
