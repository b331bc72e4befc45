# SPDX-License-Identifier: Apache-2.0
"""Replay recorded motions offline: write the commands that the node would have published, as bags or Parquet tables.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Its motion is a topic of type JointTrajectorySetpoint,
JointTrajectory (interpolated) or JointState (fitted). Several bags, or those in folders, are replayed in parallel into
a folder OUT with an output for each.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import EomDynamicsError
from ...extras import require
from ...messages.setpoint_to_command import LIMIT_POLICIES
from ...terminal import printable
from ..results import Result
from ..writing import whole_file
from .arguments import (
    add_choice,
    add_convention_arguments,
    add_json,
    add_motion_arguments,
    add_output_file,
    add_repeated,
    add_robot_arguments,
    conventions,
    html_path,
    load,
    named,
    not_negative,
    path,
    path_with,
    robot_options,
    whole_number,
)
from .console import progress_bars

if TYPE_CHECKING:
    from ..replay import Job

SUMMARY = "replay recorded motions offline, and compare the commands with earlier ones or with recorded efforts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("bags", metavar="IN", nargs="+", type=path, help="bag, or folder of bags")
    outputs = "folder of the bag to write, .mcap or .parquet file, or folder of outputs for several bags"
    add_output_file(parser, "OUT", path, outputs)
    add_robot_arguments(parser, "--robot", "; default: the URDF that the bag has on the topic robot_description")
    parser.add_argument("--topic", metavar="NAME", help="topic of the motion, if a bag has several candidates")
    parser.add_argument(
        "--format",
        choices=("mcap", "sqlite3", "parquet"),
        help="of the output; default: by the ending of OUT, else mcap",
    )
    add_motion_arguments(parser)
    add_convention_arguments(parser)
    add_json(parser)
    parser.add_argument(
        "--junit",
        metavar="FILE.xml",
        type=path_with(".xml"),
        help="write the results as a JUnit report, overwriting an existing one",
    )
    parser.add_argument(
        "--page",
        metavar="PAGE.html",
        type=html_path,
        help="write the results as a page, overwriting an existing one: an index and the comparison of each bag",
    )
    node = parser.add_argument_group("parameters of the node, by their names there")
    add_choice(node, "--effort-command", ("motor", "joint"), "entries of the topic effort_command")
    node.add_argument(
        "--limits",
        choices=(*LIMIT_POLICIES, "fail"),
        default="warn",
        help="what to do with setpoints that exceed limits of joints or motors: report them, refuse them, clip efforts "
        "and report it, do not check, or (not in the node) report them and exit with code 1; default: %(default)s",
    )
    node.add_argument(
        "--command-lead",
        metavar="S",
        type=not_negative,
        help="time by which commands are ahead of setpoints, s; default: that of the recording, or else "
        "that of the robot's file; measured and planned motions: 0",
    )
    held = (
        "which refused setpoints are answered with the last valid command: those with an unusable stiffness, all, or "
        "none"
    )
    add_choice(node, "--hold-last-command", ("stiffness", "always", "never"), held)
    check = parser.add_argument_group("checks, with exit code 1 if one fails")
    check.add_argument(
        "--compare",
        metavar="GOLDEN",
        type=path,
        help="compare with this bag, or table for --format parquet; for several, with those in this folder that have "
        "the names of the outputs",
    )
    for name, kind in (("atol", "absolute"), ("rtol", "relative")):
        allowed = f"allowed {kind} difference of all fields or of one, such as effort; may be repeated; default: 1e-9"
        add_repeated(check, f"--{name}", "[FIELD=]X", named("FIELD", not_negative), allowed)
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
    rms = "with --against: allowed RMS difference of all joints or of one, N m or N; may be repeated"
    add_repeated(check, "--tolerance", "[JOINT=]X", named("JOINT", not_negative), rms)
    check.add_argument(
        "--strict",
        action="store_true",
        help="fail on damaged bags, messages that are refused, and topics that GOLDEN lacks",
    )
    many = parser.add_argument_group("several bags")
    many.add_argument(
        "--resume", action="store_true", help="keep outputs in the manifest of OUT, and write the missing ones"
    )
    many.add_argument("--jobs", metavar="N", type=whole_number, help="parallel processes; default: one per core")
    many.add_argument("--scheduler", metavar="ADDRESS", help="Dask cluster to run on, such as tcp://host:8786")


def run(options: argparse.Namespace) -> Result:
    """Replay and compare; it fails if a bag or a check fails."""
    require("replay")
    if options.page is not None:
        require("report")

    # After the check for the libraries that these import.
    from ..replay import EffortTolerances, Golden, Match, Tolerances, exceeding, incomplete, replay
    from ..replay.results import as_junit, replay_result

    _refuse_contradictions(options)
    settings = _settings(options)
    tolerances = dict(options.tolerance)
    if options.robot is not None:
        known = load(options).joint_names  # fail once, not for each bag
        if unknown := [name for name in tolerances if name and name not in known]:
            raise EomDynamicsError(
                f"--tolerance: robot {options.robot:.200} has no joint {unknown[0]!r}; it has {', '.join(known)}"
            )
    golden = None
    if options.compare:
        allowed = Tolerances(dict(options.atol), dict(options.rtol))
        golden = Golden(options.compare, allowed, Match(options.match or Match.RECORDED))
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
    efforts = EffortTolerances(tolerances.pop("", None), tolerances)
    checks = [
        [
            *efforts.failures(report),
            *(exceeding(report) if options.limits == "fail" else ()),
            *([*incomplete(report), *result.missing] if options.strict else ()),
        ]
        if (report := result.outcome.report) is not None
        else []
        for result in results
    ]
    robot = "from robot_description in each bag" if options.robot is None else f"{options.robot:.200}"
    about = {"robot": robot} | ({"compared with": str(options.compare)} if options.compare else {})
    result = replay_result(results, checks, options.compare, about, options.page)
    if options.junit is not None:
        with whole_file(options.junit, force=True) as aside:
            aside.write_bytes(as_junit(results, checks))
    if options.page is not None:
        from ..pages.page import html_page

        with whole_file(options.page, force=True) as aside:
            aside.write_text(html_page("replay", result), encoding="utf-8")
    return result


def _refuse_contradictions(options: argparse.Namespace) -> None:
    from ..replay import FIELDS

    if (options.atol or options.rtol or options.match) and not options.compare:
        raise EomDynamicsError("--atol, --rtol and --match need --compare GOLDEN")
    if options.tolerance and not options.against:
        raise EomDynamicsError("--tolerance needs --against effort or motor_effort")
    if (options.effort_scale or options.effort_offset) and not options.against:
        raise EomDynamicsError("--effort-scale and --effort-offset need --against, which compares recorded efforts")
    for name, _ in (*options.atol, *options.rtol):
        if name and name not in FIELDS:
            raise EomDynamicsError(f"--atol, --rtol: there is no field {name!r}; there are {', '.join(FIELDS)}")


def _settings(options: argparse.Namespace) -> Job:
    """Settings of all replays, for which bag and output are missing."""
    from ..replay import CommandOptions, Format, Job

    # Failing takes the commands of warning, so that outputs of both are the same.
    limits = "warn" if options.limits == "fail" else options.limits
    return Job(
        bag=Path(),
        output=Path(),
        robot=options.robot,
        topic=options.topic,
        format=Format(_format(options.output, options.format)),
        options=CommandOptions(options.effort_command, limits, options.hold_last_command, options.command_lead),
        cutoff=options.cutoff,
        rate=options.rate,
        against=options.against,
        force=options.force,
        robot_options=robot_options(options),
        conventions=conventions(options),
    )


def _format(output: Path, given: str | None) -> str:
    """Return the format of an output, which its name must not contradict."""
    named = {".mcap": "mcap", ".parquet": "parquet", ".db3": "sqlite3"}.get(output.suffix)
    if named == "sqlite3":
        raise EomDynamicsError(f"{output}: an sqlite3 bag is a folder; leave out .db3, and choose --format sqlite3")
    if named and given and named != given:
        raise EomDynamicsError(f"{output}: contradicts --format {given}; name another output, or leave out --format")
    return given or named or "mcap"
