# SPDX-License-Identifier: Apache-2.0
"""Read recordings: bags with JointState messages, and tables in CSV, Parquet or NPZ.

A table has a column ``t`` or ``time`` (s), and for each joint NAME ``position.NAME`` and ``effort.NAME``, and
``velocity.NAME`` if it was recorded; ``q.NAME``, ``qd.NAME`` and ``tau.NAME`` are the same. Tables of ``eom_dynamics
replay`` have ``stamp`` (ns) for the time. Columns of motors are those of :mod:`.sides`. The .npz files of the commands
have arrays: t (T,), q, qd, tau (T, n) with joint_names (n,), and theta, thetad with motor_names.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np

from ...arrays import Array
from ...control.fields import EFFORT_FIELDS, MEASURED_FIELDS, MOTOR_SETPOINT_FIELDS
from ...elastic import ElasticArm
from ...elastic.limit_violations import MANY_TURNS
from ...extras import require
from ...identification import IdentificationError, Recording
from ...recordings.bags import Bag, BagError, Topic
from ...recordings.bags.bag import METADATA, is_storage
from ...recordings.bags.types import COMMAND, JOINT_STATE
from ...recordings.number_files import read_arrays, read_table
from ...robot import Robot
from ...spelling import duplicates, listed
from ..recording_options import DEFAULT, Conventions, Source, renaming_to
from ..recordings import (
    Stream,
    arm_with_own_drives,
    in_si_units,
    is_motor_topic,
    joined,
    only_one,
    read_streams,
    topics_of_states,
)

_ALIASES = {"q": "position", "qd": "velocity", "tau": "effort", "time": "t"}
_ALIASES |= {"theta": "motor_position", "thetad": "motor_velocity"}

TABLES = (".csv", ".parquet", ".npz")
"""Endings of tables."""

_COMPUTED = (*EFFORT_FIELDS[1:], "motor_acceleration")  # columns of commands that no sensor measures

# Positions may pass their limits by this much, rad, before degrees are in doubt; and radians by this factor.
_BEYOND, _FAR = 0.2, 3.0
_SHOWN = 20  # names of other joints
_LONGEST = 9e9  # s: a stamp of 64 bits in ns holds no more


@dataclass(frozen=True, eq=False)
class NumericTable:
    """Columns of numbers (N,) of a table, by name; aliases, which it wrote, are replaced."""

    path: Path
    values: dict[str, Array]
    written: dict[str, str]


def read_recording(path: Path, robot: Robot, source: Source | None = None) -> Recording:
    """Read a recording of a robot from a bag or a table; a joint that was not recorded is taken to be at rest at zero.

    Raises BagError if a bag cannot be read or has no joint states, IdentificationError if a table lacks columns or
    nothing of the robot was recorded, OSError if a file cannot be read.
    """
    with opened(path) as file:
        return read_stamped(file, robot, source or Source())[0]


def opened(path: Path) -> AbstractContextManager[Bag | NumericTable]:
    """Open a bag, or read a table."""
    if path.suffix in TABLES:
        return nullcontext(_read_table(path))
    check_bag(path)
    return Bag(path)


def check_bag(path: Path) -> None:
    """Refuse files and folders that are no bags, with the bags and tables beside or in them."""
    if not path.exists() or is_storage(path):
        return
    if path.is_dir() and ((path / METADATA).exists() or any(map(is_storage, path.iterdir()))):
        return
    folder = path if path.is_dir() else path.parent
    others = [x for x in sorted(folder.iterdir()) if x.suffix in TABLES or is_storage(x) or (x / METADATA).exists()]
    there = f"; {folder} has {listed(x.name for x in others)}" if others else ""
    raise BagError(f"{path}: is neither a bag nor a table ({', '.join(TABLES)}){there}")


def read_stamped(file: Bag | NumericTable, robot: Robot, source: Source) -> tuple[Recording, int]:
    """Read as :func:`read_recording` from what :func:`opened` gives; with the stamp of time zero, ns."""
    source.conventions.check(robot.name, robot.joint_names)
    efforts = None
    position, _, effort = source.columns
    if isinstance(file, Bag):
        arm, of_motors = arm_with_own_drives(robot), source.side is not None
        states = topics_of_states(file, source.topic)
        chosen = [topic for topic in states if source.topic is not None or not is_motor_topic(topic)] or states
        topic = only_one(file, chosen, f"of type {JOINT_STATE}", "--topic")
        columns = read_topic(file, topic, source.conventions, arm, of_motors)
        position = effort = topic.name
        if not len(columns):
            raise BagError(f"{file.path}: topic {topic.name} has no messages that can be read")
        if source.effort_topic is not None:
            others = file.named(source.effort_topic)
            if not others:
                raise BagError(f"{file.path}: has no topic {source.effort_topic}; it has {file.topics_in_words}")
            in_amperes, effort = source.side == "currents", others[0].name
            efforts = read_topic(file, others[0], source.conventions, None if in_amperes else arm, of_motors)
    else:
        columns = _table(file, source.columns)
        position, effort = (f"{file.written.get(column, column)}.NAME" for column in (position, effort))
    origin = int(columns.stamp[0]) if len(columns) else 0
    recording = _recording(file.path.name, robot, columns, origin, source)
    if efforts is not None:
        recording = _with_efforts(recording, efforts, origin, source)
    of = f"of {position}, efforts of {effort}" if effort != position else f"and efforts of {position}"
    has_efforts = np.isfinite(recording.tau).any()
    recording = replace(recording, source=f"positions {of}" if has_efforts else f"positions of {position}, no efforts")
    recording = _in_radians(recording, robot, source.position_unit)
    if source.effort_delay:
        recording = recording.without_delay(source.effort_delay)
    return recording, origin


def read_topic(
    bag: Bag, topic: Topic, conventions: Conventions = DEFAULT, arm: ElasticArm | None = None, of_motors: bool = False
) -> Stream:
    """Read the messages of a topic: joint states, or commands of motors; BagError for another type.

    Motors of an ``arm`` are converted to SI units; ``of_motors`` says that the topic is of motors whatever its name.
    """
    if topic.type not in (JOINT_STATE, COMMAND):
        raise BagError(f"{bag.path}: topic {topic.name} is of type {topic.type}, not {JOINT_STATE} or {COMMAND}")
    command = topic.type == COMMAND
    streams, unreadable = read_streams(bag, topic)
    stream = streams.get("motors" if command else "measured", joined(topic.name, ()))
    values = dict(stream.values)
    if command:
        values = {name: values[field] for name, field in MOTOR_SETPOINT_FIELDS.items() if field in values}
    elif arm is not None:
        values = in_si_units(arm, topic, conventions.names(stream.names), values, of_motors=of_motors)
    return replace(stream, values=values, unreadable=len(unreadable))


def _table(table: NumericTable, columns: Sequence[str]) -> Stream:
    named, path = table.values, table.path
    if "t" in named:
        t = named["t"]
    elif "stamp" in named:
        t = named["stamp"] * 1e-9
    else:
        raise IdentificationError(f"{path}: has no column t or time, of times in s; it has {listed(named)}")
    position = columns[0]
    joints = tuple(name.partition(".")[2] for name in named if name.startswith(f"{position}."))
    if not joints:
        raise IdentificationError(f"{path}: has no columns {position}.NAME; it has {listed(named)}")
    known = np.isfinite(t)
    start = t[np.argmax(known)] if known.any() else 0.0
    known &= np.abs(t - start) < _LONGEST
    fields: dict[str, Array] = {}
    for field, source in zip(MEASURED_FIELDS, columns, strict=True):
        there = [named.get(f"{source}.{joint}") for joint in joints]
        if any(column is not None for column in there):
            fields[field] = np.column_stack([np.full(len(t), np.nan) if c is None else c for c in there])[known]
    stamp = np.round(1e9 * (t[known] - start)).astype(np.int64)
    return Stream("the table", stamp, stamp, joints, fields, unreadable=int(np.sum(~known)))


def _read_table(path: Path) -> NumericTable:
    if not path.is_file():
        raise IdentificationError(f"{path}: there is no such file")
    try:
        columns = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}[path.suffix](path)
    except ValueError as error:
        wanted = "; its columns are t, position.JOINT and effort.JOINT" if path.suffix == ".csv" else ""
        raise IdentificationError(f"{path}: {' '.join(str(error).split())}{wanted}") from None
    # Alone or before a dot, as in q.NAME.
    parts = [(name.strip().partition("."), values) for name, values in columns]
    named = [(_ALIASES.get(kind, kind) + dot + joint, values) for (kind, dot, joint), values in parts]
    if twice := duplicates(name for name, _ in named):
        raise IdentificationError(f"{path}: has columns of the same name: {listed(twice)}; remove one of each")
    kinds = {_ALIASES.get(kind, kind): kind for (kind, _, _), _ in parts}
    if not kinds.keys().isdisjoint(_COMPUTED):
        raise IdentificationError(f"{path}: has commands, not measurements; name the recording that they were made of")
    return NumericTable(path, dict(named), kinds)


def _csv(path: Path) -> list[tuple[str, Array]]:
    names, table = read_table(path)
    if names is None:
        raise ValueError("the first line must name the columns")
    return list(zip(names, table.T, strict=True))


def _parquet(path: Path) -> list[tuple[str, Array]]:
    require("parquet")
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    result = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        scale = 1.0
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
            scale = 1.0 if name == "stamp" else 1e-9
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            result.append((name, scale * np.asarray(column.to_numpy(), dtype=float)))
    return result


def _npz(path: Path) -> list[tuple[str, Array]]:
    arrays = read_arrays(path)
    if lacking := [name for name in ("t", "joint_names") if name not in arrays]:
        raise ValueError(f"has no array {listed(lacking)}; it has {listed(arrays) or 'nothing'}")
    t, joints = arrays.pop("t"), [str(name) for name in arrays.pop("joint_names").ravel()]
    motors = [str(name) for name in arrays.pop("motor_names", np.array(joints)).ravel()]
    columns = [("t", np.asarray(t, dtype=float))]
    for field, values in arrays.items():
        names = motors if _ALIASES.get(field, field).startswith("motor_") else joints
        if values.dtype.kind in "fiu" and values.shape == (t.size, len(names)):
            named = zip(names, values.T, strict=True)
            columns += [(f"{field}.{name}", np.asarray(x, dtype=float)) for name, x in named]
    return columns


def _of_joints(name: str, stream: Stream, joints: Sequence[str], source: Source) -> tuple[dict[str, Array], list[str]]:
    """Fields (N, n) of a robot's joints, NaN where they were not recorded, and the recorded ones, at least one."""
    names = source.conventions.names(stream.names)
    place = {joint: k for k, joint in enumerate(names) if joint in joints}
    if not place:
        raise IdentificationError(
            f"{name}: {stream.topic} has none of the joints of the robot ({', '.join(joints)}); it has "
            f"{', '.join(names[:_SHOWN]) or 'no names'}{renaming_to(joints, names)}"
        )
    unknown = np.full(len(stream), np.nan)
    fields = {
        field: np.column_stack([x[:, place[joint]] if joint in place else unknown for joint in joints])
        for field, x in stream.values.items()
    }
    return fields, list(place)


def _recording(name: str, robot: Robot, columns: Stream, origin: int, source: Source) -> Recording:
    notes = [f"{columns.unreadable:,} messages or rows could not be read"] if columns.unreadable else []
    if "position" not in columns.values:
        what = "record them in JointState.position, or name another topic"
        raise IdentificationError(f"{name}: {columns.topic} has no positions; {what}")
    fields, recorded = _of_joints(name, columns, robot.joint_names, source)
    missing = [joint for joint in robot.joint_names if joint not in recorded]
    notes += [f"{joint} was not recorded, and is taken to be at rest at 0" for joint in missing]
    lacks = [joint in missing for joint in robot.joint_names]
    q = np.where(lacks, 0.0, fields["position"])
    qd = np.where(lacks, 0.0, fields["velocity"]) if "velocity" in fields else None
    if qd is not None and not (np.isfinite(qd).all() and np.any(qd)):
        qd = None
    tau = source.conventions.efforts(robot.joint_names, fields.get("effort", np.full(q.shape, np.nan)))
    t = columns.seconds(origin)
    return Recording(robot.joint_names, t, q, tau, qd, name, tuple(notes), assumed=tuple(missing))


def _with_efforts(recording: Recording, efforts: Stream, origin: int, source: Source) -> Recording:
    """The recording with efforts of another topic, interpolated to its times."""
    if "effort" not in efforts.values:
        raise IdentificationError(f"{recording.name}: topic {source.effort_topic} has no efforts; name another topic")
    fields, _ = _of_joints(recording.name, efforts, recording.joint_names, source)
    at, tau = efforts.seconds(origin), np.full(recording.q.shape, np.nan)
    for k, column in enumerate(fields["effort"].T):
        known = np.isfinite(column)
        order = np.argsort(at[known], kind="stable")
        if known.any():
            tau[:, k] = np.interp(recording.t, at[known][order], column[known][order], np.nan, np.nan)
    if np.isnan(tau).all():
        raise IdentificationError(
            f"{recording.name}: topic {source.effort_topic} has no efforts at the times of the positions; record both "
            "at once, on one clock"
        )
    return replace(recording, tau=source.conventions.efforts(recording.joint_names, tau))


def _in_radians(recording: Recording, robot: Robot, unit: str) -> Recording:
    turning = np.array([joint.type != "prismatic" for joint in robot.independent_joints])
    if unit == "rad" or not turning.any():
        return recording
    limits = [joint.limits for joint in robot.independent_joints]
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    q = recording.q[np.isfinite(recording.q).all(axis=1)]
    if not len(q):
        return recording
    low, high = np.percentile(q, 1, axis=0), np.percentile(q, 99, axis=0)
    known = turning & np.isfinite(lower) & np.isfinite(upper)
    # Far beyond its limits as it is, within them as degrees: no other reading is left.
    reach = np.maximum(np.abs(lower), np.abs(upper))
    beyond = known & (np.maximum(np.abs(low), np.abs(high)) > _FAR * reach)
    within = (np.radians(low) >= lower - _BEYOND) & (np.radians(high) <= upper + _BEYOND)
    in_degrees = unit == "deg" or (beyond.any() and within[known].all())
    if not in_degrees:
        if beyond.any():
            worst = robot.joint_names[int(np.argmax(beyond))]
            return recording.with_note(f"{worst} moves far beyond its limits; check its unit and the robot's file")
        unlimited = turning & ~known & (high - low > MANY_TURNS)
        if unlimited.any():
            furthest = int(np.argmax(unlimited))
            turns = f"{(high - low)[furthest] / (2 * np.pi):.3g} turns"
            return recording.with_note(
                f"{robot.joint_names[furthest]} moves over {turns}; if that was in degrees: --position-unit deg"
            )
        return recording
    scale = np.where(turning, np.pi / 180, 1.0)
    qd = None if recording.qd is None else recording.qd * scale
    converted = replace(recording, q=recording.q * scale, qd=qd)
    if unit == "deg":
        return converted
    names = list(compress(robot.joint_names, beyond))
    where = "is beyond its limits" if len(names) == 1 else "are beyond their limits"
    return converted.with_note(f"positions are in degrees, since {', '.join(names)} {where} otherwise; converted")
