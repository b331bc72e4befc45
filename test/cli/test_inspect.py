# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: what it prints is what the robot is."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.cli.inspect import _text, describe
from eom_dynamics.cli.main import main
from eom_dynamics.kernel.programs import PROGRAMS


@pytest.mark.parametrize("name", eom.packaged_robots())
def test_json_is_the_robot(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", name, "--json"]) == 0
    description = json.loads(capsys.readouterr().out)
    robot = eom.load_robot(name)
    assert description["name"] == robot.name
    assert description["gravity"] == robot.gravity.tolist()
    assert description["total_mass"] == pytest.approx(sum(joint.mass for joint in robot.joints))
    assert [joint["name"] for joint in description["joints"]] == list(robot.joint_names)
    assert [joint["stiffness"] for joint in description["joints"]] == robot.stiffness.tolist()
    assert [joint["rotor_inertia"] for joint in description["joints"]] == robot.rotor_inertia.tolist()
    assert [joint["type"] for joint in description["joints"]] == [joint.type for joint in robot.joints]
    assert [joint["limits"]["upper"] for joint in description["joints"]] == [
        joint.limits.upper if np.isfinite(joint.limits.upper) else None for joint in robot.joints
    ]
    assert [tool["name"] for tool in description["tools"]] == [tool.name for tool in robot.tools]
    assert description["warnings"] == []


@pytest.mark.parametrize("name", eom.packaged_robots())
def test_text_has_a_line_for_each_joint(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{name}: ")
    for joint in eom.load_robot(name).joints:
        (line,) = [line for line in lines if line.lstrip("│├└─ ").startswith(f"{joint.name} ")]
        assert line.lstrip("│├└─ ").split()[1] == joint.type
        assert f"{joint.mass:g}" in line and f"{joint.stiffness:g}" in line and f"{joint.rotor_inertia:g}" in line


@pytest.mark.parametrize("name", eom.packaged_robots())
def test_operations_are_those_of_the_programs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", name, "--json"]) == 0
    operations = json.loads(capsys.readouterr().out)["operations"]
    assert set(operations) == set(PROGRAMS)
    assert main(["inspect", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    for function, counts in operations.items():
        program = PROGRAMS[function](eom.load_robot(name))
        *kinds, total = counts.values()
        assert counts["sines_and_cosines"] == total - program.operations
        assert total == sum(kinds) == program.operation_counts().total()
        (line,) = [line for line in lines if line.startswith(f"{function} ")]
        assert [int(x.replace(",", "")) for x in line.split()[1:]] == list(counts.values())


def _joint(kind: str, screw: list[float], **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "screw": screw,
        "origin": {"xyz": [0.0, 0.0, 0.3], "rpy": [0.0, 0.0, 0.0]},
        "mass": 2.0,
        "center_of_mass": [0.0, 0.0, 0.1],
        "inertia": [0.02, 0.0, 0.0, 0.02, 0.0, 0.01],
        **more,
    }


@pytest.fixture
def mixed() -> eom.Robot:
    """One joint of each type; the slide has a spring, the others are rigid."""
    joints = {
        "turn": _joint("revolute", [0.0, 1.0, 0.0, 0.1, 0.0, 0.2], rotor_inertia=0.3),
        "slide": _joint("prismatic", [0.0, 0.0, 0.0, 0.6, 0.0, 0.8], elasticity={"type": "linear", "stiffness": 500.0}),
        "drill": _joint("helical", [0.0, 0.0, 1.0, 0.0, 0.0, 0.05]),
    }
    names = list(joints)
    return eom.robot_from_parameters(
        {"name": "mixed", "joint_names": names, "inertia_reference": "com", "joints": joints}
    )


def test_types_and_axes_of_all_kinds_of_joints(mixed: eom.Robot) -> None:
    joints = describe(mixed)["joints"]
    assert [joint["type"] for joint in joints] == ["revolute", "prismatic", "helical"]
    np.testing.assert_allclose([joint["axis"] for joint in joints], [[0, 1, 0], [0.6, 0, 0.8], [0, 0, 1]])


def test_what_the_file_does_not_say_is_named(mixed: eom.Robot) -> None:
    description = json.loads(json.dumps(describe(mixed), allow_nan=False))
    assert [joint["stiffness"] for joint in description["joints"]] == [None, 500.0, None]
    assert description["assumed"][:2] == ["rigid, without a spring: turn, drill", "no rotor inertia: slide, drill"]
    assert description["assumed"][2:] == ["no limits of position: all joints", "an external wrench acts at drill"]


def test_a_doubtful_table_is_shown_with_its_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packaged = (resources.files(eom) / "config" / "iiwa.yaml").read_text(encoding="utf-8")
    file = tmp_path / "link.yaml"
    file.write_text(packaged.replace("inertia_reference: com", "inertia_reference: link"), encoding="utf-8")
    assert main(["inspect", str(file)]) == 0
    output = capsys.readouterr()
    assert "warning: " in output.out and "inertia_reference" in output.out
    assert not output.err


def test_a_tree_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "dual_arm"]) == 0
    drawn = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[3:12]]
    assert [line for line in drawn if line][:4] == ["torso", "├─left_lift", "│ left_turn", "│ left_elbow"]
    assert "└─right_lift" in drawn


TWO_LINKS = (
    '<robot name="cart"><link name="world"/><link name="cart"><inertial><mass value="2"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><link name="hook"/>'
    '<joint name="rail" type="prismatic"><parent link="world"/><child link="cart"/>'
    '<limit lower="-1" upper="3" velocity="2" effort="5"/></joint>'
    '<joint name="weld" type="fixed"><parent link="cart"/><child link="hook"/><origin xyz="0 4 0"/></joint></robot>'
)


def test_a_urdf_and_a_part_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(TWO_LINKS, encoding="utf-8")
    assert main(["inspect", str(path), "--tip", "hook", "--json"]) == 0
    description = json.loads(capsys.readouterr().out)
    assert description["merged"] == ["link hook into the body of rail (0 kg)"]
    assert description["assumed"][0] == "axis [1 0 0], the default of URDF: rail"
    (tool,) = description["tools"]
    assert (tool["name"], tool["body"], tool["reach"]) == ("hook", "rail", pytest.approx(5.0))
    assert description["joints"][0]["limits"] == {"lower": -1, "upper": 3, "velocity": 2, "effort": 5}


def test_reach_of_arms_that_can_be_stretched() -> None:
    """The planar arm of 0.5 m, and 0.4 m to nothing: the tool is the frame of its last body."""
    tools = {name: describe(eom.load_robot(name))["tools"][0]["reach"] for name in ("planar_2r", "panda")}
    assert tools["planar_2r"] == pytest.approx(0.5)
    assert 1.15 < tools["panda"] < 0.333 + 0.316 + 0.384 + 0.088 + 0.107 + 2 * 0.0825


def test_what_would_take_minutes_to_count_is_left_out_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    joints = {f"j{i}": _joint("revolute", [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]) for i in range(60)}
    robot = eom.robot_from_parameters(
        {"name": "a\nsnake", "joint_names": list(joints), "inertia_reference": "com", "joints": joints}
    )
    description = {**describe(robot), "warnings": []}
    assert description["tools"][0]["reach"] is None
    counted = {name for name, costs in description["operations"].items() if costs is not None}
    assert counted == {"inverse_dynamics", "effort"}
    lines = _text(description).splitlines()
    assert lines[0].startswith(r"a\nsnake: ")
    assert "effort_partials: not counted for more than 20 joints" in lines
    assert "tool j59, moved by j59: its reach is not searched for more than 20 joints" in lines
    assert "mass_matrix: not counted for more than 20 joints" in lines
