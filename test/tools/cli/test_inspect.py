# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: text, JSON and warnings."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from urdf_arms import MASSLESS_TIP

import eom_dynamics as eom
from eom_dynamics.kinematics import body_poses
from eom_dynamics.simulation import ElasticPlant, link_loop, outer_loop
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.inspect import facts
from eom_dynamics.tools.inspect.facts import robot_facts
from eom_dynamics.tools.inspect.text import as_text


def test_text_and_json_are_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    expected = robot_facts(eom.load_robot("planar_2r"))
    assert main(["inspect", "planar_2r"]) == 0
    assert capsys.readouterr().out == f"{as_text(expected)}\n"
    assert main(["inspect", "planar_2r", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**expected, "warnings": []}


def test_a_suspicious_inertia_table_is_shown_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(facts, "COUNTED", ("effort",))
    monkeypatch.setattr(facts, "reach", lambda robot, tool: 1.0)
    packaged = (resources.files(eom) / "config" / "iiwa.yaml").read_text(encoding="utf-8")
    file = tmp_path / "link.yaml"
    file.write_text(packaged.replace("inertia_reference: com", "inertia_reference: link"), encoding="utf-8")
    assert main(["inspect", str(file)]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("iiwa: 7 joints") and output.err.count("\n") == 1
    assert output.err.startswith("eom_dynamics inspect: warning: ") and "inertia_reference" in output.err


def test_gains_and_margins(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert lines[-2].startswith("links around this PD: efforts of 2 motors from 10 deviations")
    # Of noise, drawn.
    n = np.random.default_rng(0).normal(scale=found["outer_loop"]["noise"], size=(20_000, 2))
    drawn = n[1:] @ outer.F[:, :2].T + np.diff(n, axis=0) / 1e-3 @ outer.F[:, 4:6].T
    assert found["outer_loop"]["effort_noise"] == pytest.approx(drawn.std(axis=0), rel=0.02)
    assert "noise of 0.01 mrad or mm of the links" in lines[-1]


def test_loops_that_cannot_be_closed_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arm.yaml"
    text = (resources.files(eom) / "config" / "sea_planar_2r.yaml").read_text(encoding="utf-8")
    file.write_text(text.replace("robot:\n", "robot:\n      drive_delay: 0.05\n", 1), encoding="utf-8")
    assert main(["inspect", str(file), "--gains", "5"]) == 0
    output = capsys.readouterr().out
    assert "50 ms, of the robot" in output and "PD of the motors: unstable at rest under the delay of 50 ms" in output


def test_poses_of_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_poses_require_a_number_for_each_joint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["inspect", "planar_2r", "--pose", "0.1"])
    assert end.value.code == 2
    assert "--pose requires 2 joint variables, has 1: joint_1, joint_2" in capsys.readouterr().err
    assert main(["inspect", "planar_2r", "--pose", "0.1", "nan"]) == 2
    assert "q must be finite; entry [1] is nan" in capsys.readouterr().err


def test_equations_of_motion(capsys: pytest.CaptureFixture[str]) -> None:
    lagrange = eom.lagrange
    robot = eom.load_robot("planar_pr")
    for language in ("latex", "python", "c"):
        assert main(["inspect", "planar_pr", "--equations", language, "--symbols"]) == 0
        system = lagrange.robot_lagrangian(robot, symbols=True)
        expected = lagrange.latex(system) if language == "latex" else lagrange.code(system, language)
        assert capsys.readouterr().out == expected
    assert main(["inspect", "planar_pr", "--equations", "latex"]) == 0
    assert "4.5" in capsys.readouterr().out  # the mass of both bodies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["iiwa", "--equations", "c"], "--equations takes at most 5 joints, iiwa has 7"),
        (["planar_pr", "--equations", "c", "--json"], "--equations goes with none of --json, --pose and --gains"),
        (["planar_pr", "--symbols"], "--symbols goes with --equations"),
    ],
)
def test_wrong_use_of_equations(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["inspect", *arguments])
    assert message in capsys.readouterr().err


def test_a_massless_last_link_is_shown_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "arm.urdf").write_text(MASSLESS_TIP)
    assert main(["inspect", str(tmp_path / "arm.urdf")]) == 0
    output = capsys.readouterr()
    assert "forward_dynamics: unavailable, since the mass matrix is singular" in output.out
    assert "effort" in output.out and "no mass moves with j2" in output.err and "Traceback" not in output.err
