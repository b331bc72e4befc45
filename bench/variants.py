# SPDX-License-Identifier: Apache-2.0
"""Robots as links without the choices that make the recursion cheap, to see what each of them saves."""

from __future__ import annotations

from eom_dynamics import Robot, lie
from eom_dynamics.recursion import LinkTree
from eom_dynamics.recursion.links import _along_axis, _exact, _link, _regrouped


def given_frames(robot: Robot, *, regrouped: bool) -> LinkTree:
    """Links in the frames that the robot comes with, as far as their z lies along the joint's axis."""
    frames = [_along_axis(joint) for joint in robot.joints]
    links = []
    for joint, frame in zip(robot.joints, frames, strict=True):
        step = joint.reference_pose @ frame
        if joint.parent >= 0:
            step = lie.inverse(frames[joint.parent]) @ step
        links.append(_link(joint, step, frame))
    return LinkTree(tuple(_regrouped(links) if regrouped else links), robot.gravity, _exact(lie.inverse(frames[-1])))
