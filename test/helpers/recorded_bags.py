# SPDX-License-Identifier: Apache-2.0
"""Bags of the node's topics, written by rosbags, and records with the same contents."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="reads bags")

import bag_files
from bag_files import COMMAND, JOINT_STATE, SETPOINT, START, STORE, header
from bag_files import FIELDS as MOTION

import eom_dynamics as eom
from eom_dynamics.recordings.streams import Stream
from eom_dynamics.tools.report import Record
from eom_dynamics.trajectory import paper_motion

DELAY, LATENCY = 70_000, 400_000
"""From a stamp to the recording of its setpoint, and from there to the recording of its command, ns."""

NOISE = 2e-3  # alternating noise of measured positions, rad or m

OFFSET = 0.5  # offset of measured efforts, N m or N

Messages = list[tuple[int, dict[str, Any]]]  # times of recording, ns, and fields


def record(robot_name: str = "panda", count: int = 500, rate: float = 500.0, name: str = "run") -> Record:
    """Make a record of a robot on the paper's motion, as :func:`write_bag` writes it."""
    robot = eom.load_robot(robot_name)
    since = np.round(np.arange(count) * 1e9 / rate).astype(np.int64)
    stamp = START + since
    states = paper_motion(robot.n).derivatives(since * 1e-9)
    command = eom.ElasticArm(robot).feedforward(*states)
    every = slice(None, None, 5)
    sign = np.where(np.arange(len(stamp[every])) % 2, 1.0, -1.0)[:, np.newaxis]
    names, taken = robot.joint_names, stamp + DELAY

    def stream(topic: str, recorded: Any, values: Mapping[str, Any], rows: slice = slice(None)) -> Stream:
        return Stream(topic, stamp[rows], recorded[rows], names, values)

    efforts = {"effort": command.tau, "effort_rate": command.taud, "effort_acceleration": command.taudd}
    motors = dict(zip(command._fields[3:], command[3:], strict=True))
    measured = {
        "position": states[0][every] + sign * NOISE,
        "velocity": states[1][every],
        "effort": command.tau[every] + OFFSET,
    }
    return Record(
        name,
        robot,
        stream("/setpoint", taken, dict(zip(MOTION, states, strict=True))),
        stream("/feedforward", taken + LATENCY, efforts),
        stream("/feedforward", taken + LATENCY, motors),
        stream("/joint_states", taken, measured, every),
    )


def write_bag(path: Path, contents: Record, *, without: Iterable[str] = (), status: Sequence[int] = ()) -> Path:
    """Write a record as a bag, without the streams ``without``, and with ``status`` of the first commands."""
    return write_bags(path, {"": contents}, without=without, status=status)


def write_bags(
    path: Path, contents: Mapping[str, Record], *, without: Iterable[str] = (), status: Sequence[int] = ()
) -> Path:
    """Write records as one bag, by namespace."""
    topics = {
        f"{namespace}{topic}": (kind, [(recorded, STORE.types[kind](**fields)) for recorded, fields in messages])
        for namespace, of_one in contents.items()
        for topic, kind, messages in _topics(of_one, set(without), status)
    }
    return bag_files.write_bag(path, topics, "sqlite3")


def _topics(
    contents: Record, without: set[str], status: Sequence[int]
) -> Iterable[tuple[str, str, list[tuple[int, dict[str, Any]]]]]:
    if contents.setpoint and "setpoint" not in without:
        optional = [name for name, _ in STORE.fielddefs[SETPOINT][1] if name not in ("header", "joint_names")]
        fixed = {name: [] if name.startswith("wrench") else np.zeros(0) for name in optional}
        yield "/setpoint", SETPOINT, _messages(contents.setpoint, "joint_names", fixed)
    if contents.command and contents.motors and "command" not in without:
        motors = contents.motors
        fixed = {"held": False, "status": 0, "command_lead": 0.0, "motor_names": list(motors.names)}
        rows = _messages(contents.command, "joint_names", fixed)
        for k, (_, fields) in enumerate(rows):
            fields["status"] = status[k] if k < len(status) else 0
            fields["held"] = fields["status"] > 0
            fields.update({name: values[k] for name, values in motors.values.items()})
        yield "/feedforward", COMMAND, rows
    if contents.motors and "motors" not in without:
        motors = contents.motors
        fields = {"position": "motor_position", "velocity": "motor_velocity", "effort": "motor_effort"}
        named = {own: motors.values[theirs] for own, theirs in fields.items()}
        setpoint = Stream("", motors.stamp, motors.recorded, motors.names, named)
        yield "/motor_setpoint", JOINT_STATE, _messages(setpoint, "name", {})
    if contents.measured and "measured" not in without:
        yield "/joint_states", JOINT_STATE, _messages(contents.measured, "name", {})


def _messages(stream: Stream, names: str, fixed: Mapping[str, Any]) -> Messages:
    def fields(k: int) -> dict[str, Any]:
        values = {name: np.ascontiguousarray(x[k]) for name, x in stream.values.items()}
        return {"header": header(int(stream.stamp[k])), names: list(stream.names), **fixed, **values}

    return [(int(stream.recorded[k]), fields(k)) for k in range(len(stream))]
