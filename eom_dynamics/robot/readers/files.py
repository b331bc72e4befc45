# SPDX-License-Identifier: Apache-2.0
"""Robot files: input of the readers, text of bounded size, and folders of ROS packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ...exceptions import RobotDescriptionError

KNOWN: ContextVar[Mapping[str, str]] = ContextVar("folders of packages by name", default=MappingProxyType({}))
"""Folders of packages that are found before those of ROS."""

PACKAGE = "package://"


def package_folder(name: str) -> str:
    """Share folder of a package by ``AMENT_PREFIX_PATH``, else ``ROS_PACKAGE_PATH``; raises LookupError without it."""
    if name in KNOWN.get():
        return KNOWN.get()[name]
    if name and "/" not in name:
        for variable, mark, folder in (
            ("AMENT_PREFIX_PATH", f"share/ament_index/resource_index/packages/{name}", f"share/{name}"),
            ("ROS_PACKAGE_PATH", f"{name}/package.xml", name),
        ):
            for start in filter(None, os.environ.get(variable, "").split(os.pathsep)):
                if Path(start, mark).is_file():
                    return str(Path(start, folder))
    raise LookupError(
        f"package {name!r:.200} not found; source the workspace that has it, or set ROS_PACKAGE_PATH to the folder "
        "above its own"
    )


def located(name: str) -> str:
    """The path of a file given as ``package://package/path``, or LookupError; any other name unchanged."""
    if not name.startswith(PACKAGE):
        return name
    package, _, rest = name.removeprefix(PACKAGE).partition("/")
    return os.path.join(package_folder(package), rest)


Expand = Callable[[Path, Mapping[str, str]], str]
"""Returns the URDF of a xacro file and its arguments, as :func:`.xacro.expand_xacro` does."""


class DescriptionFile(NamedTuple):
    """A robot description to read: content, or a path if it is None, with options of :func:`eom_dynamics.load_robot`.

    Every message begins with ``label``; ``expand`` expands xacro files.
    """

    label: str
    path: Path | None
    content: str | None
    inertia_reference: str | None
    xacro_arguments: Mapping[str, str]
    expand: Expand

    def text(self, largest: int) -> str:
        """Return the description."""
        if self.content is None:
            assert self.path is not None
            return read_text(self.path, largest)
        if len(self.content) > largest:
            raise RobotDescriptionError(f"{self.label}: must be at most {largest} characters, has {len(self.content)}")
        return self.content

    def refuse_inertia_reference(self) -> None:
        """Refuse the option ``inertia_reference`` where no parameter file gives the inertias."""
        if self.inertia_reference is not None:
            raise RobotDescriptionError(
                f"{self.label}: inertia_reference is for parameter files; other inertias are about the centre of mass"
            )


def refuse_special_file(path: Path) -> None:
    """Refuse paths that exist but are not regular files, such as folders and pipes."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise RobotDescriptionError(f"{path}: cannot be read: not a file")


def read_text(path: Path, largest: int) -> str:
    """Read a file as UTF-8 text; RobotDescriptionError if it cannot be read, is larger, or is not UTF-8 text."""
    refuse_special_file(path)
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise RobotDescriptionError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # an invalid file name, such as one with a null character
        raise RobotDescriptionError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(data) > largest:
        raise RobotDescriptionError(f"{path}: must be at most {largest} bytes; is this a robot description?")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RobotDescriptionError(f"{path}: must be UTF-8 text, is not at byte {error.start}") from None
