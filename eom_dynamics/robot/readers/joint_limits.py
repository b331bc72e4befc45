# SPDX-License-Identifier: Apache-2.0
"""Joint limits from ``joint_limits.yaml`` of MoveIt, which override and complete the limits of a URDF.

Each joint has pairs such as ``has_velocity_limits`` and ``max_velocity``. A pair with ``has_…: false`` does not change
the limit; nor do scaling factors, soft limits and ``angle_wraparound``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...exceptions import RobotDescriptionError
from ...spelling import hint
from ..description import SINGLE_TYPES, Description, JointDescription
from ..formats import PARAMETER_FILE
from .files import read_text
from .parameter_file import parse_yaml
from .section import Section

_KEY = "joint_limits"

_LARGEST = {
    "velocity": ("velocity", -1),
    "acceleration": ("acceleration", -1),
    "deceleration": ("acceleration", 0),
    "jerk": ("jerk", -1),
    "effort": ("effort", 0),
}
"""Limits by quantity of MoveIt, with the sign of a smallest value, or 0."""

_WITHOUT_EFFECT = (
    *("angle_wraparound", "has_soft_limits", "k_position", "k_velocity", "soft_lower_limit", "soft_upper_limit"),
)


def with_joint_limits(description: Description, path: str) -> Description:
    """Return a description with the joint limits of a file.

    Raises:
        RobotDescriptionError: the file cannot be read, has no section ``joint_limits``, or a joint that the description
            lacks; an entry is unknown or not allowed. The message names file, joint and entry.
    """
    document = parse_yaml(read_text(Path(path), PARAMETER_FILE.largest), path)
    sections = [*_sections(document)]
    if len(sections) != 1:
        count = f"{len(sections)} sections" if sections else "no section"
        raise RobotDescriptionError(f"{path}: {count} {_KEY}, must be one, as in a file of MoveIt")
    with Section(sections[0], _KEY, path) as limits:
        names = [joint.name for joint in description.joints if joint.type in SINGLE_TYPES]
        for name in limits:
            if name not in names:
                limits.attempt(partial(_refuse_joint, name, names), None)
        joints = tuple(limits.attempt(partial(_with_limits, joint), joint) for joint in description.joints)
    return replace(description, joints=joints)


def _sections(node: Any) -> Iterator[Any]:
    """Sections of limits, at any depth: nodes have them below ``ros__parameters``."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == _KEY:
                yield value
            else:
                yield from _sections(value)


def _refuse_joint(name: str, names: list[str], limits: Section) -> None:
    limits.skip(name)
    limits.refuse(name, f"the robot has no joint of this name with one variable; {hint(name, names)}")


def _with_limits(joint: JointDescription, limits: Section) -> JointDescription:
    """The joint with the limits of its section, if there is one."""
    if joint.type not in SINGLE_TYPES or joint.name not in limits:
        return joint
    with limits.section(joint.name, "a section with has_velocity_limits, max_velocity, …") as section:
        section.skip(*_WITHOUT_EFFECT)
        found = _range(joint, section)
        for quantity, (limit, sign) in _LARGEST.items():
            if (value := _largest(quantity, sign, getattr(joint.limits, limit), section)) is not None:
                found[limit] = min(value, found.get(limit, math.inf))
        return replace(joint, limits=replace(joint.limits, **found))


def _largest(quantity: str, sign: int, present: float, section: Section) -> float | None:
    """Largest magnitude of a quantity; None for no change."""
    largest, smallest = f"max_{quantity}", f"min_{quantity}"
    section.skip(largest, *([smallest] if sign else []))
    given = section.flag(f"has_{quantity}_limits")
    if given is False:
        return None
    if largest not in section and not (given and math.isinf(present)):
        return None
    value = section.positive(largest)
    if sign and smallest in section:
        value = min(value, -section.number(smallest))
        if not value > 0:
            section.refuse(smallest, f"must be negative, is {-value:g}")
    return value


def _range(joint: JointDescription, section: Section) -> dict[str, float]:
    """Position limits; empty for no change."""
    ends = {"lower": "min_position", "upper": "max_position"}
    section.skip(*ends.values())
    given = section.flag("has_position_limits")
    found = {end: section.number(name) for end, name in ends.items() if given is not False and name in section}
    if found and joint.type == "continuous":
        name = next(ends[end] for end in found)
        section.refuse(name, "a continuous joint has no limits of position; remove it, or make the joint revolute")
    lower, upper = (found.get(end, getattr(joint.limits, end)) for end in ends)
    if lower > upper:
        section.refuse("min_position", f"must not exceed the largest position, {upper:g}, is {lower:g}")
    return found
