# SPDX-License-Identifier: Apache-2.0
"""Jacobian sums and the routes to the Coriolis tensor: against closed form, programs, Pinocchio and differences.

The tolerances hold for 400 random trees; rounding errors are relative to terms that cancel.
"""

import numpy as np
from described_trees import random_tree
from differences import deviation
from hypothesis import given, settings
from trees import MovingTree, moving_trees

from eom_dynamics import Robot, equations_of_motion, load_robot
from eom_dynamics.equations import (
    coriolis_tensor,
    gravity_from_jacobians,
    mass_matrix_from_jacobians,
)
from eom_dynamics.equations.jacobian_sums import ROUTES

TOLERANCE = 1e-12


def check(robot: Robot, q: np.ndarray) -> None:
    terms = equations_of_motion(robot, q, np.ones(robot.n))
    assert deviation(mass_matrix_from_jacobians(robot, q), terms.M[0], floor=1.0) < TOLERANCE
    assert deviation(gravity_from_jacobians(robot, q), terms.gravity[0], floor=1.0) < TOLERANCE
    tensors = {route: coriolis_tensor(robot, q, route) for route in ROUTES}
    for c in tensors.values():
        assert deviation(c, tensors["kernel"], floor=1.0) < TOLERANCE
        assert deviation(c, np.swapaxes(c, 1, 2), floor=1.0) < TOLERANCE
        assert deviation(c @ np.ones(robot.n), terms.C[0], floor=1.0) < TOLERANCE


@settings(max_examples=15)
@given(moving_trees(1))
def test_random_trees(tree: MovingTree) -> None:
    check(tree.robot, tree.states[0])


def test_mimic_joints() -> None:
    for seed in range(100):
        robot = load_robot(random_tree(seed).urdf())
        if 1 < robot.n < len(robot.joints) < 12:
            check(robot, np.random.default_rng(seed).uniform(-1, 1, robot.n))
            return
    raise AssertionError("the first 100 trees have no mimic joint")
