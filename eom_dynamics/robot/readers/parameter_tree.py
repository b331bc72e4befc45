# SPDX-License-Identifier: Apache-2.0
"""Read a robot from the ``robot`` section of a ROS 2 parameter tree.

The section describes the robot itself, see :mod:`.robot_section`, or names its URDF or xacro file and completes it,
with the entries of :mod:`.urdf_section`:

.. code-block:: yaml

    robot:
      urdf: urdf/my_arm.urdf.xacro        # relative to this file, absolute, or package://my_arm_description/urdf/…
      xacro_arguments: {side: left}       # optional; values of <xacro:arg>
      tip: tool0                          # and all other entries of the section urdf
      joints:
        shoulder: {elasticity: {type: linear, stiffness: 1.0e4}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..assembly import assemble
from ..description import Description
from ..model import Robot
from .files import DescriptionFile, Expand
from .named_file import description_of_entry
from .robot_section import own_description
from .section import Section
from .urdf_section import completed
from .xacro import expand_xacro
from .xml import is_xml

MAX_BYTES = 200_000
"""Largest parameter file: a robot takes a few kilobytes; a larger file is some other one, and takes long to parse."""


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


def is_parameters(text: str) -> bool:
    """Whether a text is a parameter file, rather than the name of a file."""
    return "\n" in text and ":" in text and not is_xml(text)


def read_parameter_file(file: DescriptionFile) -> Description:
    """Read the robot of a parameter file."""
    from .parameter_file import find_robot  # with PyYAML, which no other format needs

    _, parameters = find_robot(file.text(MAX_BYTES), file.label)
    if file.inertia_reference is not None:
        if "urdf" in parameters:
            file.refuse_inertia_reference()
        parameters = {**parameters, "inertia_reference": file.inertia_reference}
    folder = file.path and file.path.parent
    return description_from_parameters(parameters, file.label, folder=folder, expand=file.expand)
