# SPDX-License-Identifier: Apache-2.0
"""Look-up of the file that the entry ``urdf`` of a parameter file names: a URDF, or a file of another format."""

from __future__ import annotations

import os
from pathlib import Path

from ..description import Description
from ..file_formats import DESCRIBED, format_among
from .files import DescriptionFile, Expand
from .packages import PACKAGE, located
from .section import Section
from .urdf_file import XACRO_ENDING

_ENDINGS = tuple(dict.fromkeys(ending for each in DESCRIBED for ending in each.endings))


def description_of_entry(robot: Section, folder: Path | None, expand: Expand) -> Description:
    """Read the file that the entry ``urdf`` of a robot's section names, with its ``xacro_arguments``.

    Args:
        folder: that of the parameter file, which relative paths start from; None if the section is from no file.
    """
    path = _located(robot, robot.text("urdf"), folder)
    is_xacro = path.endswith(XACRO_ENDING)
    if not path.endswith(_ENDINGS):
        robot.refuse("urdf", f"must be a file of {', '.join(_ENDINGS)}, is {path!r:.200}")
    if not os.path.exists(path):
        robot.refuse("urdf", f"there is no file {path!r:.200}; relative paths start from the parameter file's folder")
    found = format_among(DESCRIBED, path)
    assert found is not None  # by its ending
    arguments: dict[str, str] = {}
    if "xacro_arguments" in robot:
        if not is_xacro:
            robot.refuse("xacro_arguments", "are for .xacro files; remove them")
        with robot.section("xacro_arguments") as section:
            arguments = {name: section.word(name) for name in section}
    return found.read(DescriptionFile(path, Path(path), None, None, arguments, expand))


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
