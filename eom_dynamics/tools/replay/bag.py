# SPDX-License-Identifier: Apache-2.0
"""Replay of one bag: its job, its output, and the report on it.

An output is a bag with the node's messages, or a Parquet table; it appears only when complete.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import __version__
from ...arrays import Array
from ...codegen.cache import digest
from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS
from ...control.setpoint_loop import period_note
from ...elastic import ElasticArm
from ...elastic.limits import TOLERANCE
from ...exceptions import RobotDescriptionWarning, require
from ...recordings import MotorSource, Sampling, Source
from ...recordings.bags import Bag, BagError, BagWriter, Layout, Storage
from ...recordings.bags.bag import METADATA
from ...recordings.bags.layout import Bytes, read_blocks
from ...recordings.bags.types import COMMAND, JOINT_STATE, NUMBERS, SETPOINT, STRING, Topic
from ...recordings.fitted_motion import CONSEQUENCE
from ...recordings.streams import Refusals, choose_topic, is_motor_topic
from ...recordings.turns import turns_note
from ...robot import Robot, robot_from_urdf
from ..options import CommandOptions, RobotOptions
from ..writing import TEMPORARY, FolderError, whole_file, whole_folder
from .compare import Golden, time_text
from .evaluation import Commands, Evaluation

_FEWEST = 20  # minimum number of commands for a comparison of their period with the robot's
_FOOTER = 2**24  # bytes at the end of an output with its fingerprint, in front of the index of an MCAP file
_END = 2**16  # bytes at each end of a file that identify a recording
_MOST_LINES = 8  # at most as many lines of one kind are printed per bag
_TOPICS = {"feedforward": COMMAND, "motor_setpoint": JOINT_STATE, "effort_command": NUMBERS}
_MOST_TEMPLATES = 32  # maximum number of cached templates, by combination of names

# Writes commands to an output.
_Sink = Callable[[Commands], None]


@dataclass(frozen=True)
class Job:
    """Replay job of one bag.

    Attributes:
        bag: its path.
        output: folder of the bag to write, .mcap file to write alone, or Parquet file.
        robot: the robot, or its source, as :func:`load_robot` takes it; None for the URDF that the bag has on
            robot_description.
        robot_options: part of the robot to take.
        topic: to replay; None for the only candidate.
        format: of the output: ``mcap``, ``sqlite3`` or ``parquet``.
        options: the node's parameters.
        sampling: fit of measured positions, samples of planned trajectories, and conventions of the recording.
        against: field of the command to compare with the recorded effort, effort or motor_effort; or None.
        golden: bag to compare the output with, or None.
        force: overwrite an output that exists.
        resume: keep an output of the same robot, parameters and input.
    """

    bag: Path
    output: Path
    robot: Robot | str | None = None
    topic: str | None = None
    format: str = "mcap"
    options: CommandOptions = field(default_factory=CommandOptions)
    sampling: Sampling = field(default_factory=Sampling)
    against: str | None = None
    golden: Golden | None = None
    force: bool = False
    resume: bool = False
    robot_options: RobotOptions = field(default_factory=RobotOptions)

    @property
    def is_file(self) -> bool:
        """True if the output is one file, not the folder of a bag."""
        return self.format == "parquet" or (self.format == "mcap" and self.output.suffix == ".mcap")

    @property
    def has_output(self) -> bool:
        """True if the output is complete, and of the same robot, parameters and input."""
        written = self.output if self.is_file else self.output / METADATA
        if not written.is_file():
            return False
        with written.open("rb") as file:
            file.seek(max(0, written.stat().st_size - _FOOTER))
            return self.fingerprint.encode() in file.read()

    @cached_property
    def fingerprint(self) -> str:
        """Digest of robot, parameters, input and version, which each output has."""
        files = sorted(x for x in (self.bag.iterdir() if self.bag.is_dir() else [self.bag]) if x.is_file())
        settings = (self.topic, self.format, self.options, self.sampling, self.against, self.robot_options.as_json())
        return digest(__version__, *_parts(self.loaded.robot), repr(settings), *map(_identity, files))

    @cached_property
    def loaded(self) -> Job:
        """This job with the robot of its file."""
        return replace(self, robot=self.robot_options.load(self.robot)) if isinstance(self.robot, str) else self


def _parts(value: Any) -> Iterator[bytes]:
    """Fields of dataclasses, entries of containers and numbers of arrays, in a fixed order."""
    if is_dataclass(value):
        value = {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        value = [part for pair in sorted(value.items(), key=repr) for part in pair]
    if isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
    else:
        yield value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()


def _identity(file: Path) -> bytes:
    """Name, size, and both ends of a file of a recording, which have its times and its index."""
    size = file.stat().st_size
    with file.open("rb") as content:
        start = content.read(_END)
        content.seek(max(0, size - _END))
        return b"%s %d %s %s" % (file.name.encode(), size, start, content.read(_END))


@dataclass
class Report:
    """The report on a replayed bag.

    Attributes:
        topic: that was replayed.
        robot: its name.
        joint_names: of the numbers below that have one entry for each joint.
        joint_types: their types by name.
        command_lead: of the commands, s.
        commands: number of commands written; ``held`` of them repeat an earlier one for a refused setpoint.
        early: number of setpoints with stamps ahead of their arrival, not counted as refusals.
        seconds: from the first to the last time of recording.
        refusals: messages that could not be used.
        exceeded: lines on limits of the motors that commands exceed.
        stop_utilization: largest utilization of a limit in a stop from a command.
        deviation, largest_deviation: of measured positions from their fit, rad or m: root mean square and maximum;
            empty without a fit.
        repeated: number of measured samples that repeat the previous positions during a motion; the first of them was
            recorded at ``first_repeated``, ns.
        rms: RMS of computed minus recorded efforts, N m or N; empty without a comparison.
        warnings: about the robot that the bag describes.
        motion: notes on how positions were read.
    """

    topic: str = ""
    robot: str = ""
    joint_names: tuple[str, ...] = ()
    joint_types: dict[str, str] = field(default_factory=dict)
    command_lead: float = 0.0
    commands: int = 0
    held: int = 0
    early: int = 0
    seconds: float = 0.0
    refusals: Refusals = field(default_factory=Refusals)
    exceeded: list[str] = field(default_factory=list)
    stop_utilization: float = 0.0
    deviation: list[float] = field(default_factory=list)
    largest_deviation: list[float] = field(default_factory=list)
    repeated: int = 0
    first_repeated: int | None = None
    rms: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    motion: list[str] = field(default_factory=list)

    def effort_failures(self, tolerances: Mapping[str | None, float]) -> list[str]:
        """Return a line for each unknown joint, and each joint with an RMS effort difference above its tolerance.

        Tolerances are N m or N, by joint; None stands for all joints that are not named.
        """
        lines = [
            f"{self.topic}: tolerance of joint {name!r}: robot {self.robot} has no such joint; it has "
            f"{', '.join(self.joint_names)}"
            for name in tolerances
            if name is not None and name not in self.joint_names
        ]
        for name, rms in zip(self.joint_names, self.rms, strict=True) if self.rms else ():
            allowed = tolerances.get(name, tolerances.get(None))
            if allowed is not None and not rms <= allowed:
                lines.append(f"{self.topic}: RMS effort error of joint {name} is {rms:.3g}, tolerance {allowed:g}")
        return lines

    def exceeding(self) -> list[str]:
        """Return a line on limits that commands exceed, with the worst of them; empty without any."""
        first, *worst = self.exceeded or [""]
        return [f"{self.topic}: {first} {worst[0]}"] if worst else []

    def incomplete(self) -> list[str]:
        """Return a line on messages that could not be used; empty without any."""
        if not (total := self.refusals.total):
            return []
        (reason, _), *_ = self.refusals.ranked()
        return [f"{total:,} messages of topic {self.topic} refused: {self.refusals.text(reason)}"]

    def notes(self) -> Iterator[str]:
        """Lines on the robot, on limits, and on messages that were refused, were early, or repeat positions."""
        for lines in (self.warnings, self.motion, self.exceeded):
            yield from lines[:_MOST_LINES]
            if len(lines) > _MOST_LINES:
                yield f"… and {len(lines) - _MOST_LINES} more"
        if self.stop_utilization > 1 + TOLERANCE:
            needed = self.stop_utilization
            share = f"up to {100 * needed:.0f} % of a limit" if isfinite(needed) else "more than the motors can"
            yield f"stops during the motion need {share}; leave a margin for stops (stop_utilization)"
        for reason, count in self.refusals.ranked():
            first = time_text(self.refusals.first[reason])
            yield f"{count:,} of topic {self.topic} refused, the first at {first}: {self.refusals.text(reason)}"
        if self.held:
            yield f"{self.held:,} of them answered with the last good command"
        if self.early:
            yield f"{self.early:,} of topic {self.topic} early: their stamps ran ahead of their arrival"
        if self.first_repeated is not None:
            yield (
                f"{self.repeated:,} messages of topic {self.topic} repeat the positions of the message before during a "
                f"motion, the first at {time_text(self.first_repeated)}: {CONSEQUENCE}"
            )


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def replay_bag(job: Job, progress: Callable[[float], None] | None = None) -> Report:
    """Replay a bag; ``progress`` is called with the fraction read.

    Raises:
        BagError: the bag cannot be read, has no motion to replay, or no usable messages; or the golden bag cannot be
            compared.
        RobotDescriptionError: the robot cannot be used.
        FolderError: the output cannot be written, or exists.
    """
    with Bag(job.bag) as bag:
        topic = choose_topic(bag, job.topic)
        if job.golden is not None:
            job.golden.check(job.output, _output_topics(topic.name.rpartition("/")[0]))
        arm, warned = _arm(job, bag, topic)
        robot = arm.robot
        types = {joint.name: joint.type for joint in robot.independent_joints}
        report = Report(topic.name, robot.name, robot.joint_names, types, warnings=warned)
        report.command_lead = robot.command_lead
        evaluation = Evaluation(arm, job.options)
        report.refusals, figures = evaluation.refusals, evaluation.figures
        first, last, compared, squares = 2**63, -(2**63), 0, np.zeros(robot.n)
        motors = _motor_efforts(job, topic, robot) if job.against == "motor_effort" else None
        with _open_sink(job, report.topic, robot, arm.motor_names) as write:
            bag.progress = progress
            for commands in evaluation.of_topic(bag, topic, job.sampling):
                write(commands)
                report.commands += len(commands)
                recorded, measured = commands.setpoints.recorded, commands.setpoints.values.get("effort")
                if topic.type == SETPOINT and not report.motion and len(recorded) > _FEWEST:
                    period = 1e-9 * float(np.median(np.diff(commands.setpoints.stamp)))
                    report.motion = period_note(robot, period)
                first, last = min(first, int(recorded.min())), max(last, int(recorded.max()))
                if motors is not None:
                    measured = motors(commands.setpoints.stamp)
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
        report.exceeded, report.stop_utilization = evaluation.violations.lines(), evaluation.stop_utilization
        report.motion += [*turns_note(figures.turns), *figures.notes]
        if figures.count:
            report.deviation, report.largest_deviation = figures.rms.tolist(), figures.largest.tolist()
            report.repeated, report.first_repeated = figures.repeated, figures.first_repeated
        if job.against:
            report.rms = np.sqrt(squares / compared).tolist()
    return report


def _motor_efforts(job: Job, topic: Topic, robot: Robot) -> Callable[[NDArray[np.int64]], Array] | None:
    """Motor efforts (N, n) of the bag at stamps (N,), ns, NaN if none were recorded; None without motor states."""
    if topic.type != JOINT_STATE or is_motor_topic(topic):
        return None
    from ...recordings.sides import arm_recordings, read_sides  # imports SciPy's filters

    sides = read_sides(job.bag, robot, Source(topic=topic.name, conventions=job.sampling.conventions))
    if sides.motors is None:
        return None
    parts, _ = arm_recordings([sides], robot, MotorSource())

    def efforts(stamps: NDArray[np.int64]) -> Array:
        t = (stamps - sides.origin) * 1e-9
        result = np.full((len(t), robot.n), np.nan)
        for part in parts:
            rows = (t >= part.t[0]) & (t <= part.t[-1])
            result[rows] = np.stack([np.interp(t[rows], part.t, x) for x in part.motor_effort.T], axis=1)
        return result

    return efforts


def _arm(job: Job, bag: Bag, topic: Topic) -> tuple[ElasticArm, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = job.loaded.robot
        assert not isinstance(robot, str)
        robot = described_robot(bag, job.robot_options) if robot is None else robot
        if robot is None:
            raise BagError(f"{job.bag}: has no robot on a topic robot_description; name it, --robot ROBOT")
        if topic.type != SETPOINT:  # efforts of measured and planned motions are those of their time
            robot = replace(robot, command_period=0.0, drive_delay=0.0)
        arm = ElasticArm(robot)
    job.sampling.conventions.check(robot.name, robot.joint_names)
    if job.against == "motor_effort" and len(arm.motor_names) != robot.n:
        raise BagError(
            f"{job.bag}: motor_effort cannot be compared with recorded efforts: robot {robot.name} has "
            f"{len(arm.motor_names)} motors at {robot.n} joints"
        )
    return arm, [str(warning.message) for warning in caught] if job.robot is None else []


def described_robot(bag: Bag, options: RobotOptions) -> Robot | None:
    """Load the robot of the first message on a topic robot_description; None without such a message."""
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


def _output_topics(namespace: str) -> dict[str, str]:
    """Types of the node's topics by their names in a namespace, such as ``/`` or ``/arm``."""
    return {f"{namespace.rstrip('/')}/{name}": kind for name, kind in _TOPICS.items()}


@contextmanager
def _open_sink(job: Job, topic: str, robot: Robot, motor_names: tuple[str, ...]) -> Iterator[_Sink]:
    """Start an output of commands for a topic; it appears when the context ends without an error.

    Raises FolderError if the output cannot be written, exists, or must not be overwritten because it is not an output
    of a replay.
    """
    if job.format == "parquet":
        require("parquet")
    _check_overwritten(job)
    name = job.output.name.removesuffix(".mcap")
    with (whole_file if job.is_file else whole_folder)(job.output, force=job.force) as target:
        if job.format == "parquet":
            with _table_sink(target, robot, motor_names, job.fingerprint) as write:
                yield write
        else:
            layouts: dict[tuple[Any, ...], list[Layout]] = {}
            topics = _output_topics(topic.rpartition("/")[0])
            folder = target.parent if job.is_file else target
            about = {"robot": robot.name, "input": job.bag.name, "replay": job.fingerprint}
            with BagWriter(folder, name, Storage(job.format), topics, about) as writer:
                yield lambda commands: writer.write(commands.setpoints.recorded, _messages(commands, layouts))
        _check_overwritten(job)  # again: computing takes its time


def _check_overwritten(job: Job) -> None:
    """Raise FolderError if ``force`` would overwrite anything but commands: a recording cannot be repeated."""
    output = job.output
    if not job.force or not os.path.lexists(output):
        return
    if output.is_dir() and all(path.name.startswith(TEMPORARY) for path in output.iterdir()):
        return
    if output.exists() and output.resolve() == job.bag.resolve():
        raise FolderError(f"{output}: is the bag to replay; name another output")
    if not _has_commands_alone(output):
        raise FolderError(f"{output}: was not made by eom_dynamics replay and is not overwritten; name another output")


def _has_commands_alone(path: Path) -> bool:
    try:
        if path.suffix == ".parquet":
            from pyarrow.parquet import read_schema

            return bool(read_schema(path).names[:2] == ["recorded", "stamp"])
        with Bag(path) as bag:
            return all(topic.type == _TOPICS.get(topic.name.rpartition("/")[2]) for topic in bag.topics)
    except (BagError, OSError, ValueError):
        return False


def _messages(commands: Commands, layouts: dict[tuple[Any, ...], list[Layout]]) -> list[Bytes]:
    """Serialize commands as messages (N, size) of each of :func:`_output_topics`; ``layouts`` are kept from before."""
    status = commands.status[:, np.newaxis]
    single = {"held": status != 0, "status": status, "command_lead": np.full(status.shape, commands.lead)}
    header, motors = {"frame_id": commands.setpoints.frame}, commands.motor_names
    kinds: list[tuple[str, dict[str, Any], dict[str, NDArray[Any]]]] = [
        (COMMAND, {"header": header, "joint_names": commands.joint_names, "motor_names": motors}, commands.values),
        (JOINT_STATE, {"header": header, "name": motors}, commands.motor_setpoint),
        (NUMBERS, {}, {"data": commands.effort_command}),
    ]
    # Non-numeric differences within a topic, which change the layout.
    key = (commands.setpoints.frame, commands.joint_names, motors, commands.effort_command.shape[1])
    if key not in layouts:
        if len(layouts) >= _MOST_TEMPLATES:
            layouts.clear()
        layouts[key] = [
            Layout.of(kind, **texts, **{name: np.zeros(x.shape[1]) for name, x in fields.items()})
            for kind, texts, fields in kinds
        ]
    results = []
    for layout, (kind, texts, fields) in zip(layouts[key], kinds, strict=True):
        rows = np.tile(layout.template, (len(commands), 1))
        if "header" in texts:
            layout.set_stamps(rows, commands.setpoints.stamp)
        for name, values in {**fields, **(single if kind == COMMAND else {})}.items():
            layout.set_numbers(rows, name, values)
        results.append(rows)
    return results


@contextmanager
def _table_sink(file: Path, robot: Robot, motor_names: tuple[str, ...], fingerprint: str) -> Iterator[_Sink]:
    """Columns ``recorded`` and ``stamp`` (ns), ``frame``, ``held``, and one for each field and joint or motor."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    names_of = {name: robot.joint_names if name in EFFORT_FIELDS else motor_names for name in COMMAND_FIELDS}
    time = pa.timestamp("ns", tz="UTC")
    columns = [("recorded", time), ("stamp", time), ("frame", pa.string()), ("held", pa.bool_())]
    columns += [(f"{field}.{name}", pa.float64()) for field, names in names_of.items() for name in names]
    schema = pa.schema(columns, {"replay": fingerprint})

    def write(commands: Commands) -> None:
        values: list[Any] = [
            commands.setpoints.recorded,
            commands.setpoints.stamp,
            [commands.setpoints.frame] * len(commands),
        ]
        values.append(commands.status != 0)
        for key, names in names_of.items():
            there = commands.joint_names if key in EFFORT_FIELDS else commands.motor_names
            values += list(np.ascontiguousarray(commands.values[key][:, [there.index(name) for name in names]].T))
        arrays = [pa.array(column, type=kind.type) for column, kind in zip(values, schema, strict=True)]
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

    with parquet.ParquetWriter(file, schema) as writer:
        yield write
