# SPDX-License-Identifier: Apache-2.0
"""Additions to a loaded robot from a parameter section, every entry checked.

The section is ``urdf`` of a node, for a robot from any source, and ``robot`` in a file that names its URDF. Its
entries, each optional, are in docs/robots.md, under "Complete a URDF".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..assembly import UNPHYSICAL, assemble
from ..description import SINGLE_TYPES, Description, JointDescription
from ..model import Robot
from ..subtree import BRANCHES
from .joint_entries import with_entries
from .robot_entries import with_robot_entries
from .section import Section
from .urdf import description_from_urdf


def robot_from_urdf(text: str, section: Mapping[str, Any] | None = None, source: str = "robot_description") -> Robot:
    """Build a robot from a URDF.

    Args:
        text: the URDF.
        section: contents of the ``urdf`` section of a parameter tree, see above.
        source: file or topic of the URDF; every message about it begins with it.

    Raises:
        RobotDescriptionError: the URDF cannot be used; or an entry of the section is unknown, of the wrong type or
            not allowed, or names an unknown joint or link. The message names the element or the parameter, and the
            reason.
    """
    return robot_with(description_from_urdf(text, source), section or {})


def robot_with(description: Description, section: Mapping[str, Any]) -> Robot:
    """Build a robot from a description and a section ``urdf``; errors as for :func:`robot_from_urdf`."""
    with Section(section, "urdf", "parameters") as additions:
        description = completed(description, additions)
    return assemble(description)


def completed(description: Description, additions: Section) -> Description:
    """Return a description with the entries of the section added; others remain."""
    if "joints" in additions:
        with additions.section("joints") as joints:
            described = tuple(
                joints.attempt(partial(_with_entries, joint), joint, one_entry=True) for joint in description.joints
            )
        description = replace(description, joints=described)
    given: dict[str, Any] = {}
    if "gravity" in additions:
        given["base_gravity"] = additions.vector("gravity", 3)
    given |= {name: additions.texts(name) for name in ("tip", "tools") if name in additions}
    if "root" in additions:
        given["root"] = additions.text("root")
    for name, options in (("branches", BRANCHES), ("unphysical", UNPHYSICAL)):
        given[name] = additions.choice(name, options, getattr(description, name), otherwise=options[0])
    return with_robot_entries(replace(description, **given), additions)


def _with_entries(joint: JointDescription, joints: Section) -> JointDescription:
    """The joint with the entries of its section."""
    if joint.name not in joints:
        return joint
    if joint.type not in SINGLE_TYPES:
        joints.refuse(joint.name, f"a {joint.type} joint has no motor; remove the entry")
    if joint.mimic is not None:
        joints.refuse(joint.name, f"it mimics {joint.mimic.leader} and has no motor; remove the entry")
    with joints.section(joint.name) as section:
        return with_entries(joint, section)
