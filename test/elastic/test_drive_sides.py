# SPDX-License-Identifier: Apache-2.0
"""Drive sides: the joint by default, by files, library and messages."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from exported import robot
from own_drives import SIDES_IN_TURN

import eom_dynamics as eom
from eom_dynamics.actuators.drive_units import SI_UNITS, DriveUnits
from eom_dynamics.arrays import Array
from eom_dynamics.elastic.drive_programs import sides_text
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export.compiled_loop import robot_table
from eom_dynamics.export.functions import loop_functions
from eom_dynamics.export.project import project
from eom_dynamics.robot.writers.parameters import robot_as_yaml

GEAR = 100.0

ONE = """\
/**:
  ros__parameters:
    robot:
      urdf: arm.urdf
      joints:
        shoulder: {rotor_inertia: 1.2, gear_ratio: 100.0}
        elbow: {rotor_inertia: 0.45, %s}
"""

LINK = '<link name="%s"><inertial><mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'

JOINT = """\
<joint name="%s" type="revolute"><parent link="%s"/><child link="%s"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="90"/></joint>
"""

TRANSMISSION = """\
<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="elbow"/>
<actuator name="m"><mechanicalReduction>100</mechanicalReduction></actuator></transmission>
"""


def urdf(*more: str) -> str:
    links = "".join(LINK % name + "</inertial></link>" for name in ("base", "upper", "lower"))
    return f'<robot name="arm">{links}{JOINT % ("shoulder", "base", "upper")}{JOINT % ("elbow", "upper", "lower")}' + (
        "".join(more) + "</robot>"
    )


def two(folder: Path, elbow: str, *more: str) -> eom.ElasticArm:
    """Robot of a URDF with a gear at the shoulder and no section ``drive``."""
    (folder / "arm.urdf").write_text(urdf(*more), encoding="utf-8")
    (folder / "arm.yaml").write_text(ONE % elbow, encoding="utf-8")
    return eom.ElasticArm(eom.load_robot(str(folder / "arm.yaml")))


def sent(arm: eom.ElasticArm) -> Any:
    q, zero = np.array([0.3, -0.6]), np.zeros(2)
    return arm.drive_command(arm.feedforward(q, zero, zero), q, zero, zero)


@pytest.mark.parametrize("side", ["joint", "motor"])
def test_a_sign_does_not_move_a_drive_to_the_other_side(tmp_path: Path, side: str) -> None:
    """A joint without a section counts at the joint, and a section has the side that its file states."""
    plain = sent(two(tmp_path, "gear_ratio: 100.0"))
    arm = two(tmp_path, f"gear_ratio: 100.0, drive: {{side: {side}, sign: -1}}")
    turned = sent(arm)
    assert arm.drive_sides == ("joint", side)
    ratio = -GEAR if side == "motor" else -1.0
    assert plain.position[1] == -0.6 and turned.position[0] == plain.position[0] == 0.3
    # One product more.
    np.testing.assert_allclose(turned.position[1], ratio * plain.position[1], rtol=4e-16)
    np.testing.assert_allclose(turned.effort, plain.effort * [1.0, 1 / ratio], rtol=4e-16)


@pytest.mark.parametrize(
    ("elbow", "more", "ratio"),
    [
        ("gear_ratio: 100.0, drive: {sign: -1}", (), "100"),
        ("gear_ratio: 100.0, drive: {units_per_turn: 1.0}", (), "100"),
        ("gear_ratio: -50.0, drive: {offset: 0.25}", (), "-50"),
        ("gear_ratio: -1.0, drive: {effort: per_mille, rated_torque: 1.3}", (), "-1"),
        ("gear_ratio: 0.5, drive: {}", (), "0.5"),
        ("drive: {sign: -1}", (TRANSMISSION,), "100"),
    ],
    ids=["sign", "turns", "negative", "reversed", "empty", "transmission of the URDF"],
)
def test_a_drive_behind_or_before_a_gear_is_refused_without_its_side(
    tmp_path: Path, elbow: str, more: tuple[str, ...], ratio: str
) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        two(tmp_path, elbow, *more)
    text = f'{tmp_path}/arm.yaml: robot.joints.elbow.drive.side: missing, gear_ratio {ratio}; write "side: motor" for '
    text += f'a drive that counts at the motor shaft, {ratio} times the joint, or "side: joint" behind the gear'
    assert str(error.value) == text


@pytest.mark.parametrize("base", ["planar_2r", "planar_pr"])
def test_a_drive_without_gear_needs_no_side(base: str) -> None:
    robot = eom.robot_from_parameters(packaged_parameters(base, **{eom.load_robot(base).joint_names[0]: {"drive": {}}}))
    arm, plain = eom.ElasticArm(robot), eom.ElasticArm(eom.load_robot(base))
    assert arm.drive_sides == ("joint", "joint")
    for a, b in zip(sent(arm), sent(plain), strict=True):
        np.testing.assert_array_equal(a, b)


def test_units_without_a_side_are_refused_in_python_with_robot_and_joint() -> None:
    given = eom.load_robot("planar_2r")
    geared = replace(given.joints[1], gear_ratio=GEAR, drive=DriveUnits(sign=-1))
    with pytest.raises(RobotDescriptionError, match=r"^planar_2r: joint_2: drive\.side: missing, gear_ratio 100; "):
        eom.ElasticArm(replace(given, joints=(given.joints[0], geared)))


def expected(position: Array, velocity: Array, effort: Array, motors: list[int]) -> list[list[float]]:
    """Expected values by the formulas of docs/parameter_files.md."""
    rows = []
    for theta, thetad, tau, k in zip(position, velocity, effort, motors, strict=True):
        ratio, units = SIDES_IN_TURN[k]
        n = ratio if units.side == "motor" else 1.0
        turns, rate = units.units_per_turn, units.velocity_units_per_turn or units.units_per_turn
        torque = units.sign * tau / n
        if units.effort == "current":
            torque /= 0.07 * (1.0 if units.side == "motor" else abs(ratio))
        if units.effort == "per_mille":
            torque *= 1000 / (units.rated_torque or math.nan)
        per_radian = units.sign * n / (2 * math.pi)
        rows.append([per_radian * theta * turns + units.offset, per_radian * thetad * rate, torque])
    return rows


def test_drives_count_on_their_side_at_joints_of_all_kinds() -> None:
    """Coupled springs, an antagonistic pair, a differential, a damped spring and a slide."""
    arm = eom.ElasticArm(robot("sides"))
    assert arm.drive_sides == ("joint", "motor", "motor", "joint", "joint", "joint", "motor", "joint")
    q, qd, qdd = np.full(7, 0.01), np.linspace(0.2, -0.3, 7), np.linspace(-1.0, 2.0, 7)
    command = arm.feedforward(q, qd, qdd, np.zeros(7), np.zeros(7))
    motors = command.motor_position, command.motor_velocity, command.motor_effort
    drives = arm.drive_command(command, q, qd, qdd)[:3]
    wanted = np.transpose(expected(*motors, arm.motor_joint.tolist()))
    for given, formula in zip(drives, wanted, strict=True):
        np.testing.assert_allclose(given, formula, rtol=2e-15)  # of at most eight products
    for given, motor in zip(arm.drive_state(*drives), motors, strict=True):
        np.testing.assert_allclose(given, motor, rtol=1e-13, atol=1e-13)  # offsets of 0.25 turns cancel


def test_a_written_robot_keeps_the_sides_of_its_drives(tmp_path: Path) -> None:
    given = robot("sides")
    again = eom.load_robot(robot_as_yaml(given).text)
    assert [x.drive for x in again.joints] == [x.drive for x in given.joints]
    assert eom.ElasticArm(again).drive_sides == eom.ElasticArm(given).drive_sides


@pytest.mark.parametrize(
    ("sides", "text"),
    [
        (("joint", "joint"), "joint"),
        (("motor", "motor"), "motor"),
        (("motor", "joint"), "joint (elbow), motor (shoulder)"),
    ],
)
def test_sides_are_shown_with_motors_if_they_differ(sides: tuple[str, ...], text: str) -> None:
    assert sides_text(("shoulder", "elbow"), sides) == text


def test_a_robot_without_sections_counts_at_its_joints() -> None:
    for name in ("iiwa", "panda", "sea_planar_2r", "vsa_planar_2r", "planar_pr"):
        arm = eom.ElasticArm(eom.load_robot(name))
        assert not arm.converts and set(arm.drive_sides) == {"joint"}
    assert SI_UNITS.side == "joint"


def test_exported_tables_and_controllers_state_the_sides() -> None:
    given = eom.load_robot("planar_2r")
    units = replace(given.joints[1], gear_ratio=GEAR, drive=DriveUnits("motor"))
    arm = replace(given, joints=(given.joints[0], units))
    assert '"joint (joint_1), motor (joint_2)"' in robot_table(project(arm, loop_functions(arm)))
