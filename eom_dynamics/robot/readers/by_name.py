# SPDX-License-Identifier: Apache-2.0
"""Robots by the names of the package robot_descriptions, which keeps copies of public repositories."""

from __future__ import annotations

import os
import pkgutil
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ...exceptions import RobotDescriptionError
from ...extras import MissingLibraryError, require
from ...spelling import close_match
from .files import read_text
from .xml import MAX_CHARACTERS, parse

_NAME = re.compile(r"[a-z0-9][a-z0-9_]*_description")


class NamedRobot(NamedTuple):
    """A robot of robot_descriptions: its file, values of xacro arguments, and folders of packages by name."""

    path: str
    xacro_arguments: Mapping[str, str]
    packages: Mapping[str, str]


def is_description_name(source: str) -> bool:
    """Whether a source has the form of these names, such as ``panda_description`` or ``panda_mj_description``."""
    return _NAME.fullmatch(source) is not None


def find_by_name(name: str) -> NamedRobot:
    """Find a robot by its name; its repository is cloned the first time, into a cache of robot_descriptions.

    Raises:
        RobotDescriptionError: robot_descriptions is missing, has no such name, or cannot clone the repository.
    """
    try:
        require("descriptions")
    except MissingLibraryError as error:
        raise RobotDescriptionError(f"{name}: {error}; or give the path of a file") from None
    import robot_descriptions

    known = [module.name for module in pkgutil.iter_modules(robot_descriptions.__path__)]
    if name not in known:
        close = close_match(name, [other for other in known if is_description_name(other)])
        guess = "" if close is None else f"; did you mean {close}?"
        raise RobotDescriptionError(f"{name}: robot_descriptions has no robot of this name{guess}")
    try:
        with redirect_stdout(sys.stderr):  # it tells its progress
            module = import_module(f"robot_descriptions.{name}")
    except (Exception, SystemExit) as error:  # of git, the network, the file system, or a loader that gives up
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RobotDescriptionError(
            f"{name}: robot_descriptions cannot fetch it: {reason:.300}; where there is a network, run "
            f"python -m robot_descriptions pull {name}, and copy {_cache()} from there; or give the path of a file"
        ) from None
    for kind in ("URDF_PATH", "MJCF_PATH", "XACRO_PATH"):
        if path := getattr(module, kind, None):
            folder = getattr(module, "PACKAGE_PATH", None)
            others = getattr(module, "XACRO_PACKAGE_PATHS", None) or {}
            packages = {**({} if folder is None else _package(folder)), **others}
            arguments = (kind == "XACRO_PATH" and getattr(module, "XACRO_ARGS", None)) or {}
            return NamedRobot(str(path), {key: str(value) for key, value in arguments.items()}, packages)
    raise RobotDescriptionError(f"{name}: robot_descriptions has neither a URDF nor an MJCF of it")


def _cache() -> str:
    return os.path.expanduser(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions"))


def _package(folder: str) -> dict[str, str]:
    """The package of a folder, by the name in its package.xml, if it has one."""
    path = Path(folder) / "package.xml"
    if not path.is_file():
        return {}
    name = parse(read_text(path, MAX_CHARACTERS), str(path)).child("name")
    return {} if name is None else {name.text.strip(): folder}
