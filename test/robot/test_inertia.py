# SPDX-License-Identifier: Apache-2.0
"""Inertia of bodies and of the base: steps between frames, physical consistency; read, kept, written and shown."""

import numpy as np
import pytest
from chains import numbers, packaged_parameters
from differences import deviation
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics import (
    FloatingBase,
    Robot,
    RobotDescriptionError,
    RobotDescriptionWarning,
    lie,
    load_robot,
    robot_from_parameters,
)
from eom_dynamics.robot import inertia, robot_from_urdf
from eom_dynamics.robot.inertia import Inertial, inertia_violation
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.tools.cli.inspect import facts_result

clouds = st.integers(1, 6).flatmap(
    lambda n: st.tuples(numbers(1.0, (n, 3)), st.lists(st.floats(0.1, 2), min_size=n, max_size=n))
)
"""Positions (n, 3) and masses (n,) of points."""


def moments(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Inertia about the origin: sum of m (r² 1 - r r')."""
    return sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, points, strict=True))


@given(clouds, numbers(2.0, 6))
def test_a_cloud_of_points(cloud, twist: np.ndarray) -> None:
    points, masses = cloud
    mass, center = sum(masses), np.average(points, axis=0, weights=masses)
    about_origin = moments(points, masses)
    assert deviation(inertia.steiner(mass, center), about_origin - moments(points - center, masses), floor=mass) < 1e-14
    velocities = twist[3:] + np.cross(twist[:3], points)
    energy = sum(m * v @ v for m, v in zip(masses, velocities, strict=True)) / 2
    M = inertia.spatial_inertia(mass, center, about_origin)
    assert deviation(twist @ M @ twist / 2, energy, floor=1.0) < 1e-13
    assert inertia_violation(about_origin) is None


def test_tolerances_of_principal_moments() -> None:
    for consistent in ((0, 0, 0), (0, 1, 1), (1, 2, 3), (1, 1, 2.01), (-1e-7, 1, 1)):
        assert inertia_violation(np.diag(consistent)) is None
    for inconsistent in ((-1e-5, 1, 1), (-1, -1, -1), (0, 0, 1), (1, 1, 2.03)):
        assert inertia_violation(np.diag(inconsistent)) is not None


def inertial(mass: float = 1.0, ixx: float = 0.1) -> str:
    return (
        f'<inertial><origin xyz="0.1 0 0"/><mass value="{mass}"/>'
        f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
    )


def urdf(base: str = "", upper: str = "", sensor: str = "", lower: str = "", mimic: str = "") -> str:
    links = {"base": base, "upper": upper or inertial(), "sensor": sensor, "lower": lower or inertial()}
    joints = (("shoulder", "revolute", "base", "upper", "0 0 1"), ("mount", "fixed", "upper", "sensor", "1 0 0"))
    joints = (*joints, ("elbow", "revolute", "upper", "lower", "0 1 0"))
    return (
        '<robot name="arm">'
        + "".join(f'\n<link name="{name}">{text}</link>' for name, text in links.items())
        + "".join(
            f'\n<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<axis xyz="{axis}"/>{mimic if name == "elbow" else ""}</joint>'
            for name, kind, parent, child, axis in joints
        )
        + "</robot>"
    )


TRIANGLE = "the largest principal moment of inertia must not exceed the sum of the other two: 0.1, 0.1, 0.5 kg m²"

# A URDF, and how its warning begins after the source.
UNPHYSICAL = [
    (urdf(lower=inertial(ixx=0.5)), f"line 5: link lower: <inertial>: {TRIANGLE}"),
    (urdf(lower=inertial(mass=0)), "line 5: link lower: <inertial>: a body with inertia must"),
    (
        urdf(sensor=inertial(mass=0.1, ixx=0.9)),
        "line 4: link sensor: <inertial>: the largest principal moment of inertia must not exceed the sum of the other "
        "two: 0.2, 0.2, 1 kg m² (body of the links upper, sensor)",
    ),
    (
        urdf(base=inertial(ixx=9.0)),
        "line 2: link base: <inertial>: the largest principal moment of inertia must not exceed the sum of the other "
        "two: 0.1, 0.1, 9 kg m²; it counts on a floating base only",
    ),
    (
        urdf(lower=" "),
        "joint elbow: the mass matrix is singular, since no mass moves with elbow: give a body that moves mass off the",
    ),
    (
        urdf(lower='<inertial><mass value="1"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'),
        "joint elbow: the mass matrix is singular, since no mass moves with elbow",
    ),
    (  # the elbow turns back what the shoulder turns
        urdf(upper=" ", mimic='<mimic joint="shoulder" multiplier="-1"/>').replace("0 1 0", "0 0 1"),
        "joint shoulder: the mass matrix is singular, since no mass moves with shoulder",
    ),
    (
        urdf(mimic='<mimic joint="hip" offset="0.2"/>'),
        "joint elbow: fixed at 0.2 rad: its mimic leader 'hip' does not exist",
    ),
    (
        urdf(mimic='<mimic joint="shoulder" multiplier="0"/>'),
        "joint elbow: fixed at 0 rad: the mimic ratio of elbow is 0",
    ),
]


@pytest.mark.parametrize(("text", "warning"), UNPHYSICAL, ids=[row[-1] for row in UNPHYSICAL])
def test_a_urdf_gives_a_warning_unless_it_is_to_be_refused(text: str, warning: str) -> None:
    for load in (load_robot, robot_from_urdf):
        with pytest.warns(RobotDescriptionWarning) as caught:
            load(text)
        assert [str(w.message).startswith(f"robot_description: {warning}") for w in caught] == [True]
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(text, unphysical="refuse")
    assert str(error.value) == f"{caught[0].message}; to load it anyway, set unphysical: warn"
    with pytest.raises(RobotDescriptionError):
        robot_from_urdf(text, {"unphysical": "refuse"})


MJCF = """<mujoco model="arm"><worldbody><body name="lower"><joint name="elbow" axis="0 1 0"/>
  <inertial pos="0 0 0.2" mass="-1" diaginertia="0.1 0.1 0.1"/></body></worldbody></mujoco>"""


def test_a_body_of_negative_mass_is_refused_in_every_format_unless_it_is_accepted() -> None:
    tree = packaged_parameters("planar_2r")
    tree["joints"]["joint_2"]["mass"] = -1.0
    with pytest.raises(RobotDescriptionError, match=r"joints\.joint_2\.mass: must be positive, is -1"):
        robot_from_parameters(tree)
    with pytest.warns(RobotDescriptionWarning, match="mass must not be negative, is -1 kg"):
        assert robot_from_parameters(tree | {"unphysical": "warn"}).joints[1].mass == -1
    negative = urdf(lower=inertial(mass=-1))
    said = "link lower: <inertial>: mass must not be negative, is -1 kg; to load it anyway, set unphysical: warn"
    for load in (load_robot, robot_from_urdf):
        with pytest.raises(RobotDescriptionError) as error:
            load(negative)
        assert str(error.value) == f"robot_description: line 5: {said}"
    with pytest.warns(RobotDescriptionWarning, match="mass must not be negative, is -1 kg$"):
        assert load_robot(negative, unphysical="warn").joints[-1].mass == -1
    with pytest.warns(RobotDescriptionWarning, match="mass must not be negative, is -1 kg$"):
        assert robot_from_urdf(negative, {"unphysical": "warn"}).joints[-1].mass == -1


def test_a_body_of_negative_mass_is_refused_in_an_mjcf_model() -> None:
    pytest.importorskip("mujoco")
    with pytest.raises(RobotDescriptionError, match=r"MuJoCo refuses it: .*mass and inertia of moving"):
        load_robot(MJCF)


@pytest.mark.parametrize(
    "text",
    [
        urdf(upper=inertial(mass=50), sensor=inertial(mass=0.0, ixx=0.001)),
        urdf(sensor=inertial(mass=0.1, ixx=0.25)),
        urdf(upper=inertial(mass=9.0), sensor=inertial(mass=-0.5, ixx=0.15)),
    ],
    ids=["massless sensor", "sensor", "negative sensor"],
)
@pytest.mark.filterwarnings("error")
def test_bodies_are_checked_after_merging(text: str) -> None:
    assert load_robot(text, unphysical="refuse").n == 2


@pytest.mark.filterwarnings("error")
def test_only_the_selected_part_is_checked() -> None:
    text = urdf(lower=inertial(ixx=0.5), mimic='<mimic joint="hip"/>')
    assert load_robot(text, tip="upper", branches="drop").n == 1


def test_two_rotations_about_one_axis_without_mass_between_them() -> None:
    text = urdf(upper=" ", lower=inertial()).replace('"0 1 0"', '"0 0 1"')
    with pytest.warns(RobotDescriptionWarning, match="shoulder"):
        load_robot(text)


def test_masses_that_add_up_to_zero_are_refused() -> None:
    """Their first moment has no center of mass."""
    text = urdf(sensor=inertial(mass=-1.0).replace("0.1 0 0", "0.3 0 0"))
    with pytest.raises(RobotDescriptionError, match="shoulder"):
        load_robot(text)


def test_a_chain_of_mimic_joints_without_leader_is_fixed_at_its_offsets() -> None:
    text = urdf(mimic='<mimic joint="shoulder" multiplier="2" offset="0.1"/>').replace(
        '<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="hip" offset="0.3"/>'
    )
    with pytest.raises(RobotDescriptionError, match="joint"):
        load_robot(text)
    free = '<link name="hand">' + inertial() + '</link><joint name="wrist" type="revolute"><parent link="lower"/>'
    text = text.replace("</robot>", free + '<child link="hand"/></joint></robot>')
    with pytest.warns(RobotDescriptionWarning) as caught:
        robot = load_robot(text)
    assert robot.joint_names == ("wrist",)
    assert [str(w.message).split(": ")[2] for w in caught] == ["fixed at 0.3 rad", "fixed at 0.7 rad"]


def test_the_base_of_a_parameter_file_is_checked() -> None:
    tree = packaged_parameters("planar_2r") | {
        "base": {"mass": 2.0, "center_of_mass": [0.0] * 3, "inertia": [1.0, 0.0, 0.0, 1.0, 0.0, 9.0]}
    }
    with pytest.raises(RobotDescriptionError, match=r"robot\.base\.inertia.*counts"):
        robot_from_parameters(tree)
    with pytest.warns(RobotDescriptionWarning, match=r"robot\.base\.inertia: the largest"):
        assert robot_from_parameters(tree | {"unphysical": "warn"}).n == 2
    about_origin = tree | {"inertia_reference": "link"}
    for joint in about_origin["joints"].values():
        joint["inertia"] = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    about_origin["base"] |= {"center_of_mass": [0.0, 0.0, 1.0], "inertia": [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]}
    with pytest.warns(RobotDescriptionWarning, match=r"inertia_reference.*gives"):
        robot_from_parameters(about_origin)


def test_the_warning_points_at_the_caller() -> None:
    with pytest.warns(RobotDescriptionWarning) as caught:
        robot: Robot = load_robot(urdf(lower=inertial(ixx=0.5)))
    assert robot.n == 2 and caught[0].filename == __file__


_INERTIAL = """<inertial><origin xyz="{}"/><mass value="{}"/>
  <inertia ixx="0.2" ixy="0.01" ixz="0" iyy="0.3" iyz="0.02" izz="0.25"/></inertial>"""
URDF = f"""<robot name="cart">
<link name="body">{_INERTIAL.format("0.1 0 0.2", 3)}</link>
<link name="box">{_INERTIAL.format("0 0.3 0", 2)}</link>
<link name="lower">{_INERTIAL.format("0 0 0.4", 1)}</link>
<link name="upper">{_INERTIAL.format("0 0.1 0.4", 1.5)}</link>
<joint name="mount" type="fixed"><origin xyz="0.5 0 0" rpy="0 0.3 0.4"/><parent link="body"/><child link="box"/></joint>
<joint name="a" type="continuous"><origin xyz="0 0 0.6"/><parent link="box"/><child link="lower"/></joint>
<joint name="b" type="continuous"><origin xyz="0 0 0.4"/><axis xyz="0 1 0"/><parent link="lower"/><child link="upper"/>
</joint></robot>"""


def spatial(robot: Robot) -> np.ndarray:
    return robot.base.spatial_inertia


def moved(pose: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    X = lie.Ad(lie.inverse(pose))
    return X.T @ inertia @ X


def link(mass: float, center: list[float]) -> np.ndarray:
    about_center = np.array([[0.2, 0.01, 0.0], [0.01, 0.3, 0.02], [0.0, 0.02, 0.25]])
    return Inertial.about_center(mass, np.array(center), about_center).spatial_inertia


def test_of_a_urdf() -> None:
    robot = load_robot(URDF)
    mount = lie.pose(lie.rotation_from_rpy([0.0, 0.3, 0.4]), [0.5, 0.0, 0.0])
    assert robot.base.mass == 5
    assert deviation(spatial(robot), link(3, [0.1, 0, 0.2]) + moved(mount, link(2, [0, 0.3, 0]))) < 1e-14
    assert load_robot(URDF, root="box").base.mass == 2
    # Locked joints are fixed joints.
    locked = load_robot(URDF, tip="lower")
    assert locked.base.mass == 5
    assert load_robot(URDF, root="lower").base.mass == 1


def test_of_a_parameter_file() -> None:
    parameters = packaged_parameters("planar_2r")
    assert not np.any(spatial(robot_from_parameters(parameters)))
    parameters["base"] = {"mass": 3.0, "center_of_mass": [0.1, 0.0, 0.2], "inertia": [0.2, 0.01, 0.0, 0.3, 0.02, 0.25]}
    assert deviation(spatial(robot_from_parameters(parameters)), link(3, [0.1, 0, 0.2])) < 1e-15
    parameters["payloads"] = {"base": {"mass": 2.0, "center_of_mass": [0.0, 0.3, 0.0]}}
    assert robot_from_parameters(parameters).base.mass == 5


def test_kept_and_shown() -> None:
    robot = load_robot(URDF)
    assert deviation(spatial(robot.with_prefix("left_")), spatial(robot)) == 0
    assert deviation(spatial(perturbed(robot, mass=0.1)), 1.1 * spatial(robot)) < 1e-15
    assert "2.5 kg on a base of 5 kg" in facts_result(robot).as_text()


@pytest.mark.parametrize(("mass", "inertia"), [(0, -1e-22), (0, 1e-22), (-1e-22, 0), (-1e-22, -1e-22)])
def test_rounding_errors_of_zero_are_zero_with_a_warning(mass: float, inertia: float) -> None:
    box = f'<inertia ixx="{inertia}" ixy="0" ixz="0" iyy="{inertia}" iyz="0" izz="{inertia}"/>'
    inertial = f'<inertial><origin xyz="0 0 0"/><mass value="{mass}"/>{box}</inertial>'
    text = f"""<robot name="r"><link name="base">{inertial}</link>
      <link name="a"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
        <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
      <joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>"""
    with pytest.warns(RobotDescriptionWarning, match="rounding"):
        robot = load_robot(text, unphysical="refuse")
    assert not np.any(spatial(robot))
    FloatingBase(robot)
    with pytest.raises(RobotDescriptionError, match=r"must (have mass|not be negative)"):
        load_robot(text.replace("1e-22", "1e-3"), unphysical="refuse")
