# SPDX-License-Identifier: Apache-2.0
"""The replay of one bag."""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...bags import Bag, BagError
from ...bags.layout import read_blocks
from ...bags.types import JOINT_STATE, STRING
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, RobotDescriptionWarning
from ...robot import Robot, robot_from_urdf
from ..provenance import bag_hash, hashed_in_background, robot_hash
from ..recordings import is_motor_topic
from ..robot_options import RobotOptions
from .compare import MISSING, Difference
from .evaluation import Evaluation
from .job import Job, Manifest, Report, read_manifest
from .outputs import open_sink
from .sources import choose_topic, command_lead


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job.

    Attributes:
        report: None if the job failed.
        error: reason of the failure, on one line.
        detail: a traceback, if the error is internal.
        wall: duration, s.
        done_before: whether the output existed and was kept.
        differences: from the golden output; None if it was not compared.
        failed_checks: a line for each, besides the differences.
    """

    job: Job
    report: Report | None = None
    error: str = ""
    detail: str = ""
    wall: float = 0.0
    done_before: bool = False
    differences: list[Difference] | None = None
    failed_checks: tuple[str, ...] = ()

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
        if self.report is None:
            return [self.error]
        return [*(f"{row.topic}: {row.text}" for row in self.beyond), *self.failed_checks]


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def replay_bag(job: Job, progress: Callable[[float], None] | None = None) -> Report:
    """Replay a bag; ``progress`` is called with the fraction read.

    Raises:
        BagError: the bag cannot be read, has no motion to replay, or none of its messages can be used.
        RobotDescriptionError: the robot cannot be used.
        FolderError: the output cannot be written, or exists.
    """
    with Bag(job.bag) as bag, hashed_in_background(job.bag) as hash_of_bag:
        topic = choose_topic(bag, job.topic)
        arm, warned = _arm(job, bag)
        robot = arm.robot
        report = Report(topic.name, robot.name, robot.joint_names, warnings=warned)
        report.command_lead = command_lead(bag, topic, robot, job.options.command_lead)
        evaluation = Evaluation(arm, job.options, report.command_lead)
        report.refusals, figures = evaluation.refusals, evaluation.figures
        first, last, compared, squares = 2**63, -(2**63), 0, np.zeros(robot.n)
        with open_sink(job, report, robot, arm.motor_names) as write:
            bag.progress = progress
            for _, computed in evaluation.of_topic(bag, topic, job.sampling):
                for commands in computed:
                    write(commands)
                    report.commands += len(commands)
                    recorded = commands.stamps.recorded
                    first, last = min(first, int(recorded.min())), max(last, int(recorded.max()))
                    if job.against and commands.measured is not None:
                        error = commands.values[job.against] - commands.measured
                        error = error[np.isfinite(error).all(axis=1)]
                        compared += len(error)
                        squares += np.sum(error**2, axis=0)
            if not report.commands:
                raise BagError(f"{job.bag}: no message of topic {topic.name} can be used: {_why(report, bag)}")
            if job.against and not compared:
                others = [t.name for t in bag.topics if t.type == JOINT_STATE and t != topic and not is_motor_topic(t)]
                remedy = f"; it may be in {', '.join(others)}: --topic {others[0]}" if others else ""
                raise BagError(f"{job.bag}: topic {topic.name} has no recorded effort to compare with{remedy}")
            report.seconds = (last - first) * 1e-9
            report.damage, report.held = bag.damage, evaluation.held
            report.exceeded = evaluation.violations.lines()
            report.warnings += evaluation.far()
            if figures.count:
                report.deviation, report.largest_deviation = figures.rms.tolist(), figures.largest.tolist()
                report.seam = figures.seam.tolist()
                report.repeated, report.first_repeated = figures.repeated, figures.first_repeated
            if job.against:
                report.rms = np.sqrt(squares / compared).tolist()
            report.bag_hash, report.robot_hash = hash_of_bag(), robot_hash(robot)
    return report


def _arm(job: Job, bag: Bag) -> tuple[ElasticArm, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = described_robot(bag, job.robot_options) if job.robot is None else job.robot_options.load(job.robot)
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


def _why(report: Report, bag: Bag) -> str:
    if not report.refusals.reasons:
        return bag.damage[0] if bag.damage else "it has none"
    (reason, count), *others = report.refusals.ranked()
    return report.refusals.text(reason) + (f" ({count:,} of {report.refusals.total:,})" if others else "")


def loaded_robot_hash(source: str, options: RobotOptions) -> str:
    """Hash of a robot that is loaded."""
    return robot_hash(options.load(source))


def done_before(job: Job, made: Manifest, hash_of: Callable[[str, RobotOptions], str] = loaded_robot_hash) -> Outcome:
    """Outcome of a job whose output exists: its report, or an error if it has changed or was made from other inputs."""
    entry = made.get(job.name)
    if entry is None:
        return Outcome(job, error=f"{job.output}: exists, but is not in {job.manifest}; remove it")
    report, settings = entry.report, job.settings()
    folder = job.output.parent if job.is_file else job.output
    try:
        if changed := [name for name in job.files if not entry.wrote(folder / name)]:
            what = f"is missing, or not as replay wrote it: {', '.join(changed)}"
            return Outcome(job, error=f"{job.output}: {what}; remove it, to have it replayed again")
        other = [name for name in {**settings, **entry.settings} if settings.get(name) != entry.settings.get(name)]
        if report.bag_hash != bag_hash(job.bag):
            other.append("content of the bag")
        # A robot that the bag describes is part of it.
        if job.robot is not None and report.robot_hash != hash_of(job.robot, job.robot_options):
            other.append("content of the robot")
    except OSError as error:
        return Outcome(job, error=f"{error.filename or job.bag}: {error.strerror or error}")
    except EomDynamicsError as error:
        return Outcome(job, error="; ".join(error.errors))
    if other:
        what = f"exists, but was not made of this bag with the same settings (other: {', '.join(other)})"
        return Outcome(job, error=f"{job.output}: {what}; remove it, or overwrite it with --force")
    return Outcome(job, report, done_before=True)


def run_job(job: Job, progress: Callable[[float], None] | None = None) -> Outcome:
    """Run one job; errors are reported in the outcome."""
    began = time.perf_counter()
    report, error, detail = None, "", ""
    try:
        report = replay_bag(job, progress)
    except EomDynamicsError as failure:
        # A cluster that took this process for lost may have had the job done by another one.
        if not job.force and os.path.lexists(job.output):
            done = done_before(job, read_manifest(job.manifest))
            if done.report is not None:
                return done
        error = "; ".join(failure.errors)
    except OSError as failure:
        error = f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure)
    except Exception as failure:
        error, detail = f"internal error: {type(failure).__name__}: {failure}", traceback.format_exc()
    return Outcome(job, report, error, detail, time.perf_counter() - began)
