# SPDX-License-Identifier: Apache-2.0
"""Facts about a robot, as data and as text, resonances, and mistakes of units that inspect points out."""

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from urdf_arms import MASSLESS_TIP, urdf_arm

import eom_dynamics as eom
from eom_dynamics import Robot, load_robot
from eom_dynamics.actuators import Motor
from eom_dynamics.actuators.actuator import Actuator
from eom_dynamics.actuators.drive_units import DriveUnits
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.actuators.springs import RIGID, LinearSpring
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.robot import packaged_robots
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.task_space import reach
from eom_dynamics.tools.inspect import facts
from eom_dynamics.tools.inspect.facts import facts_result, robot_facts
from eom_dynamics.tools.inspect.plausibility import elastic_joints, motor_facts, poses, warnings


@pytest.fixture
def quick(monkeypatch) -> None:
    monkeypatch.setattr(facts, "_COUNTED", ("effort",))
    monkeypatch.setattr(facts, "reach", lambda robot, tool: 1.0)


@pytest.mark.parametrize("name", ["dual_arm", "planar_pr"])
@pytest.mark.usefixtures("quick")
def test_facts_are_those_of_the_robot(name: str) -> None:
    robot = eom.load_robot(name)
    found = json.loads(json.dumps(robot_facts(robot), allow_nan=False))
    assert found["name"] == robot.name and found["independent_joints"] == robot.n
    assert found["gravity"] == robot.gravity.tolist()
    assert found["total_mass"] == pytest.approx(sum(joint.mass for joint in robot.joints))
    joints = found["joints"]
    assert [joint["name"] for joint in joints] == list(robot.joint_names)
    assert [joint["type"] for joint in joints] == [joint.type for joint in robot.joints]
    assert [joint["stiffness"] for joint in joints] == robot.stiffness.tolist()
    assert [joint["rotor_inertia"] for joint in joints] == robot.rotor_inertia.tolist()
    upper = [joint.limits.upper for joint in robot.joints]
    assert [joint["limits"]["upper"] for joint in joints] == [x if np.isfinite(x) else None for x in upper]
    assert [tool["name"] for tool in found["tools"]] == [tool.name for tool in robot.tools]
    lines = facts_result(found).as_text().splitlines()
    assert lines[0].startswith(f"{name}: ")
    for joint in robot.joints:
        line = next(line for line in lines if line.lstrip("│├└─ ").startswith(f"{joint.name} "))
        assert line.lstrip("│├└─ ").split()[1] == joint.type
        assert f"{joint.mass:g}" in line and f"{joint.stiffness:g}" in line and f"{joint.rotor_inertia:g}" in line


def test_a_look_at_a_robot_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of a chain of 150 joints take a minute."""
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path))
    assert robot_facts(eom.load_robot("vsa_planar_2r"))["motors"]
    assert not list(tmp_path.iterdir())


def test_operations_are_those_of_the_programs() -> None:
    robot = eom.load_robot("planar_2r")
    found = robot_facts(robot)
    assert found["operations"].keys() == set(facts._COUNTED)
    lines = facts_result(found).as_text().splitlines()
    for name, counts in found["operations"].items():
        program = PROGRAMS[name](robot)
        *kinds, total = counts.values()
        functions = counts["sines_and_cosines"] + counts.get("other_functions", 0)
        assert functions == total - program.operations
        assert total == sum(kinds) == program.operation_counts().total()
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        # Columns that other programs have are zero here.
        shown = [int(x.replace(",", "")) for x in line.split()[1:]]
        assert [x for x in shown if x] == [x for x in counts.values() if x]


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


def _robot(name: str, joints: dict[str, Any]) -> eom.Robot:
    parameters = {"name": name, "joint_names": list(joints), "inertia_reference": "com", "joints": joints}
    return eom.robot_from_parameters(parameters)


def test_types_axes_and_assumptions_of_all_kinds_of_joints() -> None:
    joints = {
        "turn": _joint("revolute", [0.0, 1.0, 0.0, 0.1, 0.0, 0.2], rotor_inertia=0.3),
        "slide": _joint("prismatic", [0.0, 0.0, 0.0, 0.6, 0.0, 0.8], elasticity={"type": "linear", "stiffness": 500.0}),
        "drill": _joint("helical", [0.0, 0.0, 1.0, 0.0, 0.0, 0.05]),
    }
    found = json.loads(json.dumps(robot_facts(_robot("mixed", joints)), allow_nan=False))
    assert [joint["type"] for joint in found["joints"]] == ["revolute", "prismatic", "helical"]
    np.testing.assert_allclose([joint["axis"] for joint in found["joints"]], [[0, 1, 0], [0.6, 0, 0.8], [0, 0, 1]])
    assert [joint["stiffness"] for joint in found["joints"]] == [None, 500.0, None]
    assert found["assumed"] == [
        "rigid, without a spring: turn, drill",
        "no rotor inertia: slide, drill",
        "no limits of position: all joints",
        "an external wrench acts at drill",
    ]


@pytest.mark.usefixtures("quick")
def test_a_tree_is_drawn() -> None:
    lines = facts_result(robot_facts(eom.load_robot("dual_arm"))).as_text().splitlines()[3:12]
    drawn = [line.split("  ")[0] for line in lines]
    assert [line for line in drawn if line][:4] == ["torso", "├─left_lift", "│ left_turn", "│ left_elbow"]
    assert "└─right_lift" in drawn


@pytest.mark.usefixtures("quick")
def test_part_of_a_urdf_with_a_mimic_joint(tmp_path: Any) -> None:
    body = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    text = (
        f'<robot name="cart"><link name="world"/><link name="cart">{body}</link><link name="wheel">{body}</link>'
        '<link name="hook"/><joint name="rail" type="prismatic"><parent link="world"/><child link="cart"/>'
        '<limit lower="-1" upper="3" velocity="2" effort="5"/></joint>'
        '<joint name="axle" type="continuous"><parent link="cart"/><child link="wheel"/><axis xyz="0 0 1"/>'
        '<mimic joint="rail" multiplier="4" offset="-1"/></joint>'
        '<joint name="weld" type="fixed"><parent link="wheel"/><child link="hook"/></joint></robot>'
    )
    found = robot_facts(eom.load_robot(text, tip="hook"))
    assert found["merged"] == ["link hook into the body of axle (0 kg)"]
    named = "the tool is wheel, the last body; fixed to it: hook; to choose one: --tool hook, or tools: hook in a "
    named += "parameter file"
    assert [named in robot_facts(eom.load_robot(text, tools=tool))["assumed"] for tool in ((), "hook")] == [True, False]
    assert found["assumed"][0] == "axis [1 0 0], the default of URDF: rail"
    assert found["joints"][0]["limits"] == {
        **dict.fromkeys(("acceleration", "jerk", "effort_rate", "effort_rms")),
        **{"lower": -1, "upper": 3, "velocity": 2, "effort": 5},
    }
    (tool,) = found["tools"]
    assert (tool["name"], tool["body"]) == ("hook", "axle")
    assert "= 4 rail -1" in facts_result(found).as_text() and "-1 … 3" in facts_result(found).as_text()


def test_the_reach_of_a_long_chain_is_its_length() -> None:
    joint = _joint("revolute", [0.0, 0, 1, 0, 0, 0], origin={"xyz": [0.1, 0.0, 0.0], "rpy": [0.0, 0.0, 0.3]})
    chain = _robot("chain", dict.fromkeys((f"j{i}" for i in range(100)), joint))
    # The first origin is 0.1 m from the base, and the last body's frame is its tool.
    assert reach(chain, chain.tools[0]) == pytest.approx(10.0, rel=1e-6)
    (tool,) = robot_facts(eom.load_robot("planar_2r"))["tools"]
    assert tool["reach"] == pytest.approx(0.5 + 0.4)


def test_large_robots_get_fewer_facts() -> None:
    found = robot_facts(_robot("a\nsnake", {f"j{i}": _joint("revolute", [0.0, 1, 0, 0, 0, 0]) for i in range(21)}))
    counted = {name for name, costs in found["operations"].items() if costs is not None}
    assert counted == {"inverse_dynamics", "effort", "forward_dynamics"}
    lines = facts_result(found).as_text().splitlines()
    assert lines[0].startswith(r"a\nsnake: ")
    assert "mass_matrix: not counted for more than 20 joints" in lines
    assert "tool j20 on the body of j20: reach 6.3 m from the base" in lines


@pytest.mark.usefixtures("quick")
def test_drives_motor_friction_and_all_limits_are_shown() -> None:
    joint = _joint("revolute", [0.0, 1, 0, 0, 0, 0], limits={"acceleration": 11.0, "jerk": 512.0, "effort_rms": 13.0})
    robot = _robot("arm", {"free": _joint("revolute", [0.0, 1, 0, 0, 0, 0]), "limited": joint})
    drives = {"command_period": 1e-3, "drive_delay": 2e-3, "drive_interpolation": "linear"}
    found = robot_facts(replace(robot, **drives))
    assert {name: found[name] for name in drives} == drives and found["command_lead"] == pytest.approx(3e-3)
    lines = facts_result(found).as_text().splitlines()
    assert "command_period 0.001 s, drive_delay 0.002 s, drive_interpolation linear: command lead 0.003 s" in lines
    units = DriveUnits("motor", -1, 131072.0, 60.0, effort="per_mille", rated_torque=1.27)
    sticks = Actuator(friction=Friction(viscous=0.5, coulomb=2.0, static=3.0, presliding_distance=1e-4))
    own = replace(robot, joints=(replace(robot.joints[0], drive=units, actuator=sticks), robot.joints[1]))
    own_lines = facts_result(robot_facts(own)).as_text().splitlines()
    counts = "side motor, sign -1, units_per_turn 131072.0, velocity_units_per_turn 60.0"
    assert f"drive of free: {counts}, effort per_mille, rated_torque 1.27" in own_lines
    friction = "viscous 0.5, coulomb 2, static 3, stribeck_velocity 0.1, smoothing_velocity 0.01"
    assert f"motor friction of free: {friction}, presliding_distance 0.0001" in own_lines
    header, row = (next(line for line in lines if line.startswith(name)) for name in ("joint ", "limited"))
    assert "acceleration  jerk  effort rms  mass" in header and row.split()[8:12] == ["11", "512", "13", "2"]
    unknown = facts_result(robot_facts(robot)).as_text()
    assert "command_period unknown, drive_delay 0 s, drive_interpolation none: command lead 0 s" in unknown


def changed(**changes: Any) -> Robot:
    """The pendulum, of a point mass m l²."""
    robot = load_robot("pendulum")
    return replace(robot, joints=(replace(robot.joints[0], **changes),))


def lines(robot: Robot) -> list[str]:
    return warnings(robot, elastic_joints(robot), motor_facts(robot, poses(robot)))


def test_frequencies_and_sag_of_a_pendulum() -> None:
    robot = changed(spring=LinearSpring(500.0), rotor_inertia=0.2, limits=Limits())
    joint = robot.joints[0]
    inertia = joint.inertia_about_origin[2, 2] if joint.screw[2] else joint.inertia_about_origin[1, 1]
    (row,) = elastic_joints(robot)
    assert row["link_frequency"] == pytest.approx(np.sqrt(500 / inertia) / (2 * np.pi), rel=1e-6)
    assert row["motor_frequency"] == pytest.approx(np.sqrt(500 / inertia + 500 / 0.2) / (2 * np.pi), rel=1e-6)
    weight = joint.mass * np.linalg.norm(robot.gravity) * np.linalg.norm(joint.center_of_mass)
    assert row["sag"] == pytest.approx(weight / 500, rel=1e-3)
    assert elastic_joints(changed(spring=LinearSpring(500.0), rotor_inertia=0.0)) == []


@pytest.mark.parametrize("name", packaged_robots())
def test_packaged_robots_are_plausible(name: str) -> None:
    assert lines(load_robot(name)) == []


@pytest.mark.parametrize("text", [urdf_arm(), urdf_arm(mass=60.0), MASSLESS_TIP])
@pytest.mark.filterwarnings("ignore")
def test_urdfs_are_plausible(text: str) -> None:
    assert lines(load_robot(text)) == []


def test_limits_of_fast_joints_and_large_numbers_for_none_are_plausible() -> None:
    assert lines(changed(limits=Limits(lower=-1e16, upper=1e16, velocity=1000.0))) == []
    assert lines(changed(limits=Limits(velocity=52.4))) == []


# Robot, pattern in its file, what is wrong in its place, joints that are named, and what is said.
FAULTS = [
    ("sea_planar_2r", r"rotor_inertia: .*", r"rotor_inertia: 1.0e-5", 2, "must have the square of the ratio: 0.1"),
    ("sea_planar_2r", r"rotor_inertia: .*", r"rotor_inertia: 0.0", 2, "rotor_inertia is 0, so the motor"),
    ("panda", r"rotor_inertia: 0.6", r"rotor_inertia: 6.0e-5", 4, "must have the square of the ratio: 0.6"),
    ("sea_planar_2r", r"stiffness: 400.0", r"stiffness: 6.98", 1, "may be per degree: in N m/rad that is 399.9"),
    ("panda", r"stiffness: 14000.0", r"stiffness: 244.0", 4, "may be per degree: in N m/rad that is 1.398e+04"),
    ("sea_planar_2r", r"stiffness: (\d)00.0", r"stiffness: \g<1>.0e+7", 2, "above the 1000 commands a second"),
    ("panda", r"lower: -2.8973, upper: 2.8973", r"lower: -166.0, upper: 166.0", 4, "if in degrees: -2.897, 2.897"),
    ("panda", r"velocity: 2.175", r"velocity: 124.6", 4, "if in degrees: 2.175"),
    ("sea_planar_2r", r"gear_ratio: 100.0", r"gear_ratio: 1.0", 2, "check gear_ratio 1, masses and limits"),
]


@pytest.mark.parametrize(("name", "pattern", "wrong", "count", "said"), FAULTS)
@pytest.mark.filterwarnings("ignore")
def test_a_file_with_a_fault_is_told(name: str, pattern: str, wrong: str, count: int, said: str, tmp_path: Path):
    packaged = (resources.files(eom) / "config" / f"{name}.yaml").read_text(encoding="utf-8")
    text, replaced = re.subn(pattern, wrong, packaged)
    assert replaced == count
    file = tmp_path / "arm.yaml"
    file.write_text(text, encoding="utf-8")
    found = lines(load_robot(str(file)))
    # The value differs by joint.
    told = [line for line in found if re.split(": |it is |that is ", said)[0] in line]
    assert len({line.split(":")[0] for line in told}) == count
    assert any(said in line for line in told)
    # Nothing else is complained of but a resonance, which a rotor without the square of the ratio raises, too.
    others = [line for line in found if line not in told]
    assert not others or (pattern.startswith("rotor") and all("commands a second" in line for line in others))


def test_motor_numbers_on_both_sides_of_the_gear() -> None:
    """By hand: shaft inertia B/N², and torque, current and voltage that hold the weight of both links."""
    robot = load_robot("sea_planar_2r")
    first, second = motor_facts(robot, np.zeros((1, 2)))
    g = 9.80665
    # Bodies of 2 kg at 0.5 m and of 1 kg at 0.9 m; at rest an efficiency of 0.9 takes nothing.
    weight = (2.0 * 0.5 + 1.0 * 0.9) * g
    assert first["torque"] == pytest.approx(weight / 100, rel=1e-9)
    assert first["current"] == pytest.approx(weight / 100 / 0.05) and first["voltage"] == pytest.approx(
        0.5 * first["current"]
    )
    assert first["rotor_inertia"] == 0.2 and first["shaft_inertia"] == pytest.approx(0.2 / 100**2)
    assert (first["speed_limit"], first["torque_limit"], second["current_limit"]) == (500.0, 0.9, 12.0)
    assert first["speed"] is None and second["torque_constant"] == 0.05
    limited = changed(gear_ratio=50.0, limits=Limits(velocity=2.0))
    assert motor_facts(limited, np.zeros((1, 1)))[0]["speed"] == 100.0
    assert motor_facts(changed(gear_ratio=1.0, rotor_inertia=0.0, spring=RIGID), np.zeros((1, 1))) == []


def test_a_pair_swings_with_both_motors() -> None:
    row = elastic_joints(load_robot("vsa_planar_2r"))[0]
    K, B = 250.0, 0.4
    links = K / (2 * np.pi * row["link_frequency"]) ** 2
    assert row["motor_frequency"] == pytest.approx(np.sqrt(K / links + K / B) / (2 * np.pi))


def test_a_motor_slower_than_its_joint_is_told() -> None:
    good = {"spring": LinearSpring(500.0), "rotor_inertia": 0.2, "gear_ratio": 100.0}
    actuator = changed().joints[0].actuator
    slow = replace(actuator, motor=Motor(speed_limit=100.0))
    (line,) = lines(changed(**good, limits=Limits(velocity=2.0), actuator=slow))
    assert "speed limit is 1 behind the gear, below the joint's velocity limit 2" in line


@pytest.mark.parametrize(
    ("pattern", "wrong", "said"),
    [
        (r"mass: (\d)", r"mass: \g<1>000", "mass is 3000 kg at a length of 0.9 m; if masses are in g, it is 3 kg"),
        (r"xyz: \[0.5", r"xyz: [500.0", "lengths add up to 500.4 m; if they are in mm, to 0.5004 m"),
    ],
)
def test_units_of_the_whole_arm(pattern: str, wrong: str, said: str) -> None:
    text = (resources.files(eom) / "config" / "sea_planar_2r.yaml").read_text(encoding="utf-8")
    assert lines(load_robot(re.sub(pattern, wrong, text))) == [said]


def test_limits_in_degrees_are_one_line_a_joint() -> None:
    slow = replace(changed().joints[0].actuator, motor=Motor(speed_limit=100.0))
    (line,) = lines(changed(limits=Limits(lower=-115.0, upper=115.0, velocity=170.0), actuator=slow))
    assert line.endswith("lower -115 rad, upper 115 rad, velocity 170 rad/s; if in degrees: -2.007, 2.007, 2.967")
