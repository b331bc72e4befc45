# SPDX-License-Identifier: Apache-2.0
"""Setpoints of a bag: the commands equal the node's, message by message, by the conventions of the recording."""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bag_files import (
    DEFINITIONS,
    JOINT_STATE,
    SETPOINT,
    START,
    STEP,
    STORE,
    file_of,
    joint_state,
    read_bag,
    robot_file,
    setpoint,
    setpoints,
    store,
    wrenches,
    write_bag,
)
from urdf_arms import urdf_arm

from eom_dynamics import Dynamics, ElasticArm, load_robot
from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.exceptions import EomDynamicsError, LimitError, RobotDescriptionError, StateError
from eom_dynamics.recordings import Conventions, Sampling
from eom_dynamics.recordings.bags import BagError
from eom_dynamics.recordings.streams import Refusals
from eom_dynamics.tools.options import CommandOptions, node_parameter
from eom_dynamics.tools.replay.bag import Job, Report, replay_bag
from eom_dynamics.tools.report import read_records
from eom_dynamics.tools.writing import FolderError
from eom_dynamics.trajectory import paper_motion

ROBOT = load_robot("planar_2r")
PAYLOAD = "eom_dynamics/msg/Payload"
INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
NAMES = list(ROBOT.joint_names)
STATES = np.array(paper_motion(2).derivatives(np.arange(120) * 1e-3))

# Compiled code for many states rounds differently from code for one state; numbers are up to some 100 N m/s².
CLOSE = {"rtol": 1e-12, "atol": 1e-9}


PERMISSIVE = CommandOptions(safety="permissive")


def replayed(tmp_path: Path, messages, *, robot: str | None = "planar_2r", storage="mcap", **settings):
    bag = write_bag(tmp_path / "in", {"/arm/setpoint": (SETPOINT, messages)}, storage)
    report = replay_bag(Job(bag, tmp_path / "out", robot, **settings))
    return report, read_bag(tmp_path / "out")


@pytest.mark.parametrize(("storage", "kind"), [("mcap", "sqlite3"), ("sqlite3", "mcap")])
def test_commands_are_those_of_the_node_at_the_recorded_stamps(tmp_path: Path, storage: str, kind: str) -> None:
    messages = setpoints(NAMES, STATES)
    report, found = replayed(tmp_path, messages, storage=storage, format=kind)
    assert set(found) == {"/arm/feedforward", "/arm/motor_setpoint", "/arm/effort_command"}
    assert report.commands == len(messages) and report.refusals.total == 0 and report.topic == "/arm/setpoint"
    solver = SetpointEvaluator(ElasticArm(ROBOT))
    for k, (time, message) in enumerate(messages):
        expected = solver.evaluate(message).fields()
        (t, command), (t2, motor), (t3, effort) = (
            found[f"/arm/{name}"][k] for name in ("feedforward", "motor_setpoint", "effort_command")
        )
        assert t == t2 == t3 == time
        assert command.header == motor.header == message.header
        assert command.joint_names == command.motor_names == motor.name == NAMES and not command.held
        for name in COMMAND_FIELDS:
            np.testing.assert_allclose(getattr(command, name), expected[name], err_msg=name, **CLOSE)
        np.testing.assert_array_equal(motor.position, command.motor_position)
        np.testing.assert_array_equal(motor.velocity, command.motor_velocity)
        np.testing.assert_array_equal(motor.effort, command.motor_effort)
        np.testing.assert_array_equal(effort.data, command.motor_effort)


def payload(mass: float, blend_time: float = 0.0) -> object:
    com = STORE.types["geometry_msgs/msg/Vector3"](x=0.1, y=0.0, z=0.0)
    body = STORE.types["geometry_msgs/msg/Inertia"](m=mass, com=com, **dict.fromkeys(INERTIA, 0.0))
    return STORE.types[PAYLOAD](tool="", inertia=body, blend_time=blend_time)


def test_recorded_payloads_are_those_of_the_namespace(tmp_path: Path) -> None:
    """The arm is heavier while its tool carries a payload; refused payloads, and another arm's, do not count."""
    recorded = [(START + k * STEP, payload(mass)) for k, mass in {20: 0.5, 40: -1.0, 90: 0.0}.items()]
    topics = {
        "/arm/setpoint": (SETPOINT, setpoints(NAMES, STATES)),
        "/arm/payload": (PAYLOAD, recorded),
        "/other/payload": (PAYLOAD, [(START, payload(9.0))]),
    }
    report = replay_bag(Job(write_bag(tmp_path / "in", topics), tmp_path / "out", "planar_2r"))
    assert "payload: mass must not be negative, is -1 kg" in report.refusals.reasons
    efforts = np.array([found.effort for _, found in read_bag(tmp_path / "out")["/arm/feedforward"]])
    heavier = np.any(np.abs(efforts - ElasticArm(ROBOT).feedforward(*STATES).tau) > 1e-3, axis=1)
    assert np.flatnonzero(heavier).tolist() == list(range(21, 91))
    (shown,) = read_records(tmp_path / "in", ROBOT)
    np.testing.assert_array_equal(shown.command.values["effort"], efforts, err_msg="a report computes the same")


def test_refused_setpoints_are_counted_by_the_errors_of_the_node(tmp_path: Path) -> None:
    messages = setpoints(NAMES, STATES)

    def spoil(k: int, change) -> None:
        time, message = messages[k]
        messages[k] = (time, change(message))

    def with_nan(message):
        message.jerk[1] = np.nan
        return message

    spoil(10, with_nan)
    spoil(11, with_nan)
    spoil(20, lambda m: replace(m, joint_names=["joint_1", "elbow"]))
    spoil(30, lambda m: replace(m, velocity=np.zeros(3)))
    spoil(40, lambda m: replace(m, acceleration=np.full(2, 1e300)))
    spoil(50, lambda m: replace(m, wrench=wrenches(np.ones(12))))
    spoil(51, lambda m: replace(m, wrench_rate=wrenches([0, 0, 0, np.inf, 0, 0])))
    spoil(60, lambda m: b"\x00\x01\x00\x00noise")
    report, found = replayed(tmp_path, messages)
    assert report.commands == len(found["/arm/feedforward"]) == len(messages) - 8
    assert report.refusals.total == 8
    solver = SetpointEvaluator(ElasticArm(ROBOT))
    for k in (10, 20, 30, 40, 50, 51):
        with pytest.raises(StateError) as caught:
            solver.evaluate(messages[k][1])
        assert report.refusals.reasons[str(caught.value)] == (2 if k == 10 else 1)
        assert report.refusals.first[str(caught.value)] == START + k * STEP
    assert [reason for reason in report.refusals.reasons if "not a message of type" in reason]


VARIABLE = {"type": "variable", "lower": 50.0, "upper": 1e4, "nominal": 500.0}


def test_setpoints_of_an_unusable_stiffness_are_answered_with_the_last_good_command(tmp_path: Path) -> None:
    """A setpoint without a predecessor has no answer, nor does one with another fault."""
    messages = setpoints(NAMES, STATES[:, :6], stiffness=[np.nan, 600.0], stiffness_rate=[np.nan, 30.0])
    for k in (0, 2):
        messages[k][1].stiffness[1] = -5.0
    messages[3] = (messages[3][0], setpoint(messages[3][0], ["elbow", *NAMES], np.zeros((5, 3)), "tool"))
    report, found = replayed(tmp_path, messages, robot=robot_file(tmp_path, VARIABLE), options=PERMISSIVE)
    commands = [command for _, command in found["/arm/feedforward"]]
    assert [command.held for command in commands] == [False, True, False, False]
    assert report.held == 1 and report.refusals.total == 3
    assert commands[1].header == messages[2][1].header and commands[1].joint_names == NAMES
    for name in COMMAND_FIELDS:
        np.testing.assert_array_equal(getattr(commands[1], name), getattr(commands[0], name))


def test_it_is_strict_as_the_node_is(tmp_path: Path) -> None:
    """Setpoints that are old, or ahead of their arrival in the bag; all were answered."""
    messages, ms = setpoints(NAMES, STATES), 10**6

    def replay(of: list, **options: str) -> Report:
        return replayed(tmp_path / str(len(list(tmp_path.iterdir()))), of, options=CommandOptions(**options))[0]

    ahead = [(time - 90 * ms * (k == 100), message) for k, (time, message) in enumerate(messages)]
    ahead.sort(key=lambda x: x[0])
    # Early setpoints wait for the next cycle, in which the newest wins: they are not refused.
    report = replay(ahead)
    assert (report.commands, report.early, report.refusals.total) == (len(messages) - 1, 1, 0)
    assert "1 of topic /arm/setpoint early: their stamps ran ahead of their arrival" in report.notes()
    report = replay(ahead, safety="permissive")
    assert (report.commands, report.early) == (len(messages), 0)
    late = [(time + 600 * ms * (k >= 60), message) for k, (time, message) in enumerate(messages)]
    report = replay(late)
    assert report.commands == 60 and "from the clock" in next(iter(report.refusals.reasons))
    assert replay(late, safety="permissive").commands == len(messages)
    # Stamps of a simulation.
    assert replay([(time + 10**18, message) for time, message in messages]).commands == len(messages)


def test_setpoints_beyond_limits_are_refused_on_request(tmp_path: Path) -> None:
    """The motor holds the arm up to some angle; all refusals are one reason, with the numbers of the worst."""
    file = robot_file(tmp_path, VARIABLE)
    states = np.zeros_like(STATES)
    states[0, :, 0] = np.linspace(-np.pi / 2, 0.0, len(states[0]))  # from hanging to stretched out
    messages = setpoints(NAMES, states)
    options = CommandOptions(safety="permissive", limits="refuse")  # a step of 13 rad/s, without velocities
    report, found = replayed(tmp_path, messages, robot=file, options=options)
    with pytest.raises(LimitError) as worst:
        SetpointEvaluator(ElasticArm(load_robot(file))).evaluate(messages[-1][1], limit_policy="refuse")
    reason = "exceeds limits, most of all joint_2: torque"
    assert report.refusals.reasons == {reason: (count := len(messages) - report.commands)}
    assert 10 < count < len(messages) - 10
    assert [time for time, _ in found["/arm/feedforward"]] == [time for time, _ in messages[:-count]]
    assert report.refusals.text(reason) == (
        f"{reason} (at worst {worst.value.numbers}); --limits warn computes commands anyway"
    )


@pytest.mark.parametrize("old", ["float64[] position\n", "geometry_msgs/Wrench[] wrench\n"])
def test_setpoints_of_other_fields_are_refused_with_and_without_their_definition(tmp_path: Path, old: str) -> None:
    """Bags from before ROS 2 Iron hold no definitions: their messages do not fit the present one."""
    text = (DEFINITIONS / "JointTrajectorySetpoint.msg").read_text()
    assert old in text
    types = store(JointTrajectorySetpoint=text.replace(old, f"string[] more\n{old}"))
    fields = vars(setpoint(START, NAMES, STATES[:, 0])) | {"more": ["than", "known"]}
    message = types.types[SETPOINT](**{name: value for name, value in fields.items() if name != "__msgtype__"})
    bag = write_bag(tmp_path / "in", {"/setpoint": (SETPOINT, [(START, message)])}, "sqlite3", types)
    with pytest.raises(BagError, match="defines"):
        replay_bag(Job(bag, tmp_path / "out", "planar_2r"))
    with closing(sqlite3.connect(file_of(bag))) as database, database:
        database.execute("DELETE FROM message_definitions")
    database.close()
    with pytest.raises(BagError, match=r"message.*/setpoint") as caught:
        replay_bag(Job(bag, tmp_path / "out", "planar_2r"))
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


def test_the_robot_defaults_to_the_description_in_the_bag(tmp_path: Path) -> None:
    text = STORE.types["std_msgs/msg/String"](data=urdf_arm().replace('izz="0.05"', 'izz="9"', 1))
    robot = load_robot(urdf_arm())
    state = np.zeros((5, 3, robot.n))
    topics = {
        "/setpoint": (SETPOINT, setpoints(robot.joint_names, state)),
        "/robot_description": ("std_msgs/msg/String", [(START, text)]),
    }
    report = replay_bag(Job(write_bag(tmp_path / "in", topics), tmp_path / "out"))
    assert report.robot == robot.name and report.commands == 3
    assert "principal moment of inertia" in report.warnings[0]
    bare = write_bag(tmp_path / "bare", {"/setpoint": topics["/setpoint"]})
    with pytest.raises(BagError, match="--robot ROBOT"):
        replay_bag(Job(bare, tmp_path / "none"))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\0\1\0\0\xff\xff\xff\xff", "topic /robot_description: not a message of type std_msgs/msg/String"),
        (b"\0", "too short for a message"),
        # A bag must not name files of this machine.
        (STORE.types["std_msgs/msg/String"](data="planar_2r"), "topic /robot_description: .*: not valid XML"),
    ],
)
def test_a_robot_description_that_cannot_be_used_is_refused(tmp_path: Path, message, reason: str) -> None:
    topics = {
        "/setpoint": (SETPOINT, setpoints(NAMES, STATES)),
        "/robot_description": ("std_msgs/msg/String", [(START, message)]),
    }
    with pytest.raises((BagError, RobotDescriptionError), match=reason) as caught:
        replay_bag(Job(write_bag(tmp_path / "in", topics), tmp_path / "out"))
    assert str(tmp_path / "in") in str(caught.value) and "\n" not in str(caught.value)


def test_force_overwrites_an_output_and_keeps_other_recordings_and_notes(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "in", {"/setpoint": (SETPOINT, setpoints(NAMES, STATES))})
    job = Job(bag, tmp_path / "out", "planar_2r", force=True)
    job.output.mkdir()  # an empty folder is filled
    replay_bag(replace(job, format="sqlite3"))
    mine = {"notes.txt", "recording.mcap", "old.db3"}
    for name in mine:
        (job.output / name).write_text(name, encoding="utf-8")
    before = {path.name for path in job.output.iterdir()}
    with pytest.raises(FolderError, match="--force"):
        replay_bag(replace(job, force=False))
    assert {path.name for path in job.output.iterdir()} == before
    replay_bag(job)
    assert {path.name for path in job.output.iterdir()} == {"metadata.yaml", "out.db3", "out.mcap", *mine}
    assert all((job.output / name).read_text(encoding="utf-8") == name for name in mine)
    assert len(read_bag(job.output)["/feedforward"]) == len(STATES[0])


def test_force_refuses_what_the_user_puts_there_meanwhile(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "in", {"/setpoint": (SETPOINT, setpoints(NAMES, STATES))})
    job = Job(bag, tmp_path / "out.mcap", "planar_2r", force=True)
    replay_bag(job)
    replay_bag(job)
    with pytest.raises(FolderError, match=r"out\.mcap.*eom_dynamics.*overwritten"):
        replay_bag(job, lambda fraction: job.output.write_text("precious", encoding="utf-8"))
    assert job.output.read_text(encoding="utf-8") == "precious"


def test_parquet_has_a_column_for_each_field_and_joint(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    messages = setpoints(NAMES, STATES)
    messages += [(time + 10**9, message) for time, message in setpoints(NAMES[::-1], STATES[..., ::-1])]
    bag = write_bag(tmp_path / "in", {"/setpoint": (SETPOINT, messages)})
    replay_bag(Job(bag, tmp_path / "out.parquet", "planar_2r", format="parquet", options=PERMISSIVE))
    replay_bag(Job(bag, tmp_path / "out", "planar_2r", options=PERMISSIVE))
    table = parquet.read_table(tmp_path / "out.parquet")
    commands = read_bag(tmp_path / "out")["/feedforward"]
    assert table.num_rows == len(commands) == 2 * len(STATES[0])
    assert table["recorded"].cast("int64").to_pylist() == [time for time, _ in commands]
    assert table["stamp"].cast("int64").to_pylist() == [
        c.header.stamp.sec * 10**9 + c.header.stamp.nanosec for _, c in commands
    ]
    for field in COMMAND_FIELDS:
        for k, name in enumerate(NAMES):
            expected = [getattr(c, field)[list(c.joint_names).index(name)] for _, c in commands]
            assert table[f"{field}.{name}"].to_pylist() == expected, (field, k)


def test_setpoints_have_the_lead_of_the_robot_and_measured_motions_none(tmp_path: Path) -> None:
    late = replace(load_robot("planar_2r"), drive_delay=0.003)
    bag = write_bag(tmp_path / "setpoints", {"/setpoint": (SETPOINT, setpoints(NAMES, STATES))})
    report = replay_bag(Job(bag, tmp_path / "out", late, options=PERMISSIVE))
    commands = [command for _, command in read_bag(tmp_path / "out")["/feedforward"]]
    assert report.command_lead == 0.003 and {command.command_lead for command in commands} == {0.003}
    expected = ElasticArm(late).feedforward(*STATES, lead=0.003).motor_effort
    np.testing.assert_allclose([command.motor_effort for command in commands], expected, rtol=1e-12, atol=1e-12)
    states = [
        (time, joint_state(time, NAMES, q)) for (time, _), q in zip(setpoints(NAMES, STATES), STATES[0], strict=True)
    ]
    measured = write_bag(tmp_path / "measured", {"/joint_states": (JOINT_STATE, states)})
    assert replay_bag(Job(measured, tmp_path / "second", late, sampling=Sampling(cutoff=20.0))).command_lead == 0.0


def test_parameters_of_the_node_are_its_checks_of_a_suspect_stream(tmp_path: Path) -> None:
    messages = setpoints(NAMES, STATES)
    messages[20] = messages[20][0], setpoint(START + 5 * STEP, NAMES, STATES[:, 20])
    options = CommandOptions(parameters=(node_parameter("stop_duration=0.2"),))
    report, _ = replayed(tmp_path, messages, options=options)
    assert report.refusals.total and re.match("in doubt: .*stamp", report.refusals.ranked()[0][0])


REFUSED = ["setpoint_timeout=1", "on_contact=warn", "stop_duration=long", "stop_duration"]


@pytest.mark.parametrize("text", REFUSED)
def test_parameters_that_the_node_would_refuse_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text.partition("=")[0]):
        node_parameter(text)


def test_refusals_that_differ_in_numbers_alone_are_one() -> None:
    refusals = Refusals()
    for k in range(100):
        refusals.add(f"joint_1: stiffness {250 + 0.1 * k:g} is below {260 + 1e-7 * k:g}, the least", k)
        refusals.add(f"position[{k % 2}] (joint 'joint_{k % 2}') is nan", k)
    assert refusals.ranked() == [
        ("joint_1: stiffness 250 is below 260, the least", 100),
        ("position[0] (joint 'joint_0') is nan", 50),
        ("position[1] (joint 'joint_1') is nan", 50),
    ]
    for k in range(100):
        refusals.add(f"damaged {'x' * k}", k)
    assert len(refusals.reasons) == 51 and refusals.reasons["other reasons"] == 53


CONVENTIONS = ["--rename", "^left_=", "--rename", r"^j(\d)$=joint_\1"]
EFFORTS = ["--effort-scale", "2", "--effort-scale", "joint_2=4", "--effort-offset", "joint_1=-0.5"]


@pytest.fixture(scope="module")
def renamed_bag(tmp_path_factory) -> Path:
    """Motion with currents and efforts of 2 i - 0.5 and 4 i."""
    t = np.arange(400) / 200.0
    states = paper_motion(2).derivatives(t)
    efforts = Dynamics(ROBOT).effort(*states[:3])
    currents = np.stack([(efforts[:, 0] + 0.5) / 2, efforts[:, 1] / 4], axis=1)
    stamps = START + np.round(t * 1e9).astype(np.int64)
    messages = [
        (int(stamp), joint_state(int(stamp), ["left_j2", "left_j1"], q[::-1], i[::-1]))
        for stamp, q, i in zip(stamps, states[0], currents, strict=True)
    ]
    return write_bag(tmp_path_factory.mktemp("bags") / "left", {"/joint_states": (JOINT_STATE, messages)})


def test_names_and_efforts_of_a_recording_become_those_of_the_robot(renamed_bag: Path, tmp_path: Path, run) -> None:
    command = ["replay", renamed_bag, "-o", tmp_path / "out", "--robot", "planar_2r", "--cutoff", "20"]
    command += ["--against", "effort", "--force", "--json"]
    (result,) = run(*command, *CONVENTIONS, *EFFORTS).json
    good = np.array(result["report"]["rms"])
    assert result["report"]["commands"] == 400
    (result,) = run(*command, *CONVENTIONS).json
    assert np.all(good < 0.05 * np.array(result["report"]["rms"]))


def test_a_report_uses_the_same_conventions(renamed_bag: Path) -> None:
    options = (("^left_j", "joint_"),), ((None, 2.0), ("joint_2", 4.0)), (("joint_1", -0.5),)
    (record,) = read_records(renamed_bag, ROBOT, Conventions(*options))
    assert record.robot is ROBOT and record.command is not None
    measured = record.measured.ordered(ROBOT.joint_names).values["effort"]
    (plain,) = read_records(renamed_bag)
    assert plain.measured.names == ("left_j2", "left_j1")
    currents = plain.measured.ordered(("left_j1", "left_j2")).values["effort"]
    np.testing.assert_allclose(measured, currents * [2, 4] + [-0.5, 0])


def test_what_cannot_be_meant_is_refused(renamed_bag: Path, tmp_path: Path, refused) -> None:
    command = ["replay", str(renamed_bag), "-o", str(tmp_path / "out"), "--robot", "planar_2r"]
    assert "--effort-scale and --effort-offset need --against" in refused(*command, "--effort-scale", "2")
    assert "--effort-scale: robot planar_2r has no joint 'joint2'; did you mean joint_2?" in refused(
        *command, *CONVENTIONS, "--against", "effort", "--effort-scale", "joint2=3"
    )
    for wrong, reason in ((["--rename", "left"], "PATTERN=REPLACEMENT"), (["--rename", "(=x"], "regular expression")):
        assert reason in refused(*command, *wrong)
    with pytest.raises(EomDynamicsError, match="no joint 'a'"):
        Conventions(effort_offset=(("a", 1.0),)).check("arm", ["b"])
