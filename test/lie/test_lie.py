# SPDX-License-Identifier: Apache-2.0
"""SE(3) against matrix exponentials, differences and the laws of Lie groups, also in hard cases.

Tolerances are for numbers of order one, about ten times the largest deviation in 400 examples.
"""

import numpy as np
import pytest
import sympy as sp
from chains import JOINT_TYPES, numbers
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from textbook import twist_matrix

from eom_dynamics import lie

twists = numbers(2.0, 6)
poses = st.builds(lambda twist: expm(twist_matrix(twist)), twists)


def close(actual, desired, tolerance: float = 1e-14) -> bool:
    return deviation(actual, desired, floor=1.0) < tolerance


@given(poses)
def test_inverse(C) -> None:
    assert close(lie.inverse(C), np.linalg.inv(C), 1e-13)
    assert close(lie.Ad(lie.inverse(C)), np.linalg.inv(lie.Ad(C)), 1e-13)


@given(poses, twists)
def test_Ad_is_conjugation(C, twist) -> None:
    assert close(twist_matrix(lie.Ad(C) @ twist), C @ twist_matrix(twist) @ np.linalg.inv(C), 1e-13)


@given(twists, twists)
def test_ad_is_the_commutator(v, w) -> None:
    a, b = twist_matrix(v), twist_matrix(w)
    assert close(twist_matrix(lie.ad(v) @ w), a @ b - b @ a)


@given(twists, twists)
def test_momentum_cross(momentum, twist) -> None:
    H = lie.momentum_cross(momentum)
    assert close(H @ twist, -lie.ad(twist).T @ momentum)
    np.testing.assert_array_equal(H, -H.T)


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


def test_sincos_of_numbers_arrays_and_symbols() -> None:
    q = sp.Symbol("q")
    assert lie.sincos(0.5) == (np.sin(0.5), np.cos(0.5))
    np.testing.assert_array_equal(lie.sincos(np.array([0.1, 0.2])), (np.sin([0.1, 0.2]), np.cos([0.1, 0.2])))
    assert lie.sincos(q) == (sp.sin(q), sp.cos(q))


directions = numbers(1.0, 3).filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
# On both sides of the thresholds, and up to half a turn.
hard_angles = st.sampled_from(
    [0.0, 1e-300, 1e-12, 1e-8, 9e-5, 1.1e-4, 1e-2, 0.999, 1.001, 2.0, 3.0, np.pi - 1e-9, np.pi]
)


@st.composite
def hard_twists(draw: st.DrawFn) -> np.ndarray:
    return np.concatenate([draw(hard_angles) * draw(directions), draw(numbers(2.0, 3))])


@given(hard_twists())
def test_exp_of_any_twist_is_the_matrix_exponential(x: np.ndarray) -> None:
    assert deviation(lie.exp(x), expm(twist_matrix(x)), floor=1.0) < 1e-14


@given(hard_twists())
def test_exp_undoes_log(x: np.ndarray) -> None:
    """Beyond half a turn less 1e-9, either axis may result: the pose is compared, not the twist."""
    C = lie.exp(x)
    assert deviation(lie.exp(lie.log(C)), C, floor=1.0) < 1e-14
    assert np.linalg.norm(lie.log(C)[:3]) <= np.pi * (1 + 1e-15)


@given(hard_twists().filter(lambda x: np.linalg.norm(x[:3]) < 3.1))
def test_log_undoes_exp(x: np.ndarray) -> None:
    # Near pi, the translation is divided by the sine of half the remaining angle.
    assert deviation(lie.log(lie.exp(x)), x, floor=1.0) < 2e-14


@given(hard_twists(), numbers(1.0, 6))
def test_jacobians_map_rates_to_twists(x: np.ndarray, rate: np.ndarray) -> None:
    C = lie.exp(x)
    velocity = derivative(lambda t: lie.exp(x + t * rate))

    def twist(matrix: np.ndarray) -> np.ndarray:
        return np.array([matrix[2, 1], matrix[0, 2], matrix[1, 0], *matrix[:3, 3]])

    # Differences of poses have errors of 1e-13.
    assert deviation(lie.left_jacobian(x) @ rate, twist(velocity @ lie.inverse(C)), floor=1.0) < 2e-12
    assert deviation(lie.right_jacobian(x) @ rate, twist(lie.inverse(C) @ velocity), floor=1.0) < 2e-12


@given(hard_twists())
def test_inverses_of_jacobians(x: np.ndarray) -> None:
    assert deviation(lie.left_jacobian_inverse(x) @ lie.left_jacobian(x), np.eye(6)) < 1e-14
    assert deviation(lie.right_jacobian(x) @ lie.right_jacobian_inverse(x), np.eye(6)) < 1e-14


def test_batches_are_their_members() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 3, 6))
    x[0, 0] = 0.0
    x[0, 1, :3] = 0.0
    x[0, 2, :3] *= 1e-6
    functions = (
        lie.ad,
        lie.momentum_cross,
        lie.exp,
        lie.left_jacobian,
        lie.left_jacobian_inverse,
        lambda x: lie.log(lie.exp(x)),
        lambda x: lie.Ad(lie.inverse(lie.exp(x))),
        lambda x: lie.exp(x, 0.3),
        lambda x: lie.space_twist(lie.exp(x), x),
        lambda x: lie.body_wrench(lie.exp(x), x),
        lambda x: lie.screw_axis(x).pitch,
    )
    for function in functions:
        whole = function(x)
        for i, j in np.ndindex(2, 3):
            np.testing.assert_allclose(whole[i, j], function(x[i, j]), rtol=0, atol=1e-15)


def test_one_screw_at_many_angles() -> None:
    screw, q = lie.screw([0, 0.6, 0.8], [0.1, 0.2, 0.3], 0.05), np.array([0.1, 0.2, -3.0])
    np.testing.assert_allclose(lie.exp(screw, q), [lie.exp(screw, x) for x in q], rtol=0, atol=1e-16)
