# SPDX-License-Identifier: Apache-2.0
"""Formats of robot files. A new format is a reader, perhaps a writer, and a line in :data:`FORMATS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .description import Description
from .model import Robot
from .readers import parameter_tree, urdf_file, xml
from .readers.files import DescriptionFile
from .writers.parameters import robot_as_yaml
from .writers.urdf import robot_as_urdf
from .writers.written import Written


@dataclass(frozen=True)
class RobotFormat:
    """A format of robot files.

    Attributes:
        title: for messages, with the endings.
        endings: of file names.
        read: reads a file or a text.
        recognizes: whether a text, rather than the name of a file, is of this format.
        write: writes a robot, to files with the ending ``writes``.
        largest: size that is read, bytes.
    """

    title: str
    endings: tuple[str, ...]
    read: Callable[[DescriptionFile], Description]
    recognizes: Callable[[str], bool]
    write: Callable[[Robot], Written]
    writes: tuple[str, ...]
    largest: int


_YAML = (".yaml", ".yml")

PARAMETER_FILE = RobotFormat(
    "a parameter file (.yaml)",
    _YAML,
    parameter_tree.read_parameter_file,
    parameter_tree.is_parameters,
    robot_as_yaml,
    _YAML,
    parameter_tree.MAX_BYTES,
)

FORMATS = (
    PARAMETER_FILE,
    RobotFormat(
        "a URDF (.urdf), a xacro file (.xacro)",
        urdf_file.URDF_ENDINGS,
        urdf_file.read_urdf_file,
        xml.is_xml,
        robot_as_urdf,
        (".urdf",),
        xml.MAX_CHARACTERS,
    ),
)

WRITABLE = tuple(ending for each in FORMATS for ending in each.writes)
"""Endings of files that can be written."""


def format_of(name: str) -> RobotFormat | None:
    """Return the format of a file by the ending of its name, or of a text by its beginning."""
    texts = [each for each in FORMATS if each.recognizes(name)]
    return next((each for each in FORMATS if each in texts or (not texts and name.endswith(each.endings))), None)
