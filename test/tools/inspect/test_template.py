# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect --template``: it loads as it is, and with its optional entries."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
from urdf_arms import urdf_arm

from eom_dynamics import Dynamics, ElasticArm, load_robot
from eom_dynamics.tools.cli.main import main


def template(capsys) -> str:
    assert main(["inspect", "--template"]) == 0
    output = capsys.readouterr()
    assert not output.err
    return output.out


def test_it_loads_as_it_is(tmp_path: Path, capsys) -> None:
    path = tmp_path / "my_arm.yaml"
    path.write_text(template(capsys))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = load_robot(path)
    assert robot.joint_names == ("shoulder", "elbow") and [tool.name for tool in robot.tools] == ["gripper"]


def test_its_optional_entries_load(capsys) -> None:
    lines = [line for line in template(capsys).splitlines() if "# urdf:" not in line and "# mimic:" not in line]
    text = "\n".join(re.sub(r"^( +)# (?=[ a-z_]+: |[ a-z_]+:$| +effort_rate)", r"\1", line) for line in lines)
    with_springs = load_robot(re.sub(r"(?m)^ +coupled_stiffness:.*\n", "", text))
    assert with_springs.joints[0].limits.effort_rate == 1000 and np.isfinite(with_springs.joints[0].stiffness)
    assert with_springs.joints[0].actuator.motor.voltage_limit == 48 and with_springs.joints[1].mass == 3
    assert with_springs.joints[0].actuator.friction.presliding_distance == 1e-4
    assert ElasticArm(with_springs).transmission is not None
    assert load_robot(re.sub(r"(?m)^ +elasticity:.*\n", "", text)).coupled_stiffness is not None


def test_a_urdf_is_completed_by_springs_and_motors(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my arm.urdf").write_text(urdf_arm(joints=("off", "2nd", "hand")))
    assert main(["inspect", "my arm.urdf", "--template", "--tip", "2nd_link"]) == 0
    text = capsys.readouterr().out
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
