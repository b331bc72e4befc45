# SPDX-License-Identifier: Apache-2.0
"""The replay of one bag."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...control.diagnosis import period_note
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, RobotDescriptionWarning
from ...recordings.bags import Bag, BagError
from ...recordings.bags.layout import read_blocks
from ...recordings.bags.types import JOINT_STATE, SETPOINT, STRING
from ...recordings.one_clock import turns_note
from ...recordings.setpoints import command_lead
from ...recordings.topics import choose_topic, is_motor_topic
from ...robot import Robot, robot_from_urdf
from ..robot_options import RobotOptions
from .compare import MISSING, Difference
from .evaluation import Evaluation
from .job import Job, Report
from .outputs import open_sink, output_topics

_FEWEST = 20  # fewest commands from which a period is compared with the robot's
Progress = Callable[[float], None]


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


def run_job(job: Job, progress: Progress | None = None) -> Outcome:
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
def replay_bag(job: Job, progress: Progress | None = None) -> Report:
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
