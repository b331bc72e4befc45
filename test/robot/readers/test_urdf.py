# SPDX-License-Identifier: Apache-2.0
"""Robots from URDF: fields of joints, merged links, frames, parts of a robot, mimic joints, transmissions."""

import warnings

import numpy as np
import pytest
from differences import deviation
from refusals import refusals
from scipy.linalg import block_diag
from urdf_arms import urdf_arm

from eom_dynamics import (
    ElasticArm,
    Robot,
    RobotDescriptionError,
    RobotDescriptionWarning,
    equations_of_motion,
    lie,
    load_robot,
)

BODY = (
    '<inertial><origin xyz="0.1 0.02 -0.1" rpy="0.3 0.2 0.1"/><mass value="2"/>'
    '<inertia ixx="0.05" ixy="0.001" ixz="0.002" iyy="0.04" iyz="0" izz="0.03"/></inertial>'
)


def link(name: str, inertial: str = BODY) -> str:
    return f'<link name="{name}">{inertial}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", more: str = '<axis xyz="0 1 0"/>') -> str:
    origin = '<origin xyz="0.2 0.1 0.3" rpy="0.1 -0.4 0.7"/>'
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{origin}{more}</joint>'


def urdf(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


#          base - turn - torso - left - left_hand - (fixed) left_tip
#                              - right - right_hand
TWO_ARMS = urdf(
    *(link(name) for name in ("base", "torso", "left", "left_hand", "right", "right_hand")),
    link("left_tip", ""),
    joint("turn", "base", "torso"),
    joint("left_joint", "torso", "left"),
    joint("left_wrist", "left", "left_hand", "prismatic"),
    joint("left_fixed", "left_hand", "left_tip", "fixed"),
    joint("right_joint", "torso", "right"),
    joint("right_wrist", "right", "right_hand", "continuous"),
)


def efforts(robot: Robot, states: np.ndarray) -> np.ndarray:
    *given, last = states
    return np.array(equations_of_motion(robot, *given).efforts(last))


def test_joints_come_depth_first_in_the_order_of_the_file() -> None:
    names, first = ("turn", "left_joint", "left_wrist", "right_joint", "right_wrist"), joint("turn", "base", "torso")
    robot = load_robot(TWO_ARMS)
    assert robot.joint_names == names
    assert [j.parent for j in robot.joints] == [-1, 0, 1, 0, 3]
    assert [tool.name for tool in robot.tools] == ["right_hand"]
    assert {frame.name: frame.joint for frame in robot.frames}["left_tip"] == 2
    assert robot.merged == ("link left_tip into the body of left_wrist (0 kg)",)
    assert load_robot(TWO_ARMS.replace(first, "").replace("</robot>", f"{first}</robot>")).joint_names == names


def test_fields_of_a_joint() -> None:
    more = (
        '<axis xyz="0 0 3"/><limit lower="-1" upper="2" velocity="3" effort="4"/>'
        '<dynamics damping="0.5" friction="0.25"/>'
    )
    gear = (
        '<transmission name="t"><joint name="j"/><actuator name="m"><mechanicalReduction>-50</mechanicalReduction>'
        "<motorInertia>2e-4</motorInertia></actuator></transmission>"
    )
    (read,) = load_robot(urdf(link("base"), link("arm"), joint("j", "base", "arm", more=more), gear)).joints
    assert (read.limits.lower, read.limits.upper, read.limits.velocity, read.limits.effort) == (-1, 2, 3, 4)
    assert (read.damping, read.friction, read.gear_ratio) == (0.5, 0.25, -50)
    assert read.rotor_inertia == pytest.approx(0.5)  # N² J
    np.testing.assert_array_equal(read.screw, [0, 0, 1, 0, 0, 0])
    assert read.stiffness == np.inf


def test_transmissions_of_ros2_control_and_of_drake() -> None:
    links = link("base"), link("arm"), joint("j", "base", "arm")
    ros2 = (
        '<ros2_control name="c" type="system"><transmission name="t"><actuator name="m"/><joint name="j">'
        "<mechanical_reduction>30</mechanical_reduction></joint></transmission></ros2_control>"
    )
    assert load_robot(urdf(*links, ros2)).joints[0].gear_ratio == 30
    drake = (
        '<transmission><joint name="j"/><actuator name="m"><d:rotor_inertia value="1e-3"/><d:gear_ratio value="10"/>'
        "</actuator></transmission>"
    ).replace("d:", "drake:")
    both = drake.replace("</actuator>", "<mechanicalReduction>10</mechanicalReduction></actuator>")
    placeholder = drake.replace("</actuator>", "<mechanicalReduction>1</mechanicalReduction></actuator>")
    for gear in (drake, both, placeholder):
        (read,) = load_robot(urdf(*links, gear)).joints
        assert (read.gear_ratio, read.rotor_inertia) == (10, pytest.approx(0.1))


@pytest.mark.parametrize(
    ("element", "part"),
    [
        ('<drake:linear_bushing_rpy><drake:bushing_frameA name="a"/></drake:linear_bushing_rpy>', "linear_bushing_rpy"),
        ('<drake:ball_constraint body_a="arm" body_b="base"/>', "ball_constraint"),
        ('<drake:joint name="k" type="ball"><parent link="base"/><child link="arm"/></drake:joint>', "drake:joint"),
        ('<drake:tendon_constraint name="t"/>', "tendon_constraint"),
        (joint("k", "arm", "tip", more='<drake:screw_thread_pitch value="0.01"/>') + link("tip"), "screw_thread_pitch"),
    ],
)
def test_elements_of_drake_that_act_on_motion_are_a_warning(element: str, part: str) -> None:
    with pytest.warns(RobotDescriptionWarning, match=f"{part}> of Drake is not read"):
        load_robot(urdf(link("base"), link("arm"), joint("j", "base", "arm"), element))


def test_elements_of_drake_without_an_effect_on_motion_are_ignored() -> None:
    group = '<drake:collision_filter_group name="g"><drake:member link="arm"/></drake:collision_filter_group>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_robot(urdf(link("base"), link("arm"), joint("j", "base", "arm"), group))


def test_transmissions_that_are_left_out_are_listed() -> None:
    links = link("base"), link("arm"), joint("j", "base", "arm", more="")
    coupled = '<transmission name="t"><joint name="j"/><joint name="k"/><actuator name="m"/></transmission>'
    lost = '<transmission name="u"><joint name="k"/><actuator name="m"/></transmission>'
    with pytest.warns(RobotDescriptionWarning, match=r"robot_description.*couples"):
        robot = load_robot(urdf(*links, coupled, lost))
    assert robot.assumed == (
        "transmission t (line 1) is ignored: it couples several joints or motors",
        "transmission u (line 1) is ignored: there is no joint k",
        "axis [1 0 0], the default of URDF: j",
    )


def test_a_tip_selects_a_chain_and_locks_the_other_joints() -> None:
    part = load_robot(TWO_ARMS, tip="left_tip")
    assert part.joint_names == ("turn", "left_joint", "left_wrist")
    assert [tool.name for tool in part.tools] == ["left_tip"]
    assert part.assumed == ("joint right_joint is locked at zero", "joint right_wrist is locked at zero")
    assert part.joints[0].mass == 6
    states = np.random.default_rng(0).uniform(-2, 2, (5, 5))
    states[:, 3:] = 0
    assert deviation(efforts(part, states[:, :3]), efforts(load_robot(TWO_ARMS), states)[:, :3]) < 1e-13


def test_other_branches_may_be_dropped() -> None:
    part = load_robot(TWO_ARMS, tip="left_hand", branches="drop")
    assert part.joint_names == ("turn", "left_joint", "left_wrist")
    assert part.joints[0].mass == 2
    without = load_robot(
        TWO_ARMS.replace(joint("right_joint", "torso", "right"), joint("right_joint", "base", "right"))
    )
    states = np.random.default_rng(0).uniform(-2, 2, (5, 5))
    assert deviation(efforts(part, states[:, :3]), efforts(without, states)[:, :3]) < 1e-13


def test_gravity_is_rotated_into_the_frame_of_the_root() -> None:
    part, whole = load_robot(TWO_ARMS, root="torso"), load_robot(TWO_ARMS)
    assert part.joint_names == whole.joint_names[1:]
    q = np.array([0.0, 0.4, 0.1, -0.7, 1.1])
    a, b = equations_of_motion(part, q[1:], 0 * q[1:]), equations_of_motion(whole, q, 0 * q)
    assert deviation(a.gravity[0], b.gravity[0][1:]) < 1e-13
    given = load_robot(TWO_ARMS, root="torso", gravity=[0, 0, -1.6])
    np.testing.assert_array_equal(given.gravity, [0, 0, -1.6])


MIMIC = urdf(
    *(link(name) for name in ("base", "a", "b", "c")),
    joint("lead", "base", "a"),
    joint("second", "a", "b", more='<axis xyz="0 0 1"/><mimic joint="lead" multiplier="-2" offset="0.5"/>'),
    joint("third", "b", "c", more='<axis xyz="1 0 0"/><mimic joint="second" multiplier="0.5" offset="0.1"/>'),
)


def test_a_chain_of_mimic_joints_is_resolved() -> None:
    robot = load_robot(MIMIC)
    assert robot.joint_names == ("lead",)
    mimics = [(m.joint, m.ratio, m.offset) for m in (j.mimic for j in robot.joints[1:]) if m]
    assert mimics == [(0, -2, 0.5), (0, -1, pytest.approx(0.35))]


def test_a_mimic_joint_is_locked_with_its_leader() -> None:
    text = MIMIC.replace('parent link="a"', 'parent link="base"').replace(
        '<mimic joint="second"', '<note joint="second"'
    )
    robot = load_robot(text, tip="c")
    assert robot.joint_names == ("third",)
    assert robot.assumed == ("joint lead is locked at zero", "joint second is locked at zero")


@pytest.mark.parametrize(("kind", "names"), [("planar", "x y yaw"), ("floating", "x y z yaw pitch roll")])
def test_a_joint_of_several_variables_is_a_chain(kind: str, names: str) -> None:
    robot = load_robot(urdf(link("base"), link("puck"), joint("p", "base", "puck", kind, '<axis xyz="2 0 0"/>')))
    assert robot.joint_names == tuple(f"p_{name}" for name in names.split())
    assert [body.mass for body in robot.joints] == [*[0] * (robot.n - 1), 2]


ROS2 = """<ros2_control name="c" type="system"><transmission name="wrist">
  <plugin>transmission_interface/{kind}</plugin>
  <actuator name="m2" role="actuator2"><mechanical_reduction>-50</mechanical_reduction></actuator>
  <actuator name="m1" role="actuator1"><mechanical_reduction>40</mechanical_reduction>
    <motorInertia>1e-4</motorInertia></actuator>
  <joint name="shoulder" role="joint1"><offset>0.5</offset><mechanical_reduction>2</mechanical_reduction></joint>
  <joint name="elbow" role="joint2"><mechanical_reduction>4</mechanical_reduction></joint>
</transmission></ros2_control>"""

ROS1 = """<transmission name="wrist"><type>transmission_interface/{kind}</type>
  <actuator name="m1"><role>actuator1</role><mechanicalReduction>40</mechanicalReduction>
    <motorInertia>1e-4</motorInertia></actuator>
  <actuator name="m2"><role>actuator2</role><mechanicalReduction>-50</mechanicalReduction></actuator>
  <joint name="shoulder"><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint>
  <joint name="elbow"><role>joint2</role><mechanicalReduction>4</mechanicalReduction></joint></transmission>"""


def arm_with(transmission: str, joints: tuple[str, ...] = ("shoulder", "elbow"), **options: object) -> Robot:
    return load_robot(urdf_arm(joints=joints).replace("</robot>", f"{transmission}</robot>"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [ROS1, ROS2], ids=["ros_control", "ros2_control"])
@pytest.mark.parametrize("kind", ["DifferentialTransmission", "FourBarLinkageTransmission"])
@pytest.mark.filterwarnings("error")
def test_motors_move_the_joints_as_the_plugin_does(text: str, kind: str) -> None:
    arm = ElasticArm(arm_with(text.format(kind=kind)))
    np.testing.assert_array_equal(arm.gear_ratio, [40, -50])
    np.testing.assert_allclose(arm.rotor_inertia, [0.16, 0])
    assert arm.robot.transmission is not None
    indices, transmission = arm.robot.transmission
    assert indices == (0, 1)
    x = np.array([30.0, -20.0]) / [40, -50]  # motors, behind their gears
    expected = [(x[0] + x[1]) / (2 * 2), (x[0] - x[1]) / (2 * 4)]
    if kind.startswith("Four"):
        expected = [x[0] / 2, (x[1] - x[0] / 2) / 4]
    np.testing.assert_allclose(x @ transmission.matrix.T, expected)


def test_the_transmissions_of_two_arms_are_used_together_and_alone() -> None:
    both = PAIR + PAIR.replace("wrist", "ankle").replace("shoulder", "hip").replace("elbow", "knee")
    joints = ("shoulder", "elbow", "hip", "knee")
    robot = arm_with(both, joints)
    assert robot.transmission is not None and robot.transmission[0] == (0, 1, 2, 3)
    matrix = robot.transmission[1].matrix
    np.testing.assert_array_equal(matrix, block_diag(matrix[:2, :2], matrix[:2, :2]))
    alone = arm_with(both, joints, root="elbow_link").transmission
    assert alone is not None and alone[0] == (0, 1)
    with pytest.warns(RobotDescriptionWarning, match="ankle"):
        part = arm_with(both, joints, tip="hip_link").transmission
    assert part is not None and part[0] == (0, 1)


PAIR = ROS1.format(kind="DifferentialTransmission")
LEFT_OUT = {
    "unknown kind": (ROS1.format(kind="SpatialTransmission"), "it couples several joints or motors"),
    "unknown joint": (PAIR.replace("elbow", "wrist"), "wrist is not a joint with a motor of its own"),
    "one joint": (PAIR.replace("elbow", "shoulder"), "both joints are shoulder"),
}


@pytest.mark.parametrize(("text", "reason"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_others_are_left_out_with_a_warning(text: str, reason: str) -> None:
    with pytest.warns(RobotDescriptionWarning, match=f"transmission wrist .* is ignored: {reason}"):
        robot = arm_with(text)
    assert robot.transmission is None and [joint.gear_ratio for joint in robot.joints] == [1, 1]


def test_a_joint_has_one_transmission() -> None:
    simple = '<transmission name="t"><joint name="elbow"/><actuator name="m"/></transmission>'
    with pytest.raises(RobotDescriptionError, match=r"'elbow'.*wrist"):
        arm_with(PAIR + simple)
    with pytest.raises(RobotDescriptionError, match="the reduction must not be 0"):
        arm_with(PAIR.replace(">2<", ">0<"))


def limited(limit: str, *, more: str = "", kind: str = "revolute") -> tuple[Robot, list[str]]:
    """A joint with attributes of <limit>, and its warnings."""
    text = urdf(
        link("base"), link("arm"), joint("j", "base", "arm", kind, f'<axis xyz="0 1 0"/><limit {limit}/>{more}')
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = load_robot(text)
    return robot, [str(warning.message) for warning in caught]


ENDS = 'lower="-3" upper="3" velocity="3" effort="50"'


@pytest.mark.parametrize(
    ("limit", "acceleration", "jerk", "says"),
    [
        (f'{ENDS} acceleration="7" deceleration="5" jerk="100"', 5.0, 100.0, "acceleration 7, deceleration 5"),
        (f'{ENDS} acceleration="5" deceleration="7" jerk="100"', 5.0, 100.0, "acceleration 5, deceleration 7"),
        (f'{ENDS} acceleration="7" jerk="inf"'.replace("inf", "1e400"), 7.0, np.inf, ""),
        (f'{ENDS} deceleration="5"', 5.0, np.inf, "acceleration inf, deceleration 5"),
        (f'{ENDS} acceleration="6" deceleration="6"', 6.0, np.inf, ""),
        (f'{ENDS} drake:acceleration="4" drake:jerk="90"', 4.0, 90.0, ""),
    ],
)
def test_limits_of_urdf_1_2_and_of_drake(limit: str, acceleration: float, jerk: float, says: str) -> None:
    robot, remarks = limited(limit)
    limits = robot.independent_joints[0].limits
    assert (limits.acceleration, limits.jerk) == (acceleration, jerk)
    assert (limits.lower, limits.upper, limits.velocity, limits.effort) == (-3.0, 3.0, 3.0, 50.0)
    assert len(remarks) == bool(says) and all(says in x for x in remarks)


def test_limit_of_zero_is_reported() -> None:
    _, (remark,) = limited('lower="-3" upper="3" velocity="0" effort="50"')
    assert "velocity 0: commands that move the joint are refused" in remark


@pytest.mark.parametrize("attribute", ["max_torque_rate", "vendor:snap"])
def test_no_limit_is_left_out_without_a_word(attribute: str) -> None:
    (remark,) = limited(f'{ENDS} {attribute}="5"')[1]
    assert remark == f"robot_description: <limit>: {attribute} is ignored: j"
    robot, _ = limited(ENDS, more='<safety_controller k_velocity="1" soft_lower_limit="-2"/>')
    assert "soft limits of <safety_controller> are not read: j" in robot.assumed


def test_quaternions_of_urdf_1_1() -> None:
    """Rotation by roll 0.1, pitch -0.4, yaw 0.7."""
    x, y, z, w = lie.quaternion(lie.rotation_from_rpy([0.1, -0.4, 0.7])).tolist()
    text = TWO_ARMS.replace('rpy="0.1 -0.4 0.7"', f'quat_xyzw="{x} {y} {z} {w}"')
    assert text != TWO_ARMS
    q = np.linspace(-0.5, 0.5, load_robot(TWO_ARMS).n)
    ours, theirs = (equations_of_motion(load_robot(x), q, q, q).gravity[0] for x in (text, TWO_ARMS))
    np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)


test_what_is_refused = refusals(
    RobotDescriptionError,
    *(
        (lambda origin=origin: load_robot(TWO_ARMS.replace('rpy="0.1 -0.4 0.7"', origin)), reason)
        for origin, reason in (
            ('quat_xyzw="0 0 0 1" rpy="0 0 0"', "has rpy and quat_xyzw: give one of them"),
            ('quat_xyzw="0 0 0 0"', "quat_xyzw must have the length 1, has 0"),
            ('quat_xyzw="1 0 1 0"', "quat_xyzw must have the length 1, has 1.414"),
            ('quat_xyzw="0 0 1"', "quat_xyzw must be four numbers"),
        )
    ),
    *(
        (lambda name=name: limited(f'{ENDS} {name}="0"'), f"joint j: <limit>: {name} must be positive, is 0")
        for name in ("acceleration", "deceleration", "jerk")
    ),
)


def test_of_two_origins_the_first_counts_and_what_occurs_again_counts_once() -> None:
    origin = '<origin xyz="0.2 0.1 0.3" rpy="0.1 -0.4 0.7"/>'
    twice = TWO_ARMS.replace(origin, f'{origin}<origin xyz="9 9 9"/>').replace(BODY, BODY * 2)
    q = np.linspace(-0.5, 0.5, load_robot(TWO_ARMS).n)
    with pytest.warns(RobotDescriptionWarning, match=r"<origin>.*occurs.*1"):
        robot = load_robot(twice)
    ours, theirs = (equations_of_motion(x, q, q, q).M[0] for x in (robot, load_robot(TWO_ARMS)))
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(RobotDescriptionError, match=r"<axis>.*occur"):
        load_robot(TWO_ARMS.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><axis xyz="1 0 0"/>'))


def test_elements_of_drake_are_named_where_they_are_why_a_file_is_refused() -> None:
    ball = '<drake:joint name="ball" type="ball"><parent link="base"/><child link="tip"/></drake:joint>'
    text = urdf(link("base"), link("arm"), link("tip"), joint("j", "base", "arm"), ball)
    text = text.replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"')
    with pytest.raises(RobotDescriptionError, match=r"2.*roots.*<drake:joint>"):
        load_robot(text)
