# SPDX-License-Identifier: Apache-2.0
"""A part of a description: what hangs on one link, as far as some others; the rest frozen, or left out."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .composition import frozen
from .description import Description, JointDescription
from .graph import children, root_link

Array = NDArray[np.float64]

BRANCHES = ("lump", "drop")
"""What becomes of branches that lead to none of the tips: frozen at zero with their inertia, or left out."""


def pick(description: Description, root: str | None, tips: Sequence[str], branches: str) -> Description:
    """The part of a robot from a root to its tips.

    Args:
        description: the whole; its mimic joints follow independent ones.
        root: name of the link that is to be the base; None is the description's own. What is not below it
            stands still at zero, and gravity is turned into its frame.
        tips: names of the links or frames where the part ends; none takes all that is below the root.
        branches: what becomes of joints below the root that lead to no tip: see :data:`BRANCHES`.

    Raises:
        RobotDescriptionError: there is no such link, or a tip is not below the root.
    """
    mover = {joint.child: joint for joint in description.joints}
    base = root_link(description) if root is None else link_of(description, root, "root")
    to_base = _pose_at_zero(mover, base)
    below = _below(description, base)
    kept = _ways(description, mover, base, tips) if tips else {joint.name for joint in below}
    kept = {joint.name for joint in below if joint.name in kept and _leader(joint) in kept}
    joints, links, assumed = [], {base}, list(description.assumed)
    for joint in below:
        if joint.name not in kept and ((branches == "drop" and joint.type != "fixed") or joint.parent not in links):
            assumed.append(f"joint {joint.name} and what hangs on it is left out")
            continue
        if joint.name not in kept and joint.type != "fixed":
            assumed.append(f"joint {joint.name} is frozen at zero")
        joints.append(joint if joint.name in kept else frozen(joint))
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
    """The link of this name, or that carries the frame of this name.

    Raises:
        RobotDescriptionError: there is neither.
    """
    if name in description.links:
        return name
    frames = {frame.name: frame.link for frame in description.frames}
    if name not in frames:
        known = [*description.links, *frames]
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known[:20])}"
        description.refuse(option, f"there is no link {name!r}; {hint}")
    return frames[name]


def _pose_at_zero(mover: Mapping[str, JointDescription], link: str) -> Array:
    """Pose (4, 4) of a link in the root's frame, every joint at zero."""
    pose = np.eye(4)
    while link in mover:
        pose = frozen(mover[link]).origin @ pose
        link = mover[link].parent
    return pose


def _below(description: Description, base: str) -> list[JointDescription]:
    """The joints below a link, in the description's order."""
    below, links = children(description.joints), [base]
    for link in links:  # which grows on the way
        links += [joint.child for joint in below.get(link, [])]
    reached = set(links[1:])
    return [joint for joint in description.joints if joint.child in reached]


def _ways(description: Description, mover: Mapping[str, JointDescription], base: str, tips: Sequence[str]) -> set[str]:
    """Names of the joints between the base and the tips."""
    way: set[str] = set()
    for tip in tips:
        link = link_of(description, tip, "tip")
        while link != base:
            if link not in mover:
                description.refuse("tip", f"{tip!r} is not below the root {base!r}")
            way.add(mover[link].name)
            link = mover[link].parent
    return way


def _leader(joint: JointDescription) -> str:
    return joint.name if joint.mimic is None else joint.mimic.leader
