# SPDX-License-Identifier: Apache-2.0
"""Files of bags, MCAP or SQLite by their first bytes, read as ``replay`` does: every message of every topic."""

from __future__ import annotations

import tempfile
from pathlib import Path

from eom_dynamics.bags import Bag, Layouts, Rows

from .refusals import refused

TOKENS = (
    "SQLite format 3\0",
    "\x89MCAP0\r\n",
    "ros2msg",
    "cdr",
    "sensor_msgs/msg/JointState",
    "float64[] a",
    "string b",
)


def check(data: bytes) -> None:
    """Read a file of any bytes."""
    ending = ".db3" if data.startswith(b"SQLite") else ".mcap"
    with tempfile.TemporaryDirectory(prefix="eom_dynamics-fuzz-") as folder:
        path = Path(folder) / f"bag{ending}"
        path.write_bytes(data)
        with refused(), Bag(path) as bag:
            for topic in bag.topics:
                with refused():
                    layouts = Layouts(topic.types(), topic.type)
                    for times, messages in bag.messages(topic):
                        assert len(times) == len(messages)
                        for found in layouts.rows(messages):
                            if isinstance(found, Rows):
                                assert found.rows.shape[1] == len(found.layout.template)
                            else:
                                assert "\n" not in str(found[1])
            for line in bag.damage:
                assert "\n" not in line
