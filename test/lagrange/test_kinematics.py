# SPDX-License-Identifier: Apache-2.0
"""Poses, Jacobians, determinants and singularities as expressions, against textbooks and products of exponentials."""

from functools import cache

import numpy as np
import pytest
import sympy as sp
from scipy.linalg import expm
from textbook import twist_matrix, twist_vector

import eom_dynamics as eom
from eom_dynamics import Robot, lie
from eom_dynamics.arrays import Array
from eom_dynamics.lagrange import SymbolicKinematics, normal_form, planar_arm
from eom_dynamics.lagrange.kinematics import factored
from eom_dynamics.robot import Frame, Joint

q1, q2, q3, _, q5, _ = Q = sp.symbols("q1:7", real=True)
a2, a3, d4, d6 = sp.symbols("a2 a3 d4 d6", positive=True)
LENGTHS = {a2: 0.43, a3: -0.02, d4: 0.42, d6: 0.06}

# An elbow manipulator with a spherical wrist: axis and position of each joint at zero, in the base.
AXES = [[0, 0, 1], [0, -1, 0], [0, -1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]]
POINTS = [[0, 0, 0], [0, 0, 0], [a2, 0, 0], *[[a2 + a3, 0, d4]] * 3]
HOME = lie.pose(np.eye(3, dtype=int), np.array([a2 + a3 + d6, 0, d4], dtype=object))


@cache
def elbow() -> SymbolicKinematics:
    joints = []
    for i, axis in enumerate(AXES):
        before = POINTS[i - 1] if i else [0, 0, 0]
        step = np.array([x - y for x, y in zip(POINTS[i], before, strict=True)], dtype=object)
        screw, pose = np.array([*axis, 0, 0, 0]), lie.pose(np.eye(3, dtype=int), step)
        joints.append(Joint(f"joint_{i + 1}", screw, pose, i - 1, 1.0, np.zeros(3), np.eye(3)))
    flange = Frame("flange", 5, lie.pose(np.eye(3, dtype=int), np.array([d6, 0, 0], dtype=object)))
    return SymbolicKinematics(Robot("elbow", tuple(joints), tools=(flange,)))


def number(expression: sp.Basic, q: Array) -> Array:
    values = dict(zip(Q, q.tolist(), strict=False)) | LENGTHS
    return np.array(sp.Matrix([expression]).xreplace({x: sp.Float(y) for x, y in values.items()}).evalf(), dtype=float)


def test_planar_2r_of_lynch_and_park_chapter_5() -> None:
    """K. Lynch, F. Park, Modern Robotics, section 5.1: the Jacobian of the tip, and its determinant L1 L2 sin θ2."""
    arm = SymbolicKinematics(planar_arm(2))
    L1, L2 = sp.symbols("L1 L2", positive=True)
    s1, c1, s12, c12 = sp.sin(q1), sp.cos(q1), sp.sin(q1 + q2), sp.cos(q1 + q2)
    expected = sp.Matrix([[-L1 * s1 - L2 * s12, -L2 * s12], [L1 * c1 + L2 * c12, L2 * c12]])
    assert (arm.jacobian(reference="world_aligned")[3:5, :] - expected).applyfunc(normal_form) == sp.zeros(2)
    assert list(arm.pose()[:2, 3]) == [L1 * c1 + L2 * c12, L1 * s1 + L2 * s12]
    assert arm.determinant(rows=(3, 4)) == L1 * L2 * sp.sin(q2)
    assert arm.singularities(rows=(3, 4)) == (sp.sin(q2),)


def test_leg_is_singular_stretched_and_below_its_hip() -> None:
    """A. De Luca, Robotics 1, singularities of the 3R anthropomorphic arm: det J = -a2 a3 s3 (a2 c2 + a3 c23)."""
    leg = SymbolicKinematics(eom.load_robot("leg"), symbols=True)
    # Downwards: both lengths are negative z; the first axis is horizontal.
    thigh, shank = leg.robot.joints[2].reference_pose[2, 3], leg.robot.tools[0].pose[2, 3]
    textbook = -thigh * shank * sp.sin(q3) * (thigh * sp.cos(q2) + shank * sp.cos(q2 + q3))
    assert leg.determinant(rows=(3, 4, 5)) == textbook
    assert leg.singularities(rows=(3, 4, 5))[0] == sp.sin(q3)
    assert leg.values == {sp.Symbol("p_y2", positive=True): 0.08, thigh: -0.25, shank: -0.25}
    rows = eom.Kinematics(eom.load_robot("leg")).jacobian([0.2, 0.3, -0.7], reference="world_aligned")[3:]
    found = leg.determinant(rows=(3, 4, 5)).subs(leg.values | dict(zip(Q, [0.2, 0.3, -0.7], strict=False)))
    assert float(found) == pytest.approx(np.linalg.det(rows), rel=1e-12)


def exponentials(q: Array, count: int = 6) -> tuple[Array, Array]:
    """Product of exponentials (4, 4) of the first joints, and columns (6, 6) of their space Jacobian.

    These are Ad of the product of exponentials before, of the screw at zero.
    """
    C, columns = np.eye(4), np.zeros((6, 6))
    for i, point in enumerate(number(sp.Matrix(POINTS), q)[:count]):
        screw = np.array([*AXES[i], *np.cross(point, AXES[i])])
        columns[:, i] = twist_vector(C @ twist_matrix(screw) @ np.linalg.inv(C))
        C = C @ expm(twist_matrix(screw) * q[i])
    return C, columns


@pytest.mark.parametrize(
    ("reference", "frame", "count"),
    [("space", "joint_4", 4), *(pytest.param(x, "flange", 6, marks=pytest.mark.soak) for x in ("space", "body"))],
)
def test_jacobian_of_a_6r_arm_by_lynch_and_park_5_11(reference: str, frame: str, count: int) -> None:
    J, T = elbow().jacobian(frame, reference), elbow().pose(frame)
    for q in np.random.default_rng(5).uniform(-3, 3, (2, 6)):
        C, columns = exponentials(q, count)
        home = number(sp.Matrix(HOME), q) if frame == "flange" else lie.pose(np.eye(3), number(sp.Matrix(POINTS), q)[3])
        pose = C @ home
        np.testing.assert_allclose(number(T, q), pose, atol=1e-13)
        if reference == "body":
            R, p = pose[:3, :3], pose[:3, 3]
            columns = np.transpose([[*(R.T @ x[:3]), *(R.T @ (x[3:] + np.cross(x[:3], p)))] for x in columns.T])
        np.testing.assert_allclose(number(J, q), columns, atol=1e-13)


def test_singularities_of_a_6r_arm_are_those_of_wrist_elbow_and_shoulder() -> None:
    """B. Siciliano et al., Robotics, section 3.3; Lynch and Park, section 5.3: they decouple with a spherical wrist."""
    determinant = elbow().determinant()
    (reach_of_forearm,) = (x for x in determinant.args if x.free_symbols == {a3, d4, q3})
    (distance_of_wrist,) = (x for x in determinant.args if q2 in x.free_symbols)
    wrist = sp.sin(q5)
    assert {a2, wrist} <= set(determinant.args)
    assert sp.simplify(reach_of_forearm - (a3 * sp.sin(q3) + d4 * sp.cos(q3))) == 0
    # The wrist center is on the first axis.
    x = elbow().pose("joint_4")[0, 3]
    assert normal_form(distance_of_wrist - x.subs(q1, 0)) == 0
    assert normal_form(determinant + a2 * wrist * reach_of_forearm * distance_of_wrist) == 0
    for q in np.random.default_rng(3).uniform(-3, 3, (2, 6)):
        assert number(determinant, q).item() == pytest.approx(np.linalg.det(exponentials(q)[1]), rel=1e-12)


def test_decimals_that_cancel_leave_no_singularities() -> None:
    """0.1 + 0.2 - 0.3 is not zero in floating point: the tool is on the first axis, and the arm singular everywhere."""
    steps = {"swing": ([0, 0, 1, 0, 0, 0], 0.0), "lift": ([0, 0, 0, 0, 0, 1], 0.1), "roll": ([1, 0, 0, 0, 0, 0], 0.2)}
    joints = [
        Joint(name, np.array(screw), lie.pose(np.eye(3), [x, 0, 0]), i - 1, 1.0, np.zeros(3), np.eye(3))
        for i, (name, (screw, x)) in enumerate(steps.items())
    ]
    arm = SymbolicKinematics(Robot("arm", tuple(joints), tools=(Frame("tip", 2, lie.pose(np.eye(3), [-0.3, 0, 0])),)))
    assert list(arm.pose()[:3, 3]) == [0, 0, q2]
    assert arm.singularities(rows=(0, 3, 5)) == (0,)


PRODUCTS = {
    "simple": (3 * a2 * sp.cos(q1 + q2) * sp.sin(q3) * (2 * sp.cos(q1) + a2) * (sp.cos(q2) + 3 * sp.sin(q3)), 4),
    "zero every other time": (a2 * (1 - sp.cos(q1)), 1),
    "after half a turn": (sp.sin(q1) * (1 + sp.cos(q1)) ** 2, 2),
    "two half angles": (sp.sin(q1) + sp.sin(q2), 1),
    "constant": (a2 / a3 + 0 * q1, 0),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_factors_multiply_to_the_expression(name: str) -> None:
    product, count = PRODUCTS[name]
    constant, powers = factored(sp.expand(product), Q)
    assert len(powers) == count and not constant.free_symbols & set(Q)
    for q in np.random.default_rng(2).uniform(-3, 3, (3, 6)):
        found = constant * sp.Mul(*(factor**power for factor, power in powers.items()))
        assert number(found, q).item() == pytest.approx(number(product, q).item(), rel=1e-12)


def test_refused() -> None:
    arm = planar_arm(2)
    with pytest.raises(TypeError, match=r"planar_2r.*joint_1.*SymbolicKinematics"):
        eom.Kinematics(arm)
    with pytest.raises(eom.StateError, match=r"planar_2r.*2.*0.*5.*joints"):
        SymbolicKinematics(arm).determinant()
    with pytest.raises(eom.StateError, match=r"frame.*'top'.*joint_1.*joint_2"):
        SymbolicKinematics(arm).jacobian("top")
    with pytest.raises(eom.StateError, match="reference must be"):
        SymbolicKinematics(arm).jacobian(reference="base")
