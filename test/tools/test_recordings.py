# SPDX-License-Identifier: Apache-2.0
"""Recordings from bags and tables, also of drives with units of their own: written, and read."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_files import COMMAND, JOINT_STATE, SETPOINT, START, STORE, header, joint_state, read_bag, setpoint, write_bag
from excited import motion
from own_drives import with_drives

import eom_dynamics as eom
from eom_dynamics import load_robot
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.arrays import Array
from eom_dynamics.elastic import DriveState
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.identification import IdentificationError
from eom_dynamics.recordings import Conventions, MotorSource, Sampling, Source
from eom_dynamics.recordings.bags import Bag, BagError
from eom_dynamics.recordings.fitted_motion import FitFigures, read_setpoints
from eom_dynamics.recordings.joint_recordings import read_recording
from eom_dynamics.recordings.sides import read_sides
from eom_dynamics.recordings.streams import Refusals
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.options import CommandOptions
from eom_dynamics.tools.replay.bag import Job, replay_bag
from eom_dynamics.tools.report import read_records
from eom_dynamics.trajectory import Cosine

ROBOT = load_robot("planar_2r")
NAMES = ROBOT.joint_names
T = np.arange(200) / 100
Q, QD, _ = motion(2, T)
TAU = np.cos(Q) + QD


def stamps() -> list[int]:
    return [START + round(1e9 * t) for t in T]


def bag(path: Path, names: Sequence[str] = NAMES, q: np.ndarray = Q, tau: np.ndarray | None = TAU) -> Path:
    efforts = [()] * len(T) if tau is None else tau
    messages = [(s, joint_state(s, names, *row)) for s, *row in zip(stamps(), q, efforts, strict=True)]
    return write_bag(path / "bag", {"/joint_states": (JOINT_STATE, messages)})


def test_names_of_the_robot_for_those_of_a_recording(tmp_path: Path) -> None:
    path = bag(tmp_path, ["arm_2", "arm_1"], Q[:, ::-1], TAU[:, ::-1])
    with pytest.raises(IdentificationError, match=r"arm_2.*arm_1.*rename.*--rename.*'\^arm_=joint_'"):
        read_recording(path, ROBOT)
    conventions = Conventions(rename=(("^arm_", "joint_"),), effort_scale=((None, 2.0),))
    found = read_recording(path, ROBOT, Source(conventions=conventions))
    np.testing.assert_array_equal([found.q, found.tau], [Q, 2 * TAU])
    assert found.notes == ()


def test_a_recording_of_fewer_joints_is_that_of_another_robot(tmp_path: Path) -> None:
    path, remedy = bag(tmp_path), "the robot has 7 joints, the recording 2"
    with pytest.raises(IdentificationError, match=remedy):
        read_recording(path, eom.load_robot("iiwa"))
    with pytest.raises(BagError, match=remedy):
        replay_bag(Job(path, tmp_path / "out", "iiwa"))


def test_two_joints_do_not_get_one_name(tmp_path: Path) -> None:
    """By patterns, or in the recording: the last joint would count."""
    path, merging = bag(tmp_path, ["left_joint_1", "joint_1"]), Conventions(rename=(("^left_", ""),))
    for read in (
        lambda: read_recording(path, ROBOT, Source(conventions=merging)),
        lambda: read_records(path, ROBOT, merging),
        lambda: replay_bag(Job(path, tmp_path / "out", "planar_2r", sampling=Sampling(conventions=merging))),
    ):
        with pytest.raises(EomDynamicsError, match=r"--rename.*left_joint_1.*joint_1.*'joint_1'"):
            read()
    with pytest.raises(BagError, match=r"/joint_states.*messages"):
        read_recording(bag(tmp_path / "twice", ["joint_1", "joint_1"]), ROBOT)


def test_replay_and_efforts_of_another_topic_say_how_to_rename(tmp_path: Path) -> None:
    remedy = r"name another robot, or rename the joints: --rename '\^arm_=joint_'"
    path = bag(tmp_path, ["arm_1", "arm_2"])
    with pytest.raises(BagError, match=f"joint_states can be used: name: joint .* missing; name has .*; {remedy}"):
        replay_bag(Job(path, tmp_path / "out", "planar_2r"))
    rows = [(t, setpoint(t, ["arm_1", "arm_2"], np.zeros((5, 2)))) for t in stamps()]
    path = write_bag(tmp_path / "setpoints", {"/setpoint": (SETPOINT, rows)})
    with pytest.raises(BagError, match=f"the robot has no joint 'arm_1'; it has joint_1, joint_2; {remedy}"):
        replay_bag(Job(path, tmp_path / "out", "planar_2r"))
    links, others = (
        [(t, joint_state(t, names, [0, 0], [1, 1])) for t in stamps()] for names in (NAMES, ["arm_1", "arm_2"])
    )
    path = write_bag(tmp_path / "efforts", {"/joint_states": (JOINT_STATE, links), "/torques": (JOINT_STATE, others)})
    with pytest.raises(IdentificationError, match=f"/torques lacks all joints .* it has arm_1, arm_2; {remedy}"):
        read_recording(path, ROBOT, Source("/joint_states", "/torques"))


def test_missing_and_other_joints(tmp_path: Path) -> None:
    """A joint that was not recorded is refused, unless an option names it as locked."""
    path = bag(tmp_path, ["other", NAMES[0]], Q[:, ::-1], TAU[:, ::-1])
    lacks = r"bag: joint_2 of the robot was not recorded; it has other; rename .*; or give .*, --locked joint_2=X"
    for read in (read_recording, read_sides):
        with pytest.raises(IdentificationError, match=lacks):
            read(path, ROBOT)
    for locked in (("joint_2", 0.5), (None, 0.5)):
        found = read_recording(path, ROBOT, Source(locked=(locked,)))
        np.testing.assert_array_equal([found.q[:, 0], found.tau[:, 0]], [Q[:, 0], TAU[:, 0]])
        assert found.notes == ("joint_2 is locked at 0.5",)
        assert np.all(found.q[:, 1] == 0.5) and np.isnan(found.tau[:, 1]).all()
    with pytest.raises(EomDynamicsError, match=r"--locked.*robot.*planar_2r.*'elbow'"):
        read_recording(path, ROBOT, Source(locked=(("elbow", 0.0),)))


def test_a_column_of_no_joint_is_named_where_the_motor_of_a_joint_is_missing(tmp_path: Path) -> None:
    path, names = tmp_path / "run.csv", "position.joint_1,position.joint_2,motor_position.joint_1,motor_position.joint2"
    np.savetxt(path, np.column_stack([T, Q, Q]), delimiter=",", header=f"t,{names}", comments="")
    found = read_sides(path, ROBOT).motors
    assert found is not None
    assert found.notes[-1] == "joint2: no joint of the robot; if joint_2 is meant: --rename joint2=joint_2"


def test_degrees(tmp_path: Path) -> None:
    robot = load_robot("ur5e")
    q, _, _ = motion(6, T)
    q = 0.5 * q
    path = bag(tmp_path, robot.joint_names, np.degrees(q), q)
    found = read_recording(path, robot)
    np.testing.assert_allclose(found.q, q)
    assert found.notes[0].startswith("positions are in degrees, since ")
    assert found.notes[0].endswith(" are beyond their limits otherwise; converted")
    kept = read_recording(path, robot, Source(position_unit="rad"))
    np.testing.assert_array_equal(kept.q, np.degrees(q))
    # Some motion beyond the limits of a file is no proof of degrees.
    beyond = tmp_path / "beyond"
    beyond.mkdir()
    assert read_recording(bag(beyond, robot.joint_names, 5 * q, q), robot).notes == ()
    (note,) = read_recording(bag(tmp_path / "far", robot.joint_names, 2e3 * q, q), robot).notes
    assert note.endswith("moves far beyond its limits; check its unit and the robot's file")


def test_efforts_of_another_topic(tmp_path: Path) -> None:
    fields = {name: np.zeros(0) for name, _ in STORE.fielddefs[COMMAND][1]}
    fields |= {"held": False, "status": 0, "command_lead": 0.0, "joint_names": [*NAMES], "motor_names": [*NAMES]}
    fields |= {"drive_side": np.zeros(0, np.uint8)}

    def message(s: int, row: np.ndarray) -> object:
        return STORE.types[COMMAND](**fields | {"header": header(s), "motor_effort": row})

    positions = [(s, joint_state(s, NAMES, row)) for s, row in zip(stamps(), Q, strict=True)]
    efforts = [(s, message(s, row)) for s, row in zip(stamps(), TAU, strict=True)]
    path = write_bag(
        tmp_path / "bag", {"/joint_states": (JOINT_STATE, positions), "/feedforward": (COMMAND, efforts[::2])}
    )
    assert np.isnan(read_recording(path, ROBOT).tau).all()
    found = read_recording(path, ROBOT, Source(effort_topic="feedforward"))
    np.testing.assert_allclose(found.tau[:-1], TAU[:-1], atol=2e-2)  # interpolated
    np.testing.assert_array_equal(found.tau[::2], TAU[::2])
    assert np.isnan(found.tau[-1]).all()  # after the last of them
    assert found.source == "positions of /joint_states, efforts of /feedforward"
    with pytest.raises(EomDynamicsError, match=r"nothing.*/feedforward"):
        read_recording(path, ROBOT, Source(effort_topic="nothing"))


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet", "timestamps"])
def test_tables(kind: str, tmp_path: Path) -> None:
    columns = {"time": np.round(1e9 * T).astype("datetime64[ns]") if kind == "timestamps" else T}
    for k, name in enumerate(NAMES):
        columns |= {f"position.{name}": Q[:, k], f"qd.{name}": QD[:, k], f"effort.{name}": TAU[:, k]}
    path = tmp_path / f"run.{kind if kind in ('csv', 'npz') else 'parquet'}"
    if kind == "npz":
        np.savez(path, **columns)
    elif kind == "csv":
        np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    else:
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        import pyarrow.parquet as parquet

        parquet.write_table(pa.table(columns), path)
    found = read_recording(path, ROBOT)
    np.testing.assert_allclose(found.t, T, atol=1e-9)
    np.testing.assert_allclose([found.q, found.qd, found.tau], [Q, QD, TAU])
    assert found.source == "positions of position.NAME, efforts of effort.NAME"


SAME_NAME = r"has columns of the same name: .*; remove one of each"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "position.joint_1\n1\n",
            "has no column t or time; it has position.joint_1; name it: --column time=COLUMN:UNIT",
        ),
        (",".join(c * 100_000 for c in "abc") + "\n1,2,3\n", "has no column t or time"),
        ({}, "has no arrays of numbers; it has nothing"),
        ({"t": T, "q": Q}, r"has no columns position.NAME; it has .*--column 'position.\{joint\}=q\[\{k\}\]'"),
        ("t,q1\n0,1\n", r"has no columns position.NAME; it has t, q1; name them: --column 'position.\{joint\}=COLUMN"),
        ("0,1\n1,2\n", "the first line must name the columns"),
        ("t,q.joint_1,q.joint_1\n0,1,1\n", SAME_NAME),
        ("t,q.joint_1,position.joint_1\n0,1,1\n", SAME_NAME),
        ("t,q.joint_1,time\n0,1,1\n", SAME_NAME),
        ("t,q.joint_1\n0,x\n", "line 2 must have 2 numbers, separated by commas, as the first line, is '0,x'"),
        ("t,q.joint_1\n0\n", "line 2 must have 2 numbers, .* is '0': correct it, or remove it"),
        ("t,q.joint_1\n0,1\n0.1", "line 3 must have 2 numbers, .* is '0.1': correct it, or remove it"),
        (
            "t,q.other\n0,1\n",
            r"table lacks all joints of the robot \(joint_1, joint_2\); it has other; .* --rename PATTERN=",
        ),
    ],
)
def test_bad_tables(text: str | dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / ("run.csv" if isinstance(text, str) else "run.npz")
    path.write_text(text) if isinstance(text, str) else np.savez(path, **text)
    with pytest.raises(IdentificationError, match=message) as error:
        read_recording(path, ROBOT)
    assert len(str(error.value)) < 1000, "without long names"


def test_folders_of_bags_name_those_in_them(tmp_path: Path) -> None:
    bag(tmp_path)
    (tmp_path / "run.csv").touch()
    for path in (tmp_path, tmp_path / "run.log"):
        path.exists() or path.touch()
        with pytest.raises(EomDynamicsError, match="table"):
            read_recording(path, ROBOT)


def test_bag_without_joint_states(tmp_path: Path) -> None:
    text = STORE.types["std_msgs/msg/String"](data="x")
    path = write_bag(tmp_path / "bag", {"/talk": ("std_msgs/msg/String", [(START, text)])})
    with pytest.raises(EomDynamicsError, match=r"topic.*sensor_msgs/msg/JointState.*/talk"):
        read_recording(path, ROBOT)


# Rigid: its motors move with its links, so commanded efforts are completed without an error.
PLANAR = eom.load_robot("planar_2r")
JOINTS = tuple(replace(joint, spring=RIGID) for joint in PLANAR.joints)
DRIVEN = with_drives(replace(PLANAR, joints=JOINTS), "gravity", "coriolis", "friction")
ARM = eom.ElasticArm(DRIVEN)
TIMES = np.arange(0.0, 0.3, 0.005)
X = [np.ascontiguousarray(x) for x in Cosine([0.3, 0.2], [2.0, 1.7]).derivatives(TIMES, 4)]
WANTED = ARM.feedforward(*X)
SENT = ARM.drive_command(WANTED, *X[:3])
REPORTED = ARM.drive_report(DriveState(WANTED.motor_position, WANTED.motor_velocity, WANTED.motor_effort))


def nanoseconds(t: float) -> int:
    return 10**9 + round(t * 1e9)


def sent(path: Path, states: Sequence[Sequence[Array]]) -> Path:
    """A bag of setpoints."""
    stamps = [nanoseconds(0.005 * k) for k in range(len(states))]
    messages = [(t, setpoint(t, DRIVEN.joint_names, x)) for t, x in zip(stamps, states, strict=True)]
    return write_bag(path, {"/setpoint": (SETPOINT, messages)})


@pytest.fixture
def replay(tmp_path: Path) -> list[str]:
    bag = sent(tmp_path / "bag", [*zip(*X, strict=True)])
    (tmp_path / "arm.yaml").write_text(robot_as_yaml(DRIVEN).text, encoding="utf-8")
    return ["replay", str(bag), "--robot", str(tmp_path / "arm.yaml")]


def test_replay_writes_what_the_node_sends(replay: list[str], tmp_path: Path) -> None:
    assert main([*replay, "-o", str(tmp_path / "out")]) == 0
    found = read_bag(tmp_path / "out")
    topics = {"/feedforward": {"motor_effort": WANTED.motor_effort}, "/effort_command": {"data": SENT.effort}}
    topics["/motor_setpoint"] = {field: getattr(SENT, field) for field in ("position", "velocity", "effort")}
    for topic, fields in topics.items():
        for field, values in fields.items():
            rows = [getattr(message, field) for _, message in found[topic]]
            np.testing.assert_array_equal(rows, values, err_msg=f"{topic} {field}")


def test_replay_refuses_numbers_that_drives_cannot_take(replay: list[str], tmp_path: Path) -> None:
    x = [np.array([0.3, 1e305]), *np.zeros((4, 2))]
    assert np.isfinite(ARM.feedforward(*x)).all()
    bag = sent(tmp_path / "huge", [np.zeros((5, 2)), x, np.zeros((5, 2))])
    report = replay_bag(Job(bag, tmp_path / "out", replay[3], options=CommandOptions(safety="off")))
    assert report.refusals.reasons == {"numbers too large: drive_position of motor 'joint_2' would be inf": 1}
    for topic, fields in (("/motor_setpoint", ("position", "velocity", "effort")), ("/effort_command", ("data",))):
        found = [message for _, message in read_bag(tmp_path / "out")[topic]]
        assert len(found) == 2 and all(np.isfinite(getattr(message, x)).all() for message in found for x in fields)


def test_commands_are_no_measurements(replay: list[str], tmp_path: Path) -> None:
    """Commands of the node, in a bag or a table, and by default other commands; efforts may be commands."""
    for name in ("out", "out.parquet"):
        assert main([*replay, "-o", str(tmp_path / name)]) == 0
    told = "/motor_setpoint has commands, not measurements; record joint_states, or name .*, {}; it has /effort_command"
    for source, motors, option in (
        (Source(), MotorSource(), "--topic"),
        (Source("motor_setpoint"), MotorSource(), "--topic"),
        (Source(), MotorSource("motor_setpoint"), "--motor-topic"),
    ):
        with pytest.raises(BagError, match=told.format(option)):
            read_sides(tmp_path / "out", DRIVEN, source, motors)
    with pytest.raises(IdentificationError, match="measurements"):
        read_sides(tmp_path / "out.parquet", DRIVEN)
    other = recorded(tmp_path / "other", "/joint_commands", *WANTED[3:6])
    with pytest.raises(BagError, match="/joint_commands has commands"):
        read_sides(other, DRIVEN)
    assert read_sides(other, DRIVEN, Source("joint_commands")).source.endswith("efforts of /joint_commands")


def recorded(path: Path, topic: str, *numbers: Array, names: Sequence[str] = DRIVEN.joint_names) -> Path:
    return write_bag(path, {topic: states(*numbers, names=names)})


def states(position: Array, velocity: Array, effort: Array, names: Sequence[str] = DRIVEN.joint_names) -> Any:
    rows = zip(map(nanoseconds, TIMES.tolist()), position, velocity, effort, strict=True)
    return JOINT_STATE, [(t, replace(joint_state(t, names, q, tau), velocity=qd)) for t, q, qd, tau in rows]


@pytest.mark.parametrize("topic", ["motor_setpoint", "motor_states"])
def test_identification_reads_whole_efforts_in_si_units(topic: str, tmp_path: Path) -> None:
    """Commanded efforts lack the robot's own efforts, measured efforts do not; both in drive units."""
    topics = {"/motor_states": states(*REPORTED), "/motor_setpoint": states(*SENT[:3])}
    recording = read_recording(write_bag(tmp_path / "bag", topics), DRIVEN, Source(effort_topic=topic))
    np.testing.assert_allclose(recording.q, X[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(recording.qd, X[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(recording.tau, WANTED.motor_effort, rtol=0, atol=1e-10)


def test_motors_are_replayed_in_si_units(tmp_path: Path) -> None:
    batches = []
    for topic, numbers in (("/motor_setpoint", SENT[:3]), ("/joint_states", WANTED[3:6])):
        with Bag(recorded(tmp_path / topic[1:], topic, *numbers)) as bag:
            batches += read_setpoints(bag, bag.topics[0], DRIVEN, Sampling(), Refusals(), FitFigures(2))
    motors, links = batches
    np.testing.assert_allclose(motors.values["position"], links.values["position"], rtol=0, atol=1e-12)


def test_motors_that_are_missing_or_named_otherwise(tmp_path: Path) -> None:
    """One of two motors, with the other locked, and motors with another prefix, which is removed."""
    lone = recorded(tmp_path / "lone", "/motor_states", *(x[:, 1:] for x in REPORTED), names=DRIVEN.joint_names[1:])
    recording = read_recording(lone, DRIVEN, Source("/motor_states", locked=((None, 0.0),)))
    np.testing.assert_allclose(recording.q, X[0] * [0.0, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(recording.tau[:, 1], WANTED.motor_effort[:, 1], rtol=0, atol=1e-10)
    left = recorded(tmp_path / "left", "/motor_states", *REPORTED, names=[f"left_{x}" for x in DRIVEN.joint_names])
    recording = read_recording(left, DRIVEN, Source("/motor_states", conventions=Conventions(rename=(("^left_", ""),))))
    np.testing.assert_allclose(recording.tau, WANTED.motor_effort, rtol=0, atol=1e-10)


def test_sent_efforts_at_unknown_positions_are_unknown(tmp_path: Path) -> None:
    """The robot's own efforts there are unknown; drives have a position offset, so that zero is not a position."""
    position = SENT.position.copy()
    position[3, 1] = np.nan
    (record,) = read_records(recorded(tmp_path / "nan", "/motor_setpoint", position, *SENT[1:3]), DRIVEN)
    effort = record.motors.values["motor_effort"]
    assert np.isnan(effort[3]).all()
    effort, position = (np.delete(x, 3, axis=0) for x in (effort, record.motors.values["motor_position"]))
    np.testing.assert_allclose(effort, np.delete(WANTED.motor_effort, 3, axis=0), rtol=0, atol=1e-10)
    np.testing.assert_allclose(position, np.delete(X[0], 3, axis=0), rtol=0, atol=1e-12)
    none = np.zeros((len(TIMES), 0))
    (record,) = read_records(recorded(tmp_path / "none", "/motor_setpoint", none, none, SENT.effort), DRIVEN)
    assert np.isnan(record.motors.values["motor_effort"]).all()
    read_records(recorded(tmp_path / "empty", "/motor_setpoint", none, none, none), DRIVEN)


def test_motors_of_a_named_topic_are_in_the_units_of_drives(tmp_path: Path) -> None:
    """Whatever its name; currents are A, also on the topic of the motors."""
    bag = recorded(tmp_path / "bag", "/drives", *REPORTED)
    sides = read_sides(bag, DRIVEN, motors=MotorSource("/drives", current_topic="/drives"))
    np.testing.assert_allclose(sides.motors.q, X[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sides.motors.tau, WANTED.motor_effort, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(sides.currents.tau, REPORTED.motor_effort)
