# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: text, warnings and the template of parameter files."""

import json
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from urdf_arms import MASSLESS_TIP, urdf_arm

import eom_dynamics as eom
from eom_dynamics import Dynamics, ElasticArm, load_robot
from eom_dynamics.tools.cli.inspect import facts_result


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


def test_text_is_that_of_the_facts(run) -> None:
    assert run("inspect", "planar_2r").out == facts_result(eom.load_robot("planar_2r")).as_text()


def test_expected_errors_of_an_uncertain_model(tmp_path: Path, run) -> None:
    uncertainty = "uncertainty: {stiffness: 0.02, mass: 0.02, rotor_inertia: 0.02}"
    file = changed(tmp_path, "panda", "robot:\n", f"robot:\n      {uncertainty}\n")
    text = run("inspect", file).out
    advice = re.findall(
        r"^least expected .*: (.*) \(rigid (.*), tau/K (.*), flatness (.*) mrad .* (\d+) rad/s\)$", text, re.M
    )
    assert [row[4] for row in advice] == ["20", "70", "280"]
    for best, *errors, _ in advice:
        assert "flatness" in best and float(errors[2]) == min(map(float, errors))
    assert advice[1][:4] == ("flatness", "0.635", "0.0966", "0.0763")
    assert "least expected" not in run("inspect", "panda").out


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


def test_a_massless_last_link_is_shown_with_a_warning(tmp_path: Path, run) -> None:
    (tmp_path / "arm.urdf").write_text(MASSLESS_TIP)
    output = run("inspect", str(tmp_path / "arm.urdf"))
    assert "j2 " in output.out and "no mass moves with j2" in output.err and "Traceback" not in output.err


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


IN_DEGREES = r"lower: -2.8973, upper: 2.8973", "lower: -166.0, upper: 166.0"
IMPLAUSIBLE = "panda: not plausible: fer_joint1: limits are lower -166 rad, upper 166 rad; if in degrees: -2.897, 2.897"


def test_inspect_fails_where_a_value_is_not_plausible_unless_the_file_accepts_it(tmp_path: Path, run) -> None:
    file = changed(tmp_path, "panda", *IN_DEGREES)
    assert IMPLAUSIBLE.removeprefix("panda: ") in run("inspect", file, code=1).err
    text = Path(file).read_text(encoding="utf-8").replace("robot:\n", "robot:\n      implausible: accept\n", 1)
    Path(file).write_text(text, encoding="utf-8")
    assert IMPLAUSIBLE.removeprefix("panda: ") in run("inspect", file).out


def test_json_has_limits_and_null_where_there_are_none(run) -> None:
    found = json.loads(run("inspect", "panda", "--json").out)
    first, limits = found["joints"][0], load_robot("panda").joints[0].limits
    assert (first["name"], first["type"], first["stiffness"]) == ("fer_joint1", "revolute", 14000.0)
    assert (first["lower"], first["velocity"], first["effort_rms"]) == (limits.lower, limits.velocity, None)
    assert found["robot"] == "panda" and found["doubts"] == []


def test_every_command_tells_values_that_are_not_plausible(tmp_path: Path, run) -> None:
    file = changed(tmp_path, "panda", *IN_DEGREES)
    assert f"warning: {IMPLAUSIBLE}" in run("convert", file, "-o", tmp_path / "arm.urdf").err
    assert f"warning: {IMPLAUSIBLE}" in run("codegen", file, "-o", tmp_path / "code", "--functions", "effort").err


def test_excite_refuses_limits_in_degrees(tmp_path: Path, run) -> None:
    file = changed(tmp_path, "panda", *IN_DEGREES)
    error = run("excite", file, "-o", tmp_path / "motion", code=2).err
    assert IMPLAUSIBLE in error and "write implausible: accept into the robot's file if it is meant" in error
    assert not (tmp_path / "motion").exists()
