# SPDX-License-Identifier: Apache-2.0
"""Promises about a robot that was loaded."""

from __future__ import annotations

import numpy as np

from eom_dynamics import Robot


def check_robot(robot: Robot) -> None:
    """All numbers of a robot are finite, and its tree is in order: each parent comes before its children."""
    assert robot.n >= 1 and len(set(robot.joint_names)) == robot.n
    assert np.isfinite(robot.gravity).all()
    for i, joint in enumerate(robot.joints):
        assert -1 <= joint.parent < i
        for values in (joint.screw, joint.reference_pose, joint.center_of_mass, joint.inertia_about_origin, joint.mass):
            assert np.isfinite(values).all()
    for tool in robot.tools:
        assert np.isfinite(tool.pose).all()
