# SPDX-License-Identifier: Apache-2.0
"""Bags of the node's topics, written by rosbags, and records with the same contents."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="reads bags")

import bag_files
from bag_files import COMMAND, JOINT_STATE, SETPOINT, START
from bag_files import FIELDS as MOTION

import eom_dynamics as eom
from eom_dynamics.recordings.bags.types import serialized
from eom_dynamics.recordings.streams import Stream
from eom_dynamics.tools.report import Record
from eom_dynamics.trajectory import paper_motion

DELAY, LATENCY = 70_000, 400_000
"""Times from a stamp to the recording of its setpoint, and from there to the recording of its command, ns."""

NOISE = 2e-3  # alternating noise of measured positions, rad or m

OFFSET = 0.5  # offset of measured efforts, N m or N


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


def write_bag(path: Path, contents: Record, *, without: Iterable[str] = ()) -> Path:
    """Write a record as a bag, without the streams ``without``."""
    return write_bags(path, {"": contents}, without=without)


def write_bags(path: Path, contents: Mapping[str, Record], *, without: Iterable[str] = ()) -> Path:
    """Write records to a single bag, by namespace."""
    topics = {
        f"{namespace}{topic}": (kind, messages)
        for namespace, of_one in contents.items()
        for topic, kind, messages in _topics(of_one, set(without))
    }
    return bag_files.write_bag(path, topics, "sqlite3")


def _topics(contents: Record, without: set[str]) -> Iterable[tuple[str, str, list[tuple[int, bytes]]]]:
    motors = contents.motors
    if contents.setpoint and "setpoint" not in without:
        yield "/setpoint", SETPOINT, _messages(SETPOINT, contents.setpoint)
    if contents.command and motors and "command" not in without:
        both = replace(contents.command, values={**contents.command.values, **motors.values})
        yield "/feedforward", COMMAND, _messages(COMMAND, both, motor_names=motors.names)
    if motors and "motors" not in without:
        values = {name: motors.values[f"motor_{name}"] for name in ("position", "velocity", "effort")}
        yield "/motor_setpoint", JOINT_STATE, _messages(JOINT_STATE, replace(motors, values=values))
    if contents.measured and "measured" not in without:
        yield "/joint_states", JOINT_STATE, _messages(JOINT_STATE, contents.measured)


def _messages(kind: str, stream: Stream, **fixed: Any) -> list[tuple[int, bytes]]:
    """Times of recording, ns, and serialized messages."""
    fixed["name" if kind == JOINT_STATE else "joint_names"] = stream.names
    rows = [dict(zip(stream.values, row, strict=True)) for row in zip(*stream.values.values(), strict=True)]
    stamps = [dict(zip(("sec", "nanosec"), divmod(int(stamp), 10**9), strict=True)) for stamp in stream.stamp]
    return [
        (int(time), serialized(kind, header={"stamp": stamp}, **fixed, **row))
        for time, stamp, row in zip(stream.recorded, stamps, rows, strict=True)
    ]
