# SPDX-License-Identifier: Apache-2.0
"""A file of a bag that is MCAP, whole or damaged.

The records of the file are those of https://mcap.dev/spec. Messages come in the order in which they were written. A
whole file is read chunk by chunk as its index says; without an index, as a recorder that was killed leaves it, it is
read from its start as far as it goes. Chunks are taken apart here, since the mcap library makes an object of each
message.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import EndOfFile
from mcap.opcode import Opcode
from mcap.records import Channel, ChunkIndex, Footer, Schema

from .errors import BagError
from .storage import Block, Damage, StoredTopic

MAGIC = b"\x89MCAP0\r\n"

_RECORD = struct.Struct("<BQ")
_MESSAGE = struct.Struct("<HIQQ")
_CHUNK = struct.Struct("<QQQII")
_FOOTER_SIZE = _RECORD.size + 20 + len(MAGIC)

# No chunk or message is larger, unless its length is damaged.
_LARGEST_RECORD = 2**31

# Messages at a time.
_SIZE = 2048


class _Record(NamedTuple):
    code: int
    at: int
    data: bytes
    whole: bool = True


class McapFile:
    """Topics and messages of the file.

    Attributes:
        topics: by their number in the file, its channel.
        damage: what could not be read so far.
    """

    def __init__(self, path: Path) -> None:
        """Read the topics: from the index, or where there is none from all of the file.

        Raises:
            BagError: it is no MCAP file.
        """
        self.path, self.damage = path, Damage()
        self.topics: dict[int, StoredTopic] = {}
        self._schemas: dict[int, Schema] = {}
        self._size = path.stat().st_size
        self._file = path.open("rb")
        try:
            if self._file.read(len(MAGIC)) != MAGIC:
                raise BagError(f"{path}: cannot be read as an MCAP bag: it does not begin like one")
            self._complete = False
            self._chunks = self._index()
            if not self.topics:
                for _ in self._messages(frozenset()):
                    pass
        except BaseException:
            self._file.close()
            raise
        # The messages are still to be read, and what is damaged will be found then.
        self.damage = Damage()
        if not self._complete:
            self.damage.add(f"{path}: has no index, as where recording was cut off; read as far as it goes")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def blocks(self, topics: Collection[int]) -> Iterator[Block]:
        """The messages of some topics, in blocks, each with the share of the file that is behind."""
        wanted = frozenset(topics)
        waiting: list[tuple[int, int, bytes]] = []
        for messages, at in self._messages(wanted):
            waiting += messages
            while len(waiting) >= _SIZE:
                yield Block(waiting[:_SIZE], at / self._size)
                waiting = waiting[_SIZE:]
        if waiting:
            yield Block(waiting, 1.0)

    def _messages(self, wanted: frozenset[int]) -> Iterator[tuple[list[tuple[int, int, bytes]], int]]:
        """Messages, and where in the file they end."""
        if self._chunks is None:
            yield from self._unindexed(wanted)
            return
        for chunk in self._chunks:
            if chunk.message_index_offsets and not wanted & chunk.message_index_offsets.keys():
                continue
            start = chunk.chunk_start_offset
            for record in self._records(start, min(self._size, start + chunk.chunk_length)):
                if record.code == Opcode.CHUNK:
                    yield self._taken_apart(record, wanted), start + chunk.chunk_length
                else:
                    self.damage.add(f"{self.path}: no chunk at byte {start}, where the index says there is one")

    def _unindexed(self, wanted: frozenset[int]) -> Iterator[tuple[list[tuple[int, int, bytes]], int]]:
        for record in self._records(len(MAGIC), self._size):
            if record.code == Opcode.CHUNK:
                yield self._taken_apart(record, wanted), record.at
            elif record.code == Opcode.DATA_END:
                return
            elif record.whole:
                data = memoryview(_RECORD.pack(record.code, len(record.data)) + record.data)
                yield self._of_records(data, wanted)[0], record.at

    def _index(self) -> list[ChunkIndex] | None:
        """Read the summary at the end of the file: its topics and chunks; None where the file has no chunks there."""
        self._file.seek(max(0, self._size - _FOOTER_SIZE))
        end = self._file.read()
        if len(end) < _FOOTER_SIZE or end[-len(MAGIC) :] != MAGIC or end[0] != Opcode.FOOTER:
            return None
        start = Footer.read(ReadDataStream(BytesIO(end[_RECORD.size :]))).summary_start
        if not len(MAGIC) <= start < self._size - _FOOTER_SIZE:
            return None
        chunks = []
        try:
            for record in self._records(start, self._size - _FOOTER_SIZE):
                if record.code == Opcode.CHUNK_INDEX:
                    chunks.append(ChunkIndex.read(ReadDataStream(BytesIO(record.data))))
                else:
                    self._describe(record.code, record.data)
        except (struct.error, EndOfFile, UnicodeDecodeError):
            return None
        self._complete = True
        return sorted(chunks, key=lambda chunk: chunk.chunk_start_offset) or None

    def _records(self, start: int, end: int) -> Iterator[_Record]:
        """Records between two places in the file. One that does not end there is given as far as it goes."""
        at = start
        while at < end:
            self._file.seek(at)
            head = self._file.read(_RECORD.size)
            code, length = _RECORD.unpack(head) if len(head) == _RECORD.size else (0, 0)
            whole = at + len(head) + length <= end
            if not code or (not whole and length > _LARGEST_RECORD):
                self.damage.add(f"{self.path}: cannot be read from byte {at} of {self._size} on")
                return
            if not whole:
                self.damage.add(
                    f"{self.path}: cut off at byte {self._size}, within a record of {length} bytes from byte {at} on"
                )
            if whole and code not in _READ:
                at += len(head) + length
                continue
            data = self._file.read(min(length, end - at - len(head)))
            yield _Record(code, at, data, whole)
            at += len(head) + length

    def _taken_apart(self, chunk: _Record, wanted: Collection[int]) -> list[tuple[int, int, bytes]]:
        """The wanted messages of a chunk."""
        try:
            *_, crc, length = _CHUNK.unpack_from(chunk.data)
            at = _CHUNK.size + length + 8
            compression = chunk.data[_CHUNK.size : _CHUNK.size + length].decode()
            packed = memoryview(chunk.data)[at:]
            data = _unpacked(compression, packed, chunk.whole)
        except (struct.error, UnicodeDecodeError, RuntimeError, EOFError, zstandard.ZstdError, MemoryError) as error:
            self.damage.add(f"{self.path}: the chunk at byte {chunk.at} cannot be read: {error}")
            return []
        if chunk.whole and crc and zlib.crc32(data) != crc:
            self.damage.add(f"{self.path}: the chunk at byte {chunk.at} is left out: its checksum does not agree")
            return []
        messages, rest = self._of_records(memoryview(data), wanted)
        if rest and chunk.whole:
            self.damage.add(f"{self.path}: in the chunk at byte {chunk.at}, {rest} bytes at its end cannot be read")
        return messages

    def _of_records(self, data: memoryview, wanted: Collection[int]) -> tuple[list[tuple[int, int, bytes]], int]:
        """The wanted messages among records, and the number of bytes at their end that are none."""
        messages = []
        at, size = 0, len(data)
        unpack, message, head = _RECORD.unpack_from, _MESSAGE.unpack_from, _RECORD.size
        body = head + _MESSAGE.size
        while at + head <= size:
            code, length = unpack(data, at)
            end = at + head + length
            if end > size:
                break
            if code == Opcode.MESSAGE and length >= _MESSAGE.size:
                channel, _, time, _ = message(data, at + head)
                if channel in wanted:
                    messages.append((channel, time, bytes(data[at + body : end])))
            elif not self._describe(code, bytes(data[at + head : end])):
                break
            at = end
        return messages, size - at

    def _describe(self, code: int, data: bytes) -> bool:
        """Take what a record says of topics; false if it cannot be read."""
        try:
            if code == Opcode.SCHEMA:
                schema = Schema.read(ReadDataStream(BytesIO(data)))
                self._schemas[schema.id] = schema
            elif code == Opcode.CHANNEL:
                channel = Channel.read(ReadDataStream(BytesIO(data)))
                schema = self._schemas.get(channel.schema_id, Schema(0, b"", "", ""))
                readable = schema.encoding in ("ros2msg", "ros2idl")
                definition = schema.data.decode() if readable else ""
                self.topics[channel.id] = StoredTopic(
                    channel.topic, schema.name, definition, channel.message_encoding or "cdr"
                )
        except (struct.error, EndOfFile, UnicodeDecodeError):
            return False
        return bool(code)


_READ = {
    *(Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.CHUNK),
    *(Opcode.CHUNK_INDEX, Opcode.DATA_END, Opcode.FOOTER),
}


def _unpacked(compression: str, data: memoryview, whole: bool) -> bytes | memoryview:
    """The contents of a chunk, as far as they go."""
    if not compression:
        return data
    if compression == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    if compression == "lz4":
        return lz4.frame.decompress(data) if whole else lz4.frame.LZ4FrameDecompressor().decompress(data)
    raise RuntimeError(f"unknown compression {compression!r:.40}")
