# SPDX-License-Identifier: Apache-2.0
"""Kinematic tree of links and joints: root, depth-first order, and checks for a single tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from .description import Description, JointDescription

Refuse = Callable[[str, str], NoReturn]


def depth_first(links: Sequence[str], joints: Sequence[JointDescription], refuse: Refuse) -> list[JointDescription]:
    """Sort joints depth-first from the root, siblings in the given order."""
    return list(_in_depth(_root(links, joints, refuse), joints))


def children(joints: Iterable[JointDescription]) -> dict[str, list[JointDescription]]:
    """The joints directly below each link that has any."""
    below: dict[str, list[JointDescription]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    return below


def root_link(description: Description) -> str:
    """Name of the root link, which is not the child of any joint."""
    return _root(list(description.links), description.joints, description.refuse)


def _root(links: Sequence[str], joints: Sequence[JointDescription], refuse: Refuse) -> str:
    names = set(links)
    mover: dict[str, JointDescription] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in names:
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
    seen: dict[str, None] = {}
    while link not in seen:
        seen[link] = None
        link = mover[link].parent
    names = list(seen)
    return _some(names[names.index(link) :])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
