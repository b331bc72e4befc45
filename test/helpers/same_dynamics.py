# SPDX-License-Identifier: Apache-2.0
"""Comparison of robots that may have their joints in another order."""

import numpy as np

from eom_dynamics import Robot, equations_of_motion


def assert_same_dynamics(robot: Robot, again: Robot) -> None:
    assert sorted(again.joint_names) == sorted(robot.joint_names)
    np.testing.assert_allclose(again.base.spatial_inertia, robot.base.spatial_inertia, rtol=0, atol=1e-12)
    order = [robot.joint_names.index(name) for name in again.joint_names]
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.uniform(-1, 1, (3, robot.n))
    W = rng.uniform(-1, 1, robot.wrench_shape)
    one = equations_of_motion(robot, q, qd, wrench=[W]).efforts(qdd)[0]
    other = equations_of_motion(again, q[order], qd[order], wrench=[W]).efforts(qdd[order])[0]
    np.testing.assert_allclose(other, one[order], rtol=0, atol=1e-12 * max(1.0, float(np.max(np.abs(one)))))
