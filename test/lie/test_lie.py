# SPDX-License-Identifier: Apache-2.0
"""SE(3) against matrix exponentials, differences and the laws of Lie groups, also in hard cases.

Tolerances are for numbers of order one, about ten times the largest deviation in 400 examples.
"""

import numpy as np
import pytest
import sympy as sp
from chains import JOINT_TYPES, numbers, unit_vectors
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from textbook import twist_matrix, twist_vector

from eom_dynamics import lie

twists = numbers(2.0, 6)
poses = st.builds(lambda twist: expm(twist_matrix(twist)), twists)


def close(actual, desired, tolerance: float = 1e-14) -> bool:
    return deviation(actual, desired, floor=1.0) < tolerance


@given(poses, twists, twists)
def test_adjoints_are_conjugations_and_commutators(C, v, w) -> None:
    a, b, inverse = twist_matrix(v), twist_matrix(w), np.linalg.inv(C)
    assert close(lie.inverse(C), inverse, 1e-13)
    assert close(lie.Ad(lie.inverse(C)), np.linalg.inv(lie.Ad(C)), 1e-13)
    assert close(twist_matrix(lie.Ad(C) @ v), C @ a @ inverse, 1e-13)
    assert close(twist_matrix(lie.ad(v) @ w), a @ b - b @ a)
    H = lie.momentum_cross(w)
    assert close(H @ v, -lie.ad(v).T @ w)
    np.testing.assert_array_equal(H, -H.T)


@given(twists, poses)
def test_matrices_of_twists_and_back(x: np.ndarray, C: np.ndarray) -> None:
    np.testing.assert_array_equal(lie.twist_matrix(x), twist_matrix(x))
    np.testing.assert_array_equal(lie.twist_vector(twist_matrix(x)), x)
    np.testing.assert_array_equal(lie.twist_vector(lie.twist_matrix([[x, 2 * x]])), [[x, 2 * x]])
    assert close(lie.twist_vector(C @ lie.twist_matrix(x) @ lie.inverse(C)), lie.space_twist(C, x), 1e-13)
    symbols = sp.symbols("a:6")
    assert lie.twist_vector(lie.twist_matrix(symbols)).tolist() == [*symbols]


@pytest.mark.parametrize("quarters", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 2, 3), (2, 2, -1), (1, 1, 1), (-2, 0, 4)])
def test_right_angles_are_exact(quarters: tuple[int, int, int]) -> None:
    R = lie.rotation_from_rpy(np.pi / 2 * np.array(quarters))
    assert set(R.ravel()) <= {-1.0, 0.0, 1.0}
    assert np.linalg.det(R) == 1


@pytest.mark.parametrize("screw", [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 1, 0, -2, 3]], ids=JOINT_TYPES)
def test_symbols_agree_with_numbers(screw: list[int]) -> None:
    q = sp.Symbol("q")
    symbolic = lie.Ad(lie.inverse(lie.exp(screw, q)))
    numeric = sp.lambdify(q, sp.Matrix(symbolic))(0.7)
    assert close(numeric, lie.Ad(lie.inverse(lie.exp(np.array(screw, dtype=float), 0.7))))


# On both sides of the thresholds, and up to half a turn.
hard_angles = st.sampled_from(
    [0.0, 1e-300, 1e-12, 1e-8, 9e-5, 1.1e-4, 1e-2, 0.999, 1.001, 2.0, 3.0, np.pi - 1e-9, np.pi]
)


@st.composite
def hard_twists(draw: st.DrawFn) -> np.ndarray:
    return np.concatenate([draw(hard_angles) * draw(unit_vectors()), draw(numbers(2.0, 3))])


@given(hard_twists())
def test_exp_is_the_matrix_exponential_and_log_its_inverse(x: np.ndarray) -> None:
    """Beyond half a turn less 1e-9, either axis may result: the pose is compared, not the twist."""
    C, back = lie.exp(x), lie.log(lie.exp(x))
    assert deviation(C, expm(twist_matrix(x)), floor=1.0) < 1e-14
    assert deviation(lie.exp(back), C, floor=1.0) < 1e-14
    assert np.linalg.norm(back[:3]) <= np.pi * (1 + 1e-15)
    # Near pi, the translation is divided by the sine of half the remaining angle.
    assert np.linalg.norm(x[:3]) >= 3.1 or deviation(back, x, floor=1.0) < 2e-14


@given(hard_twists(), numbers(1.0, 6))
def test_jacobians_map_rates_to_twists(x: np.ndarray, rate: np.ndarray) -> None:
    C = lie.exp(x)
    velocity = derivative(lambda t: lie.exp(x + t * rate))
    # Differences of poses have errors of 1e-13.
    assert deviation(lie.left_jacobian(x) @ rate, twist_vector(velocity @ lie.inverse(C)), floor=1.0) < 2e-12
    assert deviation(lie.right_jacobian(x) @ rate, twist_vector(lie.inverse(C) @ velocity), floor=1.0) < 2e-12
    assert deviation(lie.left_jacobian_inverse(x) @ lie.left_jacobian(x), np.eye(6)) < 1e-14
    assert deviation(lie.right_jacobian(x) @ lie.right_jacobian_inverse(x), np.eye(6)) < 1e-14


def test_batches_are_their_members() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 3, 6))
    x[0, 0] = 0.0
    x[0, 1, :3] = 0.0
    x[0, 2, :3] *= 1e-6
    functions = (
        *(lie.ad, lie.momentum_cross, lie.exp, lie.left_jacobian, lie.left_jacobian_inverse),
        *(lambda x: lie.log(lie.exp(x)), lambda x: lie.Ad(lie.inverse(lie.exp(x))), lambda x: lie.exp(x, 0.3)),
        *(lambda x: lie.space_twist(lie.exp(x), x), lambda x: lie.body_wrench(lie.exp(x), x)),
        lambda x: lie.screw_axis(x).pitch,
    )
    for function in functions:
        whole = function(x)
        for i, j in np.ndindex(2, 3):
            np.testing.assert_allclose(whole[i, j], function(x[i, j]), rtol=0, atol=1e-15)


@given(numbers(3.0, 3))
def test_rotation_vectors(w: np.ndarray) -> None:
    R = lie.rotation_from_rotation_vector(w)
    # The error is SciPy's, of the matrix exponential of large matrices.
    assert deviation(R, expm(lie.skew(w)), floor=1.0) < 1e-13
    if np.linalg.norm(w) < 3.1:
        assert deviation(lie.rotation_vector(R), w, floor=1.0) < 1e-14


@given(poses)
def test_quaternions(C: np.ndarray) -> None:
    R = C[:3, :3]
    xyzw = lie.quaternion(R)
    assert xyzw[3] >= 0 and np.linalg.norm(xyzw) == pytest.approx(1, abs=1e-15)
    assert deviation(lie.rotation_from_quaternion(3 * xyzw), R, floor=1.0) < 3e-15  # of the pose itself
    # R v = s v s*, with the products written out.
    v, u, w = np.array([0.3, -0.5, 0.7]), xyzw[:3], xyzw[3]
    turned = v + 2 * np.cross(u, np.cross(u, v) + w * v)
    assert deviation(R @ v, turned, floor=1.0) < 3e-15


def test_a_zero_quaternion_is_refused() -> None:
    with pytest.raises(ValueError, match="zero norm"):
        lie.rotation_from_quaternion([0, 0, 0, 0])


@given(numbers(1.4, 3))
def test_euler_angles(angles: np.ndarray) -> None:
    x, y, z = (lie.rotation_from_rotation_vector(a * e) for a, e in zip(angles, np.eye(3), strict=True))
    assert deviation(lie.rotation_from_euler_angles("XYZ", angles), x @ y @ z, floor=1.0) < 2e-15
    assert deviation(lie.rotation_from_euler_angles("xyz", angles), z @ y @ x, floor=1.0) < 2e-15
    assert deviation(lie.rotation_from_rpy(angles), z @ y @ x, floor=1.0) < 2e-15
    # The middle angle has an error of rounding over its cosine, at least 0.17.
    assert deviation(lie.euler_angles("XYZ", x @ y @ z), angles, floor=1.0) < 1e-14


def test_gimbal_lock_warns_and_keeps_the_rotation() -> None:
    R = lie.rotation_from_euler_angles("XYZ", [0.4, np.pi / 2, 0.2])
    with pytest.warns(UserWarning, match="Gimbal lock"):
        angles = lie.euler_angles("XYZ", R)
    assert deviation(lie.rotation_from_euler_angles("XYZ", angles), R, floor=1.0) < 1e-15


@given(unit_vectors(), numbers(1.0, 3), st.floats(-0.5, 0.5), st.floats(0.01, 3.0))
def test_screw_axes_and_back(axis: np.ndarray, point: np.ndarray, pitch: float, rate: float) -> None:
    screw = lie.screw(axis, point, pitch)
    found = lie.screw_axis(rate * screw)
    assert deviation(found.axis, axis, floor=1.0) < 1e-15
    assert deviation(found.point, point - axis * (axis @ point), floor=1.0) < 1e-15
    assert float(found.pitch) == pytest.approx(pitch, abs=1e-15) and float(found.rate) == pytest.approx(rate, abs=1e-15)
    # A screw motion moves points of its axis along it, by the pitch.
    moved = lie.transformed(lie.exp(screw, 0.7), point)
    assert deviation(moved, point + 0.7 * pitch * axis, floor=1.0) < 3e-15


def test_translations_have_an_infinite_pitch() -> None:
    screw = lie.screw([0, 0, 1.0], [1, 2, 3], np.inf)
    np.testing.assert_array_equal(screw, [0, 0, 0, 0, 0, 1])
    found = lie.screw_axis(2 * screw)
    np.testing.assert_array_equal(found.axis, [0, 0, 1])
    np.testing.assert_array_equal(found.point, np.zeros(3))
    assert np.isinf(found.pitch) and found.rate == 2
    both = lie.screw(np.eye(3)[[0, 2]], [0, 1.0, 0], [0.0, np.inf])
    np.testing.assert_array_equal(both, [[1, 0, 0, 0, 0, -1], [0, 0, 0, 0, 0, 1]])


@given(twists, twists)
def test_twists_of_one_motion(x: np.ndarray, rate: np.ndarray) -> None:
    """By differences of the pose: C' inv(C), inv(C) C', and the velocity of the origin."""
    C, velocity = lie.exp(x), derivative(lambda t: lie.exp(x) @ lie.exp(rate, t))
    space = velocity @ np.linalg.inv(C)
    assert deviation(twist_matrix(lie.space_twist(C, rate)), space, floor=1.0) < 1e-11
    assert deviation(lie.body_twist(C, lie.space_twist(C, rate)), rate, floor=1.0) < 1e-13
    aligned = lie.world_aligned_twist(C, rate)
    assert deviation(aligned[3:], velocity[:3, 3], floor=1.0) < 1e-12
    assert deviation(aligned[:3], lie.space_twist(C, rate)[:3], floor=1.0) < 1e-13


@given(twists, twists, twists)
def test_power_does_not_depend_on_the_frame(x: np.ndarray, twist: np.ndarray, wrench: np.ndarray) -> None:
    C = lie.exp(x)
    power = lie.space_wrench(C, wrench) @ lie.space_twist(C, twist)
    assert deviation(power, wrench @ twist, floor=10.0) < 1e-13
    assert deviation(lie.body_wrench(C, lie.space_wrench(C, wrench)), wrench, floor=1.0) < 1e-13


@given(poses, twists, twists, twists)
def test_body_twists_of_a_world_aligned_motion(C: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    def pose(t: float) -> np.ndarray:
        return C @ lie.exp(t * a) @ lie.exp(t**2 * b) @ lie.exp(t**3 * c)

    def body(t: float) -> np.ndarray:
        return twist_vector(lie.inverse(pose(t)) @ derivative(lambda h: pose(t + h)))

    def world_aligned(t: float) -> np.ndarray:
        return lie.world_aligned_twist(pose(t), body(t))

    found = lie.body_twists(pose(0.1), world_aligned(0.1), derivative(lambda h: world_aligned(0.1 + h)))
    # Differences of differences.
    assert deviation(found, [body(0.1), derivative(lambda h: body(0.1 + h))], floor=1.0) < 1e-8
