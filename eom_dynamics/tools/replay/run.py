# SPDX-License-Identifier: Apache-2.0
"""Replay of bags and folders of bags on the cores of a machine or on a Dask cluster, and its result."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS
from ...exceptions import EomDynamicsError, require
from ...recordings.bags import Bag, BagError, find_bags
from ...recordings.bags.bag import ENDINGS
from ...recordings.streams import TopicReader
from ...spelling import listed
from ..pages import add_joints, charts_over_time
from ..results import Result, ResultSection, TextTable
from .bag import Job, Report, replay_bag
from .compare import MISSING, Difference, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

_CONNECT_TIMEOUT = 10.0
_MAX_ATTEMPTS = 3  # of a bag on a cluster
_MOST_CHARTS = 4  # of a bag
_MOST_ROWS = 20  # of bags on the console

# Called with the number of bags replayed so far, in fractions of a bag, and their total number.
Progress = Callable[[float, int], None]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job.

    Attributes:
        report: None if the job failed, or its output was kept.
        error: reason of the failure, on one line; empty without one.
        detail: a traceback, if the error is internal.
        wall: duration, s.
        differences: from the golden output; None if it was not compared.
        failed_checks: a line for each, besides the differences.
    """

    job: Job
    report: Report | None = None
    error: str = ""
    detail: str = ""
    wall: float = 0.0
    differences: list[Difference] | None = None
    failed_checks: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """True if the output was complete before, and was kept."""
        return self.report is None and not self.error

    @property
    def beyond(self) -> list[Difference]:
        """Differences from the golden output beyond their tolerances."""
        return [row for row in self.differences or () if row.beyond]

    @property
    def missing(self) -> list[str]:
        """A line for each topic that the golden bag lacks, which was not compared."""
        return [f"{row.topic}: {row.text}" for row in self.differences or () if row.field == MISSING]

    @property
    def failures(self) -> list[str]:
        """The error, or a line for each field that differs from the golden output and for each failed check."""
        lines = [self.error] if self.error else []
        return [*lines, *(f"{row.topic}: {row.text}" for row in self.beyond), *self.failed_checks]


def run_job(job: Job, progress: Callable[[float], None] | None = None) -> Outcome:
    """Replay a bag, unless its output is kept, and compare; raises as :func:`replay_bag`."""
    began = time.perf_counter()
    # An output of another robot, other parameters or another input is overwritten.
    kept = job.resume and job.has_output
    report = None if kept else replay_bag(replace(job, force=job.force or job.resume), progress)
    types = report.joint_types if report else {}
    differences = None if job.golden is None else job.golden.differences(job.output, types)
    return Outcome(job, report, wall=time.perf_counter() - began, differences=differences)


def attempt(job: Job) -> Outcome:
    """Run one job; errors are reported in the outcome."""
    detail = ""
    try:
        return run_job(job)
    except EomDynamicsError as failure:
        error = "; ".join(failure.errors)
    except OSError as failure:
        error = f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure)
    except Exception as failure:
        error, detail = f"internal error: {type(failure).__name__}: {failure}", traceback.format_exc()
    return Outcome(job, error=error, detail=detail)


def replay(
    bags: Sequence[Path], output: Path, settings: Job, *, scheduler: str | None = None, progress: Progress | None = None
) -> list[Outcome]:
    """Replay bags and compare the outputs.

    A single bag is replayed in this process, and its errors are raised. Several bags, or folders of bags, are replayed
    in parallel, each into an output of its name in the folder ``output``; their errors are part of the outcomes.

    Args:
        bags: bags and folders of bags.
        settings: settings of each replay; ``bag`` and ``output`` are replaced, and for several bags, the golden bag is
            a folder with the outputs' names.
        scheduler: address of a Dask scheduler, to use a cluster instead of the cores of this machine.
        progress: called with the number of bags replayed so far, in fractions of a bag, and their total number.

    Returns:
        An outcome for each bag.

    Raises:
        BagError: there are no bags, or two would have the same output.
        EomDynamicsError: a single bag cannot be replayed, or the scheduler cannot be reached.
        OSError: a file cannot be read.
    """
    if len(bags) == 1 and find_bags(bags[0]) == list(bags) and scheduler is None:
        return [run_job(replace(settings, bag=bags[0], output=output), progress and (lambda share: progress(share, 1)))]
    if output.suffix in (*ENDINGS, ".parquet"):
        raise BagError(f"{output}: is the name of a file; several bags are replayed into a folder, name one")
    return replay_bags(_jobs(bags, output, settings), scheduler=scheduler, progress=progress)


def replay_bags(
    jobs: Sequence[Job], *, scheduler: str | None = None, progress: Progress | None = None
) -> list[Outcome]:
    """Replay bags in parallel; arguments as of :func:`replay`. Returns an outcome for each job, in their order.

    A busy scheduler cancels jobs whose workers do not answer: they are submitted again.
    """
    outcomes: dict[int, Outcome] = {}
    with _executor(scheduler) as executor:
        for attempts in range(_MAX_ATTEMPTS, 0, -1):
            work = attempt if scheduler else _attempt_in_pool
            # The output of a worker that was lost is overwritten.
            again = attempts < _MAX_ATTEMPTS
            futures = {
                executor.submit(work, replace(job, force=True) if again else job): k
                for k, job in enumerate(jobs)
                if k not in outcomes
            }
            for future in as_completed(futures):
                if not future.cancelled() or attempts == 1:
                    k = futures[future]
                    outcomes[k] = _outcome(jobs[k], future)
                    if progress:
                        progress(len(outcomes), len(jobs))
            if len(outcomes) == len(jobs):
                break
    return [outcomes[k] for k in range(len(jobs))]


def _begin_in_pool() -> None:
    """Let the processes of the pool end by SystemExit when the pool ends them because another process was killed."""

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # newer Pythons send it twice; the second must not stop the cleanup
        raise SystemExit(128 + number)

    # Ctrl-C reaches all processes of a terminal: only the first reacts, and the pool's processes complete their bags.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)


def _attempt_in_pool(job: Job) -> Outcome:
    """Replay a bag; a process that the pool ends leaves no temporary folder."""
    try:
        return attempt(job)
    except SystemExit as ended:
        os._exit(int(ended.code or 0))  # the pool would have this process wait for another job


def _outcome(job: Job, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except (Exception, CancelledError) as error:  # of a killed process or worker: a replay's own are in its outcome
        reason = " ".join(str(error).split()) or type(error).__name__
        return Outcome(job, error=f"{job.bag}: {reason}; go on with --resume")


@contextmanager
def _executor(scheduler: str | None) -> Iterator[Executor]:
    """Cores of this machine, or a Dask cluster; jobs that have not started are canceled on an error."""
    if scheduler is None:
        # Processes are forked from a process with this module: importing it takes longer than a short bag.
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])
        with ProcessPoolExecutor(mp_context=context, initializer=_begin_in_pool) as executor:
            try:
                yield executor
            except BaseException:
                executor.shutdown(cancel_futures=True)
                raise
        return
    require("cluster")
    from distributed import Client

    try:
        client = Client(scheduler, timeout=_CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise EomDynamicsError(f"the Dask scheduler at {scheduler} cannot be reached: {reason}") from None
    with client:
        # pure=False: Dask must not reuse results, since a job writes its results to its output.
        yield client.get_executor(pure=False)


def _jobs(bags: Sequence[Path], folder: Path, settings: Job) -> list[Job]:
    jobs: dict[Path, Job] = {}
    for path in bags:
        for bag in find_bags(path):
            name = bag.relative_to(path) if bag != path else Path(bag.name)
            stem = name.name
            for suffix in (".zstd", *ENDINGS):
                stem = stem.removesuffix(suffix)
            place = name.parent / (f"{stem}.parquet" if settings.format == "parquet" else stem)
            if place in jobs:
                raise BagError(
                    f"{bag} and {jobs[place].bag} would have the same output {folder / place}; replay them separately"
                )
            golden = settings.golden and replace(settings.golden, path=settings.golden.path / place)
            jobs[place] = replace(settings, bag=bag, output=folder / place, golden=golden)
    return list(jobs.values())


def replay_result(
    outcomes: Sequence[Outcome], golden: Path | None, about: Mapping[str, str], page: Path | None = None
) -> Result:
    """Make the result of a replay: a row for each bag, and details below; ``golden`` is the bag for comparison."""
    failures = [outcome.error for outcome in outcomes if outcome.error]
    if differing := [outcome.job.bag.name for outcome in outcomes if outcome.beyond]:
        compared = sum(outcome.differences is not None for outcome in outcomes)
        names = f": {listed(differing)}" if len(outcomes) > 1 else ""
        failures.append(f"{len(differing)} of {compared} bags differ from {golden}{names}")
    failures += [f"{outcome.job.bag}: {line}" for outcome in outcomes for line in outcome.failed_checks]
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    return Result(
        title=str(outcomes[0].job.bag) if len(outcomes) == 1 else f"{len(outcomes):,} bags",
        facts={"passed": f"{len(outcomes) - failed:,}", "failed": f"{failed:,}"} if len(outcomes) > 1 else {},
        sections=[
            _index(outcomes),
            *(_section(outcome, charts=page is not None, alone=len(outcomes) == 1) for outcome in outcomes),
        ],
        failures=failures,
        files={} if page is None else {"page": page},
        json=list(map(_as_json, outcomes)),
        about=about,
    )


def _index(outcomes: Sequence[Outcome]) -> ResultSection:
    """Row for each bag, of many bags on the page alone; of several bags, a line for each bag that differs."""
    header = ("bag", "topic", "commands", "refused", "recorded, s", "took, s", "")
    rows = []
    for outcome in outcomes:
        numbers, report = ("",) * 4, outcome.report
        if report is not None:
            numbers = report.topic, f"{report.commands:,}", f"{report.refusals.total:,}", f"{report.seconds:.2f}"
        state = "failed" if outcome.failures else "kept" if outcome.kept else ""
        rows.append((outcome.job.bag.name, *numbers, f"{outcome.wall:.2f}", state))
    failed = {(i, header.index("")) for i, outcome in enumerate(outcomes) if outcome.failures}
    table = TextTable(header, rows, text_columns=2, failed=failed, page_only=len(outcomes) > _MOST_ROWS)
    return ResultSection(lines=[_summary(x) for x in outcomes if x.beyond] if len(outcomes) > 1 else (), tables=[table])


def _summary(outcome: Outcome) -> str:
    """Line on the differences of a bag, with the largest one relative to its tolerance."""
    rows = outcome.beyond
    worst = max(rows, key=lambda row: row.largest / (row.absolute or 1.0) if row.largest else np.inf)
    others = f"; {len(rows) - 1} more fields differ" if len(rows) > 1 else ""
    return f"{outcome.job.bag.name}: {worst.topic}: {worst.text}{others}"


def _section(outcome: Outcome, *, charts: bool, alone: bool) -> ResultSection:
    lines, tables, drawn = outcome.detail.splitlines(), [], {}
    if (report := outcome.report) is not None:
        lines += report.notes()
        errors = {
            "fit, RMS": [f"{x:.2e}" for x in report.deviation],
            "fit, largest": [f"{x:.2e}" for x in report.largest_deviation],
            "effort, RMS difference": [f"{x:.3f}" for x in report.rms],
        }
        if errors := {title: values for title, values in errors.items() if values}:
            rows = list(zip(report.joint_names, *errors.values(), strict=True))
            tables.append(TextTable(("joint", *errors), rows))
    if outcome.differences:
        # Differences without a number, such as of names of joints.
        unnumbered = [f"{row.topic}: {row.text}" for row in outcome.beyond if not row.largest] if alone else []
        lines += unnumbered + outcome.missing
        tables.append(replace(_differences(outcome.differences), page_only=not alone))
        differing = [row for row in outcome.beyond if row.field in COMMAND_FIELDS][:_MOST_CHARTS]
        if charts and differing and outcome.job.golden is not None:
            topic, fields = differing[0].topic, [row.field for row in differing]
            drawn[topic] = compared_figure(outcome.job.output, outcome.job.golden.path, topic, fields)
    return ResultSection(str(outcome.job.bag) if lines or tables else "", lines, charts=drawn, tables=tables)


def compared_figure(output: Path, golden: Path, topic: str, fields: Sequence[str]) -> go.Figure:
    """Draw fields of commands minus golden commands at the same stamps, for common joints or motors."""
    sides = []
    for path in (output, golden):
        with Bag(path) as bag:
            sides.append(TopicReader(bag, next(x for x in bag.topics if x.name == topic)).streams())
    figure = charts_over_time(dict.fromkeys((f"{field.replace('_', ' ')}, replayed − golden" for field in fields), ""))
    for row, field in enumerate(fields, 1):
        mine, theirs = (side["command" if field in EFFORT_FIELDS else "motors"] for side in sides)
        _, first, second = np.intersect1d(mine.stamp, theirs.stamp, return_indices=True)
        names = tuple(name for name in mine.names if name in theirs.names)
        difference = mine[first].ordered(names).values[field] - theirs[second].ordered(names).values[field]
        t = mine[first].seconds(int(mine.stamp[0]))
        add_joints(figure, names, [""] * len(names), t, difference, row=row)
    return figure


def _differences(differences: Sequence[Difference]) -> TextTable:
    shown = [row for row in differences if row.field != MISSING]
    rows = [
        (
            *(row.topic, row.field, f"{row.compared:,}", row.difference, row.worst),
            *(f"{row.beyond:,}" if row.beyond else "", "" if row.first is None else time_text(row.first)),
        )
        for row in shown
    ]
    header = ("topic", "field", "compared", "largest difference", "of", "beyond", "first at")
    failed = {(i, header.index("beyond")) for i, row in enumerate(shown) if row.beyond}
    return TextTable(header, rows, text_columns=2, failed=failed)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    compared: dict[str, Any] = {}
    if (differences := outcome.differences) is not None:
        rows = [vars(row) for row in differences if row.field != MISSING]
        compared = {"differences": rows, "missing": [row.topic for row in differences if row.field == MISSING]}
    return {
        "bag": str(outcome.job.bag),
        "output": str(outcome.job.output),
        "passed": not outcome.failures,
        "failures": outcome.failures,
        "error": outcome.error,
        "wall": outcome.wall,
        "kept": outcome.kept,
        "report": asdict(outcome.report) if outcome.report else None,
        **compared,
    }
