# SPDX-License-Identifier: Apache-2.0
"""Files of bags, MCAP or SQLite by their first bytes, read as ``replay`` does: every message of every topic."""

from __future__ import annotations

import tempfile
from pathlib import Path

from eom_dynamics.recordings.bags import Bag
from eom_dynamics.recordings.bags.layout import read_blocks

from .promises import refused

TOKENS = (
    *("SQLite format 3\0", "\x89MCAP0\r\n", "ros2msg", "cdr", "sensor_msgs/msg/JointState"),
    *("float64[] a", "string b"),
)


def check(data: bytes) -> None:
    ending = ".db3" if data.startswith(b"SQLite") else ".mcap"
    reasons: list[str] = []
    with tempfile.TemporaryDirectory(prefix="eom_dynamics-fuzz-") as folder:
        path = Path(folder) / f"bag{ending}"
        path.write_bytes(data)
        with refused(), Bag(path) as bag:
            for topic in bag.topics:
                with refused():
                    for block in read_blocks(bag, topic, lambda reason, _: reasons.append(reason)):
                        assert block.rows.shape == (len(block.recorded), len(block.layout.template))
            for line in reasons:
                assert "\n" not in line
