# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: text, JSON and warnings."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from urdf_arms import MASSLESS_TIP, urdf_arm

import eom_dynamics as eom
from eom_dynamics.elastic.limit_violations import IN_DEGREES
from eom_dynamics.kinematics import body_poses
from eom_dynamics.simulation import ElasticPlant, link_loop, outer_loop
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


def test_text_and_json_are_the_facts(capsys) -> None:
    expected = robot_facts(eom.load_robot("planar_2r"))
    assert main(["inspect", "planar_2r"]) == 0
    assert capsys.readouterr().out == facts_result(expected).as_text()
    assert main(["inspect", "planar_2r", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**expected, "warnings": []}


def test_expected_errors_of_an_uncertain_model(capsys) -> None:
    assert main(["inspect", "panda", "--uncertainty", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["uncertainty"] == {"stiffness": 0.02, "mass": 0.02, "rotor_inertia": 0.02}
    assert [row["natural_frequency"] for row in facts["feedforward"]] == [20.0, 70.0, 280.0]
    for row in facts["feedforward"]:
        assert row["errors"]["flatness"] == min(row["errors"].values()) and "flatness" in row["best"]
    assert main(["inspect", "panda", "--uncertainty", "2"]) == 0
    assert re.search(r"^70 +0\.635 +0\.0966 +0\.0763 +flatness$", capsys.readouterr().out, re.MULTILINE)
    assert main(["inspect", "panda", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["feedforward"] == []


def test_gains_and_margins(capsys) -> None:
    arguments = ["inspect", "sea_planar_2r", "--gains", "5", "--pose", "0.3", "-0.2"]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    plant = ElasticPlant(eom.ElasticArm(eom.load_robot("sea_planar_2r")))
    margins = link_loop(plant, [0.3, -0.2], 10 * np.pi).margins(0.0005)
    assert found["delay_is_assumed"] and found["loops"]["feedback linearization"] == asdict(margins)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if line.startswith("feedback linearization"))
    assert "for commands at 1 kHz" in lines[0] and row.split()[-2:] == [f"{margins.gain:.3g}", f"{margins.phase:.3g}"]
    outer = outer_loop(plant, [0.3, -0.2], 10 * np.pi, 0.0005)
    assert found["loops"]["links around this PD"] == asdict(outer.margins)
    assert found["outer_loop"]["gains"] == outer.F.tolist()
    assert lines[-2].startswith(
        "links around this PD: the PD is in the drives, without the delay; efforts of 2 motors from 10 "
    )
    # Of noise, drawn.
    n = np.random.default_rng(0).normal(scale=found["outer_loop"]["noise"], size=(20_000, 2))
    drawn = n[1:] @ outer.F[:, :2].T + np.diff(n, axis=0) / 1e-3 @ outer.F[:, 4:6].T
    assert found["outer_loop"]["effort_noise"] == pytest.approx(drawn.std(axis=0), rel=0.02)
    assert "noise of 0.01 mrad or mm of the links" in lines[-1]


def test_loops_that_cannot_be_closed_are_named(tmp_path: Path, capsys) -> None:
    file = changed(tmp_path, "sea_planar_2r", "robot:\n", "robot:\n      drive_delay: 0.05\n")
    assert main(["inspect", file, "--gains", "5"]) == 0
    output = capsys.readouterr().out
    (row,) = (line for line in output.splitlines() if line.startswith("feedback linearization  "))
    assert row.split()[-2:] == ["unstable", "unstable"]
    assert "50 ms, of the robot" in output and "PD of the motors: unstable at rest under the delay of 50 ms" in output


@pytest.mark.parametrize("name", ["arm.urdf", "elastic_below"])
def test_gains_of_rigid_joints(name: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "arm.urdf").write_text(urdf_arm())
    file = str(tmp_path / name) if name == "arm.urdf" else changed(tmp_path, "planar_2r", r" +elasticity: .*\n", "")
    assert main(["inspect", file, "--gains", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["motors"]) == 2 and all(motor["kp"] > 0 for motor in found["motors"])
    assert "springs at all joints; rigid: " in found["loops"]["feedback linearization"]["refused"]
    outer = found["loops"]["links around this PD"]
    assert ("no springs" in outer["refused"]) if name == "arm.urdf" else "gain" in outer
    assert main(["inspect", file, "--gains", "5"]) == 0


def test_gains_come_with_warnings(tmp_path: Path, capsys) -> None:
    file = changed(tmp_path, "sea_planar_2r", "stiffness: 400.0", "stiffness: 6.98")
    expected = "stiffness 6.98 may be per degree: in N m/rad that is 399.9"
    assert main(["inspect", file, "--gains", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["implausible"][0].endswith(expected)
    assert main(["inspect", file, "--gains", "314"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "of 314 Hz (1973 rad/s)" in lines[0] and lines[-1].endswith(expected)
    assert lines[-2].endswith("a tenth of the 1000 commands a second; in rad/s, it is 49.97 Hz")


def test_poses_beyond_the_ranges(capsys, refused) -> None:
    assert f"fer_joint4 is -90 rad, its range -3.072 to -0.0698 rad, {IN_DEGREES}" in refused(
        "inspect", "panda", "--pose", "0", "0", "0", "-90", "0", "90", "0"
    )
    assert main(["inspect", "panda", "--pose", "0", "0", "0", "1", "0", "1", "0", "--json"]) == 0
    output = capsys.readouterr()
    (text,) = json.loads(output.out)["warnings"]
    assert (
        text == "--pose: fer_joint4 is 1 rad, its range -3.072 to -0.0698 rad, which it exceeds" and text in output.err
    )


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


def test_poses_of_the_tools(capsys) -> None:
    q = np.array([0.1, -0.2, 0.3, -1.2, 0.5, 1.6, -0.7])
    arguments = ["inspect", "iiwa", "--pose", *map(str, q)]
    robot = eom.load_robot("iiwa")
    pose = body_poses(robot, q)[robot.tools[0].joint] @ robot.tools[0].pose
    assert main([*arguments, "--json"]) == 0
    (tool,) = json.loads(capsys.readouterr().out)["tools"]
    assert tool["name"] == robot.tools[0].name
    np.testing.assert_allclose(tool["position"], pose[:3, 3], rtol=0, atol=1e-15)
    np.testing.assert_allclose(Rotation.from_quat(tool["quaternion"]).as_matrix(), pose[:3, :3], rtol=0, atol=1e-14)
    np.testing.assert_allclose(Rotation.from_euler("xyz", tool["rpy"]).as_matrix(), pose[:3, :3], rtol=0, atol=1e-14)
    assert main(arguments) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.startswith("tool") and row.split()[1:4] == [f"{x:.6f}" for x in pose[:3, 3]]


def test_manipulability_is_of_six_joints_and_more(capsys) -> None:
    assert main(["inspect", "planar_2r", "--pose", "0.4", "1.1"]) == 0
    assert capsys.readouterr().out.split()[-1] == "-"
    assert main(["inspect", "planar_2r", "--pose", "0.4", "1.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tools"][0]["manipulability"] is None
    q = [0.1, -1.2, 1.3, 0.4, 0.9, 0.6]
    J = eom.Kinematics(eom.load_robot("ur5e")).jacobian(q)
    assert main(["inspect", "ur5e", "--pose", *map(str, q)]) == 0
    assert float(capsys.readouterr().out.split()[-1]) == pytest.approx(abs(np.linalg.det(J)), rel=1e-3)


def test_equations_of_motion(capsys) -> None:
    lagrange = eom.lagrange
    robot = eom.load_robot("planar_pr")
    for language in ("latex", "c"):
        assert main(["inspect", "planar_pr", "--equations", language, "--symbols"]) == 0
        system = lagrange.robot_lagrangian(robot, symbols=True)
        expected = lagrange.latex(system) if language == "latex" else lagrange.code(system, language)
        assert capsys.readouterr().out == expected
    elastic = lagrange.robot_lagrangian(eom.load_robot("pendulum"), motors=True, friction=True)
    assert main(["inspect", "pendulum", "--equations", "python", "--order", "2", "--motors", "--friction"]) == 0
    assert capsys.readouterr().out == lagrange.code(elastic, "python", 2)
    assert main(["inspect", "planar_pr", "--equations"]) == 0  # in LaTeX
    assert "4.5" in capsys.readouterr().out  # the mass of both bodies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "ROBOT or --template"),
        ("iiwa --template", "--template goes with a .urdf or another file"),
        ("iiwa --gains -3", "argument --gains: must be positive, is -3"),
        ("planar_2r --pose 0.1", "--pose requires 2 joint variables, has 1: joint_1, joint_2"),
        ("planar_2r --pose 0.1 nan", "--pose: must be finite, is nan"),
        ("panda --uncertainty 2 --gains 5", "--uncertainty goes with none of"),
        ("iiwa --equations c", "--equations takes at most 5 joints, iiwa has 7"),
        ("planar_pr --equations c --json", "--equations goes with none of --json, --pose and --gains"),
        ("planar_pr --symbols", "--symbols goes with --equations"),
        ("planar_pr --order 2", "--order goes with --equations"),
    ],
)
def test_wrong_use(arguments: str, message: str, refused) -> None:
    assert message in refused("inspect", *arguments.split())


def test_a_massless_last_link_is_shown_with_a_warning(tmp_path: Path, capsys) -> None:
    (tmp_path / "arm.urdf").write_text(MASSLESS_TIP)
    assert main(["inspect", str(tmp_path / "arm.urdf")]) == 0
    output = capsys.readouterr()
    assert "forward_dynamics: unavailable, since the mass matrix is singular" in output.out
    assert "effort" in output.out and "no mass moves with j2" in output.err and "Traceback" not in output.err
