# SPDX-License-Identifier: Apache-2.0
"""SDF models: poses relative to any frame, joints, and what is not read."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from same_dynamics import assert_same_dynamics
from scipy.spatial.transform import Rotation

from eom_dynamics import Robot, RobotDescriptionError, RobotDescriptionWarning, load_robot
from eom_dynamics.tools.cli.main import main

INERTIAL = (
    "<inertial><pose>.1 .02 -.03 .3 .2 .1</pose><mass>2</mass><inertia><ixx>.03</ixx><ixy>.001</ixy><iyy>.02</iyy>"
    "<izz>.015</izz></inertia></inertial>"
)
UPPER = f'<link name="upper"><pose>.1 .2 .3 .4 .5 .6</pose>{INERTIAL}</link>'
FORE = f'<link name="fore"><pose relative_to="elbow"/>{INERTIAL}</link>'
AXIS = (
    "<axis><xyz>0 3 4</xyz><limit><lower>-1</lower><upper>2</upper><effort>30</effort><velocity>-1</velocity></limit>"
    "<dynamics><damping>.5</damping><friction>.2</friction><spring_stiffness>7</spring_stiffness>"
    "<spring_reference>.3</spring_reference></dynamics></axis>"
)
SHOULDER = '<joint name="shoulder" type="revolute"><parent>world</parent><child>upper</child><axis/></joint>'
ELBOW = (
    '<joint name="elbow" type="revolute"><pose relative_to="upper">.3 0 0 .1 0 0</pose><parent>upper</parent>'
    f"<child>fore</child>{AXIS}</joint>"
)
GOOD = f'<sdf version="1.11"><model name="arm">{UPPER}{FORE}{SHOULDER}{ELBOW}</model></sdf>'

URDF = """
<robot name="arm"><link name="world"/><link name="upper">{inertial}</link><link name="fore">{inertial}</link>
<joint name="shoulder" type="continuous"><origin xyz=".1 .2 .3" rpy=".4 .5 .6"/><parent link="world"/>
<child link="upper"/><axis xyz="0 0 1"/></joint><joint name="elbow" type="revolute"><origin xyz=".3 0 0" rpy=".1 0 0"/>
<parent link="upper"/><child link="fore"/><axis xyz="0 3 4"/><limit lower="-1" upper="2"/></joint></robot>
""".format(
    inertial='<inertial><origin xyz=".1 .02 -.03" rpy=".3 .2 .1"/><mass value="2"/>'
    '<inertia ixx=".03" ixy=".001" ixz="0" iyy=".02" iyz="0" izz=".015"/></inertial>'
)


def test_it_is_the_robot_of_a_urdf() -> None:
    robot, elbow = load_robot(GOOD), load_robot(GOOD).joints[1]
    rigid = load_robot(GOOD.replace("<spring_stiffness>7</spring_stiffness>", ""))
    assert_same_dynamics(rigid, load_robot(URDF))
    assert robot.joint_names == ("shoulder", "elbow") and robot.joints[0].limits.upper == np.inf
    assert (elbow.limits.lower, elbow.limits.upper, elbow.limits.effort, elbow.limits.velocity) == (-1, 2, 30, np.inf)
    assert (elbow.damping, elbow.friction) == (0.5, 0.2)
    spring = elbow.parallel_spring
    assert spring is not None and spring.entries() == {"type": "linear", "stiffness": 7.0, "rest_position": 0.3}


# The same robot in other words.
SAME = {
    "axis in another frame": (
        "<axis><xyz>0 3 4</xyz>",
        '<axis><xyz expressed_in="turned">4 0 3</xyz>',
        '<frame name="turned" attached_to="elbow"><pose>0 0 0 0 0 0</pose></frame>'
        # x, y, z of the frame are z, x, y of the joint.
        .replace("0 0 0 0 0 0", "0 0 0 -1.5707963267948966 -1.5707963267948966 0"),
    ),
    "pose in degrees": (
        ">.3 0 0 .1 0 0<",
        f' degrees="true">.3 0 0 {float(np.degrees(0.1))} 0 0<',
        "",
    ),
    "pose with a quaternion": (
        ">.3 0 0 .1 0 0<",
        f' rotation_format="quat_xyzw">.3 0 0 {math.sin(0.05)} 0 0 {math.cos(0.05)}<',
        "",
    ),
    "frames as ends": (
        "<parent>upper</parent>",
        "<parent>here</parent>",
        '<frame name="here" attached_to="shoulder"><pose>1 2 3 0 0 0</pose></frame>',
    ),
}


@pytest.mark.parametrize(("old", "new", "frame"), SAME.values(), ids=SAME)
def test_poses_and_axes_in_other_frames(old: str, new: str, frame: str) -> None:
    assert old in GOOD
    assert_same_dynamics(load_robot(GOOD), load_robot(GOOD.replace(old, new).replace("</model>", f"{frame}</model>")))


def test_axes_of_frames_are_as_written() -> None:
    """A frame on its own, and a joint whose origin is off that of its link."""
    moved = FORE.replace('<pose relative_to="elbow"/>', "<pose>1 0 0 0 0 0</pose>")
    frame = '<frame name="tip" attached_to="fore"/></model>'
    robot = load_robot(GOOD.replace(FORE, moved).replace("</model>", frame), tools="tip")
    assert robot.tools[0].joint == 1
    np.testing.assert_allclose(robot.tools[0].pose, np.eye(4), atol=1e-15)
    assert np.linalg.norm(robot.joints[1].screw[3:]) > 0.1  # the axis is off the origin of the link


def test_joints_of_other_types_world_and_gravity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def joint(kind: str, content: str = "<axis/>") -> str:
        return f'<joint name="j" type="{kind}"><parent>upper</parent><child>fore</child>{content}</joint>'

    def read(given: str) -> Robot:
        model = f'<model name="arm">{UPPER}{FORE.replace("elbow", "upper")}{SHOULDER}{given}</model>'
        return load_robot(f'<sdf version="1.9"><world name="w"><gravity>0 1 -3</gravity>{model}</world></sdf>')

    assert load_robot(GOOD).gravity.tolist() == [0, 0, -9.80665]
    ball = read(joint("ball", ""))
    assert ball.joint_names == ("shoulder", "j_yaw", "j_pitch", "j_roll") and ball.gravity.tolist() == [0, 1, -3]
    screw = read(joint("screw", "<axis/><screw_thread_pitch>.02</screw_thread_pitch>")).joints[1]
    assert screw.type == "helical" and screw.screw[2] * screw.screw[5] == pytest.approx(0.02 / (2 * np.pi))
    assert [read(joint(kind)).joints[-1].type for kind in ("prismatic", "continuous", "fixed")] == [
        "prismatic",
        "revolute",
        "revolute",  # of the shoulder
    ]
    terms = "<multiplier>2</multiplier><offset>1</offset><reference>.3</reference>"
    follows = f'<axis><mimic joint="shoulder">{terms}</mimic></axis>'
    mimic = read(joint("revolute", follows)).joints[1].mimic
    assert mimic is not None and (mimic.ratio, mimic.offset) == (2.0, 1.0 - 0.6)
    path = tmp_path / "arm.sdf"
    path.write_text(GOOD)
    assert main(["inspect", str(path)]) == 0 and "elbow" in capsys.readouterr().out


def test_defaults_and_what_is_not_read_are_named() -> None:
    text = GOOD.replace(INERTIAL, "<gravity>false</gravity>", 1)
    with pytest.warns(RobotDescriptionWarning, match="link upper: <gravity> false is ignored"):
        robot = load_robot(text)
    assert robot.joints[0].mass == 1.0
    assert robot.assumed == ("mass 1 kg and inertia 1 kg m², the defaults of SDFormat: upper",)


def test_gravity_is_along_the_axes_of_the_world() -> None:
    """Which the pose of the model turns, and that of a root that no joint ties to the world."""
    given = '<model name="arm"><pose>0 0 1 .5 0 0</pose>'
    tied, free = (GOOD.replace('<model name="arm">', given).replace(joint, "") for joint in ("none", SHOULDER))
    robot, start = load_robot(tied), Rotation.from_euler("xyz", [0.5, 0, 0]).as_matrix()
    R = start @ Rotation.from_euler("xyz", [0.4, 0.5, 0.6]).as_matrix()
    np.testing.assert_allclose(robot.gravity, [0, 0, -9.80665])
    np.testing.assert_allclose(robot.joints[0].reference_pose[:3, :3], R, atol=1e-15)
    np.testing.assert_allclose(load_robot(free).gravity, R.T @ [0, 0, -9.80665], atol=1e-14)
    placed = tied.replace('<model name="arm">', '<model name="arm" placement_frame="upper">')
    np.testing.assert_allclose(load_robot(placed).joints[0].reference_pose[:3, :3], start, atol=1e-15)


def test_no_limits_and_long_chains_of_frames() -> None:
    text = GOOD.replace("<lower>-1<", "<lower>-inf<").replace("<upper>2<", "<upper>inf<")
    limits = load_robot(text).joints[1].limits
    assert (limits.lower, limits.upper) == (-np.inf, np.inf)
    chain = "".join(f'<frame name="f{i}" attached_to="f{i + 1}"/>' for i in range(2000))
    robot = load_robot(GOOD.replace("</model>", f'{chain}<frame name="f2000" attached_to="fore"/></model>'), tools="f0")
    assert robot.tools[0].joint == 1


OLD_AXIS = ELBOW.replace("<axis>", "<axis><use_parent_model_frame>true</use_parent_model_frame>")


@pytest.mark.parametrize(
    ("version", "elbow", "in_model"),
    [
        ("1.2", ELBOW, True),
        ("1.4", ELBOW, True),  # libsdformat's conversion to 1.5 adds the element
        ("1.5", ELBOW, False),
        ("1.5", OLD_AXIS, True),
        ("1.6", OLD_AXIS.replace("true", "True"), True),
        ("1.6.1", ELBOW, False),
        ("1.10", ELBOW, False),
    ],
)
def test_axes_are_along_the_frame_of_their_version(version: str, elbow: str, in_model: bool) -> None:
    old = GOOD.replace('"1.11"', f'"{version}"').replace(ELBOW, elbow)
    now = GOOD.replace("<xyz>", '<xyz expressed_in="__model__">') if in_model else GOOD
    if version in ("1.2", "1.4"):
        now = now.replace("<axis/>", '<axis><xyz expressed_in="__model__">0 0 1</xyz></axis>')
    assert_same_dynamics(load_robot(old), load_robot(now))


BAD = {
    "malformed": ("</model>", "", "not valid XML: mismatched tag"),
    "no model": ("model", "thing", "there must be one <model>, are 0"),
    "included model": (
        "</model>",
        "<include><uri>x</uri></include></model>",
        "a <include> within the file is not read",
    ),
    "nested model": ("</model>", '<model name="b"/></model>', "a <model> within the file is not read"),
    "no links": (UPPER + FORE + SHOULDER + ELBOW, "", "has no <link>"),
    "no joints": (FORE + SHOULDER + ELBOW, "", "at least one joint must move"),
    "unknown link": ("<child>fore</child>", "<child>hand</child>", "there is no frame 'hand'"),
    "unknown frame": ('relative_to="upper"', 'relative_to="uper"', "there is no frame 'uper'; did you mean upper?"),
    "poses in a circle": ('relative_to="upper"', 'relative_to="fore"', "poses are relative to each other: "),
    "old pose": ('relative_to="upper"', 'frame="upper"', "attribute 'frame' is that of SDFormat 1.5 and 1.6"),
    "two parents": (SHOULDER, SHOULDER + SHOULDER.replace("shoulder", "again"), "is already the child of 'shoulder'"),
    "name twice": (
        SHOULDER,
        SHOULDER.replace('"shoulder"', '"upper"'),
        "a link, joint or frame has the name of another",
    ),
    "type": ('"revolute"', '"universal"', "type must be one of revolute, continuous, prismatic, screw, ball, fixed"),
    "screw without pitch": (
        '"elbow" type="revolute"',
        '"elbow" type="screw"',
        "<screw_thread_pitch>, m in a revolution,",
    ),
    "no axis": (AXIS, "", "<axis> is missing"),
    "zero axis": ("0 3 4", "0 0 0", "<xyz> must not be zero"),
    "text for a number": ("<mass>2<", "<mass>two<", "the text must be a number, is 'two'"),
    "too few numbers": (">.3 0 0 .1 0 0<", ">.3 0 0<", "must be 6 numbers, is '.3 0 0'"),
    "limits": ("<lower>-1<", "<lower>5<", "lower must not exceed upper, is 5 and 2"),
    "misspelt": ("<inertial>", "<inertal>", "not valid XML"),
    "misspelt element": ("<axis/>", "<axes/>", "unknown <axes>; did you mean <axis>?"),
    "misspelt mass": ("<mass>2</mass>", "<mas>2</mas>", "unknown <mas>; did you mean <mass>?"),
    "misspelt limit": ("<lower>-1</lower>", "<lowr>-1</lowr>", "unknown <lowr>; did you mean <lower>?"),
    "misspelt damping": (
        "<damping>.5</damping>",
        "<dampng>.5</dampng>",
        "<dynamics>: unknown <dampng>; did you mean <damping>?",
    ),
    "negative friction": ("<friction>.2<", "<friction>-.2<", "friction must not be negative, is -0.2"),
    "rotation format": (
        'relative_to="upper"',
        'rotation_format="quat_wxyz"',
        "rotation_format must be euler_rpy or quat_xyzw",
    ),
    "automatic inertia": ("<inertial>", '<inertial auto="true">', "auto is not supported"),
    "no version": (' version="1.11"', "", "line 1: attribute 'version' is missing"),
    "version": ('"1.11"', '"eleven"', "version must be from 1.2 to 1.x, is 'eleven'"),
    "version of old elements": ('"1.11"', '"1.0"', "version must be from 1.2 to 1.x, is '1.0'"),
    "axis of old versions": (ELBOW, OLD_AXIS, "<use_parent_model_frame>: is of SDFormat 1.5 and 1.6; write <xyz expr"),
    "misspelt relative_to": ("relative_to", "relativ_to", "<pose>: unknown attribute 'relativ_to'; known are"),
    "attribute of an axis": ("<xyz>", '<xyz expresed_in="upper">', "<xyz>: unknown attribute 'expresed_in'; known are"),
    "attribute of a frame": (
        "</model>",
        '<frame name="f" atached_to="fore"/></model>',
        "frame f: unknown attribute 'atached_to'",
    ),
    "attribute of an inertia": ("<inertial>", '<inertial aut="true">', "unknown attribute 'aut'"),
    "attribute of a model": ('name="arm"', 'name="arm" placment_frame="fore"', "unknown attribute 'placment_frame'"),
    "neither true nor false": ('pose relative_to="upper"', 'pose degrees="yes"', "'degrees' must be true or false, is"),
    "format of no numbers": (FORE, FORE.replace("relative_to", "rotation_format"), "rotation_format must be euler_rpy"),
    "second axis leads": (
        "</axis></joint>",
        '<mimic joint="shoulder" axis="axis2"/></axis></joint>',
        "<mimic>: axis must be 'axis', is 'axis2': joints with a second axis are not supported",
    ),
    "misspelt ratio": (
        "</axis></joint>",
        '<mimic joint="shoulder"><multiplyer>2</multiplyer></mimic></axis></joint>',
        "<mimic>: unknown <multiplyer>; did you mean <multiplier>?",
    ),
    "link with the name of the world": ('link name="upper"', 'link name="world"', "the name 'world' is reserved"),
    "frame with a reserved name": ("</model>", '<frame name="__x__"/></model>', "the name '__x__' is reserved"),
    "frames in a circle": (
        "</model>",
        '<frame name="a" attached_to="b"/><frame name="b" attached_to="a"><pose relative_to="fore"/></frame></model>',
        "frames are attached to each other: ",
    ),
    "document type": ("<sdf", "<!DOCTYPE sdf><sdf", "document type declarations and entities are not allowed"),
}


@pytest.mark.parametrize(("old", "new", "reason"), BAD.values(), ids=BAD)
def test_bad_files_are_one_line(old: str, new: str, reason: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = tmp_path / "arm.sdf"
    path.write_text(GOOD.replace(old, new))
    with warnings.catch_warnings(), pytest.raises(RobotDescriptionError) as error:  # noqa: PT012
        warnings.simplefilter("ignore")
        load_robot(path)
    assert str(error.value).startswith(f"{path}: ") and reason in str(error.value) and "\n" not in str(error.value)
