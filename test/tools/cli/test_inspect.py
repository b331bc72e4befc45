# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: facts about a robot, as data and as text, mistakes of units, and the template."""

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_robots import example_urdfs
from urdf_arms import MASSLESS_TIP, urdf_arm

import eom_dynamics as eom
from eom_dynamics import Dynamics, ElasticArm, Robot, load_robot
from eom_dynamics.actuators import Motor
from eom_dynamics.actuators.actuator import Actuator
from eom_dynamics.actuators.drive_units import DriveUnits
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.actuators.springs import RIGID, CubicSpring, DampedSpring, LinearSpring, Spring
from eom_dynamics.elastic.plausibility import elastic_joints, implausible, motors_at_rest, objections
from eom_dynamics.robot import packaged_robots
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.task_space import reach
from eom_dynamics.tools.cli import inspect as inspect_command
from eom_dynamics.tools.cli.inspect import facts_result


@pytest.fixture
def quick(monkeypatch) -> None:
    monkeypatch.setattr(inspect_command, "reach", lambda robot, tool: 1.0)


def shown(robot: Robot) -> list[str]:
    return facts_result(robot).as_text().splitlines()


@pytest.mark.parametrize("name", ["dual_arm", "planar_pr"])
@pytest.mark.usefixtures("quick")
def test_facts_are_those_of_the_robot(name: str) -> None:
    robot = eom.load_robot(name)
    lines = shown(robot)
    mass, gravity = sum(joint.mass for joint in robot.joints), " ".join(f"{x:g}" for x in robot.gravity)
    assert lines[0] == f"{name}: {robot.n} joints, {mass:g} kg, gravity [{gravity}] m/s²"
    for joint in robot.joints:
        cells = re.split(r"  +", next(line for line in lines if line.startswith(f"{joint.name} ")))
        limits = f"{joint.limits.lower:g} … {joint.limits.upper:g}" if np.isfinite(joint.limits.upper) else "-"
        kind = "continuous" if joint.type == "revolute" and limits == "-" else joint.type
        assert {kind, limits} < set(cells)
        assert cells[-3:] == [f"{x:g}" for x in (joint.mass, joint.stiffness, joint.rotor_inertia)]
    for tool in robot.tools:
        assert f"tool {tool.name} on the body of {robot.joints[tool.joint].name}: reach 1 m from the base" in lines
    branches = [joint.parent for joint in robot.joints] != list(range(-1, robot.n - 1))
    assert ("parent" in lines[2]) == branches
    for joint in robot.joints if branches else ():
        parent = robot.joints[joint.parent].name if joint.parent >= 0 else "base"
        assert any(line.split()[:2] == [joint.name, parent] for line in lines)


def test_a_look_at_a_robot_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of a chain of 150 joints take a minute."""
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path))
    assert any(line.startswith("motor ") for line in shown(eom.load_robot("vsa_planar_2r")))
    assert not list(tmp_path.iterdir())


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
    joints["slide"] |= {"constant_effort": 1.5, "parallel_spring": {"type": "linear", "stiffness": 20.0}}
    joints["turn"] |= {"damping": 3.0, "friction": 0.2}
    lines = shown(_robot("mixed\n", joints))
    assert lines[0].startswith(r"mixed\n: ")
    assert "turn: damping 3 N m s/rad, friction 0.2 N m" in lines
    assert "slide: constant effort 1.5 N, parallel spring (type linear, stiffness 20" in "\n".join(lines)
    cells = [re.split(r"  +", next(line for line in lines if line.startswith(name))) for name in joints]
    assert [row[1] for row in cells] == ["continuous", "prismatic", "helical"]
    assert [row[2] for row in cells] == ["[0 1 0]", "[0.6 0 0.8]", "[0 0 1]"]
    assert [row[-2] for row in cells] == ["rigid", "500", "rigid"]
    assert [line for line in lines if line.startswith("assumed")] == [
        "assumed: rigid, without a spring: turn, drill",
        "assumed: no rotor inertia: slide, drill",
        "assumed: no limits of position: all joints",
        "assumed: an external wrench acts at drill",
    ]
    assert "stiffness [N m/rad or N/m]" in lines[2] and "rotor inertia [kg m² or kg]" in lines[2]


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
    lines = shown(eom.load_robot(text, tip="hook"))
    assert "merged: link hook into the body of axle (0 kg)" in lines
    named = "the tool is wheel, the last body; fixed to it: hook; to choose one: --tool hook, or tools: hook in a "
    named += "parameter file"
    for tool in ((), "hook"):
        assert any(named in line for line in shown(eom.load_robot(text, tools=tool))) is (tool == ())
    assert next(line for line in lines if line.startswith("assumed")).endswith(
        "axis [1 0 0], the default of URDF: rail"
    )
    assert lines[2].split()[:6] == ["joint", "type", "axis", "limits", "velocity", "effort"]
    assert re.search(r"^rail +prismatic +\[1 0 0\] +-1 … 3 +2 +5 +2 ", lines[3])
    assert re.search(r"^axle += 4 rail -1 ", lines[4])
    assert "tool hook on the body of axle: reach 1 m from the base" in lines


def test_the_reach_of_a_long_chain_is_its_length() -> None:
    joint = _joint("revolute", [0.0, 0, 1, 0, 0, 0], origin={"xyz": [0.1, 0.0, 0.0], "rpy": [0.0, 0.0, 0.3]})
    chain = _robot("chain", dict.fromkeys((f"j{i}" for i in range(100)), joint))
    # The first origin is 0.1 m from the base, and the last body's frame is its tool.
    assert reach(chain, chain.tools[0]) == pytest.approx(10.0, rel=1e-6)
    assert any(line.endswith("reach 0.9 m from the base") for line in shown(eom.load_robot("planar_2r")))


@pytest.mark.usefixtures("quick")
def test_drives_motor_friction_and_all_limits_are_shown() -> None:
    joint = _joint("revolute", [0.0, 1, 0, 0, 0, 0], limits={"acceleration": 11.0, "jerk": 512.0, "effort_rms": 13.0})
    robot = _robot("arm", {"free": _joint("revolute", [0.0, 1, 0, 0, 0, 0]), "limited": joint})
    drives = {"command_period": 1e-3, "drive_delay": 2e-3, "drive_interpolation": "linear"}
    lines = shown(replace(robot, **drives))
    assert "command_period 0.001 s, drive_delay 0.002 s, drive_interpolation linear: command lead 0.003 s" in lines
    units = DriveUnits("motor", -1, 131072.0, 60.0, effort="per_mille", rated_torque=1.27)
    sticks = Actuator(friction=Friction(viscous=0.5, coulomb=2.0, static=3.0, presliding_distance=1e-4))
    own = replace(robot, joints=(replace(robot.joints[0], drive=units, actuator=sticks), robot.joints[1]))
    counts = "side motor, sign -1, units_per_turn 131072, velocity_units_per_turn 60"
    friction = "viscous 0.5, coulomb 2, static 3"
    drive = f"drive ({counts}, effort per_mille, rated_torque 1.27)"
    assert f"free: motor friction ({friction}, presliding_distance 0.0001), {drive}" in shown(own)
    header, row = (next(line for line in lines if line.startswith(name)) for name in ("joint ", "limited"))
    assert "limits  acceleration  jerk  effort rms  mass" in header and row.split()[6:10] == ["11", "512", "13", "2"]
    unknown = "\n".join(shown(robot))
    assert "command_period unknown, drive_delay 0 s, drive_interpolation none: command lead 0 s" in unknown


def changed(**changes: Any) -> Robot:
    """The pendulum, of a point mass m l²."""
    robot = load_robot("pendulum")
    return replace(robot, joints=(replace(robot.joints[0], **changes),))


def lines(robot: Robot) -> list[str]:
    return implausible(robot, elastic_joints(robot), motors_at_rest(robot))


@pytest.mark.parametrize(
    ("spring", "cubic"), [(LinearSpring(500.0), 0.0), (DampedSpring(500.0, 5.0), 0.0), (CubicSpring(500.0, 2e4), 2e4)]
)
def test_frequencies_and_sag_of_a_pendulum(spring: Spring, cubic: float) -> None:
    robot = changed(spring=spring, rotor_inertia=0.2, limits=Limits())
    joint = robot.joints[0]
    inertia = joint.inertia_about_origin[2, 2] if joint.screw[2] else joint.inertia_about_origin[1, 1]
    (row,) = elastic_joints(robot)
    assert row.link_frequency == pytest.approx(np.sqrt(500 / inertia) / (2 * np.pi), rel=1e-6)
    assert row.motor_frequency == pytest.approx(np.sqrt(500 / inertia + 500 / 0.2) / (2 * np.pi), rel=1e-6)
    weight = joint.mass * np.linalg.norm(robot.gravity) * np.linalg.norm(joint.center_of_mass)
    assert 500 * row.sag + cubic * row.sag**3 == pytest.approx(weight, rel=1e-3)
    assert elastic_joints(changed(spring=LinearSpring(500.0), rotor_inertia=0.0)) == []


# Robot, pattern in its file, wrong replacement, named joints, and message.
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

PENDULUM = load_robot("pendulum").joints[0]


def slow_motor(speed: float) -> Actuator:
    return replace(PENDULUM.actuator, motor=Motor(speed_limit=speed))


GOOD = {"spring": LinearSpring(500.0), "rotor_inertia": 0.2, "gear_ratio": 100.0}

# Changes of the pendulum, and the end of the error message; none for correct values.
PENDULUMS = [
    ({"limits": Limits(lower=-1e16, upper=1e16, velocity=1000.0)}, None),  # a fast joint, and none
    ({"limits": Limits(velocity=52.4)}, None),
    (
        {"gear_ratio": 0.01},
        "is below 1, the motor turns slower than the joint; of a gear that reduces its speed it is 100",
    ),
    (
        {**GOOD, "limits": Limits(velocity=2.0), "actuator": slow_motor(100.0)},
        "speed limit is 1 behind the gear, below the joint's velocity limit 2",
    ),
    (
        {"limits": Limits(lower=-115.0, upper=115.0, velocity=170.0), "actuator": slow_motor(100.0)},
        "lower -115 rad, upper 115 rad, velocity 170 rad/s; if in degrees: -2.007, 2.007, 2.967",
    ),
]


@pytest.mark.parametrize(("changes", "told"), PENDULUMS)
def test_a_pendulum_with_a_fault_is_told(changes: dict[str, Any], told: str | None) -> None:
    found = lines(changed(**changes))
    assert [line.endswith(told) for line in found] == [True] if told else found == []


@pytest.mark.filterwarnings("ignore")
def test_right_robots_are_plausible() -> None:
    right = (*packaged_robots(), urdf_arm(), urdf_arm(mass=60.0), MASSLESS_TIP)
    assert {name: found for name in right if (found := lines(load_robot(name)))} == {}


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
    # Only a resonance is reported in addition, which a rotor without the square of the ratio raises.
    others = [line for line in found if line not in told]
    assert not others or (pattern.startswith("rotor") and all("commands a second" in line for line in others))


def test_a_moving_link_without_inertial_is_told_but_not_between_the_axes_of_a_wrist() -> None:
    arm = load_robot("panda")
    joints = list(arm.joints)
    for k in (3, 4):
        joints[k] = replace(joints[k], mass=0.0, center_of_mass=np.zeros(3), inertia_about_origin=np.zeros((3, 3)))
    told = lines(replace(arm, joints=tuple(joints)))
    inertial = "its link has neither mass nor inertia; give it an <inertial>, or mass and inertia"
    # The axes of joints 5 and 6 meet, and the body of joint 5 is at the body of joint 6.
    assert told == [f"fer_joint4: {inertial}"]


def test_motor_numbers_on_both_sides_of_the_gear() -> None:
    """By hand: shaft inertia B/N², and torque, current and voltage that hold the weight of both links."""
    robot = load_robot("sea_planar_2r")
    first, second = motors_at_rest(robot).values()
    # Bodies of 2 kg at 0.5 m and of 1 kg at 0.9 m, stretched out; at rest an efficiency of 0.9 takes nothing.
    weight = (2.0 * 0.5 + 1.0 * 0.9) * 9.80665
    assert first["torque"] == pytest.approx(weight / 100, rel=1e-9)
    assert first["current"] == pytest.approx(first["torque"] / 0.05)
    assert first["voltage"] == pytest.approx(0.5 * first["current"])
    assert first["rotor_inertia"] == 0.2 and first["gear_ratio"] == 100.0
    assert (first["speed_limit"], first["torque_limit"], second["current_limit"]) == (500.0, 0.9, 12.0)
    assert first["speed"] == 800.0 and second["torque_constant"] == 0.05
    assert any(re.match(r"joint_1 +100 +2e-05 +0.2 ", line) for line in shown(robot))
    (limited,) = motors_at_rest(changed(gear_ratio=50.0, limits=Limits(velocity=2.0))).values()
    assert limited["speed"] == 100.0
    assert motors_at_rest(changed(gear_ratio=1.0, rotor_inertia=0.0, spring=RIGID)) == {}


WRIST = """<transmission name="wrist"><type>transmission_interface/{kind}</type>
  <actuator name="left"><role>actuator1</role><mechanicalReduction>40</mechanicalReduction></actuator>
  <actuator name="right"><role>actuator2</role><mechanicalReduction>-50</mechanicalReduction></actuator>
  <joint name="shoulder"><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint>
  <joint name="elbow"><role>joint2</role><mechanicalReduction>4</mechanicalReduction></joint></transmission></robot>"""


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        # Motors turn by q1 + q2 and q1 - q2 of the joints behind their reductions, each joint at 3 rad/s.
        ("Differential", ["left shoulder +0.25 +0.125 720", "right elbow +0.25 -0.125 900"]),
        # The first motor moves the second joint backwards; it follows the first joint alone.
        ("FourBarLinkage", ["left shoulder +0.5 -0.125 240", "right elbow 0 +0.25 750"]),
    ],
)
def test_a_transmission_has_its_actuators_matrix_and_motor_speeds(kind: str, rows: list[str]) -> None:
    text = urdf_arm(joints=("shoulder", "elbow")).replace("</robot>", WRIST.format(kind=f"{kind}Transmission"))
    text = re.sub(r'velocity="[^"]*"', 'velocity="3"', text)
    robot = load_robot(text)
    table = [re.sub(" +", " ", line.strip()) for line in shown(robot)]
    header = "motor of the transmission in messages moves shoulder by moves elbow by largest speed [rad/s]"
    place = table.index(header)
    assert table[place + 1 : place + 3] == rows
    # The plugin of ros2_control, by hand: motors behind their gears at the largest speeds move the joints.
    matrix = np.array([[float(x) for x in row.split()[2:4]] for row in rows]).T
    corners = np.array(np.meshgrid([-3.0, 3.0], [-3.0, 3.0])).reshape(2, -1)
    fastest = np.abs([[40.0], [-50.0]] * np.linalg.solve(matrix, corners)).max(axis=1)
    assert [float(row.split()[-1]) for row in rows] == pytest.approx(fastest, rel=1e-12)
    facts = facts_result(robot).json["transmission"]
    assert facts == {"joints": ["shoulder", "elbow"], "actuators": ["left", "right"], "matrix": matrix.tolist()}


def test_a_pair_swings_with_both_motors() -> None:
    row = elastic_joints(load_robot("vsa_planar_2r"))[0]
    K, B = 250.0, 0.4
    links = K / (2 * np.pi * row.link_frequency) ** 2
    assert row.motor_frequency == pytest.approx(np.sqrt(K / links + K / B) / (2 * np.pi))


def changed_file(folder: Path, name: str, pattern: str, text: str) -> str:
    """File of a packaged robot with a replacement of the first match."""
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


def test_expected_errors_of_an_uncertain_model(tmp_path: Path, run) -> None:
    uncertainty = "uncertainty: {stiffness: 0.02, mass: 0.02, rotor_inertia: 0.02}"
    file = changed_file(tmp_path, "panda", "robot:\n", f"robot:\n      {uncertainty}\n")
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


@pytest.mark.parametrize(
    ("name", "pattern", "wrong", "said"),
    [
        (
            "sea_planar_2r",
            r"mass: (\d)",
            r"mass: \g<1>000",
            "is 3000 kg at a length of 0.9 m; if masses are in g, it is 3 kg",
        ),
        ("sea_planar_2r", r"xyz: \[0.5", r"xyz: [500.0", "lengths add up to 500.4 m; if they are in mm, to 0.5004 m"),
        (
            "panda",
            "robot:\n",
            "robot:\n      command_period: 1.0\n",
            "is 1 s between commands; if in ms, it is 0.001 s",
        ),
    ],
)
def test_units_of_the_whole_arm(name: str, pattern: str, wrong: str, said: str) -> None:
    text = (resources.files(eom) / "config" / f"{name}.yaml").read_text(encoding="utf-8")
    (line,) = lines(load_robot(re.sub(pattern, wrong, text)))
    assert line.endswith(said)


MODEL = """<mujoco model="arm"><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" actuatorfrcrange="-{3} {3}"/>
    <inertial pos="0 0 -0.2" mass="{0}" diaginertia="{2} {2} {2}"/>
    <body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0" actuatorfrcrange="-{3} {3}"/>
      <inertial pos="0 0 -0.15" mass="{1}" diaginertia="{2} {2} {2}"/></body></body>
</worldbody></mujoco>"""

HEAVY_URDF = urdf_arm().replace('mass value="1.0"', 'mass value="150"', 1).replace('effort="100"', 'effort="20"')


def scaled(text: str, factor: float) -> str:
    """A URDF with all masses and inertias times a factor."""
    pattern = r'(mass value|i[xyz]{2})="([^"]*)"'
    return re.sub(pattern, lambda x: f'{x[1]}="{float(x[2]) * factor!r}"', text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # A body of 150 kg, 0.22 m off the axis, and one of 1 kg up to 0.5 m off.
        (HEAVY_URDF, "shoulder: holding the arm needs 33"),
        (MODEL.format("150", "1.5", "1", 20), "shoulder: holding the arm needs 30"),
        (scaled(urdf_arm(), 1e-3), "mass is 0.002 kg at a length of "),
        (MODEL.format("2e-3", "1.5e-3", "1e-5", 60), "mass is 0.0035 kg at a length of "),
    ],
    ids=["urdf, heavy", "mjcf, heavy", "urdf, light", "mjcf, light"],
)
def test_masses_that_contradict_effort_limits_fail_inspect(text: str, said: str, tmp_path: Path, run) -> None:
    if text.startswith("<mujoco"):
        pytest.importorskip("mujoco")
    file = tmp_path / ("arm.xml" if text.startswith("<mujoco") else "arm.urdf")
    file.write_text(text)
    assert said in run("inspect", file, code=1).err
    accepted = replace(load_robot(file), implausible="accept")
    assert objections(accepted) == [] and objections(replace(accepted, implausible="refuse"))


@pytest.mark.parametrize("name", [name for name in packaged_robots() if name != "sea_planar_2r"])
def test_a_packaged_robot_with_masses_in_another_unit_is_told(name: str) -> None:
    """In t or g, in any direction of gravity, or without it: in space, masses in g need no effort to be held.

    Joints of `sea_planar_2r` have no effort limit of their own to compare with.
    """
    robot = load_robot(name)
    for factor, said in ((1e-3, "if masses are in t"), (1e3, "if masses are in g")):
        joints = [
            replace(x, mass=x.mass * factor, inertia_about_origin=x.inertia_about_origin * factor) for x in robot.joints
        ]
        for gravity in (robot.gravity, np.zeros(3)):
            (line,) = lines(replace(robot, joints=tuple(joints), gravity=gravity))
            assert said in line


@pytest.mark.parametrize("path", example_urdfs(), ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore")
def test_masses_of_public_robots_are_plausible(path: Path) -> None:
    try:
        robot = load_robot(path)
    except eom.RobotDescriptionError:
        pytest.skip("is no robot with joints")
    assert [line for line in lines(robot) if re.match("mass |.*: holding the arm", line)] == []


def test_an_indefinite_mass_matrix_is_told() -> None:
    """For inertias with a wrong sign, which are a warning while loading."""
    text = re.sub(r'(i[xyz]{2})="0.0(\d)"', r'\1="-0.5\2"', urdf_arm())
    with pytest.warns(eom.RobotDescriptionWarning, match="principal moments"):
        robot = load_robot(text)
    assert np.linalg.eigvalsh(Dynamics(robot).mass_matrix(np.zeros(2)))[0] < 0
    (line,) = lines(robot)
    assert line.startswith("mass matrix is not positive definite at [0 0]: smallest eigenvalue -1.3")


def test_a_mass_matrix_that_is_indefinite_in_some_poses_is_told() -> None:
    text = urdf_arm(joints=("lift", "turn")).replace('izz="0.05"', 'izz="-0.06"').replace('rpy="0.4 0 0"', "")
    with pytest.warns(eom.RobotDescriptionWarning, match="principal moments"):
        robot = load_robot(text)
    assert [line.partition(" at ")[0] for line in lines(robot)] == ["mass matrix is not positive definite"]


@pytest.mark.parametrize(
    ("spring", "said"),
    [
        ("{stiffness: 45.0, rest_position: -80.0}", "rest_position -80 rad; if in degrees: -1.396"),
        (
            "{type: gas, force: 400.0, stroke: 0.3, force_ratio: 1.4, anchors: {parent: 0.5, link: 0.2, "
            "aligned_position: -114.6, rest_length: 0.65}}",
            "aligned_position -114.6 rad; if in degrees: -2",
        ),
    ],
)
def test_an_angle_of_a_parallel_spring_in_degrees_is_told_instead_of_the_stiffness(
    spring: str, said: str, tmp_path: Path
) -> None:
    text = (resources.files(eom) / "config" / "sea_planar_2r.yaml").read_text(encoding="utf-8")
    text = text.replace(
        "          rotor_inertia: 0.2\n", f"          rotor_inertia: 0.2\n          parallel_spring: {spring}\n"
    )
    assert lines(load_robot(text)) == [f"joint_1: parallel_spring has {said}"]


def test_implausible_values_fail_inspect_and_excite_and_are_warnings_of_others(tmp_path: Path, run) -> None:
    """Unless the file accepts them."""
    file = changed_file(tmp_path, "panda", *IN_DEGREES)
    assert IMPLAUSIBLE.removeprefix("panda: ") in run("inspect", file, code=1).err
    assert f"warning: {IMPLAUSIBLE}" in run("codegen", file, "-o", tmp_path / "code", "--functions", "effort").err
    error = run("excite", file, "-o", tmp_path / "motion", code=2).err
    assert IMPLAUSIBLE in error and "write implausible: accept" in error
    assert not (tmp_path / "motion").exists()
    text = Path(file).read_text(encoding="utf-8").replace("robot:\n", "robot:\n      implausible: accept\n", 1)
    Path(file).write_text(text, encoding="utf-8")
    assert IMPLAUSIBLE.removeprefix("panda: ") in run("inspect", file).out


def test_json_has_limits_and_null_where_there_are_none(run) -> None:
    found = json.loads(run("inspect", "panda", "--json").out)
    first, limits = found["joints"][0], load_robot("panda").joints[0].limits
    assert (first["name"], first["type"], first["stiffness"]) == ("fer_joint1", "revolute", 14000.0)
    assert (first["lower"], first["velocity"], first["effort_rms"]) == (limits.lower, limits.velocity, None)
    assert found["robot"] == "panda" and found["doubts"] == []
