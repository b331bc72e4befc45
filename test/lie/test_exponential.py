# SPDX-License-Identifier: Apache-2.0
"""Exponential, logarithm and their Jacobians in hard cases, against SciPy's matrix exponential and differences."""

import numpy as np
from chains import numbers
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from textbook import twist_matrix

from eom_dynamics import lie

directions = numbers(1.0, 3).filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
# On both sides of the thresholds, and up to half a turn.
angles = st.sampled_from([0.0, 1e-300, 1e-12, 1e-8, 9e-5, 1.1e-4, 1e-2, 0.999, 1.001, 2.0, 3.0, np.pi - 1e-9, np.pi])


@st.composite
def twists(draw: st.DrawFn) -> np.ndarray:
    return np.concatenate([draw(angles) * draw(directions), draw(numbers(2.0, 3))])


@given(twists())
def test_exp_of_any_twist_is_the_matrix_exponential(x: np.ndarray) -> None:
    assert deviation(lie.exp(x), expm(twist_matrix(x)), floor=1.0) < 1e-14


@given(twists())
def test_exp_undoes_log(x: np.ndarray) -> None:
    """Beyond half a turn less 1e-9, either axis may result: the pose is compared, not the twist."""
    C = lie.exp(x)
    assert deviation(lie.exp(lie.log(C)), C, floor=1.0) < 1e-14
    assert np.linalg.norm(lie.log(C)[:3]) <= np.pi * (1 + 1e-15)


@given(twists().filter(lambda x: np.linalg.norm(x[:3]) < 3.1))
def test_log_undoes_exp(x: np.ndarray) -> None:
    # Near pi, the translation is divided by the sine of half the remaining angle.
    assert deviation(lie.log(lie.exp(x)), x, floor=1.0) < 2e-14


@given(twists(), numbers(1.0, 6))
def test_jacobians_map_rates_to_twists(x: np.ndarray, rate: np.ndarray) -> None:
    C = lie.exp(x)
    velocity = derivative(lambda t: lie.exp(x + t * rate))

    def twist(matrix: np.ndarray) -> np.ndarray:
        return np.array([matrix[2, 1], matrix[0, 2], matrix[1, 0], *matrix[:3, 3]])

    # Differences of poses have errors of 1e-13.
    assert deviation(lie.left_jacobian(x) @ rate, twist(velocity @ lie.inverse(C)), floor=1.0) < 2e-12
    assert deviation(lie.right_jacobian(x) @ rate, twist(lie.inverse(C) @ velocity), floor=1.0) < 2e-12


@given(twists())
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
