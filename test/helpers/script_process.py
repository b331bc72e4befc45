# SPDX-License-Identifier: Apache-2.0
"""Python script as the main program of a process with the imports of ROS 2 scripts."""

import os
import runpy
import sys

import eom_dynamics.msg  # noqa: F401
import rclpy  # noqa: F401


def main():
    del sys.argv[0]
    code = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    # As in the nodes: in a fork, rclpy may crash while the interpreter ends.
    os._exit(code)
