# SPDX-License-Identifier: Apache-2.0
"""Robot and Joint as objects."""

import numpy as np
import pytest

from eom_dynamics import Joint, Robot, load_robot


def test_defaults_of_joint_and_robot() -> None:
    joint = Joint("hinge", np.array([0, 0, 1.0, 0, 0, 0]), np.eye(4), -1, 1.0, np.zeros(3), np.eye(3))
    robot = Robot("door", (joint,))
    assert (robot.n, robot.joint_names) == (1, ("hinge",))
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.80665])
    np.testing.assert_array_equal(robot.stiffness, [np.inf])
    np.testing.assert_array_equal(robot.rotor_inertia, [0])


def test_a_robot_cannot_be_changed() -> None:
    robot = load_robot("planar_2r")
    with pytest.raises(AttributeError):
        robot.name = "other"
    with pytest.raises(AttributeError):
        robot.joints[0].mass = 1.0


def test_repr_names_robot_and_size() -> None:
    assert repr(load_robot("iiwa")) == "Robot('iiwa', n=7)"
