# SPDX-License-Identifier: Apache-2.0
"""Recordings from bags and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from excited import motion

pytest.importorskip("rosbags", reason="rosbags is not installed")

from bag_files import COMMAND, JOINT_STATE, START, STORE, header, joint_state, write_bag

from eom_dynamics import load_robot
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.identification import IdentificationError
from eom_dynamics.tools.identify.read import read_recording
from eom_dynamics.tools.recording_options import Conventions, Source

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


def test_bag(tmp_path: Path) -> None:
    found = read_recording(bag(tmp_path), ROBOT)
    assert found.name == "bag" and found.notes == () and found.qd is None
    np.testing.assert_allclose(found.t, T, atol=1e-9)
    np.testing.assert_array_equal([found.q, found.tau], [Q, TAU])


def test_names_of_the_robot_for_those_of_a_recording(tmp_path: Path) -> None:
    path = bag(tmp_path, ["arm_2", "arm_1"], Q[:, ::-1], TAU[:, ::-1])
    found = read_recording(path, ROBOT)
    np.testing.assert_array_equal(found.q, Q)
    assert found.notes == ("joints arm_… are matched to joint_…",)
    conventions = Conventions(rename=(("^arm_", "joint_"),), effort_scale=((None, 2.0),))
    found = read_recording(path, ROBOT, Source(conventions=conventions))
    np.testing.assert_array_equal([found.q, found.tau], [Q, 2 * TAU])
    assert found.notes == ()


def test_missing_and_other_joints(tmp_path: Path) -> None:
    found = read_recording(bag(tmp_path, ["other", NAMES[0]], Q[:, ::-1], TAU[:, ::-1]), ROBOT)
    np.testing.assert_array_equal([found.q[:, 0], found.tau[:, 0]], [Q[:, 0], TAU[:, 0]])
    assert found.notes == ("joint_2 was not recorded, and is taken to be at rest at 0",)
    assert not found.q[:, 1].any() and np.isnan(found.tau[:, 1]).all()


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


def test_efforts_of_another_topic(tmp_path: Path) -> None:
    fields = {name: np.zeros(0) for name, _ in STORE.fielddefs[COMMAND][1]}
    fields |= {"held": False, "status": 0, "command_lead": 0.0, "joint_names": [*NAMES], "motor_names": [*NAMES]}

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
    with pytest.raises(EomDynamicsError, match="has no topic nothing; it has /feedforward"):
        read_recording(path, ROBOT, Source(effort_topic="nothing"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables(kind: str, tmp_path: Path) -> None:
    columns = {"time": T}
    for k, name in enumerate(NAMES):
        columns |= {f"position.{name}": Q[:, k], f"qd.{name}": QD[:, k], f"effort.{name}": TAU[:, k]}
    path = tmp_path / f"run.{kind}"
    if kind == "csv":
        np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    else:
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        import pyarrow.parquet as parquet

        parquet.write_table(pa.table(columns), path)
    found = read_recording(path, ROBOT)
    np.testing.assert_allclose(found.t, T, atol=1e-9)
    np.testing.assert_allclose([found.q, found.qd, found.tau], [Q, QD, TAU])


SAME_NAME = r"has columns of the same name: .*; remove one of each"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("position.joint_1\n1\n", "has no column t or time; it has position.joint_1"),
        (",".join(c * 100_000 for c in "abc") + "\n1,2,3\n", "has no column t or time"),
        ({}, "has no array t, joint_names; it has nothing"),
        ("t,q1\n0,1\n", "has no columns position.NAME; it has t, q1"),
        ("0,1\n1,2\n", "the first line must name the columns"),
        ("t,q.joint_1,q.joint_1\n0,1,1\n", SAME_NAME),
        ("t,q.joint_1,position.joint_1\n0,1,1\n", SAME_NAME),
        ("t,q.joint_1,time\n0,1,1\n", SAME_NAME),
        ("t,q.joint_1\n0,x\n", "line 2 must have numbers, separated by commas, is '0,x'"),
        ("t,q.joint_1\n0\n", "the first line names 2 columns, the others have 1"),
        ("t,q.other\n0,1\n", r"has none of the joints of planar_2r \(joint_1, joint_2\); it has other; rename them"),
    ],
)
def test_bad_tables(text: str | dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / ("run.csv" if isinstance(text, str) else "run.npz")
    path.write_text(text) if isinstance(text, str) else np.savez(path, **text)
    with pytest.raises(IdentificationError, match=message) as error:
        read_recording(path, ROBOT)
    assert len(str(error.value)) < 1000, "without long names"


def test_bag_without_joint_states(tmp_path: Path) -> None:
    text = STORE.types["std_msgs/msg/String"](data="x")
    path = write_bag(tmp_path / "bag", {"/talk": ("std_msgs/msg/String", [(START, text)])})
    with pytest.raises(EomDynamicsError, match=r"has no topic of type sensor_msgs/msg/JointState; it has /talk"):
        read_recording(path, ROBOT)
