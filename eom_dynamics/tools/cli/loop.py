# SPDX-License-Identifier: Apache-2.0
"""Compile a robot's control loop to a library for the ros2_control controller of every robot, and print its path.

The library is in the cache: a robot that has not changed is not compiled again.
"""

from __future__ import annotations

import argparse

from ...export import loop_library
from ...terminal import printable
from ..writing import whole_file
from .arguments import add_output_file, add_robot_arguments, load, path_with

SUMMARY = "compile a robot's control loop for the ros2_control controller of every robot"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot_arguments(parser)
    what = "file to write, .so, such as for a computer without a compiler; default: the library in the cache"
    add_output_file(parser, "FILE", path_with(".so"), what, required=False)


def run(options: argparse.Namespace) -> int:
    """Compile the library and print robot, fingerprint and path; returns the exit code.

    Raises:
        EomDynamicsError: the robot cannot be used, has no control loop, or cannot be compiled; or the file cannot be
            written.
    """
    robot = load(options)
    library = loop_library(robot)
    path = library.path
    if options.output is not None:
        path = options.output
        with whole_file(path, force=options.force) as temporary:
            temporary.write_bytes(library.content)
    print(f"{printable(robot.name)}: {robot.n} joints, fingerprint {library.fingerprint}")
    print(path)
    return 0
