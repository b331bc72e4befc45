# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics against matrix exponentials."""

import numpy as np
from chains import Case, cases
from differences import deviation
from hypothesis import given
from scipy.linalg import expm
from textbook import twist_matrix

from eom_dynamics import load_robot
from eom_dynamics.kinematics import body_poses


@given(cases(derivatives=0))
def test_poses_are_products_of_exponentials(case: Case) -> None:
    C = np.eye(4)
    for joint, q, pose in zip(case.robot.joints, case.motion[0], body_poses(case.robot, case.motion[0]), strict=True):
        C = C @ joint.reference_pose @ expm(twist_matrix(joint.screw) * q)
        # SciPy's exponential has an error of about 1e-15 at these angles.
        assert deviation(pose, C, floor=1.0) < 1e-13


def test_poses_of_a_batch() -> None:
    robot, q = load_robot("iiwa"), np.random.default_rng(1).normal(size=(3, 7))
    poses = np.array(body_poses(robot, q))
    assert poses.shape == (7, 3, 4, 4)
    for i in range(3):
        np.testing.assert_array_equal(poses[:, i], body_poses(robot, q[i]))
