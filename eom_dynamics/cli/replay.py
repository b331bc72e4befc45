# SPDX-License-Identifier: Apache-2.0
"""Replay recorded motions offline: what the node would have published for them, as bags or Parquet tables.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Its motion is a topic of JointTrajectorySetpoint,
JointTrajectory (interpolated) or JointState (fitted). Of a folder of bags, or several, each is replayed by itself, and
OUT is a folder with an output for each.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exceptions import EomDynamicsError
from ..robot import load_robot, packaged_robots
from ..terminal import printable
from .arguments import folder
from .messages import complain
from .tables import columns

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..replay import Difference, Job, Outcome, Report

SUMMARY = "replay recorded motions offline, and compare the commands with earlier ones or with recorded efforts"

_PROGRAM = "eom_dynamics replay"
_NEEDED = ("mcap", "rich", "rosbags")

# Lines on one bag beyond these are counted.
_TOLD_LINES = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument("bags", metavar="IN", nargs="+", type=folder, help="bags, or folders of bags")
    parser.add_argument(
        "-o", "--output", metavar="OUT", type=folder, required=True, help="bag, table, or folder of them"
    )
    parser.add_argument(
        "--robot",
        metavar="ROBOT",
        help=f"a packaged robot ({', '.join(packaged_robots())}) or a robot's file; default: the URDF that the bag "
        "has on the topic robot_description",
    )
    parser.add_argument("--topic", metavar="NAME", help="topic of the motion, where a bag has several that can be it")
    parser.add_argument(
        "--format", choices=("mcap", "sqlite3", "parquet"), default="mcap", help="of the output; default: mcap"
    )
    parser.add_argument(
        "--cutoff", metavar="HZ", type=_positive, default=5.0, help="of the fit of measured positions; default: 5"
    )
    parser.add_argument(
        "--rate", metavar="HZ", type=_positive, default=1000.0, help="of states on a JointTrajectory; default: 1000"
    )
    node = parser.add_argument_group("as the node's parameters of these names")
    node.add_argument("--effort-command", choices=("motor", "joint"), default="motor")
    node.add_argument("--clip-to-limits", action="store_true")
    node.add_argument("--hold-last-command", choices=("stiffness", "always", "never"), default="stiffness")
    check = parser.add_argument_group("checks, exit code 1 where one fails")
    check.add_argument(
        "--compare", metavar="GOLDEN", type=folder, help="compare with this bag, or with the bags of these names in it"
    )
    for name, what in (("atol", "absolute"), ("rtol", "relative to GOLDEN's")):
        check.add_argument(
            f"--{name}",
            metavar="[FIELD=]X",
            type=_tolerance,
            action="append",
            default=[],
            help=f"difference that is allowed, {what}, of all fields or of one, such as effort; default: 1e-9",
        )
    check.add_argument(
        "--match",
        choices=("recorded", "stamp"),
        help="messages of GOLDEN belong to those of the same time of recording, or of the same stamp, as where it was "
        "recorded live; default: recorded",
    )
    check.add_argument(
        "--against",
        choices=("effort", "motor_effort"),
        help="compare this field of the commands with the recorded effort: root mean square, joint by joint",
    )
    many = parser.add_argument_group("many bags")
    many.add_argument("--resume", action="store_true", help="keep the outputs that are there, and make those that lack")
    many.add_argument("--jobs", metavar="N", type=_count, help="processes at a time; default: one for each core")
    many.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster that does the work, such as tcp://host:8786"
    )
    parser.add_argument("--force", action="store_true", help="write over outputs that are there")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    """Replay, check and show; returns the exit code, 1 if a bag or a check fails.

    Raises:
        EomDynamicsError: the arguments do not fit together, a single bag cannot be replayed, or a package is missing.
        OSError: a file cannot be read.
    """
    for module in _NEEDED:
        if importlib.util.find_spec(module) is None:
            raise EomDynamicsError(f"{module} is missing: make build, or pip install 'eom_dynamics[bags]'")
    if options.compare and options.format == "parquet":
        raise EomDynamicsError("--compare takes bags: choose --format mcap or sqlite3")
    if (options.atol or options.rtol or options.match) and not options.compare:
        raise EomDynamicsError("--atol, --rtol and --match are of --compare GOLDEN")

    # Not before: these need packages that are checked above.
    from ..replay import FIELDS, Outcome, find_bags, replay_bag, replay_bags

    for name, _ in (*options.atol, *options.rtol):
        if name and name not in FIELDS:
            raise EomDynamicsError(f"--atol, --rtol: there is no field {name!r}; there are {', '.join(FIELDS)}")

    if options.compare and _same(options.compare, options.output):
        raise EomDynamicsError(
            f"--compare {options.compare}: is the output itself; name another GOLDEN, or another OUT"
        )
    if options.robot is not None:
        load_robot(options.robot)  # once, and not in vain for each bag
    single = len(options.bags) == 1 and find_bags(options.bags[0]) == options.bags
    alone = single and not (options.scheduler or options.resume)
    jobs = [_job(options, options.bags[0], options.output)] if alone else _jobs(options, single)
    refused = _refused_goldens(options, jobs, single) if options.compare else {}
    if alone:
        (job,) = jobs
        with _bars() as bars:
            task = bars.add_task(printable(job.bag.name), total=1.0)
            began = time.perf_counter()
            report = replay_bag(job, lambda share: bars.update(task, completed=share))
        outcomes = [Outcome(job, report, wall=time.perf_counter() - began)]
    else:
        with _bars() as bars:
            accepted = [job for job in jobs if job not in refused]
            task = bars.add_task(f"{len(accepted)} bags", total=float(len(accepted)))
            made = replay_bags(
                accepted,
                processes=options.jobs,
                scheduler=options.scheduler,
                resume=options.resume,
                progress=lambda shares, done: bars.update(task, completed=len(done) + sum(shares)),
            )
        replayed = iter(made)
        outcomes = [Outcome(job, error=refused[job]) if job in refused else next(replayed) for job in jobs]
    failed = sum(outcome.report is None for outcome in outcomes)
    differences = _compared(options, outcomes, single)
    if options.json:
        print(json.dumps([_as_json(outcome, differences.get(outcome.job.bag)) for outcome in outcomes], indent=2))
    else:
        _show(outcomes, differences)
    for outcome in outcomes:
        if outcome.report is None:
            complain(_PROGRAM, outcome.error)
    differing = sum(any(row.beyond for row in rows) for rows in differences.values())
    if differing:
        complain(_PROGRAM, f"{differing} of {len(differences)} bags differ from {options.compare}")
    return 1 if failed or differing else 0


def _job(options: argparse.Namespace, bag: Path, output: Path) -> Job:
    from ..replay import Format, Job, Options

    return Job(
        bag,
        output,
        options.robot,
        options.topic,
        Format(options.format),
        Options(options.effort_command, options.clip_to_limits, options.hold_last_command),
        options.cutoff,
        options.rate,
        options.against,
        options.force,
    )


def _jobs(options: argparse.Namespace, single: bool) -> list[Job]:
    """A job for each bag, with an output of its name below OUT."""
    from ..replay import find_bags

    if single:
        return [_job(options, options.bags[0].absolute(), options.output.absolute())]
    jobs: list[Job] = []
    taken: dict[Path, Path] = {}
    for path in options.bags:
        for bag in find_bags(path):
            name = bag.relative_to(path) if bag != path else Path(bag.name)
            output = (options.output / name.parent / _output_name(name, options.format)).absolute()
            if output in taken:
                raise EomDynamicsError(f"{bag} and {taken[output]} would both become {output}; replay them apart")
            taken[output] = bag
            jobs.append(_job(options, bag.absolute(), output))
    return jobs


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()


def _output_name(bag: Path, kind: str) -> str:
    name = bag.name
    for suffix in (".zstd", ".db3", ".mcap"):
        name = name.removesuffix(suffix)
    return f"{name}.parquet" if kind == "parquet" else name


def _golden(options: argparse.Namespace, job: Job, single: bool) -> Path:
    """The bag that the output of a job is compared with."""
    golden: Path = options.compare
    return golden if single else golden / job.output.relative_to(options.output.absolute())


def _refused_goldens(options: argparse.Namespace, jobs: Sequence[Job], single: bool) -> dict[Job, str]:
    """Why golden bags cannot be compared with, by job, before anything is computed or written.

    A bag to replay that cannot be read is left to the replay, which says so without stopping the others.

    Raises:
        BagError: none can be compared with.
        OSError: a file cannot be read.
    """
    from ..bags import Bag, BagError
    from ..replay import check_golden
    from ..replay.messages import output_topics
    from ..replay.sources import choose_topic

    refused: dict[Job, str] = {}
    usable = False
    for job in jobs:
        try:
            with Bag(job.bag) as bag:
                namespace = choose_topic(bag, job.topic).name.rpartition("/")[0]
        except (BagError, OSError):
            continue
        try:
            check_golden(_golden(options, job, single), [topic.name for topic in output_topics(namespace)])
        except BagError as error:
            refused[job] = str(error)
        else:
            usable = True
    if refused and not usable:
        raise BagError(next(iter(refused.values())))
    return refused


def _compared(options: argparse.Namespace, outcomes: Sequence[Outcome], single: bool) -> dict[Path, list[Difference]]:
    """Differences from the golden bags, by bag."""
    if not options.compare:
        return {}
    from ..replay import Match, Tolerances, compare_bags

    tolerances = Tolerances(dict(options.atol), dict(options.rtol))
    match = Match(options.match or Match.RECORDED)
    results = {}
    for outcome in outcomes:
        if outcome.report is not None:
            golden = _golden(options, outcome.job, single)
            results[outcome.job.bag] = compare_bags(outcome.job.output, golden, tolerances, match)
    return results


# --- What is shown ----------------------------------------------------------------------


def _show(outcomes: Sequence[Outcome], differences: dict[Path, list[Difference]]) -> None:
    rows = [("bag", "topic", "commands", "refused", "recorded, s", "took, s", "")]
    for outcome in outcomes:
        report = outcome.report
        if report is None:
            rows.append((printable(outcome.job.bag.name), "", "", "", "", f"{outcome.wall:.2f}", "failed"))
            continue
        state = "done before" if outcome.done_before else "damaged" if report.damage else ""
        took = "" if outcome.done_before else f"{outcome.wall:.2f}"
        rows.append(
            (
                printable(outcome.job.bag.name),
                printable(report.topic),
                f"{report.commands:,}",
                f"{report.refusals.total:,}",
                f"{report.seconds:.2f}",
                took,
                state,
            )
        )
    print("\n".join(columns(rows, right_from=2)))
    for outcome in outcomes:
        if outcome.report is not None:
            lines = [
                *_lines(outcome.report),
                *_effort_lines(outcome.report),
                *_difference_lines(differences.get(outcome.job.bag, [])),
            ]
            if lines:
                print(f"\n{printable(str(outcome.job.bag))}:")
                print("\n".join(f"  {printable(line)}".rstrip() for line in lines))
    for outcome in outcomes:
        if outcome.detail:
            print(f"\n{printable(str(outcome.job.bag))}:\n{outcome.detail}")


def _lines(report: Report) -> Iterator[str]:
    from ..replay.repeats import CONSEQUENCE

    for lines in (report.damage, report.exceeded):
        yield from lines[:_TOLD_LINES]
        if len(lines) > _TOLD_LINES:
            yield f"… and {len(lines) - _TOLD_LINES} more"
    for reason, count in report.refusals.ranked():
        first = _seconds(report.refusals.first[reason])
        yield f"{count:,} of topic {report.topic} refused, the first at {first}: {reason}"
    if report.held:
        yield f"{report.held:,} of them answered with the last good command"
    if report.first_repeated is not None:
        yield (
            f"{report.repeated:,} messages of topic {report.topic} have the positions of the one before, "
            f"amid a motion, the first at {_seconds(report.first_repeated)}: {CONSEQUENCE}"
        )


def _effort_lines(report: Report) -> list[str]:
    """Figures joint by joint."""
    if not report.deviation and not report.rms:
        return []
    header, cells = ["joint"], [[name] for name in report.joint_names]
    for title, values in (
        ("fit, RMS", report.deviation),
        ("fit, largest", report.largest_deviation),
        ("effort, RMS difference", report.rms),
    ):
        if values:
            header.append(title)
            for row, value in zip(cells, values, strict=True):
                row.append(f"{value:.3f}" if "effort" in title else f"{value:.2e}")
    return columns([header, *cells], right_from=1)


def _difference_lines(differences: Sequence[Difference]) -> list[str]:
    if not differences:
        return []
    rows = [("topic", "field", "compared", "largest difference", "beyond", "first at")]
    for row in differences:
        first = "" if row.first is None else _seconds(row.first)
        rows.append(
            (
                row.topic,
                row.field,
                f"{row.compared:,}",
                f"{row.largest:.2g}",
                f"{row.beyond:,}" if row.beyond else "",
                first,
            )
        )
    return columns(rows, right_from=2)


def _seconds(time: int) -> str:
    return f"{time // 1_000_000_000}.{time % 1_000_000_000:09d}"


def _as_json(outcome: Outcome, differences: Sequence[Difference] | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "bag": str(outcome.job.bag),
        "output": str(outcome.job.output),
        "error": outcome.error,
        "wall": outcome.wall,
        "done_before": outcome.done_before,
        "report": outcome.report.as_json() if outcome.report else None,
    }
    if differences is not None:
        result["differences"] = [vars(row) for row in differences]
    return result


@contextmanager
def _bars() -> Iterator[Progress]:
    """Bars on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=(console := Console(stderr=True)),
        disable=not console.is_terminal,
    ) as progress:
        yield progress


# --- Arguments --------------------------------------------------------------------------


def _tolerance(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    value = _number(number)
    if not value >= 0 or text.startswith("="):
        raise argparse.ArgumentTypeError(f"must be X or FIELD=X with a number X from 0 on, is {text!r}")
    return name, value


def _positive(text: str) -> float:
    value = _number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be a positive number, is {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, is {text!r}")
    return int(text)


def _number(text: str) -> float:
    """The number, or nan."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
