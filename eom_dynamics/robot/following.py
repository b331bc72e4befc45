# SPDX-License-Identifier: Apache-2.0
"""Mimic joints: chains of them resolved, so that every follower names a joint that moves on its own."""

from __future__ import annotations

from dataclasses import replace

from .composition import frozen
from .description import SINGLE_TYPES, Description, JointDescription, MimicDescription


def resolved(description: Description) -> Description:
    """The same robot, with each mimic joint following an independent one.

    Raises:
        RobotDescriptionError: a leader does not exist, joints follow each other in a circle, or
            a joint that follows or leads has not one joint variable.
    """
    by_name = {joint.name: joint for joint in description.joints}
    return replace(description, joints=tuple(_resolved(joint, by_name, description) for joint in description.joints))


def _resolved(
    joint: JointDescription, by_name: dict[str, JointDescription], description: Description
) -> JointDescription:
    if joint.mimic is None:
        return joint
    if joint.type == "fixed":
        return replace(joint, mimic=None)
    if joint.mimic.ratio == 0:
        description.refuse(f"{joint.where}: mimic", "its ratio is 0, so that it never moves; make it a fixed joint")
    ratio, offset, followed, seen = 1.0, 0.0, joint, [joint.name]
    while followed.mimic is not None:
        if followed.type == "fixed":
            break
        if followed.type not in SINGLE_TYPES:
            description.refuse(f"{followed.where}: mimic", f"a {followed.type} joint has not one joint variable")
        ratio, offset = ratio * followed.mimic.ratio, offset + ratio * followed.mimic.offset
        leader = followed.mimic.leader
        if leader not in by_name:
            description.refuse(f"{followed.where}: mimic", f"there is no joint {leader!r}")
        if leader in seen:
            description.refuse(f"{joint.where}: mimic", f"joints follow each other: {' -> '.join([*seen, leader])}")
        seen.append(leader)
        followed = by_name[leader]
    if followed.type == "fixed":  # for its followers the same as frozen
        return frozen(replace(joint, mimic=MimicDescription(followed.name, ratio, offset)))
    if followed.type not in SINGLE_TYPES:
        description.refuse(f"{joint.where}: mimic", f"{followed.name!r}, which it follows, is {followed.type}")
    return replace(joint, mimic=MimicDescription(followed.name, ratio, offset))
