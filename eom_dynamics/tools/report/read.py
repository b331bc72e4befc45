# SPDX-License-Identifier: Apache-2.0
"""Read records from a bag: the topics of the node and joint states, as arrays.

A bag may hold several arms, each in its namespace: the setpoints and commands of one namespace make a record, with the
joint states that name the same joints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array
from ...bags import Bag, BagError, Topic
from ...bags.layout import Stamps
from ...bags.types import COMMAND, JOINT_STATE, JOINT_TRAJECTORY, SETPOINT
from ...control.fields import EFFORT_FIELDS, MOTOR_FIELDS, MOTOR_SETPOINT_FIELDS, STATE_FIELDS
from ...elastic import ElasticArm
from ...robot import Robot
from ..recording_options import Conventions, Sampling
from ..recordings import Stream, arm_with_own_drives, in_si_units, is_motor_topic, is_sent, joined, read_streams
from ..replay.evaluation import Evaluation
from ..replay.joint_states import CONSEQUENCE, repeated_positions
from ..replay.one import described_robot
from ..replay.sources import choose_topic, command_lead
from ..robot_options import RobotOptions
from .record import DOING, Record

_MOST_TOPICS = 100  # the bag is read once for each
_SAMPLING, _WHOLE_ROBOT = Sampling(), RobotOptions()

Progress = Callable[[float], None]


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def read_records(
    path: Path,
    robot: Robot | None = None,
    sampling: Sampling = _SAMPLING,
    robot_options: RobotOptions = _WHOLE_ROBOT,
    progress: Progress | None = None,
) -> list[Record]:
    """Read the records of a bag, at least one, and compute commands if they are missing and the robot is known.

    Args:
        robot: of the recording; None for the URDF on robot_description in the bag, if any.
        sampling: of trajectories and measured positions, to compute commands.
        progress: is called with the fraction of the bag read, 0 to 1.
    """
    with Bag(path) as bag:
        robot = described_robot(bag, robot_options) if robot is None else robot
        if robot is not None:
            sampling.conventions.check(robot.name, robot.joint_names)
        records, unread = _read_records(bag, sampling.conventions, arm_with_own_drives(robot), progress)
        if robot is not None:
            records = [_with_robot(record, robot) for record in records]
        planned = [topic.name for topic in bag.topics if topic.type == JOINT_TRAJECTORY]
        if not records and not (planned and robot):
            needs = ", and a trajectory needs its robot: --robot ROBOT" if planned else ""
            raise BagError(
                f"{path}: has no message of type {SETPOINT}, {COMMAND} or {JOINT_STATE} of joints{needs}; "
                f"it has {bag.topics_in_words}{''.join(f'; {line}' for line in unread)}"
            )
        if not records:
            records = [Record(path.name, robot)]
        bag.progress = progress
        records = [_completed(record, bag, sampling, robot_known=robot is not None) for record in records]
    for record in records:
        if not record.streams:
            raise BagError(f"{path}: {'; '.join(record.notes)}")
    return [replace(record, notes=(*record.notes, *_findings(record))) for record in records]


def _completed(record: Record, bag: Bag, sampling: Sampling, *, robot_known: bool) -> Record:
    if record.command:
        return record
    if record.robot is None:
        remedy = "a robot that has these joints" if robot_known else "a robot: --robot ROBOT"
        return replace(record, computed_note=f"Commands were not recorded; to compute them, name {remedy}.")
    if record.setpoint or record.measured or any(topic.type == JOINT_TRAJECTORY for topic in bag.topics):
        return _with_commands(record, bag, sampling)
    note = "Neither commands nor a motion of the joints to compute them from was recorded."
    return replace(record, computed_note=note)


def _with_commands(record: Record, bag: Bag, sampling: Sampling) -> Record:
    """Add commands to the record of a known robot, and setpoints if missing, computed from the motion in the bag."""
    source = record.setpoint or record.measured
    topic = choose_topic(bag, None if source is None else source.topic)
    arm = record.arm
    assert arm is not None
    evaluation = Evaluation(arm, lead=command_lead(bag, topic, arm.robot))
    parts: dict[str, list[Stream]] = {"states": [], "efforts": [], "motors": []}

    def add(to: str, stamps: Stamps, names: Sequence[str], values: Mapping[str, Array], fields: Sequence[str]) -> None:
        present = {field: values[field] for field in fields if values[field].shape[1] == len(names)}
        parts[to].append(Stream("", stamps.header, stamps.recorded, tuple(names), present))

    for batch, computed in evaluation.of_topic(bag, topic, sampling):
        add("states", batch.stamps, batch.names, batch.fields, STATE_FIELDS)
        for commands in computed:
            add("efforts", commands.stamps, commands.joint_names, commands.values, EFFORT_FIELDS)
            add("motors", commands.stamps, commands.motor_names, commands.values, MOTOR_FIELDS)
    lines = evaluation.violations.lines()
    notes = [
        *(f"{count:,} messages of {topic.name} refused: {reason}" for reason, count in evaluation.refusals.ranked()),
        *([f"{lines[0]} {'; '.join(lines[1:])}"] if lines else []),
    ]
    if not parts["efforts"]:
        return replace(record, notes=(*record.notes, *notes, f"no commands could be computed from {topic.name}"))
    what = {
        SETPOINT: f"the setpoints of {topic.name}",
        JOINT_TRAJECTORY: f"the trajectories of {topic.name}, interpolated and sampled at {sampling.rate:g} Hz",
        JOINT_STATE: f"a fit of the positions of {topic.name} with a cutoff of {sampling.cutoff:g} Hz",
    }[topic.type]
    note = f"Commands were not recorded: they are computed for {arm.robot.name} from {what}."
    fitted = topic.type == JOINT_STATE
    name = f"{topic.name}, {'fit' if fitted else 'interpolated'}"
    names = {"states": name, "efforts": "commands, computed", "motors": "commands, computed"}
    states, command, motors = (
        _in_order(replace(joined(name, parts[kind]), is_recorded=False)) for kind, name in names.items()
    )
    setpoint = record.setpoint or replace(states, is_fitted=fitted)
    record = replace(record, setpoint=setpoint, command=command, motors=record.motors or motors)
    return replace(record, computed_note=note, notes=(*record.notes, *notes))


def _findings(record: Record) -> list[str]:
    notes = []
    measured, status = record.measured, record.status
    if measured is not None and "position" in measured.values:
        places = repeated_positions(measured.values["position"])
        if len(places):
            notes.append(
                f"{measured.topic}: {len(places):,} messages repeat the positions of the previous one during a motion "
                f"(the first at {record.t(measured)[places[0]]:.3f} s): {CONSEQUENCE}"
            )
    lost = [phase for phase in record.interruptions if phase.lost]
    others = sum(phase.count for phase in record.interruptions if not phase.lost)
    if status is not None and lost:
        counts = {what: sum(phase.count for phase in lost if phase.status is what) for what in DOING}
        doing = ", ".join(f"{count:,} {DOING[what]}" for what, count in counts.items() if count)
        times = sum(phase.begins for phase in lost)
        notes.append(
            f"{status.topic}: setpoints were lost {'once' if times == 1 else f'{times:,} times'}, first before "
            f"{lost[0].start:.3f} s; of the commands after that, {doing}"
        )
    if status is not None and others:
        notes.append(f"{status.topic}: {others:,} commands repeat an earlier one for refused setpoints")
    return notes


def _read_records(
    bag: Bag, conventions: Conventions, arm: ElasticArm | None, progress: Progress | None
) -> tuple[list[Record], list[str]]:
    """Records of the node's topics, or if there are none, of joint states; and lines on messages not read."""
    path, notes, unread = bag.path, list[str](), list[str]()
    wanted = [topic for topic in bag.topics if topic.type in (SETPOINT, COMMAND, JOINT_STATE)]
    if len(wanted) > _MOST_TOPICS:
        raise BagError(
            f"{path}: has {len(wanted):,} topics of motions and commands, more than {_MOST_TOPICS} for a page"
        )
    of_topic = {}
    for k, topic in enumerate(wanted):
        if progress is not None:
            bag.progress = partial(lambda k, share: progress((k + share) / len(wanted)), k)
        of_topic[topic] = _read_topic(bag, topic, conventions, arm, notes, unread)
    states = [
        stream
        for topic, streams in of_topic.items()
        if topic.type == JOINT_STATE and not is_motor_topic(topic)
        for stream in streams.values()
        if len(stream)
    ]
    of_space: dict[str, dict[str, Any]] = {}  # streams by their names in a record
    # A command says more of motors than the topic motor_setpoint does, and comes first.
    for topic, streams in sorted(of_topic.items(), key=lambda item: item[0].type == JOINT_STATE):
        present = {part: stream for part, stream in streams.items() if len(stream)}
        if present and (topic.type != JOINT_STATE or is_sent(topic)):
            space = topic.name.rpartition("/")[0] or "/"
            of_space[space] = present | of_space.get(space, {})
    records = []
    for space, of_one in of_space.items():
        joints = [joint for stream in of_one.values() for joint in stream.names]
        name = f"{path.name} {space}" if len(of_space) > 1 else path.name
        records.append(Record(name, measured=_best_matching(states, joints, space), **of_one))
    if not of_space:
        names = [path.name if len(states) == 1 else f"{path.name} {stream.topic}" for stream in states]
        records = [Record(name, measured=stream) for name, stream in zip(names, states, strict=True)]
    every = (*unread, *notes)
    return [replace(record, notes=every, unread=tuple(unread)) for record in records], unread


def _best_matching(states: Sequence[Stream], joints: Sequence[str], space: str) -> Stream | None:

    def fit(stream: Stream) -> tuple[int, bool]:
        return len(set(stream.names) & set(joints)), stream.topic.rpartition("/")[0] == space.rstrip("/")

    best = max(states, key=fit, default=None)
    return best if best and fit(best)[0] else None


def _with_robot(record: Record, robot: Robot) -> Record:
    if set(robot.joint_names) & set(record.joints):
        return replace(record, robot=robot)
    names = f" ({', '.join(record.joints)})" if record.joints else ", which names none"
    note = f"robot {robot.name} is not used: it has none of the joints of this recording{names}"
    return replace(record, notes=(*record.notes, note))


def _read_topic(
    bag: Bag, topic: Topic, conventions: Conventions, arm: ElasticArm | None, notes: list[str], unread: list[str]
) -> dict[str, Stream]:
    """Streams of a topic, by their names in a record; warnings are added to ``notes`` and ``unread``."""
    streams, bad = read_streams(bag, topic, conventions.names)
    if bad:
        unread.append(f"{topic.name}: {len(bad):,} messages could not be read, the first: {bad[0]}")
    if any(stream.stamp is stream.recorded for stream in streams.values()):
        notes.append(f"{topic.name}: messages have no stamps; times of recording are used")
    if "measured" in streams:
        stream = streams.pop("measured")
        values = dict(stream.values)
        if is_sent(topic):
            values = in_si_units(arm, topic, stream.names, values)
            values = {MOTOR_SETPOINT_FIELDS[field]: x for field, x in values.items()}
        elif "effort" in values:
            values["effort"] = conventions.efforts(stream.names, values["effort"])
        streams["motors" if is_sent(topic) else "measured"] = replace(stream, values=values)
    return {kind: _in_order(stream) for kind, stream in streams.items()}


def _in_order(stream: Stream) -> Stream:
    return stream[np.argsort(stream.stamp, kind="stable")]
