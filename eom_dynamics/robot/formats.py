# SPDX-License-Identifier: Apache-2.0
"""Formats of robot files. A new format requires a reader, a writer, and an entry in :data:`DESCRIBED`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..exceptions import RobotDescriptionError
from .description import Description
from .model import Robot
from .readers import mjcf, urdf
from .readers.files import MAX_CHARACTERS, DescriptionFile, is_xml, read_text, root_tag

if TYPE_CHECKING:
    from .writers import Written


class RobotFormat(NamedTuple):
    """Format of robot files, with title and endings for messages, and the largest file size, bytes.

    The format reads a file or a text, and writes files with the endings ``writes``. ``recognizes`` distinguishes
    formats with the same ending by the text.
    """

    title: str
    endings: tuple[str, ...]
    read: Callable[[DescriptionFile], Description]
    recognizes: Callable[[str], bool]
    largest: int
    write: Callable[[Robot], Written]
    writes: tuple[str, ...]


def _late(module: str, function: str) -> Callable[[Any], Any]:
    """Function of a module imported at the first call: few programs read YAML or write a robot."""
    return lambda argument: getattr(import_module(module, __package__), function)(argument)


_YAML, _XML = (".yaml", ".yml"), (".xml", ".mjcf")

PARAMETER_FILE = RobotFormat(
    "a parameter file (.yaml)",
    _YAML,
    _late(".readers.parameter_tree", "read_parameter_file"),
    lambda text: "\n" in text and ":" in text and not is_xml(text),
    200_000,  # a robot takes a few kilobytes; a larger file is another kind of file, and slow to parse
    _late(".writers.parameters", "robot_as_yaml"),
    _YAML,
)

MJCF = RobotFormat(
    "an MJCF model (.xml, .mjcf)",
    _XML,
    mjcf.read_mjcf_file,
    mjcf.is_mjcf,
    MAX_CHARACTERS,
    _late(".writers.mjcf", "robot_as_mjcf"),
    _XML,
)

URDF = RobotFormat(
    "a URDF (.urdf), a xacro file (.xacro)",
    (".urdf", urdf.XACRO_ENDING, ".xml"),
    urdf.read_urdf_file,
    is_xml,
    MAX_CHARACTERS,
    _late(".writers.urdf", "robot_as_urdf"),
    (".urdf",),
)

DESCRIBED = (MJCF, URDF)  # URDF last, since it recognizes all XML
"""Formats of files that a parameter file may name."""

FORMATS = (PARAMETER_FILE, *DESCRIBED)

WRITABLE = tuple(ending for kind in FORMATS for ending in kind.writes)
"""Endings of files that can be written."""


def format_of(source: str, formats: Sequence[RobotFormat] = FORMATS) -> RobotFormat | None:
    """Return the format of a text by its beginning, or of a file by its name and, if ambiguous, its text.

    Raises RobotDescriptionError if an ambiguous file cannot be read, or for SDF.
    """
    if source.endswith(".sdf") or root_tag(source) == "sdf":
        label = "robot_description" if is_xml(source) else source
        raise RobotDescriptionError(f"{label:.200}: SDF is not read; convert it to URDF or MJCF")
    if texts := [kind for kind in formats if kind.recognizes(source)]:
        return texts[0]
    named = [kind for kind in formats if source.endswith(kind.endings)]
    if len(named) > 1:
        text = read_text(Path(source), max(kind.largest for kind in named))
        named = [kind for kind in named if kind.recognizes(text)] or named[-1:]
    return named[0] if named else None


def written_format(name: str) -> RobotFormat | None:
    """Return the format for writing a file of this name."""
    return next((kind for kind in FORMATS if name.endswith(kind.writes)), None)
