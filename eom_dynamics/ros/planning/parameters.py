# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node ``eom_dynamics_planning``."""

from __future__ import annotations

from ..parameters import COMMON, Definition, Table

TABLE: Table = {
    "niceness": Definition(
        10,
        "nice value of all threads of the process, so that the stream goes first; 0 leaves it as it is",
        limits=(0, 19),
        read_only=True,
    ),
    "reserved_cores": Definition(
        1,
        "cores that the process leaves to others; it uses one at least",
        limits=(0, 1024),
        read_only=True,
    ),
    "kept_memory": Definition(
        256,
        "freed memory that the process keeps for its next answers, in MiB; 0 leaves it to the C library",
        limits=(0, 2047),
        read_only=True,
    ),
    **COMMON,
}
