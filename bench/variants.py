# SPDX-License-Identifier: Apache-2.0
"""Links without the optimisations of the library, to measure the savings by each."""

from __future__ import annotations

from eom_dynamics import Robot
from eom_dynamics.recursion import LinkTree
from eom_dynamics.recursion.links import _along_axis, tree_in_frames


def given_frames(robot: Robot, *, regrouped: bool) -> LinkTree:
    """Links in frames parallel to those of the robot's bodies, as far as their z is along the joint axis."""
    return tree_in_frames(robot, [_along_axis(joint) for joint in robot.joints], regrouped=regrouped)
