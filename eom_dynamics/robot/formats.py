# SPDX-License-Identifier: Apache-2.0
"""Formats of robot files. A new format is a reader, perhaps a writer, and a line in :data:`FORMATS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .description import Description
from .model import Robot
from .readers import parameter_tree, urdf_file, xml
from .readers.files import DescriptionFile

if TYPE_CHECKING:
    from .writers.written import Written


class RobotFormat(NamedTuple):
    """A format of robot files.

    Attributes:
        title: for messages, with the endings.
        endings: of file names.
        read: reads a file or a text.
        recognizes: whether a text, rather than the name of a file, is of this format.
        largest: size that is read, bytes.
        write: writes a robot, to files with an ending of ``writes``; None for a format that is only read.
    """

    title: str
    endings: tuple[str, ...]
    read: Callable[[DescriptionFile], Description]
    recognizes: Callable[[str], bool]
    largest: int
    write: Callable[[Robot], Written] | None = None
    writes: tuple[str, ...] = ()


# Writers are imported at the first robot that is written: few programs write one.


def _as_yaml(robot: Robot) -> Written:
    from .writers.parameters import robot_as_yaml

    return robot_as_yaml(robot)


def _as_urdf(robot: Robot) -> Written:
    from .writers.urdf import robot_as_urdf

    return robot_as_urdf(robot)


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

FORMATS = (
    PARAMETER_FILE,
    RobotFormat(
        "a URDF (.urdf), a xacro file (.xacro)",
        urdf_file.URDF_ENDINGS,
        urdf_file.read_urdf_file,
        xml.is_xml,
        xml.MAX_CHARACTERS,
        _as_urdf,
        (".urdf",),
    ),
)

WRITABLE = tuple(ending for each in FORMATS for ending in each.writes)
"""Endings of files that can be written."""


def format_of(source: str) -> RobotFormat | None:
    """Return the format of a file by the ending of its name, or of a text by its beginning."""
    texts = [each for each in FORMATS if each.recognizes(source)]
    return next((each for each in FORMATS if each in texts or (not texts and source.endswith(each.endings))), None)
