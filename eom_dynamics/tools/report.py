# SPDX-License-Identifier: Apache-2.0
"""Report of recordings and replays: charts over time, and a table by joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from ..control.fields import MOTOR_SETPOINT_FIELDS, STATE_FIELDS
from ..elastic import ElasticArm
from ..exceptions import EomDynamicsError
from ..identification.sampling import mean_of_known
from ..recordings import DEFAULT, Conventions, Sampling
from ..recordings.bags import Bag, BagError, Topic
from ..recordings.bags.types import COMMAND, JOINT_STATE, JOINT_TRAJECTORY, SETPOINT
from ..recordings.streams import Stream, TopicReader, is_motor_topic, is_sent
from ..recordings.turns import turns_note, without_turns
from ..robot import Robot
from ..trajectory.limits import Peak, check
from ..trajectory.trajectory import Samples
from .options import RobotOptions
from .pages import add_joints, charts_over_time, color
from .quantity_text import NOTHING, milli, number, percent, together, unit_at
from .replay.bag import Job, described_robot, replay_bag
from .results import Result, ResultSection, TextTable

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST_TOPICS = 100  # the bag is read once for each


@dataclass(frozen=True)
class Record:
    """Recording of one arm, in SI units; streams are None if missing in the bag.

    Attributes:
        name: of the bag, and of the namespace if it has several.
        robot: for units, limits and missing commands; None if unknown.
        setpoint: position … snap.
        command: effort, effort_rate, effort_acceleration of the joints.
        motors: motor_position, motor_velocity, motor_acceleration, motor_effort.
        measured: position, velocity, effort of the joints.
        notes: on missing commands, and warnings, one line each.
        unread: lines on messages that could not be read.
    """

    name: str
    robot: Robot | None = None
    setpoint: Stream | None = None
    command: Stream | None = None
    motors: Stream | None = None
    measured: Stream | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that the recording has."""
        return tuple(filter(None, (self.setpoint, self.command, self.motors, self.measured)))

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """All names in messages."""
        return tuple(dict.fromkeys(name for stream in self.streams for name in stream.names))

    def t(self, stream: Stream) -> Array:
        """Return the stamps of a stream since the first of all (N,), s."""
        return stream.seconds(min(int(other.stamp[0]) for other in self.streams))

    def units(self, quantity: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return units of a position, its thousandth or an effort, by joint or motor; revolute if unknown."""
        if quantity == "milliposition":
            return milli(self.units("position", names))
        types = {} if self.robot is None else {joint.name: joint.type for joint in self.robot.independent_joints}
        return tuple(unit_at(quantity, name, types) for name in names)

    def error(self, field: str) -> Stream | None:
        """Setpoint minus measured ``position``, or commanded minus measured ``effort``, at the times of measurement.

        Wanted values are interpolated linearly, and NaN outside of their times. None if either is missing.
        """
        wanted, measured = self.setpoint if field == "position" else self.command, self.measured
        if wanted is None or measured is None or not (field in wanted.values and field in measured.values):
            return None
        names = tuple(name for name in wanted.names if name in measured.names)
        t, at, measured = self.t(wanted), self.t(measured), measured.ordered(names)
        columns = [np.interp(at, t, x, left=np.nan, right=np.nan) for x in wanted.ordered(names).values[field].T]
        error = np.reshape(columns, (len(names), len(at))).T - measured.values[field]
        if field == "position" and self.robot is not None:
            # Positions of continuous joints may be whole turns apart.
            endless = [name in self.robot.continuous_names for name in names]
            turns = np.nan_to_num(np.round(mean_of_known(error) / (2 * np.pi)))
            error = error - np.where(endless, 2 * np.pi * turns, 0.0)
        return None if np.isnan(error).all() else replace(measured, values={field: error})

    def used(self) -> dict[str, Peak]:
        """The limit that setpoints use most by joint or motor; empty without setpoints or a robot."""
        setpoint, robot = self.setpoint, self.robot
        if setpoint is None or robot is None or not {*robot.joint_names} <= {*setpoint.names}:
            return {}
        ordered = setpoint.ordered(robot.joint_names)
        states = [ordered.values[field] for field in STATE_FIELDS if field in ordered.values]
        rows = np.isfinite(np.hstack(states)).all(axis=1)
        if len(states) < len(STATE_FIELDS) or not rows.any():
            return {}
        peaks = check(ElasticArm(robot), Samples(self.t(setpoint)[rows], *(x[rows] for x in states))).peaks
        return {x.name: x for x in sorted(peaks, key=lambda peak: peak.ratio) if np.isfinite(x.limit)}


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def read_records(
    path: Path, robot: Robot | None = None, conventions: Conventions = DEFAULT, options: RobotOptions | None = None
) -> list[Record]:
    """Read the arms of a bag, at least one; commands that it lacks come from a replay, if the robot is known.

    Args:
        robot: of the recording; None for the part that ``options`` select of the URDF in the bag, if any.
    """
    with Bag(path) as bag:
        robot = described_robot(bag, options or RobotOptions()) if robot is None else robot
        if robot is not None:
            conventions.check(robot.name, robot.joint_names)
        topics = [topic for topic in bag.topics if topic.type in (SETPOINT, COMMAND, JOINT_STATE)]
        if len(topics) > _MOST_TOPICS:
            raise BagError(
                f"{path}: has {len(topics):,} topics of motions and commands, more than {_MOST_TOPICS} for a page"
            )
        notes: list[str] = []
        states: list[Stream] = []
        spaces: dict[str, dict[str, Stream]] = {}
        # A command says more of motors than the topic motor_setpoint does, and comes last.
        for topic in sorted(topics, key=lambda topic: topic.type == COMMAND):
            streams = _read_topic(bag, topic, conventions, robot, notes)
            if "measured" in streams:
                states.append(streams["measured"])
            elif streams:
                spaces.setdefault(topic.name.rpartition("/")[0], {}).update(streams)
        planned = robot is not None and any(topic.type == JOINT_TRAJECTORY for topic in bag.topics)
        if not (spaces or states or planned):
            what = f"has no message of type {SETPOINT}, {COMMAND} or {JOINT_STATE} of joints"
            raise bag.lacks(what, "".join(f"; {line}" for line in notes))
    records = []
    for space, streams in (spaces or {"": {}}).items():
        joints = {name for stream in streams.values() for name in stream.names}
        shared = [x for x in states if joints & {*x.names} or not joints]
        best = max(shared, key=lambda x: (len(joints & {*x.names}), x.topic.startswith(f"{space}/")), default=None)
        name = f"{path.name} {space}" if len(spaces) > 1 else path.name
        record = Record(name, robot, measured=best, **streams, notes=(*notes,), unread=(*notes,))
        if robot is not None and record.joints and not {*robot.joint_names} & {*record.joints}:
            note = f"robot {robot.name} is not used: it lacks all joints of the bag ({', '.join(record.joints)})"
            record = replace(record, robot=None, notes=(*notes, note))
        records.append(record if record.command else _with_commands(record, path, conventions))
    return records


def _read_topic(
    bag: Bag, topic: Topic, conventions: Conventions, robot: Robot | None, notes: list[str]
) -> dict[str, Stream]:
    """Streams of a topic by their names in a record, sorted by stamps; a line on messages not read goes to notes."""
    # Commands are in the units of the robot.
    reader = TopicReader(bag, topic, conventions.names_alone if is_sent(topic) else conventions, robot)
    streams = {kind: x[np.argsort(x.stamp, kind="stable")] for kind, x in reader.streams().items() if len(x)}
    if total := reader.refusals.total:
        first = next(iter(reader.refusals.reasons))
        notes.append(f"{topic.name}: {total:,} messages could not be read, the first: {first}")
    for kind, stream in streams.items():
        if robot is not None and "position" in stream.values:
            position, turns = without_turns(robot, stream.values["position"], stream.names)
            notes += [f"{topic.name}: {line}" for line in turns_note(turns)]
            streams[kind] = replace(stream, values={**stream.values, "position": position})
    if is_motor_topic(topic):
        motors = streams.pop("measured", None)
        return {"motors": motors.with_fields(MOTOR_SETPOINT_FIELDS)} if is_sent(topic) and motors else {}
    return streams


def _with_commands(record: Record, path: Path, conventions: Conventions) -> Record:
    source, robot, more = record.setpoint or record.measured, record.robot, list[str]()
    if robot is None:
        note = "commands were not recorded; to compute them, name the robot: --robot ROBOT"
        return replace(record, notes=(note, *record.notes))
    try:
        with TemporaryDirectory(prefix="eom_dynamics-") as folder:
            topic, sampling = None if source is None else source.topic, Sampling(conventions=conventions)
            report = replay_bag(Job(path, Path(folder, "out"), robot, topic, sampling=sampling))
            with Bag(Path(folder, "out")) as bag:
                streams = TopicReader(bag, next(x for x in bag.topics if x.type == COMMAND)).streams()
    except EomDynamicsError as error:
        if not record.streams:
            raise
        note = f"commands were not recorded, and cannot be computed: {'; '.join(error.errors)}"
    else:
        note = f"commands were not recorded; shown are commands of a replay of {report.topic} for {report.robot}"
        more = [*report.notes()]
        record = replace(record, command=streams["command"], motors=record.motors or streams["motors"])
    return replace(record, notes=(note, *record.notes, *more))


def report_result(records: Sequence[Record], about: Mapping[str, str], page: Path) -> Result:
    """Make the result of recordings: up to four charts and a table for each."""
    caption = "Dotted: measured. Measured efforts also include friction, cables and sensor offsets, which τ does not."
    several = len(records) > 1
    sections = [
        ResultSection(record.name * several, record.notes, caption, {f"record {k}": _figure(record)}, [_table(record)])
        for k, record in enumerate(records)
    ]
    title = f"{len(records)} recordings" if several else records[0].name
    return Result(title=title, sections=sections, files={"page": page}, about=about)


def _figure(record: Record) -> go.Figure:
    charts = {
        "q, position": ("position", "position", (record.setpoint, record.measured)),
        "q − measured position": ("position", "milliposition", (record.error("position"),)),
        "τ, joint effort": ("effort", "effort", (record.command, record.measured)),
        "τ_m, motor effort": ("motor_effort", "effort", (record.motors,)),
    }
    shown = {
        title: (field, quantity, [x for x in streams if x is not None and field in x.values])
        for title, (field, quantity, streams) in charts.items()
    }
    shown = {title: chart for title, chart in shown.items() if chart[2]}
    colors = {name: color(k) for k, name in enumerate(record.joints)}
    figure = charts_over_time({title: together(record.units(x[1], x[2][0].names)) for title, x in shown.items()})
    for row, (field, quantity, streams) in enumerate(shown.values(), 1):
        for k, x in enumerate(streams):
            values = (1e3 if quantity == "milliposition" else 1.0) * x.values[field]
            units, shades = record.units(quantity, x.names), [colors[name] for name in x.names]
            kind, line = ("measured", {"dash": "dot", "width": 1.5}) if k else ("", None)
            add_joints(figure, x.names, units, record.t(x), values, colors=shades, kind=kind, line=line, row=row)
    return figure


def _table(record: Record) -> TextTable:
    """Root mean squares and peaks of errors, and the limit used most, by joint."""
    columns: dict[str, dict[str, str]] = {}
    for field, symbol, quantity in (("position", "q", "milliposition"), ("effort", "τ", "effort")):
        if (error := record.error(field)) is not None:
            size = (1e3 if field == "position" else 1.0) * np.abs(error.values[field])
            by_joint = [x[~np.isnan(x)] for x in size.T]
            for title, values in (
                ("RMS", [np.sqrt(np.mean(x**2)) if len(x) else np.nan for x in by_joint]),
                ("peak", [np.max(x, initial=0.0) for x in by_joint]),
            ):
                texts = zip(error.names, values, record.units(quantity, error.names), strict=True)
                columns[f"{symbol} − measured, {title}"] = {name: f"{number(x)} {of}" for name, x, of in texts}
    if used := record.used():
        columns["limit used most"] = {
            name: f"{percent(x.ratio)} of {x.quantity.replace('_', ' ')}, at {x.t:.3f} s" for name, x in used.items()
        }
    joints = dict.fromkeys((*record.joints, *used))
    rows = [(joint, *(column.get(joint, NOTHING) for column in columns.values())) for joint in joints]
    failed = {(k, len(columns)) for k, joint in enumerate(joints) if joint in used and used[joint].exceeded}
    return TextTable(("joint", *columns), rows, failed=failed)
