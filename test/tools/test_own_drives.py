# SPDX-License-Identifier: Apache-2.0
"""Bags of a robot that adds efforts itself, and whose drives have units of their own: written, and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="reads bags")

from bag_files import JOINT_STATE, SETPOINT, joint_state, read_bag, setpoint, write_bag
from own_drives import with_drives

import eom_dynamics as eom
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.arrays import Array
from eom_dynamics.bags import Bag
from eom_dynamics.elastic import DriveState
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.identify.read import read_recording
from eom_dynamics.tools.identify.sides import read_sides
from eom_dynamics.tools.recording_options import MotorSource, Sampling, Source
from eom_dynamics.tools.replay.batch import Refusals
from eom_dynamics.tools.replay.job import Job
from eom_dynamics.tools.replay.joint_states import FitFigures
from eom_dynamics.tools.replay.one import replay_bag
from eom_dynamics.tools.replay.sources import read_setpoints
from eom_dynamics.tools.report.read import read_records
from eom_dynamics.trajectory import Cosine

# Rigid: its motors are where its links are, so that what was sent is made whole without an error.
PLANAR = eom.load_robot("planar_2r")
JOINTS = tuple(replace(joint, spring=RIGID) for joint in PLANAR.joints)
ROBOT = with_drives(replace(PLANAR, joints=JOINTS), "gravity", "coriolis", "friction")
ARM = eom.ElasticArm(ROBOT)
TIMES = np.arange(0.0, 0.3, 0.005)
X = [np.ascontiguousarray(x) for x in Cosine([0.3, 0.2], [2.0, 1.7]).derivatives(TIMES, 4)]
COMMAND = ARM.feedforward(*X)
SENT = ARM.drive_command(COMMAND, *X[:3])
REPORTED = ARM.drive_report(DriveState(COMMAND.motor_position, COMMAND.motor_velocity, COMMAND.motor_effort))


def nanoseconds(t: float) -> int:
    return 10**9 + round(t * 1e9)


def sent(path: Path, states: Sequence[Sequence[Array]]) -> Path:
    """A bag of setpoints."""
    stamps = [nanoseconds(0.005 * k) for k in range(len(states))]
    messages = [(t, setpoint(t, ROBOT.joint_names, x)) for t, x in zip(stamps, states, strict=True)]
    return write_bag(path, {"/setpoint": (SETPOINT, messages)})


@pytest.fixture
def replay(tmp_path: Path) -> list[str]:
    bag = sent(tmp_path / "bag", [*zip(*X, strict=True)])
    (tmp_path / "arm.yaml").write_text(robot_as_yaml(ROBOT).text, encoding="utf-8")
    return ["replay", str(bag), "--robot", str(tmp_path / "arm.yaml"), "--command-lead", "0"]


def test_tables_are_in_si_units(replay: list[str], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    output = tmp_path / "table.parquet"
    assert main([*replay, "-o", str(output)]) == 0
    table = parquet.read_table(output)
    for name in ("motor_position", "motor_effort"):
        columns = [table[f"{name}.{motor}"].to_numpy() for motor in ARM.motor_names]
        np.testing.assert_array_equal(np.transpose(columns), getattr(COMMAND, name))


def test_replay_writes_what_the_node_sends(replay: list[str], tmp_path: Path) -> None:
    for entries, effort in (("motor", SENT.effort), ("joint", SENT.joint_effort)):
        output = tmp_path / entries
        assert main([*replay, "--effort-command", entries, "-o", str(output)]) == 0
        found = read_bag(output)
        topics = {"/feedforward": {"motor_effort": COMMAND.motor_effort}, "/effort_command": {"data": effort}}
        topics["/motor_setpoint"] = {field: getattr(SENT, field) for field in ("position", "velocity", "effort")}
        for topic, fields in topics.items():
            for field, values in fields.items():
                rows = [getattr(message, field) for _, message in found[topic]]
                np.testing.assert_array_equal(rows, values, err_msg=f"{topic} {field}")


def test_replay_refuses_numbers_that_drives_cannot_take(replay: list[str], tmp_path: Path) -> None:
    x = [np.array([0.3, 1e305]), *np.zeros((4, 2))]
    assert np.isfinite(ARM.feedforward(*x)).all()
    bag = sent(tmp_path / "huge", [np.zeros((5, 2)), x, np.zeros((5, 2))])
    report = replay_bag(Job(bag, tmp_path / "out", replay[3]))
    assert report.refusals.reasons == {"numbers too large: drive_position of motor 'joint_2' would be inf": 1}
    for topic, fields in (("/motor_setpoint", ("position", "velocity", "effort")), ("/effort_command", ("data",))):
        found = [message for _, message in read_bag(tmp_path / "out")[topic]]
        assert len(found) == 2 and all(np.isfinite(getattr(message, x)).all() for message in found for x in fields)


def recorded(
    path: Path, topic: str, position: Array, velocity: Array, effort: Array, names: Sequence[str] = ROBOT.joint_names
) -> Path:
    rows = zip(map(nanoseconds, TIMES.tolist()), position, velocity, effort, strict=True)
    messages = [(t, replace(joint_state(t, names, q, tau), velocity=qd)) for t, q, qd, tau in rows]
    return write_bag(path, {topic: (JOINT_STATE, messages)})


@pytest.mark.parametrize("topic", ["motor_setpoint", "motor_states"])
def test_identification_reads_whole_efforts_in_si_units(topic: str, tmp_path: Path) -> None:
    """Those that were sent lack what the robot adds, those that were measured do not; both in the units of drives."""
    bag = recorded(tmp_path / "bag", f"/{topic}", *(SENT[:3] if topic == "motor_setpoint" else REPORTED))
    recording = read_recording(bag, ROBOT, Source(f"/{topic}"))
    np.testing.assert_allclose(recording.q, X[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(recording.qd, X[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(recording.tau, COMMAND.motor_effort, rtol=0, atol=1e-10)


def test_motors_are_replayed_in_si_units(tmp_path: Path) -> None:
    batches = []
    for topic, numbers in (("/motor_setpoint", SENT[:3]), ("/joint_states", COMMAND[3:6])):
        with Bag(recorded(tmp_path / topic[1:], topic, *numbers)) as bag:
            batches += read_setpoints(bag, bag.topics[0], ROBOT, Sampling(), Refusals(), FitFigures(2))
    motors, links = batches
    np.testing.assert_allclose(motors.fields["position"], links.fields["position"], rtol=0, atol=1e-12)


def test_motors_that_are_missing_or_named_otherwise(tmp_path: Path) -> None:
    """One of two motors, as the other at rest, and motors with another prefix, which are matched to the joints."""
    lone = recorded(tmp_path / "lone", "/motor_states", *(x[:, 1:] for x in REPORTED), names=ROBOT.joint_names[1:])
    recording = read_recording(lone, ROBOT, Source("/motor_states"))
    np.testing.assert_allclose(recording.q, X[0] * [0.0, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(recording.tau[:, 1], COMMAND.motor_effort[:, 1], rtol=0, atol=1e-10)
    left = recorded(tmp_path / "left", "/motor_states", *REPORTED, names=[f"left_{x}" for x in ROBOT.joint_names])
    recording = read_recording(left, ROBOT, Source("/motor_states"))
    np.testing.assert_allclose(recording.tau, COMMAND.motor_effort, rtol=0, atol=1e-10)


def test_sent_efforts_at_unknown_positions_are_unknown(tmp_path: Path) -> None:
    """What the robot adds there is; positions of the drives have an offset, so that zero is no position either."""
    position = SENT.position.copy()
    position[3, 1] = np.nan
    (record,) = read_records(recorded(tmp_path / "nan", "/motor_setpoint", position, *SENT[1:3]), ROBOT)
    effort = record.motors.values["motor_effort"]
    assert np.isnan(effort[3]).all()
    effort, position = (np.delete(x, 3, axis=0) for x in (effort, record.motors.values["motor_position"]))
    np.testing.assert_allclose(effort, np.delete(COMMAND.motor_effort, 3, axis=0), rtol=0, atol=1e-10)
    np.testing.assert_allclose(position, np.delete(X[0], 3, axis=0), rtol=0, atol=1e-12)
    none = np.zeros((len(TIMES), 0))
    (record,) = read_records(recorded(tmp_path / "none", "/motor_setpoint", none, none, SENT.effort), ROBOT)
    assert np.isnan(record.motors.values["motor_effort"]).all()
    read_records(recorded(tmp_path / "empty", "/motor_setpoint", none, none, none), ROBOT)


def test_motors_of_a_named_topic_are_in_the_units_of_drives(tmp_path: Path) -> None:
    """Whatever its name; currents are A, also on the topic of the motors."""
    bag = recorded(tmp_path / "bag", "/drives", *REPORTED)
    sides = read_sides(bag, ROBOT, motors=MotorSource("/drives", current_topic="/drives"))
    np.testing.assert_allclose(sides.motors.q, X[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sides.motors.tau, COMMAND.motor_effort, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(sides.currents.tau, REPORTED.motor_effort)
