# SPDX-License-Identifier: Apache-2.0
"""Bags as MCAP, with the types embedded, after https://mcap.dev/spec.

Messages of one size are laid into a chunk as rows of an array: the writers of rosbags and mcap, which take them one by
one, need longer for a message than the dynamics do.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import yaml
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Schema,
    Statistics,
    SummaryOffset,
)
from numpy.typing import NDArray

from .layout import Bytes
from .mcap_file import MAGIC

if TYPE_CHECKING:
    from .output import OutputTopic

# Bytes of a chunk at most, unless one message of each topic is larger.
_CHUNK_SIZE = 2**20

_LIBRARY = "eom_dynamics"

_MESSAGE = np.dtype(
    [("code", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log", "<u8"), ("publish", "<u8")]
)

_INDEX = np.dtype([("time", "<u8"), ("offset", "<u8")])


class McapWriter:
    """Writes ``<name>_0.mcap`` and metadata.yaml."""

    def __init__(self, folder: Path, name: str, topics: Sequence[OutputTopic]) -> None:
        """Begin the file; OSError where it cannot be written."""
        self._folder, self._topics, self._name = folder, topics, f"{name}_0.mcap"
        self._counts = dict.fromkeys(range(1, len(topics) + 1), 0)
        self._first, self._last = 2**63 - 1, 0
        self._chunks: list[ChunkIndex] = []
        self._file = (folder / self._name).open("xb")
        self._file.write(MAGIC)
        self._put(Header("ros2", _LIBRARY))
        for record in self._descriptions():
            self._put(record)

    def write(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        """Write messages, as :meth:`BagWriter.write` says."""
        step = max(1, _CHUNK_SIZE // sum(_MESSAGE.itemsize + part.shape[1] for part in rows))
        for start in range(0, len(times), step):
            self._write_chunk(times[start : start + step], [part[start : start + step] for part in rows])

    def close(self, remarks: Mapping[str, str]) -> None:
        """Write index and metadata.yaml."""
        self._put(DataEnd(0))
        start = self._file.tell()
        groups = []
        schemas, channels = self._descriptions()[::2], self._descriptions()[1::2]
        for code, records in (
            (Opcode.SCHEMA, schemas),
            (Opcode.CHANNEL, channels),
            (Opcode.STATISTICS, [self._statistics()]),
            (Opcode.CHUNK_INDEX, self._chunks),
        ):
            at = self._file.tell()
            for record in records:
                self._put(record)
            if self._file.tell() > at:
                groups.append(SummaryOffset(code, at, self._file.tell() - at))
        offsets = self._file.tell()
        for group in groups:
            self._put(group)
        self._put(Footer(start, offsets, 0))
        self._file.write(MAGIC)
        self._file.close()
        (self._folder / "metadata.yaml").write_text(
            yaml.safe_dump({"rosbag2_bagfile_information": self._metadata(remarks)}, sort_keys=False), encoding="utf-8"
        )

    def abort(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def _write_chunk(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        count = len(times)
        widths = [_MESSAGE.itemsize + part.shape[1] for part in rows]
        starts = np.concatenate([[0], np.cumsum(widths)])
        records = np.empty((count, starts[-1]), dtype=np.uint8)
        for channel, (start, part) in enumerate(zip(starts, rows, strict=False), start=1):
            head = np.zeros(count, dtype=_MESSAGE)
            head["code"], head["channel"] = Opcode.MESSAGE, channel
            head["length"] = _MESSAGE.itemsize - 9 + part.shape[1]
            head["log"] = head["publish"] = times
            body = start + _MESSAGE.itemsize
            records[:, start:body] = head.view(np.uint8).reshape(count, -1)
            records[:, body : body + part.shape[1]] = part
        data = records.data.cast("B")
        first, last = int(times.min()), int(times.max())
        at = self._file.tell()
        self._put(Chunk("", data, last, first, zlib.crc32(data), records.size))  # type: ignore[arg-type]
        length = self._file.tell() - at
        offsets = {}
        for channel, start in zip(self._counts, starts, strict=False):
            offsets[channel] = self._file.tell()
            self._put_index(channel, times, start + starts[-1] * np.arange(count))
            self._counts[channel] += count
        self._chunks.append(
            ChunkIndex(
                chunk_length=length,
                chunk_start_offset=at,
                compression="",
                compressed_size=records.size,
                message_end_time=last,
                message_index_length=self._file.tell() - at - length,
                message_index_offsets=offsets,
                message_start_time=first,
                uncompressed_size=records.size,
            )
        )
        self._first, self._last = min(self._first, first), max(self._last, last)

    def _put_index(self, channel: int, times: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        """A record of the kind MessageIndex, which the library writes entry by entry."""
        entries = np.empty(len(times), dtype=_INDEX)
        entries["time"], entries["offset"] = times, offsets
        builder = RecordBuilder()
        builder.start_record(Opcode.MESSAGE_INDEX)
        builder.write2(channel)
        builder.write4(entries.nbytes)
        builder.write(entries.tobytes())
        builder.finish_record()
        self._file.write(builder.end())

    def _put(self, record: McapRecord) -> None:
        builder = RecordBuilder()
        record.write(builder)
        self._file.write(builder.end())

    def _descriptions(self) -> list[McapRecord]:
        """Schema and channel of each topic in turn."""
        records: list[McapRecord] = []
        for number, topic in enumerate(self._topics, start=1):
            records.append(Schema(number, topic.definition.encode(), "ros2msg", topic.type))
            metadata = {"offered_qos_profiles": "[]", "topic_type_hash": topic.hash}
            records.append(Channel(number, topic.name, "cdr", metadata, number))
        return records

    def _statistics(self) -> Statistics:
        return Statistics(
            attachment_count=0,
            channel_count=len(self._topics),
            channel_message_counts=self._counts,
            chunk_count=len(self._chunks),
            message_count=sum(self._counts.values()),
            message_end_time=self._last,
            message_start_time=self._first if self._chunks else 0,
            metadata_count=0,
            schema_count=len(self._topics),
        )

    def _metadata(self, remarks: Mapping[str, str]) -> dict[str, object]:
        """What metadata.yaml says, in version 9 of its format."""
        span = {
            "duration": {"nanoseconds": max(0, self._last - self._first)},
            "starting_time": {"nanoseconds_since_epoch": self._first},
        }
        total = {"message_count": sum(self._counts.values())}
        return {
            "version": 9,
            "storage_identifier": "mcap",
            "relative_file_paths": [self._name],
            **{key: dict(value) for key, value in span.items()},
            **total,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic.name,
                        "type": topic.type,
                        "serialization_format": "cdr",
                        "offered_qos_profiles": [],
                        "type_description_hash": topic.hash,
                    },
                    "message_count": count,
                }
                for topic, count in zip(self._topics, self._counts.values(), strict=True)
            ],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": self._name, **{key: dict(value) for key, value in span.items()}, **total}],
            "custom_data": dict(remarks) or None,
            "ros_distro": "jazzy",
        }
