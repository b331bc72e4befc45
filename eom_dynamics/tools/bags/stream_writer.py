# SPDX-License-Identifier: Apache-2.0
"""Write messages one by one as they arrive, as MCAP; :func:`.open_writer` writes blocks of them."""

from __future__ import annotations

from typing import IO

from mcap.writer import Writer

from .types import typestore


class StreamWriter:
    """An MCAP file that grows; its chunks of 1 MiB are readable even if it is never closed."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begin the file."""
        self._writer = Writer(file)
        self._writer.start("ros2")

    def channel(self, topic: str, kind: str) -> int:
        """Add a topic of a type that ROS 2 or this package defines; returns its number."""
        definition, _ = typestore(kind).generate_msgdef(kind, ros_version=2)
        schema = self._writer.register_schema(kind, "ros2msg", definition.encode())
        return self._writer.register_channel(topic, "cdr", schema)

    def write(self, channel: int, time: int, message: bytes) -> None:
        """Append a serialised message, recorded at ``time``, ns."""
        self._writer.add_message(channel, time, message, time)

    def close(self) -> None:
        """Write the index; the file itself stays open."""
        self._writer.finish()
