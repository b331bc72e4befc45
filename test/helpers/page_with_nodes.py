# SPDX-License-Identifier: Apache-2.0
"""A page of docs that starts nodes, as a process: rclpy is initialized once in each, and its nodes end with it."""

import os
import sys
from pathlib import Path

import rclpy  # noqa: F401 (in the process that forks)
from pages import run_page
from stalls import prefer


def main():
    os.setsid()
    run_page(sys.argv[1], Path.cwd(), before=prefer)
    sys.stdout.flush()
    # As in the nodes: in a fork, rclpy may crash while the interpreter ends.
    os._exit(0)
