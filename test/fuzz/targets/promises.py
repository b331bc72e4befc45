# SPDX-License-Identifier: Apache-2.0
"""What targets promise: refusals of one line, and robots in order."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from eom_dynamics import Robot
from eom_dynamics.exceptions import EomDynamicsError, RobotDescriptionWarning


@contextmanager
def refused() -> Iterator[None]:
    """Allow exceptions of this package, each of one line of text, and no warnings but its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RobotDescriptionWarning)
        try:
            yield
        except EomDynamicsError as error:
            for line in error.errors:
                assert line and "\n" not in line, line
                assert "nternal error" not in line, line


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
