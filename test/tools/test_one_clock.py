# SPDX-License-Identifier: Apache-2.0
"""Folded positions of continuous joints, and joints of separate publishers, in all readers of recordings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bag_files import JOINT_STATE, SETPOINT, START, STORE, header, joint_state, setpoint, write_bag
from excited import efforts, motion

from eom_dynamics import Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.identification import IdentificationError
from eom_dynamics.recordings import MotorSource, Source
from eom_dynamics.recordings.bags.types import JOINT_TRAJECTORY
from eom_dynamics.recordings.joint_recordings import read_recording
from eom_dynamics.recordings.sides import read_sides
from eom_dynamics.recordings.turns import without_turns_between
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.tools.replay.bag import Job, replay_bag
from eom_dynamics.tools.report import read_records

T = np.arange(0.0, 20.0, 0.01)


def endless_robot() -> Robot:
    """Planar arm with a continuous first joint."""
    robot = load_robot("planar_2r")
    first, second = robot.joints
    wide = Limits(-6.0, 6.0, 10.0, 200.0)
    return replace(robot, joints=(replace(first, limits=Limits(effort=200.0)), replace(second, limits=wide)))


ROBOT = endless_robot()
NAMES = ROBOT.joint_names


def turning() -> tuple[Array, Array]:
    """Positions of a motion over more than a turn, and its efforts."""
    q, qd, qdd = motion(2, T)
    q[:, 0], qd[:, 0], qdd[:, 0] = (
        q[:, 0] + 4 * np.sin(0.5 * T),
        qd[:, 0] + 2 * np.cos(0.5 * T),
        qdd[:, 0] - np.sin(0.5 * T),
    )
    return q, efforts(ROBOT, q, qd, qdd)


Q, TAU = turning()


def folded(x: Array, low: float = -np.pi, turn: float = 2 * np.pi) -> Array:
    return np.column_stack([(x[:, 0] - low) % turn + low, x[:, 1]])


def table(path: Path, q: Array, tau: Array | None = TAU, **more: Array) -> Path:
    columns = {"t": T, **{f"position.{name}": x for name, x in zip(NAMES, q.T, strict=True)}}
    columns |= {} if tau is None else {f"effort.{name}": x for name, x in zip(NAMES, tau.T, strict=True)}
    columns |= more
    np.savetxt(path, np.column_stack([*columns.values()]), delimiter=",", header=",".join(columns), comments="")
    return path


def turns_apart(a: Array, b: Array, pieces: int = 1, turn: float = 2 * np.pi) -> Array:
    """Deviation of the first joint from a constant number of turns in each of ``pieces`` pieces."""
    difference = a - b
    assert np.allclose(difference[:, 1], 0, atol=1e-9)
    assert len(np.unique(np.round(difference[:, 0] / turn))) <= pieces
    return difference[:, 0] - turn * np.round(difference[:, 0] / turn)


@pytest.mark.parametrize(
    ("low", "damage"),
    [
        (0.0, "rows are missing"),  # 0 to 2π
        (-np.pi, "positions are NaN"),
        (-np.pi, "a pause"),
    ],
)
def test_folded_positions_are_continuous(low: float, damage: str, tmp_path: Path) -> None:
    q = folded(Q, low)
    rows = np.ones(len(T), dtype=bool)
    if damage == "rows are missing":
        rows[::9] = False
    elif damage == "positions are NaN":
        q[::11, 0] = np.nan
    elif damage == "a pause":
        rows[600:800] = False
    path = tmp_path / "run.csv"
    header_line = "t,position.joint_1,position.joint_2,effort.joint_1,effort.joint_2"
    np.savetxt(path, np.column_stack([T, q, TAU])[rows], delimiter=",", header=header_line, comments="")
    found = read_recording(path, ROBOT)
    known = np.isfinite(q[rows, 0])
    assert np.allclose(turns_apart(found.q[known], Q[rows][known], 1 + (damage == "a pause")), 0, atol=1e-9)
    (note,) = found.notes
    assert note.startswith("positions of continuous joints were folded; steps of 2π are undone: ")
    assert note.endswith(" of joint_1")


def test_folded_degrees_motors_and_joints_with_limits(tmp_path: Path) -> None:
    """A motor counts turns of its shaft; a step of a joint with limits is not a turn."""
    degrees = table(tmp_path / "deg.csv", np.degrees(folded(Q)))
    found = read_recording(degrees, ROBOT, Source(position_unit="deg"))
    assert np.allclose(turns_apart(found.q, Q), 0, atol=1e-9)
    names = {f"motor_position.{name}": x for name, x in zip(NAMES, folded(Q).T, strict=True)}
    names |= {f"motor_effort.{name}": x for name, x in zip(NAMES, TAU.T, strict=True)}
    sides = read_sides(table(tmp_path / "motors.csv", folded(Q), **names), ROBOT, None, MotorSource())
    for side in (sides.links, sides.motors):
        assert side is not None and np.allclose(turns_apart(side.q, Q), 0, atol=1e-9)
    limited = replace(ROBOT, joints=tuple(replace(x, limits=Limits(-3.2, 3.2)) for x in ROBOT.joints))
    found = read_recording(table(tmp_path / "limited.csv", folded(Q)), limited)
    assert found.notes == () and np.array_equal(found.q, folded(Q))
    # A motion that was not folded is unchanged, also with fast steps.
    fast = Q * [40.0, 1.0]
    found = read_recording(table(tmp_path / "fast.csv", fast), ROBOT, Source(position_unit="rad"))
    assert found.notes == () and np.array_equal(found.q, fast)


def states(q: Array = Q, tau: Array = TAU, names: tuple[str, ...] = NAMES, later: int = 0) -> list[tuple[int, object]]:
    stamps = START + np.round(1e9 * T).astype(int) + later
    return [(s, joint_state(s, names, *row)) for s, *row in zip(stamps.tolist(), q, tau, strict=True)]


def test_replay_and_report_of_folded_positions(tmp_path: Path) -> None:
    reports = []
    for name, q in (("whole", Q), ("folded", folded(Q))):
        bag = write_bag(tmp_path / name, {"/joint_states": (JOINT_STATE, states(q))})
        reports.append(replay_bag(Job(bag, tmp_path / f"{name}.out", ROBOT, against="effort")))
    whole, of_folded = reports
    np.testing.assert_allclose(of_folded.rms, whole.rms, rtol=1e-6)
    assert max(of_folded.rms) < 0.5 and not whole.motion
    assert of_folded.motion[0].startswith("positions of continuous joints were folded")
    (record,) = read_records(tmp_path / "folded", ROBOT)
    assert record.measured is not None and np.abs(np.diff(record.measured.values["position"], axis=0)).max() < 0.1
    assert any("/joint_states: positions of continuous joints were folded" in line for line in record.notes)


def test_paths_of_folded_positions(tmp_path: Path, run) -> None:
    """Folded if all positions are within half a turn of zero; otherwise a step of more than half a turn is real."""
    path = np.array([[2.8, 0.0], [3.1, 0.1], [-3.0, 0.2], [-2.7, 0.3]])
    found, steps = without_turns_between(ROBOT, path, NAMES)
    np.testing.assert_allclose(found[:, 0], [2.8, 3.1, 2 * np.pi - 3.0, 2 * np.pi - 2.7])
    assert steps == {"joint_1": 1}
    meant = np.array([[0.0, 0.0], [4.0, 0.1], [7.9, 0.2]])
    found, steps = without_turns_between(ROBOT, meant, NAMES)
    assert np.array_equal(found, meant) and not steps
    urdf = tmp_path / "endless.urdf"
    urdf.write_text(robot_as_urdf(ROBOT).text)
    assert 'type="continuous"' in urdf.read_text()
    (tmp_path / "path.json").write_text(json.dumps(path.tolist()))
    robot = tmp_path / "endless.yaml"
    robot.write_text(
        "/**:\n  ros__parameters:\n    robot:\n      urdf: endless.urdf\n      joints:\n"
        + "".join(f"        {name}: {{limits: {{velocity: 3.0, acceleration: 10.0, jerk: 500.0}}}}\n" for name in NAMES)
    )
    out = run("retime", robot, tmp_path / "path.json", "-o", tmp_path / "out").out
    assert "steps of 2π are undone: 1 of joint_1" in out
    with np.load(tmp_path / "out" / "setpoints.npz") as data:
        assert np.ptp(data["q"][:, 0]) < 1.0


@pytest.mark.parametrize(("period", "told"), [(0.0, False), (0.002, False), (0.001, True), (0.004, True)])
def test_a_command_period_other_than_that_of_the_file_is_told(period: float, told: bool, tmp_path: Path) -> None:
    robot = replace(load_robot("planar_2r"), command_period=period)
    rows = [(START + k * 2_000_000, setpoint(START + k * 2_000_000, NAMES, np.zeros((5, 2)))) for k in range(200)]
    bag = write_bag(tmp_path / "bag", {"/setpoint": (SETPOINT, rows)})
    report = replay_bag(Job(bag, tmp_path / "out", robot))
    line = f"commands come every 2 ms, but command_period of the robot is {1e3 * period:.3g} ms"
    assert [x.split(":")[0] for x in report.motion] == [line] * told


def test_trajectories_of_folded_positions(tmp_path: Path) -> None:
    point, duration = (
        STORE.types["trajectory_msgs/msg/JointTrajectoryPoint"],
        STORE.types["builtin_interfaces/msg/Duration"],
    )
    nothing = np.zeros(0)
    path = np.array([[2.8, 0.0], [3.1, 0.1], [-3.0, 0.2], [-2.7, 0.3]])
    points = [point(q, nothing, nothing, nothing, duration(k, 0)) for k, q in enumerate(path)]
    message = STORE.types[JOINT_TRAJECTORY](header(START), [*NAMES], points)
    bag = write_bag(tmp_path / "bag", {"/joint_trajectory": (JOINT_TRAJECTORY, [(START, message)])})
    report = replay_bag(Job(bag, tmp_path / "out", ROBOT))
    assert report.motion == ["positions of continuous joints were folded; steps of 2π are undone: 1 of joint_1"]


def interleaved(*topics: list[tuple[int, object]]) -> list[tuple[int, object]]:
    return sorted((row for rows in topics for row in rows), key=lambda row: row[0])


@pytest.mark.parametrize("kind", ["gripper", "another rate", "three publishers later"])
def test_joints_of_separate_publishers(kind: str, tmp_path: Path) -> None:
    """They are merged on one clock; the messages of a gripper do not belong to the arm."""
    one, two = (states(Q[:, [k]], TAU[:, [k]], NAMES[k : k + 1], later) for k, later in ((0, 0), (1, 3_000_000)))
    gripper = states(0 * Q[:, :1], 0 * TAU[:, :1], ("finger",), 5_000_000)
    messages = {
        "gripper": interleaved(states(), gripper),
        "another rate": interleaved(one, two[::4]),
        "three publishers later": interleaved(one, two[500:], gripper),
    }[kind]
    bag = write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, messages)})
    found = read_recording(bag, ROBOT).cleaned()
    assert len(found) > 1400
    for k, name in enumerate(NAMES):
        rows = (found.t > 6) & (found.t < 19)
        at = found.t[rows] - 0.003 * k * (kind != "gripper")
        expected = np.interp(at, T, Q[:, k])
        assert np.abs(found.q[rows, k] - expected).max() < 5e-4, name
        assert np.nanmax(np.abs(found.tau[rows, k] - np.interp(at, T, TAU[:, k]))) < 0.05
    separate = kind != "gripper"
    assert any("joints come in separate messages" in line for line in found.notes) == separate
    report = replay_bag(Job(bag, tmp_path / "out", ROBOT, against="effort"))
    assert report.commands > 1400 and max(report.rms) < 0.5
    assert any("joints come in separate messages" in line for line in report.motion) == separate


def test_topics_of_two_arms_and_first_messages_of_zeros(tmp_path: Path) -> None:
    one, two = (states(Q[:, [k]], TAU[:, [k]], NAMES[k : k + 1], 2_000_000 * k) for k in (0, 1))
    topics = {"/left/joint_states": (JOINT_STATE, one), "/right/joint_states": (JOINT_STATE, two)}
    found = read_recording(write_bag(tmp_path / "arms", topics), ROBOT)
    assert len(found) > 1900 and found.source == "positions and efforts of /left/joint_states and /right/joint_states"
    assert "joints come in separate messages, 2,000 of joint_1; 2,000 of joint_2: merged" in found.notes[0]
    separate = "joints are in separate topics, /left/joint_states has joint_1; /right/joint_states has joint_2; record"
    with pytest.raises(EomDynamicsError, match=separate):
        replay_bag(Job(tmp_path / "arms", tmp_path / "out", ROBOT))
    q = Q.copy()
    q[:2] = 0.0
    found = read_recording(write_bag(tmp_path / "zeros", {"/joint_states": (JOINT_STATE, states(q))}), ROBOT)
    assert len(found) == len(T) - 2 and "all positions of the first messages are zero, 2, far" in found.notes[0]


def test_publishers_without_a_common_time_are_refused(tmp_path: Path) -> None:
    one, two = (states(Q[:, [k]], TAU[:, [k]], NAMES[k : k + 1], k * 3600 * 10**9) for k in (0, 1))
    bag = write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, interleaved(one, two))})
    message = "separate messages without a common time, 2,000 of joint_1; 2,000 of joint_2"
    with pytest.raises(IdentificationError, match=message):
        read_recording(bag, ROBOT)
    with pytest.raises(EomDynamicsError, match=message):
        replay_bag(Job(bag, tmp_path / "out", ROBOT))
