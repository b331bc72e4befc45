# SPDX-License-Identifier: Apache-2.0
"""The section robot of a file: joint conventions, and values that are normalised, turned or merged."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
from chains import chain_parameters, packaged_parameters
from differences import deviation
from hypothesis import given, settings
from scipy.spatial.transform import Rotation

from eom_dynamics import Robot, equations_of_motion, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.robot.description import COMPOSITE_TYPES, JOINT_TYPES
from eom_dynamics.robot.readers import robot_section

# Standard Denavit-Hartenberg rows of an arm with rotated and shifted axes, offsets in theta and d, and one prismatic
# joint; then mass, centre of mass and inertia in the frame of the row.
ROWS = (
    ("revolute", (0.1, np.pi / 2, 0.4, 0.3)),
    ("revolute", (0.5, 0.0, -0.1, -0.8)),
    ("prismatic", (0.05, -np.pi / 2, 0.3, 0.5)),
    ("revolute", (-0.2, 1.1, 0.2, 2.0)),
    ("revolute", (0.0, -0.7, 0.1, 0.0)),
)
MASSES = (4.0, 3.0, 2.5, 1.5, 0.8)
CENTERS = np.array([[-0.1, 0.02, 0.03], [-0.2, 0.0, 0.1], [0.0, 0.1, -0.05], [0.03, -0.1, 0.0], [0.01, 0.0, 0.06]])
INERTIA = np.array([[0.05, 0.002, -0.003], [0.002, 0.04, 0.001], [-0.003, 0.001, 0.03]])
NAMES = [f"joint_{i}" for i in range(1, 6)]


def row_pose(a: float, alpha: float, d: float, theta: float) -> Array:
    """Rz(theta) Tz(d) Tx(a) Rx(alpha), by SciPy's rotations."""
    C = np.eye(4)
    C[:3, :3] = (Rotation.from_euler("z", theta) * Rotation.from_euler("x", alpha)).as_matrix()
    C[:3, 3] = [a * np.cos(theta), a * np.sin(theta), d]
    return C


STEPS = [row_pose(*row) for _, row in ROWS]
POSES = [STEPS[0]]
for _step in STEPS[1:]:
    POSES.append(POSES[-1] @ _step)


def origin(C: Array) -> dict[str, list[float]]:
    return {"xyz": C[:3, 3].tolist(), "rpy": Rotation.from_matrix(C[:3, :3]).as_euler("xyz").tolist()}


def six(inertia: Array) -> list[float]:
    return [float(inertia[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]


def robot(convention: str, joints: list[dict[str, Any]], frames: list[Array]) -> Robot:
    """The arm, with these poses of the bodies' frames in the frames of the rows."""
    described = {}
    for name, joint, (kind, _), mass, center, frame in zip(NAMES, joints, ROWS, MASSES, CENTERS, frames, strict=True):
        R, p = frame[:3, :3], frame[:3, 3]
        described[name] = {
            "type": kind,
            "mass": mass,
            "center_of_mass": (R.T @ (center - p)).tolist(),
            "inertia": six(R.T @ INERTIA @ R),
            **joint,
        }
    return robot_from_parameters(
        {"name": "arm", "joint_names": NAMES, "convention": convention, "inertia_reference": "com", "joints": described}
    )


def axis_in_base(i: int) -> tuple[Array, Array]:
    """A point on the i-th axis and its direction, at q = 0: the z axis of the frame before."""
    before = POSES[i - 1] if i else np.eye(4)
    return before[:3, 3], before[:3, 2]


def spatial_screw(i: int) -> Array:
    point, axis = axis_in_base(i)
    if ROWS[i][0] == "prismatic":
        return np.concatenate([np.zeros(3), axis])
    return np.concatenate([axis, np.cross(point, axis)])


def by_dh() -> Robot:
    joints = [{"dh": dict(zip(("a", "alpha", "d", "theta"), row, strict=True))} for _, row in ROWS]
    return robot("dh", joints, [np.eye(4)] * 5)


def by_modified_dh() -> Robot:
    """The same rows with a and alpha one row later, so that each body's frame is on its axis."""
    joints, frames = [], []
    a, alpha = 0.0, 0.0
    for _, (next_a, next_alpha, d, theta) in ROWS:
        joints.append({"dh": {"a": a, "alpha": alpha, "d": d, "theta": theta}})
        frames.append(np.linalg.inv(row_pose(next_a, next_alpha, 0.0, 0.0)))
        a, alpha = next_a, next_alpha
    return robot("modified_dh", joints, frames)


def by_spatial_screws() -> Robot:
    joints = [{"screw": spatial_screw(i).tolist(), "origin": origin(POSES[i])} for i in range(5)]
    return robot("spatial_screws", joints, [np.eye(4)] * 5)


def by_body_screws() -> Robot:
    joints = []
    for i in range(5):
        point, axis = axis_in_base(i)
        R, p = POSES[i][:3, :3], POSES[i][:3, 3]
        axis, point = R.T @ axis, R.T @ (point - p)
        screw = [*np.zeros(3), *axis] if ROWS[i][0] == "prismatic" else [*axis, *np.cross(point, axis)]
        joints.append({"screw": [float(x) for x in screw], "origin": origin(STEPS[i])})
    return robot("body_screws", joints, [np.eye(4)] * 5)


def by_urdf() -> Robot:
    """Frames of links on their axes, z along the axis; inertial frames at those of the rows."""
    parts, previous = [], np.eye(4)
    for i, (kind, _) in enumerate(ROWS):
        before = POSES[i - 1] if i else np.eye(4)
        inertial = np.linalg.inv(before) @ POSES[i]
        inertial[:3, 3] += inertial[:3, :3] @ CENTERS[i]
        place = origin(np.linalg.inv(previous) @ before)
        parts.append(link_and_joint(i, NAMES[i], kind, place, origin(inertial), MASSES[i], six(INERTIA)))
        previous = before
    return load_robot(f'<robot name="arm"><link name="link_0"/>{"".join(parts)}</robot>')


def link_and_joint(
    i: int, name: str, kind: str, place: dict[str, Any], inertial: dict[str, Any], mass: float, moments: list[float]
) -> str:
    """The joint about or along z that moves the next link, in URDF."""
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    inertia = " ".join(f'{entry}="{value!r}"' for entry, value in zip(names, moments, strict=True))
    return (
        f'<link name="link_{i + 1}"><inertial>{placed(inertial)}<mass value="{mass!r}"/>'
        f"<inertia {inertia}/></inertial></link>"
        f'<joint name="{name}" type="{kind}"><parent link="link_{i}"/><child link="link_{i + 1}"/>'
        f'{placed(place)}<axis xyz="0 0 1"/></joint>'
    )


def placed(pose: dict[str, Any]) -> str:
    xyz, rpy = (" ".join(map(repr, map(float, pose[part]))) for part in ("xyz", "rpy"))
    return f'<origin xyz="{xyz}" rpy="{rpy}"/>'


WAYS = {
    "body screws": by_body_screws,
    "spatial screws": by_spatial_screws,
    "modified DH": by_modified_dh,
    "URDF": by_urdf,
}


def efforts(robot: Robot) -> Array:
    states = np.random.default_rng(5).uniform(-2, 2, (5, 5))
    *given, last = states
    return np.array(equations_of_motion(robot, *given).efforts(last))


@pytest.mark.parametrize("way", WAYS)
def test_the_same_robot_has_the_same_efforts(way: str) -> None:
    """tau, taud and taudd equal those of the Denavit-Hartenberg table."""
    for actual, desired in zip(efforts(WAYS[way]()), efforts(by_dh()), strict=True):
        assert deviation(actual, desired) < 1e-12


UR5E_ORIGINS = (
    ([0, 0, 0.1625], [0, 0, 0]),
    ([0, 0, 0], [np.pi / 2, 0, 0]),
    ([-0.425, 0, 0], [0, 0, 0]),
    ([-0.3922, 0, 0.1333], [0, 0, 0]),
    ([0, -0.0997, 0], [np.pi / 2, 0, 0]),
    ([0, 0.0996, 0], [np.pi / 2, np.pi, np.pi]),
)
UR5E_INERTIALS = (
    ([0, -0.00193, -0.02561], np.pi / 2),
    ([-0.2125, 0, 0.11336], 0.0),
    ([-0.2422, 0, 0.0265], 0.0),
    ([0, -0.01634, -0.0018], np.pi / 2),
    ([0, 0.01634, -0.0018], -np.pi / 2),
    ([0, 0, -0.001159], 0.0),
)


def test_ur5e_is_that_of_the_manufacturers_urdf() -> None:
    """The packaged robot is a DH table; the values above are from the manufacturer's URDF, which has other frames."""
    parameters, parts = packaged_parameters("ur5e"), []
    rows = zip(parameters["joint_names"], UR5E_ORIGINS, UR5E_INERTIALS, strict=True)
    for i, (name, (xyz, rpy), (center, roll)) in enumerate(rows):
        joint, place = parameters["joints"][name], {"xyz": xyz, "rpy": rpy}
        inertial = {"xyz": center, "rpy": [roll, 0, 0]}
        parts.append(link_and_joint(i, name, "revolute", place, inertial, joint["mass"], joint["inertia"]))
    text = f'<robot name="ur5e"><link name="link_0"/>{"".join(parts)}</robot>'
    states = np.random.default_rng(5).uniform(-2, 2, (5, 6))
    tau = [equations_of_motion(r, *states[:4]).efforts(states[4]) for r in (load_robot("ur5e"), load_robot(text))]
    for ours, theirs in zip(*tau, strict=True):
        assert deviation(ours, theirs) < 1e-12


def robot_with(**entries: Any):
    """The planar 2R with other entries of its first joint."""
    parameters = packaged_parameters("planar_2r")
    parameters["joints"]["joint_1"].update(entries)
    return robot_from_parameters(parameters)


@settings(max_examples=10)
@given(parameters=chain_parameters())
def test_joints_are_as_described(parameters: dict[str, Any]) -> None:
    """Inertia by the parallel-axis theorem entry by entry: I_xx + m (y² + z²), I_xy - m x y, …"""
    robot = robot_from_parameters(parameters)
    assert robot.joint_names == tuple(parameters["joint_names"])
    for i, joint in enumerate(robot.joints):
        given_joint = parameters["joints"][joint.name]
        assert joint.parent == i - 1
        assert joint.mass == given_joint["mass"]
        np.testing.assert_array_equal(joint.center_of_mass, given_joint["center_of_mass"])
        np.testing.assert_allclose(joint.screw, given_joint["screw"], rtol=1e-15, atol=1e-15)  # it is normalised
        np.testing.assert_array_equal(joint.reference_pose[:3, 3], given_joint["origin"]["xyz"])
        xx, xy, xz, yy, yz, zz = given_joint["inertia"]
        m, (x, y, z) = joint.mass, joint.center_of_mass
        xx, yy, zz = xx + m * (y**2 + z**2), yy + m * (x**2 + z**2), zz + m * (x**2 + y**2)
        xy, xz, yz = xy - m * x * y, xz - m * x * z, yz - m * y * z
        assert deviation(joint.inertia_about_origin, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) < 1e-15


def test_axis_off_the_origin_is_scaled_with_its_moment() -> None:
    screw = robot_with(screw=[0.0, 0.0, 1.000005, 0.0, -0.3, 0.0]).joints[0].screw
    np.testing.assert_allclose(screw, [0, 0, 1, 0, -0.3 / 1.000005, 0], rtol=1e-15)


def test_gravity_is_standard_unless_given() -> None:
    parameters = packaged_parameters("planar_2r")
    np.testing.assert_array_equal(robot_from_parameters(parameters).gravity, [0, -9.80665, 0])
    del parameters["gravity"]
    np.testing.assert_array_equal(robot_from_parameters(parameters).gravity, [0, 0, -9.80665])


@pytest.mark.parametrize("as_list", [list, tuple, lambda x: array("d", x)], ids=["list", "tuple", "array.array"])
def test_lists_of_any_kind_are_accepted(as_list) -> None:
    robot = robot_with(center_of_mass=as_list([0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(robot.joints[0].center_of_mass, [0.1, 0.2, 0.3])


def test_parameters_are_left_alone() -> None:
    parameters = packaged_parameters("iiwa")
    robot_from_parameters(parameters)
    assert parameters == packaged_parameters("iiwa")


def test_consistent_inertia_about_the_link_frame_gives_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    parameters = packaged_parameters("planar_2r")
    for joint in parameters["joints"].values():
        moment = joint["mass"] * joint["center_of_mass"][0] ** 2
        joint["inertia"] = [0.0, 0.0, 0.0, moment, 0.0, moment]
    about_link = robot_from_parameters(parameters | {"inertia_reference": "link"})
    assert not recwarn.list
    about_com = robot_from_parameters(packaged_parameters("planar_2r"))
    for a, b in zip(about_link.joints, about_com.joints, strict=True):
        np.testing.assert_allclose(a.spatial_inertia, b.spatial_inertia, rtol=1e-15)


def test_a_joint_type_of_several_variables_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cylindrical joint, along and about the normal that is given."""
    monkeypatch.setitem(COMPOSITE_TYPES, "cylindrical", ("z", "yaw"))
    monkeypatch.setattr(robot_section, "JOINT_TYPES", (*JOINT_TYPES, "cylindrical"))
    parameters = packaged_parameters("planar_2r")
    joint = parameters["joints"]["joint_2"]
    kept = {name: joint[name] for name in ("origin", "mass", "center_of_mass", "inertia")}
    parameters["joints"]["joint_2"] = kept | {"type": "cylindrical", "normal": [0.0, 1.0, 0.0]}
    robot = robot_from_parameters(parameters)
    assert robot.joint_names == ("joint_1", "joint_2_z", "joint_2_yaw")
    screws = [joint.screw.round(15).tolist() for joint in robot.joints[1:]]
    assert screws == [[0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]
    assert [joint.mass for joint in robot.joints[1:]] == [0.0, joint["mass"]]
