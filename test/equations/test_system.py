# SPDX-License-Identifier: Apache-2.0
"""Kinematics of all bodies against poses by matrix exponentials, and their derivatives against finite differences."""

import numpy as np
import pytest
from chains import FIXED, Case, cases, fixed_case
from differences import derivative, deviation, polynomial_motion
from hypothesis import given, settings
from textbook import body_poses, body_twists, twist_matrix

from eom_dynamics.equations.system import system


@settings(max_examples=15)
@given(case=cases(derivatives=1))
def test_twists_of_the_bodies(case: Case) -> None:
    """V for a motion of the joints, from differences of poses with an error of 1e-14; U for a motion of the base."""
    q, qd = case.motion
    kinematics = system(case.robot, q, [qd])
    twists = kinematics.V[0].reshape(-1, 6)
    assert deviation(twists, body_twists(case.parameters, q, qd), floor=1.0) < 1e-12
    base = np.array([0.3, -0.2, 0.5, 1.0, 0.4, -0.6])
    twists = (kinematics.U[0] @ base).reshape(-1, 6)
    for twist, pose in zip(twists, body_poses(case.parameters, q), strict=True):
        assert deviation(twist_matrix(twist), np.linalg.inv(pose) @ twist_matrix(base) @ pose, floor=1.0) < 1e-13


@pytest.mark.parametrize("quantity", ["S", "J", "U", "V", "b"])
@pytest.mark.parametrize("name", FIXED)
def test_derivatives_agree_with_differences(name: str, quantity: str) -> None:
    case = fixed_case(name, 5)
    motion = polynomial_motion(case.motion)
    jet = getattr(system(case.robot, case.motion[0], case.motion[1:]), quantity)
    assert len(jet) == 5
    for k in range(4):

        def lower(t: float, k: int = k) -> np.ndarray:
            q, *rates = motion(t)[: k + 2]
            return getattr(system(case.robot, q, rates), quantity)[k]

        assert deviation(jet[k + 1], derivative(lower)) < 1e-12
