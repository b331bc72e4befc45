# SPDX-License-Identifier: Apache-2.0
"""Part of a robot between a root link and its tips, the other joints locked or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..spelling import close_match, listed
from .description import Description, JointDescription
from .tree import children

BRANCHES = ("lump", "drop")
"""How to treat branches without a tip: locked at zero with their inertia, or left out."""


def select_subtree(description: Description, base: str, tips: Sequence[str], branches: str) -> Description:
    """Select the part of a robot from its base to its tips.

    Args:
        description: the whole robot, whose mimic joints follow independent ones.
        base: name of the link that becomes the base. Everything not below it is locked at zero, and gravity is rotated
            into its frame.
        tips: names of the links or frames where the part ends; if empty, everything below the base belongs to it.
        branches: how to treat joints below the base that lead to no tip, one of :data:`BRANCHES`.

    Raises:
        RobotDescriptionError: a tip is unknown, or not below the base.
    """
    mover = {joint.child: joint for joint in description.joints}
    to_base = _pose_at_zero(mover, base)
    below = _below(description, base)
    kept = _joints_on_paths(description, mover, base, tips) if tips else {joint.name for joint in below}
    kept = {joint.name for joint in below if joint.name in kept and (joint.mimic is None or joint.mimic.leader in kept)}
    joints, links, assumed = [], {base}, list(description.assumed)
    for joint in below:
        dropped = branches == "drop" and (joint.type != "fixed" or joint.locked_because is not None)
        if joint.name not in kept and (dropped or joint.parent not in links):
            assumed.append(f"joint {joint.name} is left out, with everything below it")
            continue
        if joint.name not in kept and joint.type != "fixed":
            assumed.append(f"joint {joint.name} is locked at zero")
        joints.append(joint if joint.name in kept else joint.locked())
        links.add(joint.child)
    return replace(
        description,
        links={name: link for name, link in description.links.items() if name in links},
        joints=tuple(joints),
        gravity=to_base[:3, :3].T @ description.gravity,
        frames=tuple(frame for frame in description.frames if frame.link in links),
        assumed=tuple(assumed),
    )


def link_of(description: Description, name: str, option: str) -> str:
    """The link of this name, or the link that carries the frame of this name."""
    if name in description.links:
        return name
    frames = {frame.name: frame.link for frame in description.frames}
    if name not in frames:
        known = [*description.links, *frames]
        close = close_match(name, known)
        guess = "" if close is None else f"did you mean {close}? "
        description.refuse(option, f"no link {name!r}; {guess}known are {listed(known)}")
    return frames[name]


def _pose_at_zero(mover: Mapping[str, JointDescription], link: str) -> Array:
    """Pose (4, 4) of a link in the root's frame, with all joints at zero."""
    pose = np.eye(4)
    while link in mover:
        pose = mover[link].locked().origin @ pose
        link = mover[link].parent
    return pose


def _below(description: Description, base: str) -> list[JointDescription]:
    """The joints below a link, in the description's order."""
    below, links = children(description.joints), [base]
    for link in links:  # grows during the loop
        links += [joint.child for joint in below.get(link, [])]
    reached = set(links[1:])
    return [joint for joint in description.joints if joint.child in reached]


def _joints_on_paths(
    description: Description, mover: Mapping[str, JointDescription], base: str, tips: Sequence[str]
) -> set[str]:
    """Names of the joints between the base and the tips."""
    names: set[str] = set()
    for tip in tips:
        link = link_of(description, tip, "tip")
        while link != base:
            if link not in mover:
                description.refuse("tip", f"{tip!r} is not below the root {base!r}")
            names.add(mover[link].name)
            link = mover[link].parent
    return names
