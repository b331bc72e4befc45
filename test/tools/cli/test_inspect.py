# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: text, JSON, warnings and the template of parameter files."""

import re
from dataclasses import asdict
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from urdf_arms import MASSLESS_TIP, urdf_arm

import eom_dynamics as eom
from eom_dynamics import Dynamics, ElasticArm, load_robot
from eom_dynamics.elastic.limit_violations import IN_DEGREES
from eom_dynamics.kinematics import body_poses
from eom_dynamics.simulation import ElasticPlant, motor_loop, outer_loop
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.inspect.facts import facts_result, robot_facts


def changed(folder: Path, name: str, pattern: str, text: str) -> str:
    """The file of a packaged robot with another text in place of the first match."""
    packaged = (resources.files(eom) / "config" / f"{name}.yaml").read_text(encoding="utf-8")
    (folder / "arm.yaml").write_text(re.sub(pattern, text, packaged, count=1), encoding="utf-8")
    return str(folder / "arm.yaml")


_PARAMETERS = """
/**:
  ros__parameters:
    robot:
      {name: arm, joint_names: [a], convention: body_screws, inertia_reference: com, joints: {a: {type: revolute,
       screw: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], origin: ORIGIN, mass: 1.0, center_of_mass: [0.1, 0.0, 0.0],
       inertia: [0.01, 0.0, 0.0, 0.01, 0.0, 0.01]}}}
"""


def test_text_and_json_are_the_facts(run) -> None:
    expected = robot_facts(eom.load_robot("planar_2r"))
    assert run("inspect", "planar_2r").out == facts_result(expected).as_text()
    assert run("inspect", "planar_2r", "--json").json == {**expected, "warnings": []}


def test_expected_errors_of_an_uncertain_model(run) -> None:
    facts = run("inspect", "panda", "--uncertainty", "2", "--json").json
    assert facts["uncertainty"] == {"stiffness": 0.02, "mass": 0.02, "rotor_inertia": 0.02}
    assert [row["natural_frequency"] for row in facts["feedforward"]] == [20.0, 70.0, 280.0]
    for row in facts["feedforward"]:
        assert row["errors"]["flatness"] == min(row["errors"].values()) and "flatness" in row["best"]
    text = run("inspect", "panda", "--uncertainty", "2").out
    assert re.search(r"^70 +0\.635 +0\.0966 +0\.0763 +flatness$", text, re.MULTILINE)
    assert run("inspect", "panda", "--json").json["feedforward"] == []


def test_gains_and_margins(run) -> None:
    arguments = ["inspect", "sea_planar_2r", "--gains", "5", "--pose", "0.3", "-0.2"]
    found = run(*arguments, "--json").json
    plant = ElasticPlant(eom.ElasticArm(eom.load_robot("sea_planar_2r")))
    margins = motor_loop(plant, [0.3, -0.2], 10 * np.pi).margins(0.0005)
    assert found["delay_is_assumed"] and found["loops"]["PD of the motors"] == asdict(margins)
    lines = run(*arguments).out.splitlines()
    (row,) = (line for line in lines if line.startswith("PD of the motors"))
    assert "for commands at 1 kHz" in lines[0] and row.split()[-2:] == [f"{margins.gain:.3g}", f"{margins.phase:.3g}"]
    outer = outer_loop(plant, [0.3, -0.2], 10 * np.pi, 0.0005)
    assert found["loops"]["links around this PD"] == asdict(outer.margins)
    assert found["outer_loop"]["gains"] == outer.F.tolist()
    assert "the PD is in the drives, without the delay; efforts of 2 motors from 10 " in lines[-2]
    # Of noise, drawn.
    n = np.random.default_rng(0).normal(scale=found["outer_loop"]["noise"], size=(20_000, 2))
    drawn = n[1:] @ outer.F[:, :2].T + np.diff(n, axis=0) / 1e-3 @ outer.F[:, 4:6].T
    assert found["outer_loop"]["effort_noise"] == pytest.approx(drawn.std(axis=0), rel=0.02)
    assert "noise of 0.01 mrad or mm of the links" in lines[-1]


def test_loops_that_cannot_be_closed_are_named(tmp_path: Path, run) -> None:
    file = changed(tmp_path, "sea_planar_2r", "robot:\n", "robot:\n      drive_delay: 0.05\n")
    output = run("inspect", file, "--gains", "5").out
    (row,) = (line for line in output.splitlines() if line.startswith("PD of the motors  "))
    assert row.split()[-2:] == ["unstable", "unstable"]
    assert "50 ms, of the robot" in output and "PD of the motors: unstable at rest under the delay of 50 ms" in output


@pytest.mark.parametrize("name", ["arm.urdf", "elastic_below"])
def test_gains_of_rigid_joints(name: str, tmp_path: Path, run) -> None:
    (tmp_path / "arm.urdf").write_text(urdf_arm())
    file = str(tmp_path / name) if name == "arm.urdf" else changed(tmp_path, "planar_2r", r" +elasticity: .*\n", "")
    found = run("inspect", file, "--gains", "5", "--json").json
    assert len(found["motors"]) == 2 and all(motor["kp"] > 0 for motor in found["motors"])
    outer = found["loops"]["links around this PD"]
    assert ("no springs" in outer["refused"]) if name == "arm.urdf" else "gain" in outer
    assert main(["inspect", file, "--gains", "5"]) == 0


def test_gains_come_with_warnings(tmp_path: Path, run) -> None:
    file = changed(tmp_path, "sea_planar_2r", "stiffness: 400.0", "stiffness: 6.98")
    expected = "stiffness 6.98 may be per degree: in N m/rad that is 399.9"
    assert run("inspect", file, "--gains", "5", "--json").json["implausible"][0].endswith(expected)
    lines = run("inspect", file, "--gains", "314").out.splitlines()
    assert "of 314 Hz (1973 rad/s)" in lines[0] and lines[-1].endswith(expected)
    assert lines[-2].endswith("a tenth of the 1000 commands a second; in rad/s, it is 49.97 Hz")


def test_poses_beyond_the_ranges(run, refused) -> None:
    line = refused("inspect", "panda", "--pose", 0, 0, 0, -90, 0, 90, 0)
    assert f"fer_joint4 is -90 rad, its range -3.072 to -0.0698 rad, {IN_DEGREES}" in line
    output = run("inspect", "panda", "--pose", 0, 0, 0, 1, 0, 1, 0, "--json")
    text = "--pose: fer_joint4 is 1 rad, its range -3.072 to -0.0698 rad, which it exceeds"
    assert output.json["warnings"] == [text] and text in output.err


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (urdf_arm().replace('rpy="0.4 0 0"', 'rpy="0 0 90"'), "joint elbow: <origin>: rpy"),
        (_PARAMETERS.replace("ORIGIN", "{xyz: [0.0, 0.0, 0.0], rpy: [0.0, -45.0, 0.0]}"), "robot.joints.a.origin: rpy"),
        (_PARAMETERS.replace("origin: ORIGIN", "dh: {a: 0.3, alpha: 90.0, d: 0.0, theta: 0.5}"), "robot.joints.a.dh"),
    ],
)
def test_angles_in_degrees_are_told(text: str, where: str) -> None:
    if "dh:" in text:
        text = text.replace("body_screws", "dh").replace("screw: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], ", "")
    with pytest.warns(eom.RobotDescriptionWarning, match=f"{where}: angle -?[49][05] rad is more than a turn"):
        eom.load_robot(text)


def test_poses_of_the_tools(run) -> None:
    q = np.array([0.1, -0.2, 0.3, -1.2, 0.5, 1.6, -0.7])
    arguments = ["inspect", "iiwa", "--pose", *map(str, q)]
    robot = eom.load_robot("iiwa")
    pose = body_poses(robot, q)[robot.tools[0].joint] @ robot.tools[0].pose
    (tool,) = run(*arguments, "--json").json["tools"]
    assert tool["name"] == robot.tools[0].name
    np.testing.assert_allclose(tool["position"], pose[:3, 3], rtol=0, atol=1e-15)
    np.testing.assert_allclose(Rotation.from_quat(tool["quaternion"]).as_matrix(), pose[:3, :3], rtol=0, atol=1e-14)
    np.testing.assert_allclose(Rotation.from_euler("xyz", tool["rpy"]).as_matrix(), pose[:3, :3], rtol=0, atol=1e-14)
    header, row = run(*arguments).out.splitlines()
    assert header.startswith("tool") and row.split()[1:4] == [f"{x:.6f}" for x in pose[:3, 3]]


def test_manipulability_is_of_six_joints_and_more(run) -> None:
    assert run("inspect", "planar_2r", "--pose", "0.4", "1.1").out.split()[-1] == "-"
    assert run("inspect", "planar_2r", "--pose", "0.4", "1.1", "--json").json["tools"][0]["manipulability"] is None
    q = [0.1, -1.2, 1.3, 0.4, 0.9, 0.6]
    J = eom.Kinematics(eom.load_robot("ur5e")).jacobian(q)
    shown = run("inspect", "ur5e", "--pose", *q).out.split()[-1]
    assert float(shown) == pytest.approx(abs(np.linalg.det(J)), rel=1e-3)


def test_a_massless_last_link_is_shown_with_a_warning(tmp_path: Path, run) -> None:
    (tmp_path / "arm.urdf").write_text(MASSLESS_TIP)
    output = run("inspect", str(tmp_path / "arm.urdf"))
    assert "forward_dynamics: unavailable, since the mass matrix is singular" in output.out
    assert "effort" in output.out and "no mass moves with j2" in output.err and "Traceback" not in output.err


def template(run) -> str:
    output = run("inspect", "--template")
    assert not output.err
    return output.out


@pytest.mark.filterwarnings("error")
def test_the_template_loads_as_it_is(tmp_path: Path, run) -> None:
    path = tmp_path / "my_arm.yaml"
    path.write_text(template(run))
    robot = load_robot(path)
    assert robot.joint_names == ("shoulder", "elbow") and [tool.name for tool in robot.tools] == ["gripper"]


def test_optional_entries_of_the_template_load(run) -> None:
    lines = [line for line in template(run).splitlines() if "# urdf:" not in line and "# mimic:" not in line]
    text = "\n".join(re.sub(r"^( +)# (?=[ a-z_]+: |[ a-z_]+:$| +effort_rate)", r"\1", line) for line in lines)
    with_springs = load_robot(re.sub(r"(?m)^ +coupled_stiffness:.*\n", "", text))
    assert with_springs.joints[0].limits.effort_rate == 1000 and np.isfinite(with_springs.joints[0].stiffness)
    assert with_springs.joints[0].actuator.motor.voltage_limit == 48 and with_springs.joints[1].mass == 3
    assert with_springs.joints[0].actuator.friction.presliding_distance == 1e-4
    assert ElasticArm(with_springs).transmission is not None
    assert load_robot(re.sub(r"(?m)^ +elasticity:.*\n", "", text)).coupled_stiffness is not None


def test_a_urdf_is_completed_by_springs_and_motors(tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my arm.urdf").write_text(urdf_arm(joints=("off", "2nd", "hand")))
    text = run("inspect", "my arm.urdf", "--template", "--tip", "2nd_link").out
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere/my_arm.yaml"
    path.write_text(text)
    robot, alone = load_robot(path), load_robot("my arm.urdf", tip="2nd_link")
    assert robot.joint_names == alone.joint_names == ("off", "2nd") and np.isinf(robot.stiffness).all()
    q = np.array([0.3, -0.2])
    np.testing.assert_array_equal(Dynamics(robot).effort(q, q, q), Dynamics(alone).effort(q, q, q))
    filled = re.sub(r"(?m)^( +)# (?=[ a-z_]+: |[ a-z_]+:$)", r"\1", text).replace(
        "rotor_inertia: 0.0", "rotor_inertia: 0.2"
    )
    path.write_text(filled)
    robot = load_robot(path)
    assert robot.command_period == 1e-3
    arm = ElasticArm(robot)
    assert arm.stiffness.tolist() == [1e4, 1e4] and arm.rotor_inertia.tolist() == [0.2, 0.2]
    assert arm.motor.voltage_limit.tolist() == [48.0, 48.0]
