# SPDX-License-Identifier: Apache-2.0
"""Replay recorded motions offline: write the commands that the node would have published, as bags or Parquet tables.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Its motion is a topic of type JointTrajectorySetpoint,
JointTrajectory (interpolated) or JointState (fitted). Several bags, or those in folders, are replayed in parallel into
a folder OUT with an output for each.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ...exceptions import EomDynamicsError
from ...extras import require
from ...terminal import printable
from .arguments import not_negative, path, whole_number
from .console import complain, progress_bars
from .convention_arguments import add_convention_arguments, conventions
from .motion_arguments import add_motion_arguments
from .robot_arguments import add_robot_arguments, load, robot_options

SUMMARY = "replay recorded motions offline, and compare the commands with earlier ones or with recorded efforts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument("bags", metavar="IN", nargs="+", type=path, help="bag, or folder of bags")
    parser.add_argument(
        "-o", "--output", metavar="OUT", type=path, required=True, help="bag or table to write, or folder of them"
    )
    add_robot_arguments(parser, "--robot", "; default: the URDF that the bag has on the topic robot_description")
    parser.add_argument("--topic", metavar="NAME", help="topic of the motion, if a bag has several candidates")
    parser.add_argument(
        "--format", choices=("mcap", "sqlite3", "parquet"), default="mcap", help="of the output; default: %(default)s"
    )
    add_motion_arguments(parser)
    add_convention_arguments(parser)
    parser.add_argument("--force", action="store_true", help="overwrite outputs that exist")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of tables")
    node = parser.add_argument_group("parameters of the node, by their names there")
    node.add_argument(
        "--effort-command",
        choices=("motor", "joint"),
        default="motor",
        help="entries of the topic effort_command; default: %(default)s",
    )
    node.add_argument("--clip-to-limits", action="store_true", help="clip motor efforts to the limits of the motors")
    node.add_argument(
        "--hold-last-command",
        choices=("stiffness", "always", "never"),
        default="stiffness",
        help="which refused setpoints are answered with the last valid command: those with an unusable stiffness, all, "
        "or none; default: %(default)s",
    )
    check = parser.add_argument_group("checks, with exit code 1 if one fails")
    check.add_argument(
        "--compare",
        metavar="GOLDEN",
        type=path,
        help="compare with this bag; for several, with the bags in this folder that have the names of the outputs",
    )
    for name, kind in (("atol", "absolute"), ("rtol", "relative")):
        check.add_argument(
            f"--{name}",
            metavar="[FIELD=]X",
            type=_tolerance,
            action="append",
            default=[],
            help=f"allowed {kind} difference of all fields or of one, such as effort; may be repeated; default: 1e-9",
        )
    check.add_argument(
        "--match",
        choices=("recorded", "stamp"),
        help="match messages by their time of recording, or by their stamp if GOLDEN was recorded live; "
        "default: recorded",
    )
    check.add_argument(
        "--against",
        choices=("effort", "motor_effort"),
        help="compare this field of the commands with the recorded effort: RMS difference of each joint",
    )
    many = parser.add_argument_group("several bags")
    many.add_argument("--resume", action="store_true", help="keep outputs that exist, and write the missing ones")
    many.add_argument("--jobs", metavar="N", type=whole_number, help="parallel processes; default: one per core")
    many.add_argument("--scheduler", metavar="ADDRESS", help="Dask cluster to run on, such as tcp://host:8786")


def run(options: argparse.Namespace) -> int:
    """Replay, compare and print; returns the exit code, 1 if a bag or a check fails.

    Raises:
        EomDynamicsError: the arguments contradict each other, a single bag cannot be replayed, or a library is missing.
        OSError: a file cannot be read.
    """
    require("replay")

    # After the check for the libraries that these import.
    from ..replay import FIELDS, Format, Golden, Job, Match, Options, Tolerances, replay
    from ..replay.text import as_json, as_text

    if options.compare and options.format == "parquet":
        raise EomDynamicsError("--compare needs bags: choose --format mcap or sqlite3")
    if (options.atol or options.rtol or options.match) and not options.compare:
        raise EomDynamicsError("--atol, --rtol and --match need --compare GOLDEN")
    if (options.effort_scale or options.effort_offset) and not options.against:
        raise EomDynamicsError("--effort-scale and --effort-offset need --against, which compares recorded efforts")
    for name, _ in (*options.atol, *options.rtol):
        if name and name not in FIELDS:
            raise EomDynamicsError(f"--atol, --rtol: there is no field {name!r}; there are {', '.join(FIELDS)}")
    if options.robot is not None:
        load(options)  # fail once, not for each bag
    settings = Job(
        bag=Path(),
        output=Path(),
        robot=options.robot,
        topic=options.topic,
        format=Format(options.format),
        options=Options(options.effort_command, options.clip_to_limits, options.hold_last_command),
        cutoff=options.cutoff,
        rate=options.rate,
        against=options.against,
        force=options.force,
        robot_options=robot_options(options),
        conventions=conventions(options),
    )
    golden = None
    if options.compare:
        tolerances = Tolerances(dict(options.atol), dict(options.rtol))
        golden = Golden(options.compare, tolerances, Match(options.match or Match.RECORDED))
    with progress_bars() as bars:
        bar = bars.add_task(printable(options.bags[0].name), total=None)
        results = replay(
            options.bags,
            options.output,
            settings,
            golden,
            processes=options.jobs,
            scheduler=options.scheduler,
            resume=options.resume,
            progress=lambda done, total: bars.update(bar, completed=done, total=total),
        )
    print(json.dumps(as_json(results), indent=2) if options.json else as_text(results))
    failed = [result.outcome for result in results if result.outcome.report is None]
    for outcome in failed:
        complain(options.program, outcome.error)
    differing = sum(result.differs for result in results)
    if differing:
        compared = sum(result.differences is not None for result in results)
        complain(options.program, f"{differing} of {compared} bags differ from {options.compare}")
    return 1 if failed or differing else 0


def _tolerance(text: str) -> tuple[str, float]:
    """Return a field, empty for all, and its tolerance."""
    name, assigned, value = text.rpartition("=")
    if assigned and not name:
        raise argparse.ArgumentTypeError(f"must be X or FIELD=X, is {text!r}")
    return name, not_negative(value)
