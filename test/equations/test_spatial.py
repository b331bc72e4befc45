# SPDX-License-Identifier: Apache-2.0
"""Closed form in spatial twists against that in body-fixed twists, whose derivatives are checked by differences.

Both share the poses of the bodies, but no matrix: moments about the origin of the base are larger, hence the tolerance.
"""

import numpy as np
from differences import deviation
from hypothesis import given, settings
from trees import MovingTree, moving_trees

from eom_dynamics import equations_of_motion, load_robot
from eom_dynamics.equations import spatial_equations_of_motion

TERMS = ("M", "C", "gravity", "external", "rates")


@settings(max_examples=10)
@given(moving_trees(3))
def test_all_terms_of_random_trees(tree: MovingTree) -> None:
    *states, _ = tree.states
    found = spatial_equations_of_motion(tree.robot, *states, wrench=tree.wrench)
    expected = equations_of_motion(tree.robot, *states, wrench=tree.wrench, coriolis="skew")
    for term in TERMS:
        for x, y in zip(getattr(found, term), getattr(expected, term), strict=True):
            assert deviation(x, y, floor=1.0) < 1e-12


def test_batch_of_two_arms() -> None:
    robot = load_robot("dual_arm")
    q, qd, qdd = np.random.default_rng(3).uniform(-1, 1, (3, 2, robot.n))
    W = np.random.default_rng(4).uniform(-5, 5, (2, *robot.wrench_shape))
    found = spatial_equations_of_motion(robot, q, qd, qdd, wrench=(W,))
    expected = equations_of_motion(robot, q, qd, qdd, wrench=(W,), coriolis="skew")
    for term in TERMS:
        for x, y in zip(getattr(found, term), getattr(expected, term), strict=True):
            assert deviation(x, y, floor=1.0) < 1e-12
