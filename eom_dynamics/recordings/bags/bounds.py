# SPDX-License-Identifier: Apache-2.0
"""Bounds on untrusted bags, as rosbags sets no limit to the time or the memory of a file."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import apsw
from lz4.frame import LZ4FrameDecompressor
from rosbags.rosbag2 import storage_mcap

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Largest message, chunk, and sum of chunks that overlap in time, bytes; recorders write chunks of some MiB.
LARGEST = 2**28

# Maximum ratio of unpacked size to file size. Recordings shrink to a tenth, constant recordings to a hundredth.
_RATIO = 1000
_LEAST = 2**26

_PIECE = 2**20

# Steps of SQLite's virtual machine: a message takes some ten, and more bytes of the file.
_STEPS = 10_000
_STEPS_PER_BYTE = 10
_LEAST_STEPS = 10_000_000

# Characters of paths that rosbags, which opens databases by URI, does not quote.
UNQUOTED = frozenset("?#%")

_TABLES = ("schema", "topics", "messages", "message_definitions")

_MAGIC = b"\x89MCAP0\r\n"
_RECORD = struct.Struct("<BQ")
_CHUNK = struct.Struct("<QQQII")
_FOOTER, _CHUNK_CODE = 2, 6


class HostileError(ValueError):
    """File that needs more time or memory than its size allows."""


def unpack(data: bytes, size: int, new: Callable[[], Any] = zstd.ZstdDecompressor) -> bytes:
    """Decompress frames one after the other, each by a new decompressor.

    Raises:
        HostileError: the result is larger than ``size``, bytes.
        EOFError: the data are cut off.
    """
    pieces: list[bytes] = []
    left, rest = size + 1, data
    while rest:
        decompressor = new()
        pieces.append(decompressor.decompress(rest, max_length=left))
        left -= len(pieces[-1])
        if left <= 0:
            raise HostileError(f"it unpacks to more than {size:,} bytes")
        if not decompressor.eof:
            raise EOFError("it is cut off")
        rest = decompressor.unused_data or b""
    return b"".join(pieces)


# rosbags unpacks a chunk before it compares its size; these stop at that size.
storage_mcap.DECOMPRESSORS["zstd"] = unpack
storage_mcap.DECOMPRESSORS["lz4"] = lambda data, size: unpack(data, size, LZ4FrameDecompressor)


def most_bytes(path: Path) -> int:
    """Largest size that the compressed parts of a file may unpack to together."""
    return max(_LEAST, _RATIO * path.stat().st_size)


def unpack_file(path: Path, target: Path) -> None:
    """Decompress a file; HostileError if it is larger than allowed, EOFError or ZstdError if it is damaged."""
    left = most_bytes(path)
    with zstd.open(path, "rb") as packed, target.open("wb") as plain:
        while piece := packed.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise HostileError(f"it unpacks to more than {most_bytes(path):,} bytes")
            plain.write(piece)


def chunks_in(path: Path) -> list[tuple[int, str, int, int]]:
    """Chunks of an MCAP file: offset, compression, and size as stored and unpacked.

    Raises:
        HostileError: they unpack to more than allowed.
        EOFError: the file is cut off, or its records do not end at its footer.
    """
    chunks = []
    end = path.stat().st_size - len(_MAGIC)
    with path.open("rb") as file:
        at, code = len(_MAGIC), 0
        if file.read(at) != _MAGIC:
            raise ValueError("it does not begin like an MCAP file")
        while code != _FOOTER:
            head = file.read(_RECORD.size)
            code, length = _RECORD.unpack(head) if len(head) == _RECORD.size else (0, end)
            if at + _RECORD.size + length > end:
                raise EOFError(f"it is cut off after byte {at}, or damaged there")
            if code == _CHUNK_CODE:
                *_, unpacked, _, name = _CHUNK.unpack(file.read(_CHUNK.size))
                compression = file.read(min(name, length)).decode()
                chunks.append((at, compression, int.from_bytes(file.read(8), "little"), unpacked))
            at += _RECORD.size + length
            file.seek(at)
    if at != end:
        raise EOFError(f"it goes on after its footer, at byte {at}")
    if max((unpacked for *_, unpacked in chunks), default=0) > LARGEST:
        raise HostileError(f"a chunk says that it unpacks to more than {LARGEST:,} bytes")
    if sum(unpacked for _, compression, _, unpacked in chunks if compression) > most_bytes(path):
        raise HostileError(f"the file says that it unpacks to more than {most_bytes(path):,} bytes")
    return chunks


def check_index(chunks: list[Any], there: list[tuple[int, str, int, int]]) -> None:
    """Check that the index of an MCAP file, as rosbags reads it, lists its chunks, and few that overlap in time.

    An index that does not say which topics are in a chunk is cleared: rosbags would skip the chunk.

    Raises:
        ValueError: it does not, or has other sizes of them.
        HostileError: chunks to be unpacked at the same time are too large.
    """
    if not chunks:
        return
    if sorted((c.chunk_start_offset, c.compression, c.compressed_size, c.uncompressed_size) for c in chunks) != there:
        raise ValueError("its index does not list the chunks of the file")
    if not all(c.message_index_offsets for c in chunks):
        chunks.clear()
        return
    begun = [(c.message_start_time, c.uncompressed_size) for c in chunks]
    ended = [(c.message_end_time, -c.uncompressed_size) for c in chunks]
    changes = sorted(begun + ended, key=lambda change: (change[0], -change[1]))
    if max(accumulate(size for _, size in changes)) > LARGEST:
        raise HostileError(f"chunks of the same time unpack to more than {LARGEST:,} bytes")


class StepLimit:
    """Steps that SQLite may take for a query."""

    def __init__(self, path: Path) -> None:
        self._most = max(_LEAST_STEPS, _STEPS_PER_BYTE * path.stat().st_size)
        self.begin()

    def begin(self) -> None:
        """Allow the steps of another query."""
        self._left = self._most

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Limit connections that are made in this context, and refuse computed rows."""
        apsw.connection_hooks.append(self._guard)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(self._guard)

    def _guard(self, connection: apsw.Connection) -> None:
        connection.set_progress_handler(self._spent, _STEPS)
        for name in _TABLES:
            query = "SELECT type, rootpage FROM sqlite_master WHERE lower(name) = ?"
            computed = any(kind != "table" or not page for kind, page in connection.execute(query, (name,)))
            if computed or any(column[6] for column in connection.execute(f"PRAGMA table_xinfo({name})")):
                raise HostileError(f"{name} is not a table of stored rows")

    def _spent(self) -> bool:
        self._left -= _STEPS
        return self._left < 0
