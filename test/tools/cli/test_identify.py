# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics identify``: files, tables, JSON, exit codes and errors; URDFs with identified inertias."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from excited import recording, true_robot
from paths import PANDA_BAG

from eom_dynamics import Dynamics, ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.identification import Options
from eom_dynamics.identification.links.filtering import default_filter
from eom_dynamics.identification.links.parameters import with_link_parameters
from eom_dynamics.robot.model import STANDARD_GRAVITY
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.tools.cli.identify import patched_urdf

QUICK = ["--cutoff", "8"]

HEADER = "t,position.joint_1,position.joint_2,effort.joint_1,effort.joint_2"

# RMS of plain weighted least squares on the last 30 % of the recording, to two digits; N m.
PANDA = np.array([0.36, 0.36, 0.31, 0.35, 0.12, 0.09, 0.06])


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    robot = load_robot("sea_planar_2r")
    source = recording(robot, true_robot(robot), rate=100.0, duration=25.0)
    rows = np.column_stack([source.t, source.q, source.tau])
    return write(tmp_path_factory.mktemp("recording") / "run.csv", rows)


def write(path: Path, rows: np.ndarray, header: str = HEADER) -> Path:
    np.savetxt(path, rows, delimiter=",", header=header, comments="")
    return path


@pytest.fixture
def identify(run) -> Callable[..., Any]:
    def identify(table: Path, output: Path, *others: str, code: int = 0) -> Any:
        return run("identify", table, "--robot", "sea_planar_2r", "-o", output, *QUICK, "--verbose", *others, code=code)

    return identify


def test_tables_and_robot_file(table: Path, tmp_path: Path, identify) -> None:
    output, page = tmp_path / "arm.yaml", tmp_path / "page.html"
    out, err = identify(table, output, "--hold-out", "0.3", "--tolerance", "10", "--page", str(page))
    assert err == ""
    assert "cut-off 8.00 Hz, differences of positions" in out
    assert f"note: {table.name}: links: positions of position.NAME, efforts of effort.NAME" in out
    assert out.count("joint_1") == 5  # samples, training, validation, terms, and a note on offsets
    text = output.read_text()
    assert text.startswith("# Identified by eom_dynamics identify") and "convert" not in text
    assert "# validation: 0.3 of each, in blocks" in text
    assert re.search(r"# body +m \[kg\] .*\n# joint_1 .*\n# joint_2 +1\.\d+ +[-–\d]", text)
    assert "offset [N m]" in text and "constant_effort: " in text
    robot, true = load_robot(output), true_robot(load_robot("sea_planar_2r"))
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 30, 2))
    ours, desired = (Dynamics(r, friction=True).effort(q, qd, qdd) for r in (robot, true))
    assert np.sqrt(np.mean((ours - desired) ** 2)) < 0.02 * np.std(desired)
    html = page.read_text()
    assert "Identification of sea_planar_2r" in html and "Izz1 + 0.25 m2" in html and "friction_1" in html


def test_held_out_by_default(table: Path, tmp_path: Path, identify) -> None:
    """A fifth, in blocks; a recording of a few seconds is validated as a whole, and others on request."""
    out, err = identify(table, tmp_path / "a.yaml", "--json", "--tolerance", "1e-6", code=1)
    (line, _) = (line for line in err.splitlines() if "failed" in line)
    assert re.fullmatch(r".*: failed: RMS validation residual of joint_1 is 0\.\d+ N m, tolerance 1e-06", line)
    found = json.loads(out)
    count = {part: found[part]["samples"] for part in ("training", "validation")}
    assert 0.15 < count["validation"] / sum(count.values()) < 0.25
    assert "motions" not in err
    assert found["joints"] == ["joint_1", "joint_2"]
    for part in count:
        assert np.all(np.less(found[part]["rms_after"], np.multiply(0.1, found[part]["rms_before"])))
    assert found["terms"]["viscous"]["deviations"][0] > 0
    assert set(found) == {
        *("joints", "cutoff", "measured_velocity", "prior_weight", "training", "validation", "sensor_bias", "kept"),
        *("terms", "parameters", "elastic", "timing"),
    }
    assert len(found["parameters"]["values"]) == 20
    assert identify(table, tmp_path / "b.yaml", "--hold-out", "0", "--json").json["validation"] is None
    short = rewritten(table, tmp_path / "short.csv", lambda rows: rows[:700])
    out, err = identify(short, tmp_path / "c.yaml", "--json", code=1)
    assert json.loads(out)["validation"] is None
    first = next(line for line in err.splitlines() if "failed" in line)
    assert "failed: not validated: the recording, or its motion, is too short to hold out" in first
    identify(short, tmp_path / "d.yaml", "--hold-out", "0")


def test_urdf(table: Path, tmp_path: Path, identify) -> None:
    assert "springs (elasticity) are omitted" in identify(table, tmp_path / "arm.urdf").err
    assert load_robot(tmp_path / "arm.urdf").joints[0].damping > 0.4
    # In a URDF, friction of motors becomes joint friction.
    out, err = identify(table, tmp_path / "motors.urdf", "--side", "motor")
    assert "load the URDF with joint_friction: included" in err
    assert "note: springs stay as in the file: efforts of the motor side alone say nothing of them" in out
    assert load_robot(tmp_path / "motors.urdf").joints[0].damping > 1
    # Without its constant efforts the URDF predicts worse than the robot that was given.
    identify(table, tmp_path / "arm.yaml")
    options = ("--terms", "offset")
    err = identify(table, tmp_path / "worse.urdf", "--robot", str(tmp_path / "arm.yaml"), *options, code=1).err
    assert "failed: no file is written" in err and not (tmp_path / "worse.urdf").exists()
    assert "constant efforts are omitted" in err


def rewritten(table: Path, path: Path, change: Change) -> Path:
    """Write a table with other rows."""
    return write(path, change(np.loadtxt(table, delimiter=",", skiprows=1)))


Change = Callable[[np.ndarray], np.ndarray]  # a change of the rows of a table with the columns t, q1, q2, tau1, tau2


def with_column(column: int, value: float, rows: slice = slice(None)) -> Change:
    """Another value in some rows of a column."""

    def change(table: np.ndarray) -> np.ndarray:
        table[rows, column] = value
        return table

    return change


def scaled(*factors: float) -> Change:
    return lambda rows: rows * factors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:0], "has no rows of numbers; its columns are t, position.JOINT and effort.JOINT"),
        (scaled(0, 1, 1, 1, 1), "has 1 samples with increasing times, at least 40"),
        (scaled(1e-6, 1, 1, 1, 1), "too short for a cut-off of 8 Hz"),
        (scaled(1e3, 1, 1, 1, 1), "samples are 10 s apart, more than 0.5 s: write times in s"),
        (scaled(1e9, 1, 1, 1, 1), "samples are 1e+07 s apart, more than 0.5 s: write times in s"),
        (with_column(0, np.nan), "has 0 samples with increasing times, at least 40 are needed: 2,500 messages or rows"),
        (
            with_column(1, np.nan),
            "has 0 samples with increasing times, at least 40 are needed: 2,500 samples are not finite",
        ),
    ],
)
def test_useless_recordings(change: Change, message: str, table: Path, tmp_path: Path, identify) -> None:
    path = rewritten(table, tmp_path / "run.csv", change)
    (line,) = identify(path, tmp_path / "arm.yaml", code=2).err.splitlines()
    assert f"run.csv: {message}" in line
    assert not (tmp_path / "arm.yaml").exists()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (with_column(4, np.nan), "joint_2 has no effort, or the same throughout; its equations are not used"),
        (with_column(4, np.nan, slice(100, 300)), ""),
        (with_column(0, np.nan, slice(0, 20)), "20 messages or rows could not be read"),
        (with_column(0, 1e300, slice(100, 120)), "20 messages or rows could not be read"),
        (lambda rows: rows + [[3e9 * (k > 700), 0, 0, 0, 0] for k in range(len(rows))], "separate 2 motions"),
        (np.random.default_rng(0).permutation, "samples are not in the order of their times; sorted"),
        (scaled(1, 57.3, 57.3, 1, 1), "if that was in degrees: --position-unit deg"),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bad_recordings_tell_what_they_can(change: Change, note: str, table: Path, tmp_path: Path, identify) -> None:
    path = rewritten(table, tmp_path / "run.csv", change)
    out, err = identify(path, tmp_path / "arm.yaml")
    notes = [line for line in out.splitlines() if line.startswith("note: ")]
    assert err == "" and (not note or sum(note in line for line in notes) == 1)
    assert "inf" not in out and "nan" not in out
    load_robot(tmp_path / "arm.yaml", unphysical="refuse")


def with_noise(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows[:, :3], 9 * np.random.default_rng(0).standard_normal((len(rows), 2))])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (scaled(1, 1, 1, -1, 1), "efforts of joint_1 have the opposite sign of the file's prediction: --effort-scale"),
        (with_noise, "no parameters of this robot explain the efforts of most joints; check topic"),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_recordings_that_contradict_the_file(change: Change, words: str, table: Path, tmp_path: Path, identify) -> None:
    """Nothing is identified, an error gives the reason, and no file is written; no other figures are shown."""
    path = rewritten(table, tmp_path / "run.csv", change)
    out, err = identify(path, tmp_path / "arm.yaml", "--hold-out", "0.3", "--json", code=1)
    first, second = (line for line in err.splitlines() if "failed" in line)
    assert "failed: no file is written" in first and f"failed: {words}" in second
    found = json.loads(out)
    assert found["kept"] == ["joint_1", "joint_2"] and found["parameters"] is None
    assert "inf" not in out and "NaN" not in out
    assert not (tmp_path / "arm.yaml").exists()


def test_contradictions_are_ignored_on_request(table: Path, tmp_path: Path, identify) -> None:
    wrong = rewritten(table, tmp_path / "run.csv", lambda rows: rows * [1, 1, 1, -1, -1])
    identify(wrong, tmp_path / "arm.yaml", "--suspect", "use")
    assert load_robot(tmp_path / "arm.yaml", unphysical="refuse").joint_friction
    turned = ("--effort-scale", "-1")
    identify(wrong, tmp_path / "turned.yaml", *turned)
    right = rewritten(table, tmp_path / "right.csv", lambda rows: rows)
    out, err = identify(right, tmp_path / "again.yaml", *turned, code=1)
    assert out.startswith("no file is written") and "weight" not in out
    assert "--effort-scale -1 turns them; multiply the present scale by it" in err


def test_a_contradiction_that_held_out_motion_overrules(table: Path, tmp_path: Path, identify) -> None:
    """Efforts of ten times the size are in another unit, or of an arm of ten times the masses."""
    heavy = rewritten(table, tmp_path / "heavy.csv", lambda rows: rows * [1, 1, 1, 10, 10])
    assert "failed: no file is written" in identify(heavy, tmp_path / "kept.yaml", code=1).err
    printed = identify(heavy, tmp_path / "used.yaml", "--suspect", "use")
    assert "failed" not in printed.err and re.search("note: .* --effort-scale", printed.out)
    assert load_robot(tmp_path / "used.yaml").joints[0].mass > 5 * load_robot("sea_planar_2r").joints[0].mass


def test_kept_joints_are_named(table: Path, tmp_path: Path, identify) -> None:
    """Joints that the given file predicts better."""
    first = tmp_path / "first.yaml"
    identify(table, first)
    rows = np.loadtxt(table, delimiter=",", skiprows=1)
    other = write(tmp_path / "other.csv", rows + [0, 0, 0, 3, 0.5] * (rows[:, :1] > 0))
    options = ("--robot", str(first), "--terms", "offset")
    printed = identify(other, tmp_path / "arm.yaml", "--validate", str(table), *options, code=1)
    assert "failed: no file is written" in printed.err
    line = (
        r"note: joint_\d keeps the given parameters: .* predict validation efforts to (\S+) N m, given ones to (\S+) "
    )
    figures = [tuple(map(float, x)) for x in re.findall(line, printed.out)]
    assert len(figures) == 2 and all(rejected > before for rejected, before in figures)


def test_options_without_effect(table: Path, tmp_path: Path, identify) -> None:
    arguments = ["--topic", "a", "--effort-topic", "b", "--spring-law", "cubic"]
    out = identify(table, tmp_path / "arm.yaml", *arguments).out
    for option in ("--topic", "--effort-topic"):
        assert out.count(f"note: {option} has no effect: a table has no topics") == 1
    assert out.count("note: --spring-law has no effect: no springs are identified") == 1
    assert "no effect" not in identify(table, tmp_path / "other.yaml").out


def test_page_of_a_joint_that_is_locked(table: Path, tmp_path: Path, identify) -> None:
    """Unknown parameters keep the values of the file, without rounding errors, and notes are a single list."""
    rows = np.loadtxt(table, delimiter=",", skiprows=1)[:, [0, 1, 3]]
    recorded = write(tmp_path / "first.csv", rows, "t,position.joint_1,effort.joint_1")
    output, page = tmp_path / "arm.yaml", tmp_path / "page.html"
    assert "joint_2 of the robot was not recorded" in identify(recorded, output, code=2).err and not output.exists()
    identify(recorded, output, "--page", str(page), "--locked", "joint_2=0")
    html = page.read_text()
    kept = '<td class="number">as in the file</td>'
    assert f"<tr><td>joint_2</td>{kept}{kept}" in html
    assert ">0 ± ?" not in html and re.search("joint_2", output.read_text())
    assert html.count("<details><summary>") == 1 and 'class="warning"' not in html
    assert "Friction over velocity" in html


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is missing")
def test_panda(tmp_path: Path, capsys, run) -> None:
    """A real arm, validated on the part of the recording that was held out, with the defaults of the command."""
    output = tmp_path / "panda.yaml"
    arguments = ["identify", str(PANDA_BAG), "--robot", "panda", "-o", str(output), "--hold-out", "0.3", "--json"]
    found = run(*arguments).json
    after = np.array(found["validation"]["rms_after"])
    with capsys.disabled():
        print("\nPanda, RMS residual held out, N m:", *(f"{x:.3f}" for x in after))
    assert np.all(after <= PANDA)
    assert all(joint.mass > 0 for joint in load_robot(output, unphysical="refuse").joints)


URDF = """<?xml version="1.0"?>
<robot name="arm">
  <!-- of the workshop -->
  <link name="base">
    <inertial><mass value="3"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link>
  <link name="upper">
    <inertial><origin xyz="0 0 0.1"/><mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <visual><geometry><box size="1 2 3"/></geometry></visual>
  </link>
  <link name="cover">
    <inertial><mass value="0.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  </link>
  <link name="fore">
    <inertial><origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/><mass value="1"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>
  </link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/><dynamics damping="1" friction="2"/></joint>
  <joint name="screws" type="fixed"><parent link="upper"/><child link="cover"/><origin xyz="0 0.1 0.2"/></joint>
  <joint name="elbow" type="revolute"><parent link="cover"/><child link="fore"/><origin xyz="0 0 0.3"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="3"/></joint>
</robot>
"""


def test_patched() -> None:
    robot = load_robot(URDF)
    true = true_robot(robot)
    text = patched_urdf(URDF, true)
    again = load_robot(text)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 20, 2))
    ours, desired = (Dynamics(r, friction=True, backend="numpy").effort(q, qd, qdd) for r in (again, true))
    np.testing.assert_allclose(ours, desired, atol=1e-12)
    for kept in ("<!-- of the workshop -->", '<box size="1 2 3"', 'lower="-2"', '<mass value="3"'):
        assert kept in text
    assert text.count("<inertial>") == 3  # base, upper with its cover, fore


def test_other_files() -> None:
    for text, message in (("<robot", "not a URDF"), (URDF.replace("elbow", "knee"), "the URDF has no joint elbow")):
        with pytest.raises(RobotDescriptionError, match=message):
            patched_urdf(text, load_robot(URDF))


def test_massless_bodies_stay_so() -> None:
    robot = load_robot(URDF)
    light = replace(robot.joints[0], mass=0.0, center_of_mass=np.zeros(3), inertia_about_origin=np.zeros((3, 3)))
    text = patched_urdf(URDF, replace(robot, joints=(light, robot.joints[1])))
    assert text.count("<inertial>") == 2


def by_mujoco(text: str, q: Array, qd: Array, qdd: Array) -> Array:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.gravity[:] = STANDARD_GRAVITY  # a URDF has none
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
    mujoco.mj_inverse(model, data)
    return np.array(data.qfrc_inverse)


def by_pinocchio(text: str, q: Array, qd: Array, qdd: Array) -> Array:
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(text)
    model.gravity.linear = np.array(STANDARD_GRAVITY)
    rigid = pinocchio.rnea(model, model.createData(), q, qd, qdd)
    return np.array(rigid + model.damping * qd + model.friction * np.sign(qd))


@pytest.mark.parametrize("joint_friction", [False, True], ids=["ignored", "included"])
@pytest.mark.parametrize("side", ["joint", "motor"])
def test_friction_that_was_identified_is_the_only_one(side: str, joint_friction: bool) -> None:
    """MuJoCo and Pinocchio, which apply it, predict the efforts of the identified robot from its files.

    The shoulder of the URDF has a damping of 1 and a friction of 2; it is identified with 0.3 and 0.1.
    """
    given = load_robot(URDF)
    if joint_friction:
        given = Dynamics(given, friction=True, backend="numpy").robot
    options = Options(side=side).for_robot(given)
    terms = {"viscous": np.array([0.3, 0.2]), "coulomb": np.array([0.1, 0.4])}
    pi = Dynamics(given, backend="numpy").inertial_parameters
    robot = with_link_parameters(given, options, default_filter(given, 5.0, motor_side=side == "motor"), pi, terms)
    arm = ElasticArm(robot)
    patched, urdf, mjcf = patched_urdf(URDF, robot), robot_as_urdf(robot), robot_as_mjcf(robot)
    assert any("joint_friction: included" in line for line in urdf.lost)
    for q, qd, qdd in np.random.default_rng(0).uniform(-1, 1, (5, 3, 2)):
        qd = qd + np.copysign(0.5, qd)  # tanh is then a sign
        # A URDF without friction, and the identified friction.
        expected = Dynamics(given, friction=False, backend="numpy").effort(q, qd, qdd)
        expected = expected + terms["viscous"] * qd + terms["coulomb"] * np.sign(qd)
        np.testing.assert_allclose(arm.feedforward(q, qd, qdd, 0 * q, 0 * q).motor_effort, expected, atol=1e-12)
        for found in (
            *(by_mujoco(patched, q, qd, qdd), by_mujoco(urdf.text, q, qd, qdd), by_mujoco(mjcf.text, q, qd, qdd)),
            *(by_pinocchio(patched, q, qd, qdd), by_pinocchio(urdf.text, q, qd, qdd)),
        ):
            np.testing.assert_allclose(found, expected, atol=1e-9)
