# SPDX-License-Identifier: Apache-2.0
"""Kinematic tree of links and joints: root, order, the part between a base and its tips, and mimic relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..arguments import LARGEST, SMALLEST, violation
from ..spelling import close_match, listed
from .description import SINGLE_TYPES, Description, JointDescription, MimicDescription


def depth_first(description: Description) -> list[JointDescription]:
    """Sort joints depth-first from the root, siblings in their original order."""
    return list(_in_depth(root_link(description), description.joints))


def children(joints: Iterable[JointDescription]) -> dict[str, list[JointDescription]]:
    """Joints directly below each link, by link."""
    below: dict[str, list[JointDescription]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    return below


def root_link(description: Description) -> str:
    """Name of the root link, which is no joint's child; refuses links and joints that form no tree."""
    links, joints, refuse = list(description.links), description.joints, description.refuse
    mover: dict[str, JointDescription] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in description.links:
                refuse(joint.where, f"{role} link {link!r} does not exist")
        if joint.parent == joint.child:
            refuse(joint.where, f"parent and child are the same link, {joint.child!r}")
        if joint.child in mover:
            refuse(
                joint.where,
                f"child link {joint.child!r} is already the child of {mover[joint.child].name!r}; a link must have one "
                "parent joint, closed loops cannot be described",
            )
        mover[joint.child] = joint
    roots = [link for link in links if link not in mover]
    if not roots:
        refuse("links", f"no root: {_loop(mover, links[0])} form a loop" if links else "there must be at least one")
    if len(roots) > 1:
        refuse("links", f"{len(roots)} roots ({_some(roots)}); all links but one must be the child of a joint")
    reached = {roots[0]} | {joint.child for joint in _in_depth(roots[0], joints)}
    for link in links:
        if link not in reached:
            refuse("links", f"{_loop(mover, link)} form a loop")
    return roots[0]


def _in_depth(root: str, joints: Sequence[JointDescription]) -> Iterator[JointDescription]:
    below = children(joints)
    waiting = list(reversed(below.get(root, [])))
    while waiting:
        joint = waiting.pop()
        yield joint
        waiting += reversed(below.get(joint.child, []))


def _loop(mover: dict[str, JointDescription], link: str) -> str:
    visited: dict[str, None] = {}
    while link not in visited:
        visited[link] = None
        link = mover[link].parent
    names = list(visited)
    return _some(names[names.index(link) :])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


BRANCHES = ("lump", "drop")
"""How to treat branches without a tip: locked at zero with their inertia, or omitted."""


def select_subtree(description: Description, base: str, tips: Sequence[str], branches: str) -> Description:
    """Select the part of a robot from a base link to tips (links or frames); without tips, all joints below the base.

    Joints not below the base are locked at zero, and gravity is rotated into the base frame. ``branches`` in
    :data:`BRANCHES` determines the treatment of joints below the base without a tip. Mimic joints must follow
    independent joints. Raises RobotDescriptionError if a tip is unknown or not below the base.
    """
    mover = {joint.child: joint for joint in description.joints}
    to_base, link = np.eye(4), base  # pose of the base in the root's frame, all joints at zero
    while link in mover:
        to_base = mover[link].locked().origin @ to_base
        link = mover[link].parent
    links_of, reached = children(description.joints), [base]
    for link in reached:  # grows during the loop
        reached += [joint.child for joint in links_of.get(link, [])]
    carried = set(reached[1:])
    below = [joint for joint in description.joints if joint.child in carried]
    movable = _joints_on_paths(description, mover, base, tips) if tips else {joint.name for joint in below}
    movable = {
        joint.name
        for joint in below
        if joint.name in movable and (joint.mimic is None or joint.mimic.leader in movable)
    }
    joints, links, assumed = [], {base}, list(description.assumed)
    for joint in below:
        dropped = branches == "drop" and (joint.type != "fixed" or joint.locked_because is not None)
        if joint.name not in movable and (dropped or joint.parent not in links):
            assumed.append(f"joint {joint.name} is left out, with everything below it")
            continue
        if joint.name not in movable and joint.type != "fixed":
            assumed.append(f"joint {joint.name} is locked at zero")
        joints.append(joint if joint.name in movable else joint.locked())
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
    """Link of this name, or the link that carries the frame of this name."""
    if name in description.links:
        return name
    frames = {frame.name: frame.link for frame in description.frames}
    if name not in frames:
        known = [*description.links, *frames]
        close = close_match(name, known)
        guess = "" if close is None else f"did you mean {close}? "
        description.refuse(option, f"no link {name!r}; {guess}known are {listed(known)}")
    return frames[name]


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


def resolve_mimics(description: Description) -> Description:
    """Let each mimic joint follow an independent joint directly.

    A mimic joint that cannot move (fixed or missing leader, or ratio 0) becomes a fixed joint at its position with the
    leader at zero.
    """
    by_name = {joint.name: joint for joint in description.joints}
    return replace(description, joints=tuple(_resolve(joint, by_name, description) for joint in description.joints))


def _resolve(
    joint: JointDescription, by_name: dict[str, JointDescription], description: Description
) -> JointDescription:
    if joint.type == "fixed":
        return replace(joint, mimic=None)
    ratio, offset, leader, chain = 1.0, 0.0, joint, [joint.name]
    while leader.mimic is not None and leader.type != "fixed":
        if leader.type not in SINGLE_TYPES:
            description.refuse(f"{leader.where}: mimic", f"a {leader.type} joint has more than one joint variable")
        ratio, offset = ratio * leader.mimic.ratio, offset + ratio * leader.mimic.offset
        name = leader.mimic.leader
        if name in chain:
            description.refuse(f"{joint.where}: mimic", f"joints mimic each other: {' -> '.join([*chain, name])}")
        _check_size(ratio, offset, [*chain, name], joint, description)
        if leader.mimic.ratio == 0:
            return _lock(joint, offset, f"the mimic ratio of {leader.name} is 0")
        if name not in by_name:
            return _lock(joint, offset, f"its mimic leader {name!r} does not exist")
        chain.append(name)
        leader = by_name[name]
    if leader is joint:
        return joint
    mimic = MimicDescription(leader.name, ratio, offset)
    if leader.type == "fixed":
        return replace(joint, mimic=mimic).locked()
    if leader.type not in SINGLE_TYPES:
        description.refuse(f"{joint.where}: mimic", f"its leader {leader.name!r} is a {leader.type} joint")
    return replace(joint, mimic=mimic)


def _check_size(
    ratio: float, offset: float, chain: list[str], joint: JointDescription, description: Description
) -> None:
    """Refuse a relation to the last joint of a chain with numbers beyond the bounds of robot descriptions."""
    whose = f" over the chain {joint.name}, {chain[1]} … {chain[-1]}: check the factors" if len(chain) > 2 else ""
    for what, value, smallest in (("multiplier", abs(ratio), SMALLEST if ratio else 0.0), ("offset", offset, 0.0)):
        if reason := violation(value, smallest=smallest, largest=LARGEST):
            description.refuse(f"{joint.where}: mimic", f"{what} {reason}{whose}")


def _lock(joint: JointDescription, offset: float, reason: str) -> JointDescription:
    where = f"{offset:g} {'m' if joint.type == 'prismatic' else 'rad'}"
    fixed = replace(joint, mimic=MimicDescription("", 1.0, offset)).locked()
    return replace(fixed, locked_because=f"fixed at {where}: {reason}")
