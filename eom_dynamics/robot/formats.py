# SPDX-License-Identifier: Apache-2.0
"""All formats of robot files: parameter files, and those of :mod:`.file_formats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .file_formats import DESCRIBED, RobotFormat, format_among
from .model import Robot
from .readers import parameter_tree

if TYPE_CHECKING:
    from .writers.written import Written


def _as_yaml(robot: Robot) -> Written:
    from .writers.parameters import robot_as_yaml  # with PyYAML

    return robot_as_yaml(robot)


_YAML = (".yaml", ".yml")

PARAMETER_FILE = RobotFormat(
    "a parameter file (.yaml)",
    _YAML,
    parameter_tree.read_parameter_file,
    parameter_tree.is_parameters,
    parameter_tree.MAX_BYTES,
    _as_yaml,
    _YAML,
)

FORMATS = (PARAMETER_FILE, *DESCRIBED)

WRITABLE = tuple(ending for each in FORMATS for ending in each.writes)
"""Endings of files that can be written."""


def format_of(source: str) -> RobotFormat | None:
    """Return the format of a text or a file, as :func:`.file_formats.format_among` does."""
    return format_among(FORMATS, source)


def written_format(name: str) -> RobotFormat | None:
    """Return the format that is written to a file of this name."""
    return next((each for each in FORMATS if each.writes and name.endswith(each.writes)), None)
