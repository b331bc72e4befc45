# SPDX-License-Identifier: Apache-2.0
"""A Python script as the main program of a process, which has imported what scripts of ROS 2 need."""

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
    # As the nodes do: in a fork, what is left of rclpy may crash while the interpreter ends.
    os._exit(code)
