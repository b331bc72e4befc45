# SPDX-License-Identifier: Apache-2.0
"""Write bags as MCAP, with the types embedded.

The mcap library writes all records but messages and their indexes. Those are laid into a chunk as rows of an array: the
writers of mcap and rosbags take messages one by one, and need longer for a message than the dynamics do.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)
from mcap.writer import MCAP0_MAGIC
from numpy.typing import NDArray

from .layout import Bytes
from .types import OutputTopic

# Largest chunk in bytes, unless one message of each topic is larger.
_CHUNK_SIZE = 2**20

_MESSAGE = np.dtype(
    [("code", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log", "<u8"), ("publish", "<u8")]
)

CUSTOM_DATA = "custom_data"
"""Name of the metadata record with what metadata.yaml has under this name."""

_INDEX = np.dtype([("time", "<u8"), ("offset", "<u8")])


class McapWriter:
    """Writer of ``<name>_0.mcap`` and metadata.yaml."""

    def __init__(self, folder: Path, name: str, topics: Sequence[OutputTopic]) -> None:
        """Begin the file; OSError if it cannot be written."""
        self._folder, self._topics, self._name = folder, topics, f"{name}_0.mcap"
        self._chunks: list[ChunkIndex] = []
        self._count = 0
        self._file = (folder / self._name).open("xb")
        self._file.write(MCAP0_MAGIC)
        self._put(Header("ros2", "eom_dynamics"), *self._descriptions())

    def write(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        """Write messages as :meth:`BagWriter.write` does."""
        step = max(1, _CHUNK_SIZE // sum(_MESSAGE.itemsize + part.shape[1] for part in rows))
        for start in range(0, len(times), step):
            self._write_chunk(times[start : start + step], [part[start : start + step] for part in rows])

    def close(self, custom_data: Mapping[str, str]) -> None:
        """Write index and metadata.yaml."""
        start = min((chunk.message_start_time for chunk in self._chunks), default=0)
        end = max((chunk.message_end_time for chunk in self._chunks), default=0)
        # As in metadata.yaml, for a file that leaves its folder.
        at = self._file.tell()
        self._put(Metadata(metadata=dict(custom_data), name=CUSTOM_DATA))
        index = MetadataIndex(offset=at, length=self._file.tell() - at, name=CUSTOM_DATA)
        self._put(DataEnd(0))
        summary = self._file.tell()
        self._put(*self._descriptions(), self._statistics(start, end), *self._chunks, index, Footer(summary, 0, 0))
        self._file.write(MCAP0_MAGIC)
        self._file.close()
        metadata = {"rosbag2_bagfile_information": self._metadata(start, end, custom_data)}
        (self._folder / "metadata.yaml").write_text(yaml.safe_dump(metadata, sort_keys=False), encoding="utf-8")

    def abort(self) -> None:
        """Close the incomplete file."""
        self._file.close()

    def _write_chunk(self, times: NDArray[np.int64], rows: Sequence[Bytes]) -> None:
        count = len(times)
        ends = np.cumsum([_MESSAGE.itemsize + part.shape[1] for part in rows])
        records = np.empty((count, ends[-1]), dtype=np.uint8)
        for channel, (end, part) in enumerate(zip(ends, rows, strict=True), start=1):
            body = end - part.shape[1]
            head = np.zeros(count, dtype=_MESSAGE)
            head["code"], head["channel"] = Opcode.MESSAGE, channel
            head["length"] = _MESSAGE.itemsize - 9 + part.shape[1]
            head["log"] = head["publish"] = times
            records[:, body - _MESSAGE.itemsize : body] = head.view(np.uint8).reshape(count, -1)
            records[:, body:end] = part
        data, at = records.data.cast("B"), self._file.tell()
        first, last = int(times.min()), int(times.max())
        self._put(Chunk("", data, last, first, zlib.crc32(data), len(data)))  # type: ignore[arg-type]
        indexes = self._file.tell()
        offsets = {}
        for channel, start in enumerate([0, *ends[:-1]], start=1):
            offsets[channel] = self._file.tell()
            self._put_index(channel, times, start + ends[-1] * np.arange(count))
        length = self._file.tell() - indexes
        self._chunks.append(ChunkIndex(indexes - at, at, "", len(data), last, length, offsets, first, len(data)))
        self._count += count

    def _put_index(self, channel: int, times: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        """Write a MessageIndex record, which the library writes entry by entry."""
        entries = np.empty(len(times), dtype=_INDEX)
        entries["time"], entries["offset"] = times, offsets
        builder = RecordBuilder()
        builder.start_record(Opcode.MESSAGE_INDEX)
        builder.write2(channel)
        builder.write4(entries.nbytes)
        builder.write(entries.tobytes())
        builder.finish_record()
        self._file.write(builder.end())

    def _put(self, *records: McapRecord) -> None:
        for record in records:
            builder = RecordBuilder()
            record.write(builder)
            self._file.write(builder.end())

    def _descriptions(self) -> list[McapRecord]:
        """Schemas and channels, numbered from 1 in the order of the topics."""
        schemas = [Schema(k, topic.definition.encode(), "ros2msg", topic.type) for k, topic in self._numbered()]
        channels = [
            Channel(k, topic.name, "cdr", {"offered_qos_profiles": "[]", "topic_type_hash": topic.hash}, k)
            for k, topic in self._numbered()
        ]
        return [*schemas, *channels]

    def _numbered(self) -> list[tuple[int, OutputTopic]]:
        return list(enumerate(self._topics, start=1))

    def _statistics(self, start: int, end: int) -> Statistics:
        topics = len(self._topics)
        return Statistics(
            attachment_count=0,
            channel_count=topics,
            channel_message_counts={k: self._count for k, _ in self._numbered()},
            chunk_count=len(self._chunks),
            message_count=topics * self._count,
            message_end_time=end,
            message_start_time=start,
            metadata_count=1,
            schema_count=topics,
        )

    def _metadata(self, start: int, end: int, custom_data: Mapping[str, str]) -> dict[str, Any]:
        """Contents of metadata.yaml, in version 9 of its format."""

        def span() -> dict[str, Any]:  # anew, as YAML writes what it meets twice as an alias
            return {
                "duration": {"nanoseconds": end - start},
                "starting_time": {"nanoseconds_since_epoch": start},
                "message_count": len(self._topics) * self._count,
            }

        return {
            "version": 9,
            "storage_identifier": "mcap",
            "relative_file_paths": [self._name],
            **span(),
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic.name,
                        "type": topic.type,
                        "serialization_format": "cdr",
                        "offered_qos_profiles": [],
                        "type_description_hash": topic.hash,
                    },
                    "message_count": self._count,
                }
                for topic in self._topics
            ],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": self._name, **span()}],
            "custom_data": dict(custom_data) or None,
            "ros_distro": "jazzy",
        }
