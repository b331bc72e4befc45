# SPDX-License-Identifier: Apache-2.0
"""Folders of ROS packages, with and without a ROS installation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType

KNOWN: ContextVar[Mapping[str, str]] = ContextVar("folders of packages by name", default=MappingProxyType({}))
"""Folders of packages that are found before those of ROS."""

PACKAGE = "package://"

_INDEX = Path("share", "ament_index", "resource_index", "packages")


def package_folder(name: str) -> str:
    """Share folder of a package, from the ament index (``AMENT_PREFIX_PATH``) or ``ROS_PACKAGE_PATH``.

    Raises:
        LookupError: there is no such package; the message says what to do.
    """
    if name in KNOWN.get():
        return KNOWN.get()[name]
    if name and "/" not in name:
        for prefix in _folders("AMENT_PREFIX_PATH"):
            if (prefix / _INDEX / name).is_file():
                return str(prefix / "share" / name)
        for folder in _folders("ROS_PACKAGE_PATH"):
            if (folder / name / "package.xml").is_file():
                return str(folder / name)
    raise LookupError(
        f"package {name!r:.200} not found; source the workspace that has it, or set ROS_PACKAGE_PATH to the folder "
        "above its own"
    )


def located(name: str) -> str:
    """The path of a file given as ``package://package/path``; any other name as it is.

    Raises:
        LookupError: there is no such package.
    """
    if not name.startswith(PACKAGE):
        return name
    package, _, rest = name.removeprefix(PACKAGE).partition("/")
    return os.path.join(package_folder(package), rest)


def _folders(variable: str) -> list[Path]:
    return [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
