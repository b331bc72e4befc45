# SPDX-License-Identifier: Apache-2.0
"""Read a robot from the ``robot`` section of a ROS 2 parameter tree, or add a section ``urdf`` to a loaded robot.

The section ``robot`` describes the robot itself, see :mod:`.robot_section`, or names its URDF, xacro or MJCF file and
completes it by the entries of the section ``urdf`` of a node: docs/robots.md, "Complete a URDF".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..assembly import UNPHYSICAL, assemble
from ..description import SINGLE_TYPES, Description, JointDescription
from ..formats import DESCRIBED, PARAMETER_FILE, format_of
from ..model import Robot
from ..tree import BRANCHES
from .entries import with_entries, with_robot_entries
from .files import PACKAGE, DescriptionFile, Expand, located
from .robot_section import own_description
from .section import Section
from .urdf import XACRO_ENDING, description_from_urdf, expand_xacro


def description_of_entry(robot: Section, folder: Path | None, expand: Expand) -> Description:
    """Read the file that the entry ``urdf`` of a robot's section names, with its ``xacro_arguments``.

    Relative paths start from ``folder``, the folder of the parameter file; None if the section is from no file.
    """
    path = _located(robot, robot.text("urdf"), folder)
    endings = tuple(dict.fromkeys(ending for known in DESCRIBED for ending in known.endings))
    if not path.endswith(endings):
        robot.refuse("urdf", f"must be a file of {', '.join(endings)}, is {path!r:.200}")
    if not os.path.exists(path):
        robot.refuse("urdf", f"there is no file {path!r:.200}; relative paths start from the parameter file's folder")
    robot_format = format_of(path, DESCRIBED)
    assert robot_format is not None  # by its ending
    arguments: dict[str, str] = {}
    if "xacro_arguments" in robot:
        if not path.endswith(XACRO_ENDING):
            robot.refuse("xacro_arguments", "are for .xacro files; remove them")
        with robot.section("xacro_arguments") as section:
            arguments = {name: section.word(name) for name in section}
    return robot_format.read(DescriptionFile(path, Path(path), None, None, arguments, expand))


def _located(robot: Section, name: str, folder: Path | None) -> str:
    """The path of a file given as ``package://package/path``, or relative to the parameter file."""
    if name.startswith(PACKAGE):
        try:
            return located(name)
        except LookupError as error:
            robot.refuse("urdf", str(error))
    if os.path.isabs(name):
        return name
    if folder is None:
        robot.refuse(
            "urdf",
            f"must be an absolute path or {PACKAGE}… in a --params-file, is {name!r:.200}; or give the node the file "
            "by -p robot_file:=FILE, from whose folder relative paths start",
        )
    return os.path.join(folder, name)


def robot_from_urdf(text: str, section: Mapping[str, Any] | None = None, source: str = "robot_description") -> Robot:
    """Build a robot from a URDF and the contents of a section ``urdf`` of a parameter tree.

    Every message about the URDF begins with ``source``, a file or topic.

    Raises:
        RobotDescriptionError: the URDF cannot be used; or an entry of the section is unknown, of the wrong type or not
            allowed, or names an unknown joint or link. The message names the element or parameter, and the reason.
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
            described = tuple(joints.attempt(partial(_with_entries, x), x) for x in description.joints)
        description = replace(description, joints=described)
    changes: dict[str, Any] = {}
    if "gravity" in additions:
        changes["base_gravity"] = additions.vector("gravity", 3)
    changes |= {name: additions.texts(name) for name in ("tip", "tools") if name in additions}
    if "root" in additions:
        changes["root"] = additions.text("root")
    for name, options in (("branches", BRANCHES), ("unphysical", UNPHYSICAL)):
        changes[name] = additions.choice(name, options, getattr(description, name), otherwise=options[0])
    return with_robot_entries(replace(description, **changes), additions)


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


def robot_from_parameters(
    parameters: Mapping[str, Any],
    source: str = "parameters",
    *,
    folder: Path | None = None,
    expand: Expand = expand_xacro,
) -> Robot:
    """Build a robot from the ``robot`` section of a parameter tree.

    A xacro file is a program that runs with your rights.

    Args:
        parameters: contents of the section, as nested mappings, numbers and lists.
        source: file or node that they come from; every message begins with it.
        folder: that relative paths of a URDF start from; None refuses relative paths.
        expand: expands the xacro file that the section names; another function for a section from the network.

    Raises:
        RobotDescriptionError: an entry is missing, unknown, of the wrong type or length or not finite, or no robot can
            be described like this. The message names the parameter and the reason.
    """
    return assemble(description_from_parameters(parameters, source, folder=folder, expand=expand))


def description_from_parameters(
    parameters: Mapping[str, Any],
    source: str = "parameters",
    *,
    folder: Path | None = None,
    expand: Expand = expand_xacro,
) -> Description:
    """Read the ``robot`` section of a parameter tree; arguments and errors as in :func:`robot_from_parameters`."""
    robot = Section(parameters, "robot", source)
    if "urdf" not in parameters:
        return own_description(robot)
    with robot:
        return completed(description_of_entry(robot, folder, expand), robot)


def read_parameter_file(file: DescriptionFile) -> Description:
    """Read the robot of a parameter file."""
    from .parameter_file import find_robot  # with PyYAML, which no other format needs

    parameters, _ = find_robot(file.text(PARAMETER_FILE.largest), file.label)
    if file.inertia_reference is not None:
        if "urdf" in parameters:
            file.refuse_inertia_reference()
        parameters = {**parameters, "inertia_reference": file.inertia_reference}
    folder = file.path and file.path.parent
    return description_from_parameters(parameters, file.label, folder=folder, expand=file.expand)
