# SPDX-License-Identifier: Apache-2.0
"""A page of docs that starts nodes, as a process: rclpy is initialised once in each, and its nodes end with it."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import rclpy  # noqa: F401 (in the process that forks)
from pages import run_page


def main():
    os.setsid()
    # An arm that is simulated in real time, and recorded, must not be held up by the tests beside. Linux may divide
    # processors among sessions first, by the niceness of each, and only then among their processes.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        Path("/proc/self/autogroup").write_text("-20")
    run_page(sys.argv[1], Path.cwd())
    sys.stdout.flush()
    # As the nodes do: in a fork, what is left of rclpy may crash while the interpreter ends.
    os._exit(0)
