# SPDX-License-Identifier: Apache-2.0
"""The replay of one bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from ..bags import Bag, BagError, Layouts, Rows, Topic
from ..robot import Robot, load_robot, robot_from_urdf
from . import joint_states, setpoints, trajectories
from .batch import Batch
from .evaluation import Evaluation
from .job import Job, Report, remark
from .joint_states import FitFigures
from .sinks import open_sink
from .sources import choose_topic

Array = NDArray[np.float64]

_DESCRIPTION_TYPE = "std_msgs/msg/String"


def replay_bag(job: Job, progress: Callable[[float], None] | None = None) -> Report:
    """Replay a bag.

    Args:
        job: what to do.
        progress: is told the share of the bag that is behind, 0 to 1.

    Raises:
        BagError: the bag cannot be read, has no motion to replay, or none of its messages can be used.
        RobotDescriptionError: the robot cannot be used.
        FolderError: the output cannot be written, or is there already.
    """
    with Bag(job.bag) as bag:
        topic = choose_topic(bag, job.topic)
        arm = ElasticArm(_robot(job, bag))
        robot = arm.robot
        report = Report(topic.name, robot.name, robot.joint_names)
        figures = FitFigures()
        evaluation = Evaluation(arm, job.options, report.refusals)
        errors = _SumOfSquares()
        span = _Span()
        with open_sink(job, topic.name.rpartition("/")[0], robot, arm.motor_names) as sink:
            for batch in _batches(job, bag, topic, robot, report, figures, progress):
                for commands in evaluation.commands(batch):
                    sink.write(commands)
                    report.commands += len(commands)
                    report.held += int(commands.held.sum())
                    span.add(commands.stamps.recorded)
                    if job.against and commands.measured is not None:
                        errors.add(commands.values[job.against] - commands.measured)
            if not report.commands:
                raise BagError(f"{job.bag}: no message of topic {topic.name} can be used{_why(report, bag)}")
            if job.against and not errors.count:
                raise BagError(f"{job.bag}: topic {topic.name} has no recorded effort to compare with")
            report.seconds = span.seconds
            report.damage = bag.damage
            report.exceeded = evaluation.excesses.lines()
            if figures.count:
                report.deviation, report.largest_deviation = figures.rms.tolist(), figures.largest.tolist()
                report.seam = figures.seam.tolist()
                report.repeated, report.first_repeated = figures.repeats.count, figures.repeats.first
            if job.against:
                report.rms = errors.rms.tolist()
            sink.close(remark(job, report))
    return report


def _batches(
    job: Job,
    bag: Bag,
    topic: Topic,
    robot: Robot,
    report: Report,
    figures: FitFigures,
    progress: Callable[[float], None] | None,
) -> Iterator[Batch]:
    if topic.type == setpoints.TYPE:
        return setpoints.setpoint_batches(bag, topic, report.refusals, progress)
    if topic.type == trajectories.TYPE:
        return trajectories.trajectory_batches(bag, topic, job.rate, report.refusals, progress)
    return joint_states.joint_state_batches(
        bag, topic, robot.joint_names, job.cutoff, report.refusals, figures, progress
    )


def _why(report: Report, bag: Bag) -> str:
    if not report.refusals.reasons:
        return f": {bag.damage[0]}" if bag.damage else ": it has none"
    (reason, count), *others = report.refusals.ranked()
    return f": {reason} ({count:,} of {report.refusals.total:,})" if others else f": {reason}"


class _Span:
    """From the first to the last of times in ns."""

    def __init__(self) -> None:
        self._first, self._last = 2**63 - 1, -(2**63)

    def add(self, times: NDArray[np.int64]) -> None:
        self._first, self._last = min(self._first, int(times.min())), max(self._last, int(times.max()))

    @property
    def seconds(self) -> float:
        return (self._last - self._first) * 1e-9


class _SumOfSquares:
    """Of rows (n,), those with a number that is not finite left out."""

    def __init__(self) -> None:
        self.count = 0
        self._sum: Array | float = 0.0

    def add(self, rows: Array) -> None:
        finite = rows[np.isfinite(rows).all(axis=1)]
        self.count += len(finite)
        self._sum = self._sum + np.sum(finite**2, axis=0)

    @property
    def rms(self) -> Array:
        return np.asarray(np.sqrt(np.asarray(self._sum) / self.count), dtype=float)


def _robot(job: Job, bag: Bag) -> Robot:
    robot = described_robot(bag) if job.robot is None else load_robot(job.robot)
    if robot is None:
        raise BagError(f"{job.bag}: says nothing of its robot on a topic robot_description; name it, --robot ROBOT")
    return robot


def described_robot(bag: Bag) -> Robot | None:
    """The robot of the first message on a topic robot_description; None where a bag has none.

    Raises:
        BagError: the message cannot be read.
        RobotDescriptionError: its URDF cannot be used.
    """
    for topic in bag.topics:
        if topic.type == _DESCRIPTION_TYPE and topic.name.rpartition("/")[2] == "robot_description":
            layouts = Layouts(topic.types(), topic.type)
            for _, messages in bag.messages(topic):
                (found,) = layouts.rows(messages[:1])
                if not isinstance(found, Rows):
                    raise BagError(f"{bag.path}: topic {topic.name}: {found[1]}; name the robot, --robot ROBOT")
                # A URDF and no name: a bag does not choose files of this machine.
                text = str(getattr(found.layout.message, "data", ""))
                return robot_from_urdf(text, source=f"{bag.path}: topic {topic.name}")
    return None
