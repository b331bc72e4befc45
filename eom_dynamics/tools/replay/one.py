# SPDX-License-Identifier: Apache-2.0
"""The replay of one bag."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from ...elastic import ElasticArm
from ...exceptions import RobotDescriptionWarning
from ...robot import Robot, robot_from_urdf
from ..bags import Bag, BagError
from ..contents import hashed_aside, robot_hash
from ..recordings import read_blocks
from ..robot_options import RobotOptions
from . import joint_states
from .evaluation import Evaluation
from .job import Job, Report, provenance
from .joint_states import FitFigures
from .payloads import recorded_payloads
from .sinks import open_sink
from .sources import Sampling, choose_topic, is_of_motors

_DESCRIPTION_TYPE = "std_msgs/msg/String"


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def replay_bag(job: Job, progress: Callable[[float], None] | None = None) -> Report:
    """Replay a bag.

    Args:
        job: what to do.
        progress: called with the fraction of the bag read.

    Raises:
        BagError: the bag cannot be read, has no motion to replay, or none of its messages can be used.
        RobotDescriptionError: the robot cannot be used.
        FolderError: the output cannot be written, or exists.
    """
    with Bag(job.bag) as bag, hashed_aside(job.bag) as bag_hash:
        topic = choose_topic(bag, job.topic)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RobotDescriptionWarning)
            arm = ElasticArm(_robot(job, bag))
        robot = arm.robot
        job.conventions.check(robot.name, robot.joint_names)
        if job.against == "motor_effort" and len(arm.motor_names) != robot.n:
            raise BagError(
                f"{job.bag}: motor_effort cannot be compared with recorded efforts: robot {robot.name} has "
                f"{len(arm.motor_names)} motors at {robot.n} joints"
            )
        report = Report(topic.name, robot.name, robot.joint_names)
        report.warnings = [str(warning.message) for warning in caught] if job.robot is None else []
        figures, sampling = FitFigures(), Sampling(job.cutoff, job.rate, job.conventions)
        payloads = recorded_payloads(bag, topic, report.refusals)
        evaluation = Evaluation(arm, job.options, report.refusals, payloads)
        times: list[int] = []
        compared, squares = 0, np.zeros(robot.n)
        with open_sink(job, topic.name.rpartition("/")[0], robot, arm.motor_names) as sink:
            for _, computed in evaluation.of_topic(bag, topic, sampling, figures, progress):
                for commands in computed:
                    sink.write(commands)
                    report.commands += len(commands)
                    report.held += int(commands.held.sum())
                    recorded = commands.stamps.recorded
                    times = [int(min([*times, recorded.min()])), int(max([*times, recorded.max()]))]
                    if job.against and commands.measured is not None:
                        error = commands.values[job.against] - commands.measured
                        error = error[np.isfinite(error).all(axis=1)]
                        compared, squares = compared + len(error), squares + np.sum(error**2, axis=0)
            if not report.commands:
                raise BagError(f"{job.bag}: no message of topic {topic.name} can be used{_why(report, bag)}")
            if job.against and not compared:
                others = [
                    t.name for t in bag.topics if t.type == joint_states.TYPE and t != topic and not is_of_motors(t)
                ]
                remedy = f"; it may be in {', '.join(others)}: --topic {others[0]}" if others else ""
                raise BagError(f"{job.bag}: topic {topic.name} has no recorded effort to compare with{remedy}")
            report.seconds = (times[1] - times[0]) * 1e-9
            report.damage = bag.damage
            report.exceeded = evaluation.violations.lines()
            if figures.count:
                report.deviation, report.largest_deviation = figures.rms.tolist(), figures.largest.tolist()
                report.seam = figures.seam.tolist()
                report.repeated, report.first_repeated = figures.repeats.count, figures.repeats.first
            if job.against:
                report.rms = np.sqrt(squares / compared).tolist()
            report.bag_hash, report.robot_hash = bag_hash(), robot_hash(robot)
            sink.close(provenance(job, report))
    return report


def described_robot(bag: Bag, options: RobotOptions) -> Robot | None:
    """Load the robot of the first message on a topic robot_description; None if a bag has none.

    Args:
        bag: the bag.
        options: part of the robot to take.

    Raises:
        BagError: the message cannot be read.
        RobotDescriptionError: its URDF cannot be used.
    """
    for topic in bag.topics:
        if topic.type == _DESCRIPTION_TYPE and topic.name.rpartition("/")[2] == "robot_description":
            source = f"{bag.path}: topic {topic.name}"

            def refuse(reason: str, time: int, source: str = source) -> None:
                raise BagError(f"{source}: {reason}; name the robot, --robot ROBOT")

            for block in read_blocks(bag, topic, refuse):
                # A URDF, never the name of a robot: a bag must not choose files of this machine.
                return robot_from_urdf(str(getattr(block.message, "data", "")), options.urdf_section(), source=source)
    return None


def _robot(job: Job, bag: Bag) -> Robot:
    robot = described_robot(bag, job.robot_options) if job.robot is None else job.robot_options.load(job.robot)
    if robot is None:
        raise BagError(f"{job.bag}: has no robot on a topic robot_description; name it, --robot ROBOT")
    return robot


def _why(report: Report, bag: Bag) -> str:
    if not report.refusals.reasons:
        return f": {bag.damage[0]}" if bag.damage else ": it has none"
    (reason, count), *others = report.refusals.ranked()
    text = report.refusals.text(reason)
    return f": {text} ({count:,} of {report.refusals.total:,})" if others else f": {text}"
