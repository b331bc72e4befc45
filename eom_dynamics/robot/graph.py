# SPDX-License-Identifier: Apache-2.0
"""Which link hangs on which: the checks that links and joints make one tree, and its order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from .description import Description, JointDescription

Refuse = Callable[[str, str], NoReturn]


def depth_first(links: Sequence[str], joints: Sequence[JointDescription], refuse: Refuse) -> list[JointDescription]:
    """The joints depth-first from the root, children of one link in the order given.

    Args:
        links: names of all links.
        joints: all joints, in any order.
        refuse: raises the error for what is wrong, given where and why.
    """
    return list(_in_depth(_root(links, joints, refuse), joints))


def children(joints: Iterable[JointDescription]) -> dict[str, list[JointDescription]]:
    """The joints below each link that has any."""
    below: dict[str, list[JointDescription]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    return below


def root_link(description: Description) -> str:
    """Name of the link that no joint moves."""
    return _root(list(description.links), description.joints, description.refuse)


def _root(links: Sequence[str], joints: Sequence[JointDescription], refuse: Refuse) -> str:
    names = set(links)
    mover: dict[str, JointDescription] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in names:
                refuse(joint.where, f"its {role} link {link!r} does not exist")
        if joint.parent == joint.child:
            refuse(joint.where, f"its parent and its child are the same link, {joint.child!r}")
        if joint.child in mover:
            refuse(
                joint.where,
                f"its child link {joint.child!r} is already that of {mover[joint.child].name!r}; a link hangs on one "
                "joint, closed loops cannot be described",
            )
        mover[joint.child] = joint
    roots = [link for link in links if link not in mover]
    if not roots:
        refuse(
            "links", f"no root: {_loop(mover, links[0])} hang on each other in a loop" if links else "there are none"
        )
    if len(roots) > 1:
        refuse("links", f"{len(roots)} roots ({_some(roots)}): all links but one must be the child of a joint")
    reached = {roots[0]} | {joint.child for joint in _in_depth(roots[0], joints)}
    for link in links:
        if link not in reached:
            refuse("links", f"{_loop(mover, link)} hang on each other in a loop")
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


def _some(names: Sequence[str], limit: int = 6) -> str:
    return ", ".join(names[:limit]) + (", …" if len(names) > limit else "")
