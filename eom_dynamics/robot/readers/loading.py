# SPDX-License-Identifier: Apache-2.0
"""Load robots by name, by file, or from the text of a URDF or parameter file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...spelling import close_match
from ..assembly import assemble
from ..description import Description
from ..model import Robot
from .files import read_text
from .parameter_file import robot_section
from .parameters import description_from_parameters, names_urdf
from .urdf import description_from_urdf
from .urdf_file import URDF_ENDINGS, description_from_file
from .xacro import Expand, expand_xacro

_PACKAGED = resources.files("eom_dynamics") / "config"

# A robot takes a few kilobytes; a larger file is some other one, and takes long to parse.
MAX_BYTES = 200_000


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
    branches: str | None = None,
    gravity: ArrayLike | None = None,
    unphysical: str | None = None,
    xacro_arguments: Mapping[str, str] | None = None,
) -> Robot:
    """Load a robot.

    A xacro file is a program that runs with your rights: load only xacro files that you trust, and none from the
    network.

    Args:
        source: the name of a packaged robot (see :func:`packaged_robots`); the path of a ROS 2 parameter file
            (``.yaml``, as for ``--params-file``), of a ``.urdf`` or a ``.xacro`` file; the text of a URDF, which
            begins with ``<``; or the text of a parameter file, which has several lines.
        inertia_reference: ``com`` or ``link``, the point that the inertias of a parameter file are about, instead of
            the one it names. Not for URDFs, whose inertias are about the centre of mass.
        root: name of the link that becomes the base; by default that of the file, or its root. Everything not below it
            is locked at zero, and gravity is rotated into its frame.
        tip: name of the link where the robot ends, or several names; by default everything below the root belongs to
            the robot.
        tools: names of the links or frames at which external wrenches act; by default the tips, else the tools of the
            parameter file, else the last body.
        branches: how to treat joints that lead to no tip: ``lump`` locks them at zero, so that their inertia remains;
            ``drop`` leaves them out with everything below them. By default that of the file, else ``lump``.
        gravity: gravitational acceleration (3,) in the frame of the base, m/s²; by default that of the file, which for
            a URDF is [0, 0, -9.80665].
        unphysical: how to treat a body with an inertia that none can have, a motion without inertia, or a mimic
            joint that no joint leads: ``refuse`` it, the default for parameter files; or ``warn``
            (:class:`RobotDescriptionWarning`) and compute with it, the default for URDFs.
        xacro_arguments: values of the arguments of a xacro file; not for other sources.

    Raises:
        RobotDescriptionError: the source is unknown, cannot be used as described, or has no such option; the message
            names the file, the element and the reason.
    """
    description = read_description(os.fspath(source), inertia_reference, xacro_arguments or {})
    return assemble(
        description,
        root=root,
        tip=tip,
        tools=tools,
        branches=branches,
        gravity=_gravity(gravity),
        unphysical=unphysical,
    )


def read_description(
    name: str,
    inertia_reference: str | None = None,
    xacro_arguments: Mapping[str, str] = MappingProxyType({}),
    expand: Expand = expand_xacro,
) -> Description:
    """Read what :func:`load_robot` loads; ``expand`` expands a xacro file.

    Raises:
        RobotDescriptionError: as of :func:`load_robot`.
    """
    label = "robot_description" if _is_xml(name) or _is_yaml_text(name) else f"{name:.200}"
    if xacro_arguments and not name.endswith(".xacro"):
        raise RobotDescriptionError(
            f"{label}: xacro_arguments are for .xacro files; a parameter file names them in robot.xacro_arguments"
        )
    if name in packaged_robots():
        text = (_PACKAGED / f"{name}.yaml").read_text(encoding="utf-8")
        return _from_parameters(text, f"{name}.yaml", inertia_reference)
    if _is_yaml_text(name):
        if len(name) > MAX_BYTES:
            raise RobotDescriptionError(f"{label}: must be at most {MAX_BYTES} characters, has {len(name)}")
        return _from_parameters(name, label, inertia_reference)
    if name.endswith((".yaml", ".yml")):
        return _from_parameters(read_text(Path(name), MAX_BYTES), name, inertia_reference, Path(name).parent, expand)
    if not _is_xml(name) and not name.endswith(URDF_ENDINGS):
        close = close_match(name, packaged_robots())
        raise RobotDescriptionError(
            f"{label}: neither a packaged robot ({', '.join(packaged_robots())}) nor a parameter file (.yaml), a URDF "
            "(.urdf), a xacro file (.xacro), or the text of a URDF or parameter file"
            + (f"; did you mean {close}?" if close else "")
        )
    if inertia_reference is not None:
        _refuse_reference(label)
    if _is_xml(name):
        return description_from_urdf(name.removeprefix("\ufeff"), label)
    return description_from_file(name, xacro_arguments, expand)


def _from_parameters(
    text: str, label: str, inertia_reference: str | None, folder: Path | None = None, expand: Expand = expand_xacro
) -> Description:
    _, parameters = robot_section(text, label)
    if inertia_reference is not None:
        if names_urdf(parameters):
            _refuse_reference(label)
        parameters = {**parameters, "inertia_reference": inertia_reference}
    return description_from_parameters(parameters, label, folder=folder, expand=expand)


def _refuse_reference(label: str) -> NoReturn:
    raise RobotDescriptionError(
        f"{label}: inertia_reference is for parameter files; inertias of a URDF are about the centre of mass"
    )


def _is_xml(text: str) -> bool:
    return text[:1000].lstrip("\ufeff \t\r\n").startswith("<")


def _is_yaml_text(text: str) -> bool:
    return "\n" in text and ":" in text and not _is_xml(text)


def _gravity(value: ArrayLike | None) -> Array | None:
    if value is None:
        return None
    try:
        gravity = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise RobotDescriptionError(f"gravity must be three numbers, is {value!r:.60}") from None
    if gravity.shape != (3,) or not np.all(np.isfinite(gravity)):
        raise RobotDescriptionError(f"gravity must be three finite numbers, is {value!r:.60}")
    return gravity
