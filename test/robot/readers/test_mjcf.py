# SPDX-License-Identifier: Apache-2.0
"""MJCF models: the dynamics equal MuJoCo's, and ignored elements are named."""

import os
import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco_reference import mujoco_dynamics

from eom_dynamics import (
    FloatingBase,
    Robot,
    RobotDescriptionError,
    RobotDescriptionWarning,
    equations_of_motion,
    load_robot,
)

BODY = '<inertial pos=".1 .02 -.03" quat=".9 .1 .3 .2" mass="2" diaginertia=".03 .02 .015"/>'
TIP = '<inertial pos="0 .05 .1" mass=".7" fullinertia=".004 .003 .002 1e-4 -2e-4 3e-4"/>'
TURN = '<joint name="turn" axis="0 1 1" pos=".1 0 .2"/>'


def model(bodies: str, rest: str = "", compiler: str = 'angle="radian"') -> str:
    return f'<mujoco model="arm"><compiler {compiler}/><worldbody>{bodies}</worldbody>{rest}</mujoco>'


def chain(joints: str, tip: str = TURN) -> str:
    return (
        f'<body name="one" pos=".1 .2 .3" quat=".5 -.5 .5 .7">{joints}{BODY}'
        f'<body name="two" pos=".3 0 .1" euler=".3 -.4 1">{tip}{TIP}</body></body>'
    )


def read(text: str, **options: Any) -> tuple[Robot, list[str]]:
    """The robot and its warnings, without the name of the source."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = load_robot(text, **options)
    return robot, [str(warning.message).removeprefix("robot_description: ") for warning in caught]


def deviation(text: str, robot: Robot) -> float:
    """Largest difference to MuJoCo of efforts, mass matrix and gravity, in a random state."""
    q, qd, qdd = np.random.default_rng(5).uniform(-1, 1, (3, robot.n))
    equations = equations_of_motion(robot, q, qd, qdd)
    ours = equations.efforts(qdd)[0], equations.M[0], equations.gravity[0]
    theirs = mujoco_dynamics(mujoco.MjModel.from_xml_string(text), robot, q, qd, qdd)
    return max(float(np.max(np.abs(one - other))) for one, other in zip(ours, theirs, strict=True))


ARMS = {
    "hinge and slide": chain('<joint name="slide" type="slide" axis="1 2 0"/>'),
    "several joints in one body": chain(
        '<joint name="x" type="slide" axis="1 0 0"/><joint name="a" axis="0 0 1" pos="0 .1 0"/>'
        '<joint name="b" axis="0 1 0"/>'
    ),
    "reference positions": chain(
        '<joint name="s" type="slide" ref=".3"/>', '<joint name="t" axis="0 1 1" ref="-.7" pos=".1 0 .2"/>'
    ),
    "ball off its center": chain('<joint name="socket" type="ball" pos=".1 -.2 .05"/>'),
    "ball behind a hinge": chain('<joint name="a" axis="1 0 1"/><joint name="socket" type="ball" pos=".1 -.2 .05"/>'),
    "free": chain('<freejoint name="float"/>'),
    "fixed bodies": chain(TURN, f'<joint name="last"/><body name="tool" pos="0 0 .1" euler="1 0 0">{BODY}</body>'),
    "several roots": chain(TURN.replace("turn", "first")) + f'<body pos="1 0 0"><freejoint/>{BODY}</body>',
    "springs and motors": chain('<joint name="sprung" stiffness="3" springref=".4" ref=".1"/>'),
    "unnamed": f'<body><joint/>{BODY}<body><joint axis="1 0 0"/>{TIP}</body></body>',
    "inertia of shapes": '<body><joint/><geom size=".1"/><geom type="box" size=".1 .2 .3" pos="0 1 0"/></body>',
}


@pytest.mark.parametrize("bodies", ARMS.values(), ids=ARMS)
def test_efforts_are_those_of_mujoco(bodies: str) -> None:
    robot, said = read(model(bodies))
    assert said == []
    assert deviation(model(bodies), robot) < 1e-12


def test_defaults_degrees_and_frames_are_those_of_mujoco() -> None:
    defaults = '<default><joint damping="0.4" range="-90 45"/></default><option gravity="1 2 -3"/>'
    text = model(
        f'<frame euler="0 90 0" pos="0 1 0">{chain(TURN, "")}</frame>', defaults, 'angle="degree" autolimits="true"'
    )
    robot, _ = read(text)
    assert deviation(text, robot) < 1e-12
    np.testing.assert_allclose([robot.joints[0].limits.lower, robot.joints[0].limits.upper], [-np.pi / 2, np.pi / 4])
    assert robot.joints[0].damping == 0.4 and robot.gravity.tolist() == [1, 2, -3]


def test_friction_rotor_gear_and_limits() -> None:
    joint = '<joint name="j" armature=".2" damping="3" frictionloss=".5" actuatorfrcrange="-60 60"/>'
    motors = (
        '<motor name="m" joint="j" gear="50" ctrlrange="-1.5 1.5" forcerange="-1 1"/><position joint="turn" kp="100"/>'
    )
    robot, said = read(model(chain(joint), f"<actuator>{motors}</actuator>"))
    j = robot.joints[0]
    assert said == [] and robot.assumed == ("control laws of actuators are not read: actuator_1",)
    assert (j.rotor_inertia, j.damping, j.friction, j.gear_ratio) == (0.2, 3.0, 0.5, 50.0)
    assert (j.limits.effort, j.actuator.motor.torque_limit, robot.joints[1].limits.effort) == (50.0, 1.0, np.inf)


def test_actuators_of_a_joint_are_one_whose_gear_is_theirs_if_it_is_one() -> None:
    text = "several actuators are one without a gear: turn"
    for gears, found in (((5, 5), 5.0), ((5, 4), 1.0)):
        motors = "".join(f'<motor joint="turn" gear="{gear}" forcerange="-1 1"/>' for gear in gears)
        robot, _ = read(model(chain(TURN, ""), f"<actuator>{motors}</actuator>"))
        assert (robot.joints[0].gear_ratio, robot.joints[0].limits.effort) == (found, sum(gears))
        assert (text in robot.assumed) == (found == 1.0)


def test_rotor_and_damping_of_an_actuator_are_before_its_gear() -> None:
    motor = '<actuator><motor joint="turn" gear="3" armature=".5" damping=".1"/></actuator>'
    try:
        mujoco.MjModel.from_xml_string(model(chain(TURN, ""), motor))
    except ValueError:
        pytest.skip("this release of MuJoCo has no armature of actuators")
    robot, _ = read(model(chain(TURN, ""), motor))
    assert robot.joints[0].rotor_inertia == 4.5 and robot.joints[0].actuator.friction.viscous == pytest.approx(0.9)


EQUAL = '<equality><joint joint1="a" joint2="turn" polycoef=".2 -2 0 0 0"/></equality>'


@pytest.mark.parametrize("driven", ["turn", "a"])
def test_a_linear_equality_of_joints_is_a_mimic_joint(driven: str) -> None:
    bodies = chain(
        '<joint name="a" ref=".5" axis="1 0 0" armature=".1"/>', TURN.replace("<joint", '<joint armature=".3"')
    )
    text = model(bodies, f'{EQUAL}<actuator><motor joint="{driven}"/></actuator>')
    robot, said = read(text)
    assert said == [] and robot.joint_names == (driven,) and deviation(text, robot) < 1e-12
    a, turn = robot.coupling[0] @ [0.3] + robot.coupling[1]
    assert a - 0.5 == pytest.approx(0.2 - 2 * turn)  # as MuJoCo: both from their references
    assert robot.rotor_inertia[0] == pytest.approx(0.3 + 4 * 0.1 if driven == "turn" else 0.1 + 0.3 / 4)


IGNORED = [
    (
        '<equality><connect name="loop" body1="two" anchor="0 0 0"/></equality>',
        "equality constraints are ignored: loop",
    ),
    (EQUAL.replace("-2 0", "-2 1"), "equality constraints are ignored: joint 0"),
    (
        '<tendon><fixed name="rope" stiffness="3"><joint joint="turn" coef="2"/></fixed></tendon>',
        "tendons are ignored: rope",
    ),
    (
        '<tendon><fixed name="rope"><joint joint="turn" coef="2"/></fixed></tendon>'
        '<actuator><motor name="pull" tendon="rope"/></actuator>',
        "actuators that drive no hinge or slide are ignored: pull",
    ),
    ('<option viscosity="1e-3"/>', "the fluid around the bodies is ignored: option density, viscosity"),
]


@pytest.mark.parametrize(("rest", "line"), IGNORED, ids=[row[-1] for row in IGNORED])
def test_what_is_not_read_is_named(rest: str, line: str) -> None:
    robot, said = read(model(chain('<joint name="a"/>'), rest))
    assert line in said and robot.joint_names == ("a", "turn")


def test_properties_of_bodies_and_joints_that_are_not_read_are_named() -> None:
    ball = chain('<joint name="socket" type="ball" damping="2"/>').replace('name="two"', 'name="two" gravcomp="1"')
    _, said = read(model(ball))
    assert said == [
        "limits, springs, damping and armature of free and ball joints are ignored: socket",
        "gravity compensation of bodies is ignored: two",
    ]


def test_sites_are_frames_and_the_one_at_the_end_is_the_tool() -> None:
    site = '<site name="flange" pos="0 0 .2" euler="0 1 0"/>'
    robot, _ = read(model(chain('<site name="two"/><joint name="a"/>', f"{TURN}{site}")))
    assert [tool.name for tool in robot.tools] == ["flange"]
    assert {frame.name for frame in robot.frames} == {"world", "one", "two", "two_site", "flange"}
    other, _ = read(model(chain('<joint name="a"/>', f'{TURN}{site}<site name="camera"/>')), tools="camera")
    assert [tool.name for tool in other.tools] == ["camera"]


def test_a_body_can_be_the_floating_base() -> None:
    text = model(chain('<freejoint name="float"/>'))
    robot, _ = read(text, root="one")
    whole, _ = read(text)
    base = FloatingBase(robot)
    assert robot.joint_names == ("turn",) and robot.base.mass == 2.0
    # At the reference, the last column of the mass matrix is equal, except for the coordinates of the base.
    M = equations_of_motion(whole, np.zeros(7), np.zeros(7)).M[0]
    np.testing.assert_allclose(base.mass_matrix([0.0])[-1, -1], M[-1, -1], rtol=1e-14)


@pytest.mark.filterwarnings("error")
def test_meshes_and_textures_that_no_inertia_needs_are_not_opened(tmp_path: Path) -> None:
    image = '<texture name="t" type="2d" file="gone.png"/><material name="m" texture="t"/>'
    asset = f'<asset>{image}<mesh name="skin" file="gone.stl"/></asset>'
    shape = '<geom type="mesh" mesh="skin" material="m"/><geom type="box" mesh="skin"/>'
    (tmp_path / "arm.xml").write_text('<mujoco><include file="parts.xml"/></mujoco>')
    base = f'<body name="base">{shape}{chain(f"{shape}{TURN}", "")}</body>'
    (tmp_path / "parts.xml").write_text(f"<mujocoinclude>{asset}<worldbody>{base}</worldbody></mujocoinclude>")
    robot = load_robot(tmp_path / "arm.xml")
    assert robot.name == "arm" and robot.joints[0].mass > 2
    assert robot.assumed[0] == "bodies fixed to the world without <inertial> have no inertia: base"


def test_warnings_of_mujoco_are_those_of_the_robot(tmp_path: Path, monkeypatch, capfd) -> None:
    """No separate lines or files; shapes of fixed bodies are part of the total mass."""
    monkeypatch.chdir(tmp_path)
    points = " ".join(f"{x} {y} {z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))
    base = f'<body><geom type="mesh" mesh="cube"/>{chain("", TURN)}</body>'
    text = model(base, f'<asset><mesh name="cube" vertex="{points}"/></asset>', 'settotalmass="7"')
    robot, said = read(text)
    assert all("settotalmass" in line for line in said) and capfd.readouterr() == ("", "") and not [*tmp_path.iterdir()]
    assert robot.joints[0].mass == pytest.approx(0.7 * 7 / (8 * 1000 + 2 + 0.7))


DC = 'motorconst="0.1" resistance="0.5"'


@pytest.mark.skipif(not hasattr(mujoco.mjtGain, "mjGAIN_DCMOTOR"), reason="DC motors need MuJoCo 3.7")
@pytest.mark.parametrize(
    ("attributes", "motor", "says"),
    [
        (f"{DC}", (0.1, 0.5, np.inf, np.inf), ""),
        (f'{DC} ctrlrange="-24 24"', (0.1, 0.5, np.inf, 24.0), ""),
        (f'{DC} saturation="5 3 20"', (0.1, 0.5, 5.0, 20.0), ""),
        (f'{DC} input="pos" controller="10 0 1" ctrlrange="-3 3"', (0.1, 0.5, np.inf, np.inf), "control laws"),
        (f'{DC} input="pos vel" controller="10 0 1"', (0.1, 0.5, np.inf, np.inf), "control laws"),
        ('nominal="24 1.5 300"', (0.08, 1.28, np.inf, np.inf), ""),
        (f'{DC} inductance="0.001"', (0.1, 0.5, np.inf, np.inf), "inductance, heating"),
        (f'{DC} cogging="0.1 2 3"', (0.1, 0.5, np.inf, np.inf), "inductance, heating"),
    ],
)
def test_dc_motors(attributes: str, motor: tuple[float, ...], says: str) -> None:
    """Actuators with several controls shifted all later actuators, and ended with a traceback."""
    actuators = f'<dcmotor name="m1" joint="turn" gear="50" {attributes}/>'
    actuators += '<motor name="m2" joint="lift" gear="30" ctrlrange="-1 1" ctrllimited="true"/>'
    robot, remarks = read(model(chain('<joint name="lift" axis="0 1 0"/>'), f"<actuator>{actuators}</actuator>"))
    lift, turn = robot.joints
    assert lift.limits.effort == 30.0 and turn.gear_ratio == 50.0
    found = turn.actuator.motor
    assert (found.torque_constant, found.resistance, found.torque_limit, found.voltage_limit) == pytest.approx(motor)
    assert turn.limits.effort == 50 * motor[2]
    ignored = [x for x in remarks if "ignored" in x]
    assert says in " ".join((*ignored, *robot.assumed)) and bool(ignored) == says.startswith("inductance")


BAD = [
    ("<mujoco><worldbody>", "MuJoCo refuses it: XML parse error"),
    ('<mujoco><include file="gone.xml"/></mujoco>', "gone.xml'"),
    (
        model('<body><joint/><geom type="mesh" mesh="m"/></body>', '<asset><mesh name="m" file="gone.stl"/></asset>'),
        "gone.stl'",
    ),
    (model(f"<body>{BODY}</body>"), "at least one joint must move; all are fixed"),
    (model("<body><joint/></body>"), "mass and inertia of moving bodies must be larger than mjMINVAL"),
    (model('<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'), "A + B >= C"),
    (
        model(
            chain('<joint name="a"/>'),
            EQUAL.replace("</equality>", '<joint joint1="turn" joint2="a" polycoef="0 1 0 0 0"/></equality>'),
        ),
        "joints mimic each other: ",
    ),
    (model(chain("", TURN.replace("/>", ' range="nan 1"/>'))), "all numbers must be finite, there is a NaN"),
    (model(chain('<joint name="a" damping="-1"/>')), "joint a: damping must not be negative, is -1"),
    ("<!DOCTYPE mujoco><mujoco/>", "line 1: document type declarations and entities are not allowed"),
    (model(chain(TURN, "")), "no link or frame 'gripper'; known are "),
]


@pytest.mark.parametrize(("text", "reason"), BAD, ids=[row[-1] for row in BAD])
def test_bad_models_are_one_line(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(text)
    with pytest.raises(RobotDescriptionError) as error:
        read(str(path), tools="gripper" if "gripper" in reason else ())
    assert str(error.value).startswith(f"{path}: ") and reason in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        '<mujoco><include file="pipe"/></mujoco>',
        "<mujoco><include\n file = 'sub/more.xml' /></mujoco>",
        model(
            '<body><joint/><geom type="mesh" mesh="m"/></body>',
            '<asset><mesh name="m" file="pipe.stl"/></asset>',
            'meshdir="sub"',
        ),
    ],
    ids=["included", "included by an included one", "mesh"],
)
def test_a_pipe_is_refused_rather_than_waited_for(text: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for pipe in (tmp_path / "pipe", tmp_path / "sub/pipe.stl"):
        os.mkfifo(pipe)
    (tmp_path / "sub/more.xml").write_text('<mujocoinclude><include file="pipe"/></mujocoinclude>')
    (tmp_path / "arm.xml").write_text(text)
    with pytest.raises(RobotDescriptionError, match=r"pipe(\.stl)?: cannot be read: not a file"):
        load_robot(tmp_path / "arm.xml")


def test_the_root_element_tells_an_xml_file(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(f'<?xml version="1.0"?>\n<!-- <robot> -->\n{model(chain(""))}')
    assert load_robot(path).name == "arm"
    path.write_text('<robot name="urdf"><link name="a"/></robot>')
    with pytest.raises(RobotDescriptionError, match="joint"):
        load_robot(path)
    for other, reason in (("<html/>", "must be <robot>, is <html>"), ("none", "not valid XML")):
        path.write_text(other)
        with pytest.raises(RobotDescriptionError, match=reason):
            load_robot(path)
    with pytest.raises(RobotDescriptionError, match="cannot"):
        load_robot(tmp_path / "gone.xml")
    mjcf = tmp_path / "arm.mjcf"
    mjcf.write_text("<robot/>")
    with pytest.raises(RobotDescriptionError, match=r"element.*<mujoco>.*<robot>"):
        load_robot(mjcf)


def test_a_parameter_file_adds_springs(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(model(chain('<joint name="a"/>')))
    spring = "{elasticity: {type: linear, stiffness: 50.0}, rotor_inertia: 0.1}"
    (tmp_path / "arm.yaml").write_text(
        f"/**: {{ros__parameters: {{robot: {{urdf: arm.xml, tip: two, joints: {{a: {spring}}}}}}}}}\n"
    )
    assert load_robot(tmp_path / "arm.yaml").stiffness.tolist() == [50.0, np.inf]
