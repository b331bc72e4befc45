# SPDX-License-Identifier: Apache-2.0
"""SE(3) against matrix exponentials, SciPy's rotations and the laws of Lie groups.

Tolerances are for numbers of order one, about ten times the largest deviation in 400 examples.
"""

import numpy as np
import pytest
import sympy as sp
from chains import JOINT_TYPES, numbers, screws
from differences import deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from textbook import twist_matrix

from eom_dynamics import lie

joint_screws = st.sampled_from(JOINT_TYPES).flatmap(screws)
twists = numbers(2.0, 6)
angles = st.floats(-7, 7)
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
