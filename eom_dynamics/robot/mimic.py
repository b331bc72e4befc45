# SPDX-License-Identifier: Apache-2.0
"""Mimic joints: chains of them resolved to the independent joint at their end."""

from __future__ import annotations

from dataclasses import replace

from ..number_rules import violation
from .description import SINGLE_TYPES, Description, JointDescription, MimicDescription
from .readers.numbers import LARGEST, SMALLEST


def resolve_mimics(description: Description) -> Description:
    """Let each mimic joint follow an independent joint directly.

    A mimic joint that cannot move, since its leader is fixed or missing or its ratio is 0, becomes a fixed joint at
    the position that it has with its leader at zero.
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
    """Refuse a relation to the last joint of a chain whose numbers exceed the bounds of robot descriptions."""
    smallest = SMALLEST if ratio else 0.0
    of_ratio = violation(ratio, largest=LARGEST) or violation(abs(ratio), smallest=smallest)
    of_offset = violation(offset, largest=LARGEST)
    for what, reason in (("multiplier", of_ratio), ("offset", of_offset)):
        if reason:
            whose = (
                f" over the chain {joint.name}, {chain[1]} … {chain[-1]}: check the factors" if len(chain) > 2 else ""
            )
            description.refuse(f"{joint.where}: mimic", f"{what} {reason}{whose}")


def _lock(joint: JointDescription, offset: float, reason: str) -> JointDescription:
    where = f"{offset:g} {'m' if joint.type == 'prismatic' else 'rad'}"
    fixed = replace(joint, mimic=MimicDescription("", 1.0, offset)).locked()
    return replace(fixed, locked_because=f"fixed at {where}: {reason}")
