# SPDX-License-Identifier: Apache-2.0
"""Tables of other loggers: separators, text, gaps, lists, times and names of columns; plans in messages."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

import eom_dynamics as eom
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.identification import Recording
from eom_dynamics.recordings import Source
from eom_dynamics.recordings.columns import Column, column
from eom_dynamics.recordings.joint_recordings import read_recording
from eom_dynamics.recordings.number_files import read_waypoints

ROBOT = eom.load_robot("planar_2r")
NAMES = ROBOT.joint_names
T = 0.01 * np.arange(40)
Q = np.column_stack([np.sin(T), 0.5 * np.cos(3 * T)])
TAU = np.column_stack([2 * np.cos(T), T])
CASES = ROOT.parent / "shared" / "cases"
SHARED = pytest.mark.skipif(not CASES.is_dir(), reason="the inputs of other loggers are missing")


def read(path: Path, *columns: str) -> Recording:
    return read_recording(path, ROBOT, Source(columns=tuple(map(column, columns))))


def table(path: Path, header: str, separator: str, rows: Sequence[Sequence[str]] | None = None) -> Path:
    rows = rows or [[f"{x:.17g}" for x in row] for row in np.column_stack([T, Q, TAU])]
    path.write_text(header + "\n" + "".join(separator.join(row) + "\n" for row in rows), encoding="utf-8")
    return path


POSITIONS, EFFORTS = "position.{joint}=q{k}", "effort.{joint}=tau_{k+1}"
HEADER = ("t", "q0", "q1", "tau_1", "tau_2")


@pytest.mark.parametrize(("separator", "name"), [(",", ""), (";", "semicolons"), ("\t", "tabs"), ("  ", "blanks")])
@pytest.mark.parametrize("mark", ["", "# "])
def test_separators(separator: str, name: str, mark: str, tmp_path: Path) -> None:
    path = table(tmp_path / "run.txt", mark + separator.join(HEADER), separator)
    found = read(path, POSITIONS, EFFORTS)
    np.testing.assert_array_equal([found.q, found.tau], [Q, TAU])
    assert found.notes == ((f"columns are separated by {name}",) if name else ())
    assert found.source == "positions of q{k}, efforts of tau_{k+1}"


def test_decimal_commas_between_semicolons(tmp_path: Path) -> None:
    rows = [[f"{x:.17g}".replace(".", ",") for x in row] for row in np.column_stack([T, Q, TAU])]
    found = read(table(tmp_path / "run.csv", ";".join(HEADER), ";", rows), POSITIONS, EFFORTS)
    np.testing.assert_array_equal([found.q, found.tau], [Q, TAU])


def test_columns_of_text_are_ignored_and_named(tmp_path: Path) -> None:
    rows = [[f"{t:.3f}", "base link", f"{q:.17g}", "", f"{p:.17g}"] for t, (q, p) in zip(T, Q, strict=True)]
    path = table(tmp_path / "run.csv", 't,"frame, id",position.joint_1,empty,position.joint_2', ",", rows)
    found = read(path)
    np.testing.assert_array_equal(found.q, Q)
    assert found.notes == ("columns of text are ignored: frame, id",)
    rows[7][1], rows[9][2] = "7", "x"
    with pytest.raises(EomDynamicsError, match="line 11 must have 4 numbers, separated by commas"):
        read(table(path, "t,frame,position.joint_1,empty,position.joint_2", ",", rows))


def test_empty_cells_are_unknown(tmp_path: Path) -> None:
    """PlotJuggler and others leave them if signals have different times."""
    rows = [[f"{x:.17g}" for x in row] for row in np.column_stack([T, Q, TAU])]
    for k in range(1, len(rows), 2):
        rows[k][3:] = ["", ""]
    found = read(table(tmp_path / "run.csv", ",".join(HEADER), ",", rows), POSITIONS, EFFORTS)
    np.testing.assert_array_equal(found.tau[::2], TAU[::2])
    assert np.isnan(found.tau[1::2]).all()
    np.testing.assert_array_equal(found.q, Q)


@pytest.mark.parametrize(
    ("name", "factor", "start", "unit"),
    [
        ("timestamp", 1.0, 1000.5, "s"),
        ("timestamp", 1e3, 1.7e12, "ms"),
        ("__time", 1.0, 1.7e9, "s"),
        ("%time", 1e9, 1.7e18, "ns"),
    ],
)
def test_times_of_loggers(name: str, factor: float, start: float, unit: str, tmp_path: Path) -> None:
    rows = [[f"{start + factor * t:.9f}", f"{a:.17g}", f"{b:.17g}"] for t, (a, b) in zip(T, Q, strict=True)]
    found = read(table(tmp_path / "run.csv", f"{name},q0,q1", ",", rows), POSITIONS)
    np.testing.assert_allclose(found.t, T, rtol=0, atol=1e-6)  # a float of 64 bits resolves 0.3 µs since 1970
    assert found.notes == (f"times are column {name}, {unit}",)


def test_units_and_names_of_columns(tmp_path: Path) -> None:
    columns = {"clock": 1e3 * T, "left": np.degrees(Q[:, 0]), "right": Q[:, 1], "a": 1e3 * TAU[:, 0], "b": TAU[:, 1]}
    path = table(
        tmp_path / "run.csv",
        ",".join(columns),
        ",",
        [[f"{x:.17g}" for x in r] for r in zip(*columns.values(), strict=True)],
    )
    given = ("time=clock:ms", "position.joint_1=left:deg", "position.joint_2=right", "effort.joint_1=a:mNm")
    found = read(path, *given, "effort.joint_2=b:Nm")
    np.testing.assert_allclose(found.t, T, rtol=0, atol=1e-9)
    np.testing.assert_allclose([found.q, found.tau], [Q, TAU], rtol=1e-14)


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (("q0", "q1", "v"), "--column 'position.{joint}=q{k}'"),
        (("actual_q_0", "actual_q_1", "target_q_0", "target_q_1"), "--column 'position.{joint}=actual_q_{k}'"),
        (("q1", "q2", "tau1", "tau2"), "--column 'position.{joint}=q{k+1}' --column 'effort.{joint}=tau{k+1}'"),
        (("/js/joint_1/position", "/js/joint_2/position"), "--column 'position.{joint}=/js/{joint}/position'"),
        (("joint_1.pos", "joint_2.pos", "joint_1.vel"), "--column 'position.{joint}={joint}.pos'"),
        (("a", "b"), "--column 'position.{joint}=COLUMN{k}'"),
    ],
)
def test_errors_have_the_line_to_write(columns: Sequence[str], line: str, tmp_path: Path) -> None:
    path = table(tmp_path / "run.csv", ",".join(("t", *columns)), ",", [["0"] * (1 + len(columns))] * 3)
    with pytest.raises(EomDynamicsError) as error:
        read(path)
    assert f"it has t, {', '.join(columns)}; " in str(error.value) and str(error.value).endswith(f"name them: {line}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("position.{joint}", "must be QUANTITY=COLUMN, such as"),
        ("angle.{joint}=q{k}", "must begin with time or one of position.JOINT, "),
        ("position=q{k}", "must begin with time or one of position.JOINT, "),
    ],
)
def test_columns_in_another_form(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        column(text)


def test_names_with_colons() -> None:
    assert column("effort.{joint}=ns:tau:mNm") == Column("effort.{joint}", "ns:tau", "mNm")
    assert column("effort.{joint}=ns:tau") == Column("effort.{joint}", "ns:tau")


def test_columns_that_a_table_lacks(tmp_path: Path) -> None:
    path = table(tmp_path / "run.csv", ",".join(HEADER), ",")
    message = r"has no column q2 for position.joint_2, --column position.\{joint\}=q\{k\+1\}; .*it has t, q0, q1, "
    with pytest.raises(EomDynamicsError, match=message):
        read(path, "position.{joint}=q{k+1}")


def test_archives_with_an_array_for_each_quantity(tmp_path: Path) -> None:
    np.savez(tmp_path / "run.npz", time=T, q_measured=Q, torque=TAU, about=np.array(["x", "y"]), gains=np.ones((3, 3)))
    found = read(tmp_path / "run.npz", "position.{joint}=q_measured[{k}]", "effort.{joint}=torque[{k}]")
    np.testing.assert_array_equal([found.q, found.tau], [Q, TAU])


def data_set(folder: Path, names: Sequence[str] | None) -> Path:
    """A data set of two files and three episodes, whose times start at zero."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (folder / "meta").mkdir(parents=True)
    about: dict[str, Any] = {"observation.state": {"names": names}, "timestamp": {"names": None}}
    (folder / "meta" / "info.json").write_text(json.dumps({"features": about}), encoding="utf-8")
    for k, episodes in enumerate(([0, 1], [2])):
        file = folder / "data" / "chunk-000" / f"file-{k:03}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        count = len(episodes) * len(T)
        rows = {
            "observation.state": np.tile(np.hstack([Q, TAU]), (len(episodes), 1)).tolist(),
            "timestamp": np.tile(T, len(episodes)),
            "episode_index": np.repeat(episodes, len(T)),
            "task": ["pick"] * count,
        }
        parquet.write_table(pa.table(rows), file)
    return folder


@pytest.mark.parametrize("named", [True, False])
def test_data_sets_of_lerobot(named: bool, tmp_path: Path) -> None:
    names = ["joint_1.pos", "joint_2.pos", "joint_1.tau", "joint_2.tau"] if named else None
    folder = data_set(tmp_path / "set", names)
    with pytest.raises(EomDynamicsError, match="name them: --column"):
        read(folder)
    state = "observation.state"
    by_name = (f"position.{{joint}}={state}.{{joint}}.pos", f"effort.{{joint}}={state}.{{joint}}.tau")
    by_index = (f"position.{{joint}}={state}[{{k}}]", *(f"effort.joint_{k}={state}[{k + 1}]" for k in (1, 2)))
    found = read(folder, *(by_name if named else by_index))
    np.testing.assert_allclose([found.q, found.tau], np.tile([Q, TAU], (1, 3, 1)), rtol=0, atol=0)
    assert found.notes[0] == "LeRobot data set of 3 episodes, which count as 1 s apart"
    steps = np.diff(found.t)
    np.testing.assert_allclose(steps[[39, 79]], 1.0)
    np.testing.assert_allclose(np.delete(steps, [39, 79]), 0.01, atol=1e-9)
    one = read(folder / "data" / "chunk-000" / "file-001.parquet", *(by_name if named else by_index))
    np.testing.assert_array_equal(one.q, Q)


def test_data_sets_without_names_or_files(tmp_path: Path) -> None:
    folder = data_set(tmp_path / "set", None)
    (folder / "meta" / "info.json").write_text("[]", encoding="utf-8")
    with pytest.raises(EomDynamicsError, match=r"info\.json has no names of features"):
        read(folder)
    for file in folder.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(EomDynamicsError, match=r"has no data/\*\*/\*.parquet"):
        read(folder)


@SHARED
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("rtde_table/robot_data.csv", ("actual_q_{k}", "actual_qd_{k}", "actual_current_{k}")),
        ("rtde_table/echo_p.csv", ("field.position{k}", "field.velocity{k}", "field.effort{k}")),
        ("lerobot_parquet", tuple(f"observation.state.{{joint}}.{x}" for x in ("pos", "vel", "torque"))),
    ],
)
def test_tables_of_loggers(name: str, columns: Sequence[str], tmp_path: Path, run: Callable[..., Any], refused) -> None:
    """By construction the friction is viscous 0.2 and 0.1, Coulomb 0.3 and 0.2."""
    path = CASES / name
    command = ("identify", path, "--robot", CASES / "lerobot_parquet" / "arm.urdf", "-o", tmp_path / "arm.yaml")
    options = [f"{x}.{{joint}}={y}" for x, y in zip(("position", "velocity", "effort"), columns, strict=True)]
    line = " ".join(f"--column '{option}'" for option in options)
    assert f"name them: {line}" in refused(*command)
    run(*command, *(word for option in options for word in ("--column", option)), "--hold-out", 0)
    joints = eom.load_robot(tmp_path / "arm.yaml").joints
    friction = [(joint.actuator.friction.viscous, joint.actuator.friction.coulomb) for joint in joints]
    np.testing.assert_allclose(friction, [(0.2, 0.3), (0.1, 0.2)], rtol=0.01)


PLAN = {"joint_names": [*NAMES[::-1]], "points": [{"positions": [0.0, 0.1]}, {"positions": [1.0, 0.2]}]}


@pytest.mark.parametrize("ending", [".json", ".yaml"])
@pytest.mark.parametrize("kind", ["JointTrajectory", "RobotTrajectory", "DisplayTrajectory", "goal"])
def test_plans_in_messages(ending: str, kind: str, tmp_path: Path) -> None:
    message: dict[str, Any] = {
        "JointTrajectory": PLAN,
        "RobotTrajectory": {"joint_trajectory": PLAN, "multi_dof_joint_trajectory": {"points": []}},
        "DisplayTrajectory": {"model_id": "arm", "trajectory": [{"joint_trajectory": PLAN}]},
        "goal": {"trajectory": PLAN, "goal_tolerance": []},
    }[kind]
    path = tmp_path / f"plan{ending}"
    path.write_text(json.dumps(message) + ("\n---\n" if ending == ".yaml" else ""), encoding="utf-8")
    np.testing.assert_array_equal(read_waypoints(path, NAMES), [[0.1, 0.0], [0.2, 1.0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "points:\n- positions: [0.0, '...']\n",
            "is incomplete: ros2 topic echo writes all entries with --full-length",
        ),
        ("{", "is not YAML: "),
        ("model_id: arm\n", "has no points, nor joint_trajectory or trajectory with points"),
        ("trajectory: [{}, {}]\n", "has 2 trajectories; write one of them to a file"),
    ],
)
def test_plans_without_waypoints(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(EomDynamicsError, match=message):
        read_waypoints(tmp_path / "plan.yaml", NAMES)
