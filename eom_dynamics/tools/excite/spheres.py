# SPDX-License-Identifier: Apache-2.0
"""Spheres of a robot from a file: collision spheres of a URDF, or spheres by frame in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ...exceptions import RobotDescriptionError
from ...robot.formats import PARAMETER_FILE, format_of
from ...robot.readers.files import read_text
from ...robot.readers.xml import MAX_CHARACTERS, parse


def read_spheres(path: Path) -> dict[str, Any]:
    """Read spheres, rows x, y, z, radius in m by name of frame.

    Args:
        path: a .urdf file, whose ``collision`` elements with a ``sphere`` are read; or a YAML file of lists
            ``link: [[x, y, z, radius], …]``.
    """
    text = read_text(path, MAX_CHARACTERS)
    found = _of_yaml(text, path) if format_of(str(path)) in (PARAMETER_FILE, None) else _of_urdf(text, str(path))
    if not found:
        raise RobotDescriptionError(f"{path}: has no collision spheres; other shapes are not read, see --spheres")
    return found


def _of_urdf(text: str, source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for link in parse(text, source).children:
        for collision in link.children if link.tag == "link" else ():
            geometry = collision.child("geometry") if collision.tag == "collision" else None
            sphere = geometry.child("sphere") if geometry is not None else None
            if sphere is not None:
                origin, zero = collision.child("origin"), (0.0, 0.0, 0.0)
                center = zero if origin is None else origin.vector("xyz", zero)
                found.setdefault(link.attributes.get("name", ""), []).append([*center, sphere.number("radius")])
    return found


def _of_yaml(text: str, path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise RobotDescriptionError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise RobotDescriptionError(f"{path}: must hold lists of spheres by name of a link")
    return {str(name): rows for name, rows in document.items()}
