# SPDX-License-Identifier: Apache-2.0
"""Load robots by name, by file, or from the text of a file."""

from __future__ import annotations

import os
import pkgutil
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module, resources
from pathlib import Path
from types import MappingProxyType

from numpy.typing import ArrayLike

from ...arguments import real_array
from ...exceptions import MissingLibraryError, RobotDescriptionError, StateError, require
from ...spelling import close_match, shown
from ..assembly import assemble
from ..description import Description
from ..formats import FORMATS, PARAMETER_FILE, format_of
from ..model import Robot
from .files import KNOWN, MAX_CHARACTERS, DescriptionFile, Expand, located, parse, read_text
from .urdf import XACRO_ENDING, expand_xacro

_NAME = re.compile(r"[a-z0-9][a-z0-9_]*_description")


def is_description_name(source: str) -> bool:
    """True if a source has the form of these names, such as ``panda_description`` or ``panda_mj_description``."""
    return _NAME.fullmatch(source) is not None


def find_by_name(name: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Find a robot of robot_descriptions: path, values of xacro arguments, and folders of packages by name.

    Its repository is cloned the first time, into a cache of robot_descriptions. RobotDescriptionError if
    robot_descriptions is missing, has no such name, or cannot clone the repository.
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
        cache = os.path.expanduser(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions"))
        raise RobotDescriptionError(
            f"{name}: robot_descriptions cannot fetch it: {reason:.300}; on a computer with network, run "
            f"python -m robot_descriptions pull {name}, and copy {cache} from there; or give the path of a file"
        ) from None
    for kind in ("URDF_PATH", "MJCF_PATH", "XACRO_PATH"):
        if path := getattr(module, kind, None):
            packages = dict(getattr(module, "XACRO_PACKAGE_PATHS", None) or {})
            folder = getattr(module, "PACKAGE_PATH", None)
            manifest = None if folder is None else Path(folder, "package.xml")
            if manifest is not None and manifest.is_file():
                named = parse(read_text(manifest, MAX_CHARACTERS), str(manifest)).child("name")
                packages = ({} if named is None else {named.text.strip(): folder}) | packages
            arguments = (kind == "XACRO_PATH" and getattr(module, "XACRO_ARGS", None)) or {}
            return str(path), {key: str(value) for key, value in arguments.items()}, packages
    raise RobotDescriptionError(f"{name}: robot_descriptions has neither a URDF nor an MJCF of it")


PACKAGED = resources.files("eom_dynamics") / "config"
"""Folder of the robots that come with the package."""


def packaged_robots() -> list[str]:
    """Names of the robots that come with the package, for :func:`load_robot`."""
    return sorted(entry.name[: -len(".yaml")] for entry in PACKAGED.iterdir() if entry.name.endswith(".yaml"))


def load_robot(
    source: str | os.PathLike[str],
    *,
    inertia_reference: str | None = None,
    root: str | None = None,
    tip: str | Sequence[str] = (),
    tools: str | Sequence[str] = (),
    branches: str | None = None,
    gravity: ArrayLike | None = None,
    unphysical: str | None = None,
    xacro_arguments: Mapping[str, str] | None = None,
    joint_limits: str | os.PathLike[str] | None = None,
) -> Robot:
    """Load a robot.

    A xacro file is a program that runs with your rights: load only xacro files that you trust, and none from the
    network.

    Args:
        source: the name of a packaged robot (see :func:`packaged_robots`); the path of a ROS 2 parameter file
            (``.yaml``, as for ``--params-file``), of a ``.urdf`` or a ``.xacro`` file, of an MJCF model (``.xml`` or
            ``.mjcf``, extra ``mjcf``), also as ``package://package/path`` of a ROS package; the text of one of these,
            which begins with ``<`` or, of a parameter file, has several lines; or a name of the package
            robot_descriptions (extra ``descriptions``), such as ``panda_description``: its repository is cloned at the
            first use.
        inertia_reference: ``com`` or ``link``, the point that the inertias of a parameter file are about, instead of
            the one it names. Not for other formats, with inertias about the center of mass.
        root: name of the link that becomes the base; by default the root of the file. Everything not below it
            is locked at zero, and gravity is rotated into its frame.
        tip: name of the last link of the robot, or several names; by default, everything below the root belongs to
            the robot.
        tools: names of the links or frames for external wrenches; by default the tips, else the tools of the
            parameter file, else the last body.
        branches: how to treat joints that lead to no tip: ``lump`` locks them at zero, so that their inertia remains;
            ``drop`` leaves them out with everything below them. By default as the file says, else ``lump``.
        gravity: gravitational acceleration (3,) in the frame of the base, m/s²; by default as in the file, which for
            a URDF is [0, 0, -9.80665].
        unphysical: how to treat a body of negative mass, physically inconsistent inertia, a motion without inertia, or
            a mimic joint that no joint leads: ``refuse`` it, the default for parameter files; or ``warn``
            (:class:`RobotDescriptionWarning`) and compute with it. By default, other files are refused for a body of
            negative mass only.
        xacro_arguments: values of the arguments of a xacro file; not for other sources.
        joint_limits: path of a file ``joint_limits.yaml`` of MoveIt, also as ``package://package/path``. Its limits
            override and complete the limits of the source.

    Raises:
        RobotDescriptionError: the source is unknown, cannot be used as described, or has no such option; the message
            names the file, the element and the reason.
        TypeError: the source is neither a text nor a path.
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be the name, path or text of a robot, is {shown(source)}")
    description = read_description(os.fspath(source), inertia_reference, xacro_arguments or {})
    if joint_limits is not None:
        from .joint_limits import with_joint_limits  # with PyYAML, which a URDF alone does not need

        description = with_joint_limits(description, _found(os.fspath(joint_limits)))
    try:
        direction = None if gravity is None else real_array(gravity, "gravity", (3,)).copy()
    except StateError as error:
        raise RobotDescriptionError(str(error)) from None
    return assemble(
        description, root=root, tip=tip, tools=tools, branches=branches, gravity=direction, unphysical=unphysical
    )


def _found(source: str) -> str:
    """The path of a file given as ``package://package/path``; any other name unchanged."""
    try:
        return located(source)
    except LookupError as error:
        raise RobotDescriptionError(f"{source:.200}: {error}") from None


def read_description(
    source: str,
    inertia_reference: str | None = None,
    xacro_arguments: Mapping[str, str] = MappingProxyType({}),
    expand: Expand = expand_xacro,
    *,
    by_name: bool = True,
) -> Description:
    """Read a source as for :func:`load_robot`; ``expand`` expands a xacro file.

    Names of robot_descriptions, which import a module and may use the network, are sources only ``by_name``.
    """
    if by_name and is_description_name(source) and not os.path.exists(source):
        path_of_name, arguments, packages = find_by_name(source)
        token = KNOWN.set({**KNOWN.get(), **packages})
        try:
            return read_description(path_of_name, inertia_reference, {**arguments, **xacro_arguments}, expand)
        finally:
            KNOWN.reset(token)
    source = _found(source)
    packaged = source in packaged_robots()
    robot_format = PARAMETER_FILE if packaged else format_of(source)
    is_text = robot_format is not None and not packaged and robot_format.recognizes(source)
    label = "robot_description" if is_text else f"{source}.yaml" if packaged else f"{source:.200}"
    if xacro_arguments and not source.endswith(XACRO_ENDING):
        raise RobotDescriptionError(
            f"{label}: xacro_arguments are for .xacro files; a parameter file names them in robot.xacro_arguments"
        )
    if robot_format is None and os.path.isdir(source):
        raise RobotDescriptionError(f"{label}: is a folder; give the path of a robot file in it")
    if robot_format is None:
        close = close_match(source, packaged_robots())
        raise RobotDescriptionError(
            f"{label}: neither a packaged robot ({', '.join(packaged_robots())}) nor "
            f"{', '.join(known.title for known in FORMATS)}, the text of one, or a name of robot_descriptions"
            + (f"; did you mean {close}?" if close else "")
        )
    path = None if packaged or is_text else Path(source)
    content = (PACKAGED / label).read_text(encoding="utf-8") if packaged else source if is_text else None
    return robot_format.read(DescriptionFile(label, path, content, inertia_reference, xacro_arguments, expand))


def urdf_of(source: str) -> tuple[str, Path] | None:
    """Text of the URDF that a file is or names, expanded if it is a xacro file, and its path; None for other robots."""
    expanded: list[tuple[str, Path]] = []

    def expand(path: Path, arguments: Mapping[str, str]) -> str:
        text = expand_xacro(path, arguments)
        expanded.append((text, path))
        return text

    description = read_description(source, expand=expand)
    path = Path(source if source.endswith(".urdf") else description.source)
    if path.suffix == ".urdf":
        expanded.append((read_text(path, MAX_CHARACTERS), path))
    return (expanded[0][0].removeprefix("\ufeff"), expanded[0][1]) if expanded else None
