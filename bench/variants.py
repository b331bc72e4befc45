# SPDX-License-Identifier: Apache-2.0
"""Robots as links without the choices that make the recursion cheap, to see what each of them saves."""

from __future__ import annotations

from eom_dynamics import Robot
from eom_dynamics.recursion import LinkTree
from eom_dynamics.recursion.links import _along_axis, tree_in_frames


def given_frames(robot: Robot, *, regrouped: bool) -> LinkTree:
    """Links in the frames that the robot comes with, as far as their z lies along the joint's axis."""
    return tree_in_frames(robot, [_along_axis(joint) for joint in robot.joints], regrouped=regrouped)
