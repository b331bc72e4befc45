# SPDX-License-Identifier: Apache-2.0
"""Positions and efforts of a robot's joints in a bag or a table, in radians and the robot's order, on one clock.

Positions of continuous joints are often folded to one turn, and steps of 2π are undone. Joints of separate publishers
come in separate messages: their values are interpolated at the stamps of one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import compress
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from ..arrays import Array
from ..elastic.limit_violations import MANY_TURNS
from ..identification import IdentificationError, Recording
from ..robot import Robot
from ..spelling import listed
from . import Source, check_joints, renaming_to
from .bags import Bag, BagError
from .bags.bag import METADATA, is_storage
from .bags.types import JOINT_STATE
from .streams import Refusals, Stream, TopicReader, is_motor_topic, joined, only_one, topics_of_states
from .tables import COLUMNS, TABLES, NumericTable, is_table, read_numeric_table
from .turns import turns_note, without_turns

_FIRST, _STEP = 10, 0.02  # most messages of zeros at the start, and the least step from there, rad or m
_PAUSE, _PAUSE_STEPS = 0.05, 8  # longest interpolated gap: s, and number of usual steps

COMPLETE = 0.5
"""Fraction of complete messages above which incomplete messages are damaged, not from separate publishers."""


def on_one_clock(stream: Stream, joints: Sequence[str]) -> tuple[Stream, list[str]]:
    """Messages with all given joints; separate messages are interpolated at the stamps of one publisher.

    Initial messages of zeros, from a driver without measurements, are omitted. Also returns notes. Raises
    IdentificationError if separate messages have no time in common.
    """
    present = [name for name in joints if name in stream.names]
    columns = [stream.names.index(name) for name in present]
    if "position" not in stream.values or not columns or not len(stream):
        return stream, []
    known = np.isfinite(stream.values["position"][:, columns])
    of_others = ~known.any(axis=1) & np.isnan(stream.values["position"][:, columns]).all(axis=1)
    of_others &= np.isfinite(stream.values["position"]).any(axis=1)
    rows, known = stream[~of_others], known[~of_others]
    first = int(np.argmax(np.any(rows.values["position"][:, columns] != 0, axis=1)))
    notes = []
    if 0 < first <= _FIRST and np.nanmax(np.abs(rows.values["position"][first, columns])) > _STEP:
        notes = [f"all positions of the first messages are zero, {first:,}, far from the next; left out"]
        rows, known = rows[first:], known[first:]
    if not known.any(axis=0).all() or known.all(axis=1).sum() > COMPLETE * len(known):
        return rows, notes
    order = np.argsort(rows.stamp, kind="stable")
    rows, known = rows[order], known[order]
    # Joints of one publisher are in the same messages.
    groups: dict[bytes, list[int]] = {}
    for k, column in enumerate(known.T):
        groups.setdefault(column.tobytes(), []).append(k)
    clock = max(groups.values(), key=lambda group: (len(group), known[:, group[0]].sum()))
    at = np.flatnonzero(known[:, clock[0]] & np.append(True, np.diff(rows.stamp) > 0))
    t, times = rows.seconds(int(rows.stamp[0])), rows.seconds(int(rows.stamp[0]))[at]
    values = {field: x[at].copy() for field, x in rows.values.items()}
    for group in groups.values():
        if group is clock:
            continue
        of_group = [columns[k] for k in group]
        for field, x in rows.values.items():
            for column in of_group:
                values[field][:, column] = _at(times, t, x[:, column])
    complete = np.isfinite(values["position"][:, columns]).all(axis=1)
    named = "; ".join(
        f"{known[:, group[0]].sum():,} of {listed(present[k] for k in group)}" for group in groups.values()
    )
    if not complete.any():
        raise IdentificationError(
            f"{stream.topic}: joints come in separate messages without a common time, {named}; record them "
            "together, on one clock"
        )
    note = f"joints come in separate messages, {named}: merged at the times of {listed(present[k] for k in clock)}"
    merged = replace(rows[at], values=values)
    return merged[complete], [*notes, note]


def _at(times: Array, t: Array, values: Array) -> Array:
    """Values (N,) at times t, s; NaN in their pauses."""
    known = np.flatnonzero(np.isfinite(values))
    known = known[np.append(True, np.diff(t[known]) > 0)] if len(known) else known
    if len(known) < 4:
        return np.full(len(times), np.nan)
    at, steps = t[known], np.diff(t[known])
    right = np.searchsorted(at, times).clip(1, len(at) - 1)
    near = (times >= at[0]) & (times <= at[-1]) & (steps[right - 1] <= max(_PAUSE, _PAUSE_STEPS * np.median(steps)))
    return np.where(near, CubicSpline(at, values[known])(times), np.nan)


# Positions may pass their limits by this much, rad, before degrees are in doubt; and radians by this factor.
_BEYOND, _FAR = 0.2, 3.0
_SHOWN = 20  # names of other joints


def read_recording(path: Path, robot: Robot, source: Source | None = None) -> Recording:
    """Read a recording of a robot from a bag or a table, which has all joints that are not locked.

    Raises BagError if a bag cannot be read or has no joint states, IdentificationError if a table lacks columns or a
    joint was not recorded, OSError if a file cannot be read.
    """
    source = source or Source()
    with opened(path, robot, source) as file:
        recording, _ = read_stamped(file, robot, source)
    refuse_missing(recording, source)
    return recording


def refuse_missing(recording: Recording, source: Source, besides: Collection[str] = ()) -> None:
    """Raise IdentificationError if a recording lacks joints that are neither locked nor among ``besides``."""
    missing = [joint for joint in _not_locked(recording.assumed, source) if joint not in besides]
    if missing:
        also = f"; it has {listed(recording.others[:_SHOWN])}" if recording.others else ""
        renamed = recording.others if len(recording.others) >= len(missing) else ()
        remedy = renaming_to(missing, renamed).replace("name another robot, or rename", "rename")
        raise IdentificationError(
            f"{recording.name}: {listed(missing)} of the robot {'was' if len(missing) == 1 else 'were'} not recorded"
            f"{also}{remedy}; or give the positions at which joints are locked, --locked {missing[0]}=X"
        )


def _not_locked(joints: Collection[str], source: Source) -> list[str]:
    """Joints without those that the source locks."""
    locked = {joint for joint, _ in source.locked}
    return [joint for joint in joints if not {joint, None} & locked]


def opened(path: Path, robot: Robot, source: Source) -> AbstractContextManager[Bag | NumericTable]:
    """Open a bag, or read a table with the columns that the source names for the robot's joints."""
    if is_table(path):
        return nullcontext(read_numeric_table(path).mapped(source.columns, robot.joint_names))
    _check_bag(path)
    return Bag(path)


def _check_bag(path: Path) -> None:
    """Refuse files and folders that are no bags; the error lists the bags and tables next to them or in them."""
    if not path.exists() or is_storage(path):
        return
    if path.is_dir() and ((path / METADATA).exists() or any(map(is_storage, path.iterdir()))):
        return
    folder = path if path.is_dir() else path.parent
    others = [x for x in sorted(folder.iterdir()) if is_table(x) or is_storage(x) or (x / METADATA).exists()]
    there = f"; {folder} has {listed(x.name for x in others)}" if others else ""
    raise BagError(f"{path}: is neither a bag nor a table ({', '.join(filter(None, TABLES))}){there}")


def read_stamped(file: Bag | NumericTable, robot: Robot, source: Source) -> tuple[Recording, int]:
    """Read a recording as :func:`read_recording` from the result of :func:`opened`, with the stamp of time zero, ns."""
    source.conventions.check(robot.name, robot.joint_names)
    check_joints("--locked", source.locked, robot.name, robot.joint_names)
    # Efforts are scaled after they have been assigned to the joints.
    names, refusals, efforts = source.conventions.names_alone, Refusals(), None
    if isinstance(file, Bag):
        of_motors = source.side != "links"
        states = topics_of_states(file, source.topic)
        chosen = [topic for topic in states if source.topic is not None or not is_motor_topic(topic)] or states
        streams = [TopicReader(file, topic, names, robot, refusals, of_motors=of_motors).motion() for topic in chosen]
        wanted, has = {*robot.joint_names}, [{*stream.names} for stream in streams]
        # Arms of one robot may have a topic each.
        if len(chosen) == 1 or any(map(wanted.issubset, has)) or not wanted <= set().union(*has):
            only_one(file, chosen, f"of type {JOINT_STATE}", "--topic")
        columns = joined(" and ".join(stream.topic for stream in streams), streams)
        position = effort = columns.topic
        if not len(columns):
            raise BagError(f"{file.path}: topic {position} has no messages that can be read")
        if source.effort_topic is not None:
            others = file.named(source.effort_topic)
            if not others:
                raise file.lacks(f"has no topic {source.effort_topic}")
            driven, effort = None if source.side == "currents" else robot, others[0].name
            efforts = TopicReader(file, others[0], names, driven, of_motors=of_motors).motion()
    else:
        columns = file.stream(source.side, names, refusals, robot.joint_names)
        position, _, effort = (file.written.get(column, column) for column in COLUMNS[source.side])
    origin = int(columns.stamp[0]) if len(columns) else 0
    recording = _recording(file.path.name, robot, columns, efforts, origin, source, refusals)
    of = f"of {position}, efforts of {effort}" if effort != position else f"and efforts of {position}"
    has_efforts = np.isfinite(recording.tau).any()
    recording = replace(recording, source=f"positions {of}" if has_efforts else f"positions of {position}, no efforts")
    if isinstance(file, NumericTable):
        recording = replace(recording, notes=(*file.notes, *recording.notes))
    recording = _in_radians(recording, robot, source.position_unit)
    if source.effort_delay:
        recording = recording.without_delay(source.effort_delay)
    return recording, origin


def _of_joints(recording: str, stream: Stream, robot: Robot) -> tuple[dict[str, Array], list[str]]:
    """Fields (N, n) of a robot's joints, NaN if not recorded, and the missing joints."""
    joints = robot.joint_names
    if not {*joints} & {*stream.names}:
        raise IdentificationError(
            f"{recording}: {stream.topic} lacks all joints of the robot ({', '.join(joints)}); it has "
            f"{', '.join(stream.names[:_SHOWN]) or 'no names'}{renaming_to(joints, stream.names)}"
        )
    return dict(stream.ordered(joints).values), [joint for joint in joints if joint not in stream.names]


def _recording(
    name: str, robot: Robot, columns: Stream, efforts: Stream | None, origin: int, source: Source, refusals: Refusals
) -> Recording:
    """The recording of positions, with efforts of another stream if there is one."""
    notes = [f"{refusals.total:,} messages or rows could not be read"] if refusals.total else []
    if "position" not in columns.values:
        what = "record them in JointState.position, or name another topic"
        raise IdentificationError(f"{name}: {columns.topic} has no positions; {what}")
    _of_joints(name, columns, robot)  # checks
    unit = source.position_unit if source.side == "links" else "auto"
    q, turns = without_turns(robot, columns.values["position"], columns.names, unit)
    columns = replace(columns, values={**columns.values, "position": q})
    columns, more = on_one_clock(columns, robot.joint_names)
    notes += [*turns_note(turns), *more]
    fields, missing = _of_joints(name, columns, robot)
    locked = dict(source.locked)
    at = [locked.get(joint, locked.get(None, 0.0)) for joint in robot.joint_names]
    notes += [f"{joint} is locked at {x:g}" for joint, x in zip(robot.joint_names, at, strict=True) if joint in missing]
    others = tuple(joint for joint in columns.names if joint not in robot.joint_names)
    if others and (strays := _not_locked(missing, source)):
        notes.append(
            f"{', '.join(others[:_SHOWN])}: no joint of the robot; if {strays[0]} is meant: --rename "
            f"{others[0]}={strays[0]}"
        )
    lacks = [joint in missing for joint in robot.joint_names]
    q = np.where(lacks, at, fields["position"])
    qd = np.where(lacks, 0.0, fields["velocity"]) if "velocity" in fields else None
    if qd is not None and not (np.isfinite(qd).all() and np.any(qd)):
        qd = None
    t, tau = columns.seconds(origin), fields.get("effort", np.full(q.shape, np.nan))
    if efforts is not None:
        tau = _efforts_at(t, name, efforts, robot, origin, source)
    tau = source.conventions.efforts(robot.joint_names, tau)
    return Recording(robot.joint_names, t, q, tau, qd, name, tuple(notes), assumed=tuple(missing), others=others)


def _efforts_at(t: Array, name: str, efforts: Stream, robot: Robot, origin: int, source: Source) -> Array:
    """Efforts of another topic, interpolated to times (N,), s."""
    if "effort" not in efforts.values:
        raise IdentificationError(f"{name}: topic {source.effort_topic} has no efforts; name another topic")
    fields, _ = _of_joints(name, efforts, robot)
    at, tau = efforts.seconds(origin), np.full((len(t), robot.n), np.nan)
    for k, column in enumerate(fields["effort"].T):
        known = np.isfinite(column)
        order = np.argsort(at[known], kind="stable")
        if known.any():
            tau[:, k] = np.interp(t, at[known][order], column[known][order], np.nan, np.nan)
    if np.isnan(tau).all():
        raise IdentificationError(
            f"{name}: topic {source.effort_topic} has no efforts at the times of the positions; record both "
            "together, on one clock"
        )
    return tau


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
    # Far beyond its limits in radians, within them in degrees: no other reading is possible.
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
