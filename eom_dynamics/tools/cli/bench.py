# SPDX-License-Identifier: Apache-2.0
"""Time the inverse dynamics of a robot with every backend available here, and with Pinocchio if it is installed.

Every result is first checked against the closed form. Comparison with more libraries, chains and orders: make bench, in
the sources.
"""

from __future__ import annotations

import argparse
import json

from .arguments import add_json, add_number, add_robot_arguments, load, whole_number
from .console import fail

SUMMARY = "time the inverse dynamics compared with other libraries"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot_arguments(parser, note="; default: %(default)s", nargs="?", default="iiwa")
    add_number(parser, "--rounds", "N", 20, "samples per time", whole_number)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run the benchmark and print it; return the exit code, 1 if a result differs from the closed form."""
    from ..benchmark.robot_benchmark import as_text, benchmark, failures

    robot = load(options)
    results = benchmark(robot, options.rounds)
    print(json.dumps(results, indent=2) if options.json else as_text(robot, results))
    return fail(options.program, failures(results))
