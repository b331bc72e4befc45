# SPDX-License-Identifier: Apache-2.0
"""The symbolic planar 2R of the paper, term by term against its Lagrangian: each difference vanishes identically.

The Lagrangian itself is that of textbooks, see ``test/lagrange/test_textbook.py``.
"""

import numpy as np
import pytest
import sympy as sp

from eom_dynamics import EquationsOfMotion, equations_of_motion, lagrange

SYSTEM = lagrange.robot_lagrangian(lagrange.planar_arm(2))
STATES = [SYSTEM.q]
for _ in range(4):
    STATES.append(tuple(map(lagrange.rate, STATES[-1])))


@pytest.fixture(scope="module")
def terms() -> EquationsOfMotion:
    return equations_of_motion(lagrange.planar_arm(2), *(np.array(x) for x in STATES[:4]))


def assert_equal(actual: np.ndarray, expected: sp.Matrix) -> None:
    for entry, wanted in zip(actual.ravel(), expected, strict=True):
        assert lagrange.normal_form(entry - wanted) == 0, f"{entry}, not {wanted}"


@pytest.mark.parametrize("order", range(3))
def test_terms(order: int, terms: EquationsOfMotion) -> None:
    expected = {"M": SYSTEM.M, "C": SYSTEM.coriolis_matrix(), "gravity": SYSTEM.gravity}
    for name, matrix in expected.items():
        for _ in range(order):
            matrix = matrix.applyfunc(SYSTEM.time_derivative)
        assert_equal(getattr(terms, name)[order], matrix)
    assert_equal(terms.efforts(np.array(STATES[4]))[order], SYSTEM.efforts(2)[order])


def test_the_check_finds_errors(terms: EquationsOfMotion) -> None:
    with pytest.raises(AssertionError):
        assert_equal(1.001 * terms.M[0], SYSTEM.M)
