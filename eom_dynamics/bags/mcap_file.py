# SPDX-License-Identifier: Apache-2.0
"""Read MCAP files of bags, in the order in which messages were written.

The mcap library reads the records of the file: by its index, or without one, as a recorder that was killed leaves it,
from the start as far as they go. Only the messages within a chunk are taken apart here, since the library makes an
object of each, which takes longer than computing a command from it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path

import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import EndOfFile, McapError, RecordLengthLimitExceeded
from mcap.opcode import Opcode
from mcap.reader import SeekingReader
from mcap.records import Channel, Chunk, ChunkIndex, McapRecord, Message, Metadata, Schema
from mcap.stream_reader import StreamReader

from .compression import Allowance, TooLargeError, unpack_chunk
from .mcap_writer import CUSTOM_DATA
from .storage import BagError, Block, Damage, unpacked
from .types import Topic

_RECORD = struct.Struct("<BQ")
_MESSAGE = struct.Struct("<HIQQ")

# Exceptions of the library, struct, zstandard and lz4 for records that are cut off or not what they claim to be.
_DAMAGED = (
    McapError,
    struct.error,
    ValueError,
    zstandard.ZstdError,
    RuntimeError,
    OverflowError,
    MemoryError,
    EOFError,
)

Messages = tuple[list[int], list[bytes]]


class McapFile:
    """MCAP file reader; skips damaged chunks, and reads files without an index to their end.

    Attributes:
        topics: by their number in the file, that of the channel.
        damage: what could not be read so far.
        custom_data: that of metadata.yaml, if the file has it, too.
    """

    def __init__(self, path: Path, source: Path) -> None:
        """Read the topics: from the index, or from the whole file if it has none.

        Messages name ``source``, the file that ``path`` was unpacked from.
        """
        self.path = source
        unpack, whole = unpacked(path, source)
        self.damage = Damage(f"try: {unpack}mcap recover {whole} -o recovered.mcap")
        self.topics: dict[int, Topic] = {}
        self.custom_data: dict[str, str] = {}
        self._schemas: dict[int, Schema] = {}
        self._size = path.stat().st_size
        self._allowance = Allowance(self._size)
        self._file = path.open("rb")
        try:
            self._chunks = self._index()
            if not self._chunks:
                for _ in self._sequential(frozenset()):
                    pass
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def blocks(self, topics: Collection[int]) -> Iterator[Block]:
        """Read the messages of some topics, in blocks."""
        wanted = frozenset(topics)
        for times, messages in self._indexed(wanted) if self._chunks else self._sequential(wanted):
            yield Block(times, messages, min(1.0, self._file.tell() / self._size))

    def _index(self) -> list[ChunkIndex]:
        """Read topics and chunks from the summary at the end of the file; empty if there is none."""
        try:
            reader = SeekingReader(self._file, record_size_limit=self._size)
        except (McapError, struct.error):
            raise BagError(f"{self.path}: cannot be read as an MCAP bag: it does not begin like one") from None
        try:
            summary = reader.get_summary()
        except (*_DAMAGED, OSError):  # OSError: seeks before the start of the file
            return []
        if summary is None or not summary.channels:
            return []
        for record in (*summary.schemas.values(), *summary.channels.values()):
            self._describe(record)
        for index in summary.metadata_indexes:
            if index.name == CUSTOM_DATA:
                self._read_custom_data(index.offset)
        chunks = {chunk.chunk_start_offset: chunk for chunk in summary.chunk_indexes}
        return [chunks[place] for place in sorted(chunks)]

    def _read_custom_data(self, place: int) -> None:
        try:
            self._file.seek(place)
            record = next(self._records(skip_magic=True), None)
        except (*_DAMAGED, OSError) as error:
            self._report(f"the metadata at byte {place}", error)
        else:
            self.custom_data = dict(record.metadata) if isinstance(record, Metadata) else {}

    def _indexed(self, wanted: frozenset[int]) -> Iterator[Messages]:
        self._allowance.begin()
        end = 0
        for index in self._chunks:
            if index.message_index_offsets and not wanted & index.message_index_offsets.keys():
                continue
            place = index.chunk_start_offset
            try:
                if place < end:
                    raise ValueError("it is within another one")
                self._file.seek(place)
                chunk = next(self._records(skip_magic=True), None)
                end = self._file.tell()
                yield self._messages(chunk, wanted)
            except (*_DAMAGED, OSError) as error:
                self._report(f"the chunk at byte {place}", error)

    def _sequential(self, wanted: frozenset[int]) -> Iterator[Messages]:
        self._file.seek(0)
        self._allowance.begin()
        place = 0
        try:
            for record in self._records():
                if isinstance(record, Chunk):
                    try:
                        yield self._messages(record, wanted)
                    except _DAMAGED as error:
                        self._report(f"the chunk before byte {self._file.tell()}", error)
                elif isinstance(record, Message):
                    if record.channel_id in wanted:
                        yield [record.log_time], [record.data]
                else:
                    self._describe(record)
                place = self._file.tell()
        except _DAMAGED as error:
            self._report(f"what follows byte {place} of {self._size}", error)

    def _records(self, *, skip_magic: bool = False) -> Iterator[McapRecord]:
        reader = StreamReader(self._file, skip_magic=skip_magic, emit_chunks=True, record_size_limit=self._size)
        return reader.records

    def _messages(self, chunk: McapRecord | None, wanted: frozenset[int]) -> Messages:
        """Take the wanted messages from a chunk; raises one of ``_DAMAGED`` if it cannot be read."""
        if not isinstance(chunk, Chunk):
            raise ValueError("it is not a chunk")
        data = unpack_chunk(chunk.data, chunk.compression, chunk.uncompressed_size, self._allowance)
        if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
            raise ValueError("its checksum is another one")
        size = len(data)
        # Uncompressed ones are bounded by the size of the file.
        most = self._allowance.records if chunk.compression else size
        times, messages, count = [], [], 0
        at, head, body = 0, _RECORD.size, _RECORD.size + _MESSAGE.size
        while at < size:
            if count >= most:
                self._allowance.records = 0
                raise TooLargeError("the file has more records than one of its size can have")
            count += 1
            code, length = _RECORD.unpack_from(data, at)
            end = at + head + length
            if end > size:
                raise ValueError("a record does not end in it")
            if code == Opcode.MESSAGE:
                channel, _, time, _ = _MESSAGE.unpack_from(data, at + head)
                if channel in wanted:
                    times.append(time)
                    messages.append(data[at + body : end])
            elif code == Opcode.SCHEMA:
                self._describe(Schema.read(ReadDataStream(BytesIO(data[at + head : end]))))
            elif code == Opcode.CHANNEL:
                self._describe(Channel.read(ReadDataStream(BytesIO(data[at + head : end]))))
            at = end
        if chunk.compression:
            self._allowance.records -= count
        return times, messages

    def _describe(self, record: McapRecord) -> None:
        """Keep what a record says of topics."""
        if isinstance(record, Schema):
            self._schemas[record.id] = record
        elif isinstance(record, Channel):
            schema = self._schemas.get(record.schema_id, Schema(0, b"", "", ""))
            readable = schema.encoding in ("ros2msg", "ros2idl")
            definition = schema.data.decode(errors="replace") if readable else ""
            self.topics[record.id] = Topic(record.topic, schema.name, definition, record.message_encoding or "cdr")

    def _report(self, what: str, error: Exception) -> None:
        ends = isinstance(error, (struct.error, EndOfFile, RecordLengthLimitExceeded))
        reason = "it is cut off" if ends else " ".join(str(error).split()) or type(error).__name__
        self.damage.add(f"{self.path}: {what} cannot be read: {reason}")
