# SPDX-License-Identifier: Apache-2.0
"""Robots by name, by file, or by the text of their description."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import RobotDescriptionError
from .assembly import assemble
from .description import Description
from .files import read_text
from .model import Robot
from .parameter_file import robot_section
from .parameters import description_from_parameters
from .urdf import description_from_urdf
from .xacro import expanded
from .xml import MAX_CHARACTERS

_PACKAGED = resources.files(__package__.rpartition(".")[0]) / "config"

# A robot takes a few kilobytes; more than this is some other file, and takes long to parse.
_MAX_BYTES = 200_000


def packaged_robots() -> list[str]:
    """Names of the robots that come with the package, for :func:`load_robot`."""
    return sorted(entry.name[: -len(".yaml")] for entry in _PACKAGED.iterdir() if entry.name.endswith(".yaml"))


def load_robot(
    source: str | os.PathLike[str],
    *,
    inertia_reference: str | None = None,
    root: str | None = None,
    tip: str | Sequence[str] = (),
    tools: str | Sequence[str] = (),
    branches: str = "lump",
    gravity: ArrayLike | None = None,
    unphysical: str = "refuse",
    xacro_arguments: Mapping[str, str] | None = None,
) -> Robot:
    """Load a robot.

    Args:
        source: the name of a packaged robot (see :func:`packaged_robots`); the path of a ROS 2 parameter file
            (``.yaml``, the same that ``--params-file`` takes), of a ``.urdf`` or a ``.xacro`` file; or a URDF as
            text, which begins with ``<``.
        inertia_reference: ``com`` or ``link``, instead of what a parameter file says: the point that its inertias
            refer to. Those of a URDF always refer to the centre of mass.
        root: name of the link that is to be the base, instead of the description's own. What does not hang on it
            stands still at zero, and gravity is turned into its frame.
        tip: name of the link where the robot ends, or names of several; by default it is everything below the root.
        tools: names of the links or frames at which external wrenches act: by default the tips, else the tools of
            the parameter file, else the last body.
        branches: what becomes of joints that lead to no tip: ``lump`` freezes them at zero, so that their
            inertia stays; ``drop`` leaves them out with all that hangs on them.
        gravity: gravitational acceleration (3,) in the frame of the base, m/s², instead of the file's, which for a
            URDF is [0, 0, -9.80665].
        unphysical: what becomes of a URDF with inertias that no body can have, or with a motion that moves no mass:
            ``refuse``, or ``warn`` (:class:`RobotDescriptionWarning`) and compute with it. Files in use have both.
        xacro_arguments: values of the arguments of a xacro file.

    Raises:
        RobotDescriptionError: there is no such robot, or it cannot be used as described; the message names the
            file, the element and the reason.
    """
    description = _description(os.fspath(source), inertia_reference, xacro_arguments)
    return assemble(
        description,
        root=root,
        tip=tip,
        tools=tools,
        branches=branches,
        gravity=_gravity(gravity),
        unphysical=unphysical,
    )


def _description(name: str, inertia_reference: str | None, xacro_arguments: Mapping[str, str] | None) -> Description:
    if name in packaged_robots():
        text = (_PACKAGED / f"{name}.yaml").read_text(encoding="utf-8")
        return _from_parameters(text, f"{name}.yaml", inertia_reference)
    if name.endswith((".yaml", ".yml")):
        return _from_parameters(read_text(Path(name), _MAX_BYTES), name, inertia_reference)
    if _is_xml(name):
        text, label = name, "robot_description"
    elif name.endswith(".urdf"):
        text, label = read_text(Path(name), MAX_CHARACTERS), name
    elif name.endswith(".xacro"):
        text, label = expanded(Path(name), xacro_arguments or {}), name
    else:
        raise RobotDescriptionError(
            f"{name:.200}: neither a packaged robot ({', '.join(packaged_robots())}) nor a parameter file (.yaml), "
            "a URDF (.urdf) or a xacro file (.xacro), nor the text of a URDF"
        )
    if inertia_reference is not None:
        raise RobotDescriptionError(f"{label}: inertia_reference is for parameter files; a URDF always says com")
    return description_from_urdf(text.removeprefix("\ufeff"), label)


def _from_parameters(text: str, label: str, inertia_reference: str | None) -> Description:
    parameters = robot_section(text, label)
    if inertia_reference is not None:
        parameters = {**parameters, "inertia_reference": inertia_reference}
    return description_from_parameters(parameters, label)


def _is_xml(text: str) -> bool:
    return text[:1000].lstrip("\ufeff \t\r\n").startswith("<")


def _gravity(value: ArrayLike | None) -> NDArray[np.float64] | None:
    if value is None:
        return None
    try:
        gravity = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise RobotDescriptionError(f"gravity must be three numbers, is {value!r:.60}") from None
    if gravity.shape != (3,) or not np.all(np.isfinite(gravity)):
        raise RobotDescriptionError(f"gravity must be three finite numbers, is {value!r:.60}")
    return gravity
