# SPDX-License-Identifier: Apache-2.0
"""URDF and xacro files, and where the ``urdf`` entry of a robot's file finds them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..description import Description
from .files import read_text
from .packages import package_folder
from .section import Section
from .urdf import description_from_urdf
from .xacro import Expand, expand_xacro
from .xml import MAX_CHARACTERS

URDF_ENDINGS = (".urdf", ".xacro")
"""Endings of the names of URDF and xacro files."""

PACKAGE = "package://"


def read_urdf(path: str, xacro_arguments: Mapping[str, str], expand: Expand = expand_xacro) -> str:
    """Return the text of a ``.urdf`` file, or of a ``.xacro`` file that ``expand`` expands.

    Raises:
        RobotDescriptionError: the file cannot be read or expanded.
    """
    text = expand(Path(path), xacro_arguments) if path.endswith(".xacro") else read_text(Path(path), MAX_CHARACTERS)
    return text.removeprefix("\ufeff")


def description_from_file(path: str, xacro_arguments: Mapping[str, str], expand: Expand = expand_xacro) -> Description:
    """Read a ``.urdf`` or ``.xacro`` file.

    Args:
        path: of the file.
        xacro_arguments: values of the arguments of a xacro file.
        expand: expands a xacro file.

    Raises:
        RobotDescriptionError: the file cannot be read, expanded or used.
    """
    # Lines are those of the expanded file.
    source = f"{path}: as the command xacro expands it" if path.endswith(".xacro") else path
    return description_from_urdf(read_urdf(path, xacro_arguments, expand), source)


def description_of_entry(robot: Section, folder: Path | None, expand: Expand) -> Description:
    """Read the file that the entry ``urdf`` of a robot's section names, with its ``xacro_arguments``.

    Args:
        robot: the section.
        folder: that of the parameter file, which relative paths start from; None if the section is from no file.
        expand: expands a xacro file.

    Raises:
        RobotDescriptionError: the file cannot be found, read, expanded or used.
    """
    path = _located(robot, robot.text("urdf"), folder)
    is_xacro = path.endswith(".xacro")
    if not path.endswith(URDF_ENDINGS):
        robot.refuse("urdf", f"must be a .urdf or .xacro file, is {path!r:.200}")
    arguments: dict[str, str] = {}
    if "xacro_arguments" in robot:
        if not is_xacro:
            robot.refuse("xacro_arguments", "are for .xacro files; remove them")
        with robot.section("xacro_arguments") as section:
            arguments = {name: section.word(name) for name in section}
    return description_from_file(path, arguments, expand)


def _located(robot: Section, name: str, folder: Path | None) -> str:
    """The path of a file given as ``package://package/path``, or relative to the parameter file."""
    if name.startswith(PACKAGE):
        package, _, rest = name.removeprefix(PACKAGE).partition("/")
        return os.path.join(_share(robot, package), rest)
    if os.path.isabs(name):
        return name
    if folder is None:
        robot.refuse(
            "urdf",
            f"must be an absolute path or {PACKAGE}… in parameters, which do not tell their file (a node's parameter "
            f"robot_file does), is {name!r:.200}",
        )
    return os.path.join(folder, name)


def _share(robot: Section, package: str) -> str:
    try:
        return package_folder(package)
    except LookupError as error:
        robot.refuse("urdf", str(error))
