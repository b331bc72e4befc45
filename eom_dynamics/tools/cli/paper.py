# SPDX-License-Identifier: Apache-2.0
"""Recompute the iiwa example of the paper of Müller and Kumar (2021) and compare it with the published values.

DIR gets index.html: the paper's table and figures, the differences, and the time of 10,000 evaluations by each route.
"""

from __future__ import annotations

import argparse
import json

from ...extras import require
from ..writing import check_folder, whole_folder
from .arguments import add_json, add_number, add_output_folder, whole_number
from .console import fail

SUMMARY = "recompute the paper's example and compare it with the published values"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_output_folder(parser)
    add_number(parser, "--rounds", "N", 10, "samples per time", whole_number)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Compute, write and print; returns the exit code, 1 if an effort differs from the published one."""
    require("simulate")
    # After the check for the libraries that these import.
    from .. import provenance
    from ..benchmark.robot_benchmark import benchmark
    from ..paper.example import paper_example
    from ..paper.page import times_of_routes, write_page

    check_folder(options.output, force=options.force)
    example = paper_example()
    times = times_of_routes(benchmark(example.robot, options.rounds))
    about = provenance.about(machine=provenance.machine())
    with whole_folder(options.output, force=options.force) as aside:
        write_page(aside / "index.html", example, times, about)
    page = options.output / "index.html"
    if options.json:
        models = [each._asdict() for each in example.models]
        print(json.dumps({"differences": models, "time_of_10000": times, "page": str(page)}, indent=2))
    else:
        off = ", ".join(f"{x:.0e}" for x in example.relative())
        print(f"largest differences from the published tau, taud, taudd, relative: {off}")
        print("\n".join(f"{seconds:10.4f} s  10,000 evaluations, {route}" for route, seconds in times.items()))
        print(f"page: {page}")
    return fail(options.program, example.failures())
