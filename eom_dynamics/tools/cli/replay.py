# SPDX-License-Identifier: Apache-2.0
"""Replay recorded motions offline, and compare the commands with earlier ones or with recorded efforts.

The commands are the node's; they are written as bags or Parquet tables.
A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Its motion is a topic of type JointTrajectorySetpoint,
JointTrajectory (interpolated) or JointState (fitted). Several bags, or folders of bags, are replayed in parallel into
a folder OUT with an output for each.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...arguments import option
from ...exceptions import EomDynamicsError, require
from ...recordings import Sampling
from ...terminal import printable
from ..options import (
    CommandOptions,
    RobotOptions,
    add_json,
    add_options,
    add_output_file,
    add_robot_arguments,
    html_path,
    load,
    options_of,
    path,
)
from ..pages import html_page
from ..results import Result, progress_bars
from ..writing import write_file

if TYPE_CHECKING:
    from ..replay.bag import Job
    from ..replay.run import Outcome


@dataclass(frozen=True)
class _Bags:
    """Bags, one or several.

    Attributes:
        topic: topic of the motion, if a bag has several candidates.
        format: format of the output; default: by the ending of OUT, else mcap.
        resume: keep outputs of the same robot, parameters and bag, and write the others.
        scheduler: Dask cluster to run on, such as tcp://host:8786.
    """

    topic: str | None = option(metavar="NAME")
    format: str | None = option(choices=("mcap", "sqlite3", "parquet"))
    resume: bool = option(False)
    scheduler: str | None = option(metavar="ADDRESS")


@dataclass(frozen=True)
class _Checks:
    """Checks, with exit code 1 if one fails.

    Attributes:
        compare: compare with this bag; for several bags, with the bags of the outputs' names in this folder.
        atol: allowed absolute difference of all fields or of one, such as effort; default: 1e-9.
        rtol: allowed relative difference of all fields or of one; default: 1e-9.
        match: match messages by their time of recording, or by their stamp if GOLDEN was recorded live; default:
            recorded.
        against: compare this field of the commands with the recorded effort: RMS difference of each joint.
        tolerance: with --against: allowed RMS difference of all joints or of one, N m or N.
        strict: fail on messages that are refused, and topics that GOLDEN lacks.
    """

    compare: Path | None = option(metavar="GOLDEN")
    atol: Mapping[str | None, float] = option({}, rule="not negative", metavar="[FIELD=]X")
    rtol: Mapping[str | None, float] = option({}, rule="not negative", metavar="[FIELD=]X")
    match: str | None = option(choices=("recorded", "stamp"))
    against: str | None = option(choices=("effort", "motor_effort"))
    tolerance: Mapping[str | None, float] = option({}, rule="not negative", metavar="[JOINT=]X")
    strict: bool = option(False)

    def refuse_contradictions(self, options: argparse.Namespace, output_format: str) -> None:
        """Raise EomDynamicsError for missing, contradicting or unknown options."""
        from ..replay.compare import FIELDS

        if self.compare and output_format == "parquet":
            raise EomDynamicsError("--compare compares bags: write one, or compare tables by pyarrow or pandas")
        if (self.atol or self.rtol or self.match) and not self.compare:
            raise EomDynamicsError("--atol, --rtol and --match need --compare GOLDEN")
        if self.tolerance and not self.against:
            raise EomDynamicsError("--tolerance needs --against effort or motor_effort")
        if (options.effort_scale or options.effort_offset) and not self.against:
            raise EomDynamicsError("--effort-scale and --effort-offset need --against, which compares recorded efforts")
        if options.resume and (self.against or self.strict or options.limits == "fail"):
            raise EomDynamicsError("--resume keeps outputs unchecked: leave out --against, --strict and --limits fail")
        for name in (*self.atol, *self.rtol):
            if name is not None and name not in FIELDS:
                raise EomDynamicsError(f"--atol, --rtol: there is no field {name!r}; there are {', '.join(FIELDS)}")

    def failures(self, outcome: Outcome, *, limits_fail: bool) -> tuple[str, ...]:
        """Return a line for each failed check of a bag that was replayed, besides differences from a golden bag."""
        if (report := outcome.report) is None:
            return ()
        lines = report.effort_failures(self.tolerance) + (report.exceeding() if limits_fail else [])
        return (*lines, *([*report.incomplete(), *outcome.missing] if self.strict else ()))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bags", metavar="IN", nargs="+", type=path, help="bag, or folder of bags")
    outputs = "folder of the bag to write, .mcap or .parquet file, or folder of outputs for several bags"
    add_output_file(parser, "OUT", path, outputs)
    add_robot_arguments(parser, "--robot", "; default: the URDF that the bag has on the topic robot_description")
    add_json(parser)
    page = "write the results as a page, overwriting an existing one: an index and the comparison of each bag"
    parser.add_argument("--page", metavar="PAGE.html", type=html_path, help=page)
    for options in (_Bags, Sampling, CommandOptions, _Checks):
        add_options(parser, options)


def run(options: argparse.Namespace) -> Result:
    """Replay and compare; it fails if a bag or a check fails."""
    require("replay")
    if options.page is not None:
        require("report")

    from ..replay.run import replay, replay_result

    checked, output_format = options_of(_Checks, options), _format(options.output, options.format)
    checked.refuse_contradictions(options, output_format)
    if options.robot is not None:
        known = load(options).joint_names  # fail once, not for each bag
        if unknown := [name for name in checked.tolerance if name is not None and name not in known]:
            raise EomDynamicsError(
                f"--tolerance: robot {options.robot:.200} has no joint {unknown[0]!r}; it has {', '.join(known)}"
            )
    settings = _settings(options, checked, output_format)
    with progress_bars() as bars:
        bar = bars.add_task(printable(options.bags[0].name), total=None)

        def progress(done: float, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        outcomes = replay(options.bags, options.output, settings, scheduler=options.scheduler, progress=progress)
    failing = options.limits == "fail"
    outcomes = [replace(x, failed_checks=checked.failures(x, limits_fail=failing)) for x in outcomes]
    robot = "from robot_description in each bag" if options.robot is None else f"{options.robot:.200}"
    about = {"robot": robot} | ({"compared with": str(options.compare)} if options.compare else {})
    result = replay_result(outcomes, options.compare, about, options.page)
    if options.page is not None:
        write_file(options.page, html_page("replay", result).encode(), force=True)
    return result


def _settings(options: argparse.Namespace, checked: _Checks, output_format: str) -> Job:
    from ..replay.bag import Job
    from ..replay.compare import Golden, Tolerances

    golden = None
    if checked.compare is not None:
        golden = Golden(checked.compare, Tolerances(checked.atol, checked.rtol), checked.match or "recorded")
    # Failing takes the commands of warning, so that outputs of both are the same.
    limits = "warn" if options.limits == "fail" else options.limits
    return Job(
        bag=Path(),
        output=Path(),
        robot=options.robot,
        topic=options.topic,
        format=output_format,
        options=options_of(CommandOptions, options, limits=limits),
        sampling=options_of(Sampling, options),
        against=checked.against,
        golden=golden,
        force=options.force,
        resume=options.resume,
        robot_options=options_of(RobotOptions, options),
    )


def _format(output: Path, option: str | None) -> str:
    named = {".mcap": "mcap", ".parquet": "parquet", ".db3": "sqlite3"}.get(output.suffix)
    if named == "sqlite3":
        raise EomDynamicsError(f"{output}: an sqlite3 bag is a folder; leave out .db3, and choose --format sqlite3")
    if named and option and named != option:
        raise EomDynamicsError(f"{output}: contradicts --format {option}; name another output, or leave out --format")
    return option or named or "mcap"
