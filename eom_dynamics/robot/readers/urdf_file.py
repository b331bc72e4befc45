# SPDX-License-Identifier: Apache-2.0
"""URDF and xacro files, and look-up of the ``urdf`` entry of a robot's file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from ...exceptions import RobotDescriptionError
from ..description import Description
from .files import DescriptionFile, Expand
from .packages import PACKAGE, located
from .section import Section
from .urdf import description_from_urdf
from .xml import MAX_CHARACTERS

XACRO_ENDING = ".xacro"

URDF_ENDINGS = (".urdf", XACRO_ENDING)
"""Endings of the names of URDF and xacro files."""


def read_urdf_file(file: DescriptionFile) -> Description:
    """Read the text of a URDF, a ``.urdf`` file, or a ``.xacro`` file."""
    if file.inertia_reference is not None:
        refuse_reference(file)
    if file.path is None or not file.path.name.endswith(XACRO_ENDING):
        return description_from_urdf(file.text(MAX_CHARACTERS).removeprefix("\ufeff"), file.label)
    # Lines are those of the expanded file.
    text = file.expand(file.path, file.xacro_arguments)
    return description_from_urdf(text.removeprefix("\ufeff"), f"{file.label}: as the command xacro expands it")


def refuse_reference(file: DescriptionFile) -> NoReturn:
    """Refuse ``inertia_reference`` for a URDF."""
    raise RobotDescriptionError(
        f"{file.label}: inertia_reference is for parameter files; inertias of a URDF are about the centre of mass"
    )


def description_of_entry(robot: Section, folder: Path | None, expand: Expand) -> Description:
    """Read the file that the entry ``urdf`` of a robot's section names, with its ``xacro_arguments``.

    Args:
        folder: that of the parameter file, which relative paths start from; None if the section is from no file.
    """
    path = _located(robot, robot.text("urdf"), folder)
    is_xacro = path.endswith(XACRO_ENDING)
    if not path.endswith(URDF_ENDINGS):
        robot.refuse("urdf", f"must be a .urdf or .xacro file, is {path!r:.200}")
    if not os.path.exists(path):
        robot.refuse("urdf", f"there is no file {path!r:.200}; relative paths start from the parameter file's folder")
    arguments: dict[str, str] = {}
    if "xacro_arguments" in robot:
        if not is_xacro:
            robot.refuse("xacro_arguments", "are for .xacro files; remove them")
        with robot.section("xacro_arguments") as section:
            arguments = {name: section.word(name) for name in section}
    return read_urdf_file(DescriptionFile(path, Path(path), None, None, arguments, expand))


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
            f"must be an absolute path or {PACKAGE}… in parameters, which do not tell their file (a node's parameter "
            f"robot_file does), is {name!r:.200}",
        )
    return os.path.join(folder, name)
