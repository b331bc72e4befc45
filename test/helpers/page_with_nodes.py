# SPDX-License-Identifier: Apache-2.0
"""A page of docs that starts nodes, as a process: rclpy is initialised once in each, and its nodes end with it."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import rclpy  # noqa: F401 (in the process that forks)
from pages import run_page


def prefer(nodes: bool) -> None:
    """Set the priority of a block: an arm that is simulated in real time, and recorded, is not held up by tests beside.

    Commands, which may compute on all processors, must not hold up those either. Linux may divide processors among
    sessions first, by the niceness of each, and only then among their processes.
    """
    niceness = -15 if nodes else 0
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        Path("/proc/self/autogroup").write_text(str(niceness))


def main():
    os.setsid()
    run_page(sys.argv[1], Path.cwd(), before=prefer)
    sys.stdout.flush()
    # As the nodes do: in a fork, what is left of rclpy may crash while the interpreter ends.
    os._exit(0)
