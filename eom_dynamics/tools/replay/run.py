# SPDX-License-Identifier: Apache-2.0
"""Replay of a bag, and of bags and folders of bags on the cores of a machine or on a Dask cluster."""

from __future__ import annotations

import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from ...control.setpoint_loop import period_note
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, RobotDescriptionWarning, require
from ...recordings.bags import Bag, BagError, find_bags
from ...recordings.bags.bag import ENDINGS
from ...recordings.bags.layout import read_blocks
from ...recordings.bags.types import JOINT_STATE, SETPOINT, STRING
from ...recordings.fitted_motion import command_lead
from ...recordings.streams import choose_topic, is_motor_topic
from ...recordings.turns import turns_note
from ...robot import Robot, robot_from_urdf
from ..options import RobotOptions
from .compare import MISSING, Difference
from .evaluation import Evaluation
from .job import Job, Report
from .outputs import open_sink, output_topics

_FEWEST = 20  # fewest commands from which a period is compared with the robot's
_CONNECT_TIMEOUT = 10.0

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
    report = None if job.resume and job.is_complete else replay_bag(job, progress)
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


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def replay_bag(job: Job, progress: Callable[[float], None] | None = None) -> Report:
    """Replay a bag; ``progress`` is called with the fraction read.

    Raises:
        BagError: the bag cannot be read, has no motion to replay, or none of its messages can be used; or the golden
            bag cannot be compared with.
        RobotDescriptionError: the robot cannot be used.
        FolderError: the output cannot be written, or exists.
    """
    with Bag(job.bag) as bag:
        topic = choose_topic(bag, job.topic)
        if job.golden is not None:
            job.golden.check(job.output, output_topics(topic.name.rpartition("/")[0]))
        arm, warned = _arm(job, bag)
        robot = arm.robot
        types = {joint.name: joint.type for joint in robot.independent_joints}
        report = Report(topic.name, robot.name, robot.joint_names, types, warnings=warned)
        report.command_lead = command_lead(bag, topic, robot, job.options.command_lead)
        evaluation = Evaluation(arm, job.options, report.command_lead)
        report.refusals, figures = evaluation.refusals, evaluation.figures
        first, last, compared, squares = 2**63, -(2**63), 0, np.zeros(robot.n)
        with open_sink(job, report.topic, robot, arm.motor_names) as write:
            bag.progress = progress
            for commands in evaluation.of_topic(bag, topic, job.sampling):
                write(commands)
                report.commands += len(commands)
                recorded, measured = commands.setpoints.recorded, commands.setpoints.values.get("effort")
                if topic.type == SETPOINT and not report.motion and len(recorded) > _FEWEST:
                    period = 1e-9 * float(np.median(np.diff(commands.setpoints.stamp)))
                    report.motion = period_note(robot, period)
                first, last = min(first, int(recorded.min())), max(last, int(recorded.max()))
                if job.against and measured is not None:
                    error = commands.values[job.against] - measured
                    error = error[np.isfinite(error).all(axis=1)]
                    compared += len(error)
                    squares += np.sum(error**2, axis=0)
            if not report.commands:
                raise BagError(f"{job.bag}: no message of topic {topic.name} can be used: {_why(report)}")
            if job.against and not compared:
                others = [t.name for t in bag.topics if t.type == JOINT_STATE and t != topic and not is_motor_topic(t)]
                remedy = f"; it may be in {', '.join(others)}: --topic {others[0]}" if others else ""
                raise BagError(f"{job.bag}: topic {topic.name} has no recorded effort to compare with{remedy}")
        report.seconds = (last - first) * 1e-9
        report.held, report.early = evaluation.held, evaluation.early
        report.exceeded = evaluation.violations.lines()
        report.motion += [*turns_note(figures.turns), *figures.notes]
        if figures.count:
            report.deviation, report.largest_deviation = figures.rms.tolist(), figures.largest.tolist()
            report.repeated, report.first_repeated = figures.repeated, figures.first_repeated
        if job.against:
            report.rms = np.sqrt(squares / compared).tolist()
    return report


def _arm(job: Job, bag: Bag) -> tuple[ElasticArm, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = job.robot_options.load(job.robot) if isinstance(job.robot, str) else job.robot
        robot = described_robot(bag, job.robot_options) if robot is None else robot
        if robot is None:
            raise BagError(f"{job.bag}: has no robot on a topic robot_description; name it, --robot ROBOT")
        arm = ElasticArm(robot)
    job.sampling.conventions.check(robot.name, robot.joint_names)
    if job.against == "motor_effort" and len(arm.motor_names) != robot.n:
        raise BagError(
            f"{job.bag}: motor_effort cannot be compared with recorded efforts: robot {robot.name} has "
            f"{len(arm.motor_names)} motors at {robot.n} joints"
        )
    return arm, [str(warning.message) for warning in caught] if job.robot is None else []


def described_robot(bag: Bag, options: RobotOptions) -> Robot | None:
    """Load the robot of the first message on a topic robot_description; None if a bag has none."""
    for topic in bag.topics:
        if topic.type == STRING and topic.name.rpartition("/")[2] == "robot_description":
            source = f"{bag.path}: topic {topic.name}"

            def refuse(reason: str, time: int, source: str = source) -> None:
                raise BagError(f"{source}: {reason}; name the robot, --robot ROBOT")

            for block in read_blocks(bag, topic, refuse):
                # A URDF, never the name of a robot: a bag must not choose files of this machine.
                return robot_from_urdf(str(getattr(block.message, "data", "")), options.urdf_section(), source=source)
    return None


def _why(report: Report) -> str:
    if not report.refusals.reasons:
        return "it has none"
    (reason, count), *others = report.refusals.ranked()
    return report.refusals.text(reason) + (f" ({count:,} of {report.refusals.total:,})" if others else "")


def replay(
    bags: Sequence[Path], output: Path, settings: Job, *, scheduler: str | None = None, progress: Progress | None = None
) -> list[Outcome]:
    """Replay bags and compare the outputs.

    A single bag is replayed in this process, and its errors are raised. Several, or those in folders, are replayed in
    parallel, each into an output of its name in the folder ``output``, and their errors are part of the outcomes.

    Args:
        bags: bags and folders of bags.
        settings: of each replay; its ``bag`` and ``output`` are replaced, and with several bags its golden bag is a
            folder of those with the names of the outputs.
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
    """Replay bags in parallel; arguments as of :func:`replay`. Returns an outcome for each job, in their order."""
    with _executor(scheduler) as executor:
        futures = [executor.submit(attempt if scheduler else _attempt_in_pool, job) for job in jobs]
        for done, _ in enumerate(as_completed(futures), 1):
            if progress:
                progress(done, len(jobs))
        return [_outcome(job, future) for job, future in zip(jobs, futures, strict=True)]


def _begin_in_pool() -> None:
    """Have a process of the pool end by SystemExit where the pool ends it, since another one was killed."""

    def end(number: int, _: object) -> None:
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
    except Exception as error:  # a process or worker was killed: errors of a replay are in its outcome
        reason = " ".join(str(error).split()) or type(error).__name__
        return Outcome(job, error=f"{job.bag}: {reason}; go on with --resume")


@contextmanager
def _executor(scheduler: str | None) -> Iterator[Executor]:
    """The cores of this machine, or a Dask cluster; jobs that have not begun are cancelled on an error."""
    if scheduler is None:
        # Processes start as copies of one that has imported this module, which takes longer than a short bag.
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
