# SPDX-License-Identifier: Apache-2.0
"""Formats of robot descriptions. A new one is a reader, perhaps a writer, and a line in :data:`DESCRIBED`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..exceptions import RobotDescriptionError
from .description import Description
from .model import Robot
from .readers import mjcf, urdf_file, xml
from .readers.files import DescriptionFile, read_text

if TYPE_CHECKING:
    from .writers.written import Written


class RobotFormat(NamedTuple):
    """A format of robot files.

    Attributes:
        title: for messages, with the endings.
        endings: of file names; of an ending that several formats have, the text tells.
        read: reads a file or a text.
        recognizes: whether a text, rather than the name of a file, is of this format.
        largest: size that is read, bytes.
        write: writes a robot to files with an ending of ``writes``; None for a format that
            is only read.
    """

    title: str
    endings: tuple[str, ...]
    read: Callable[[DescriptionFile], Description]
    recognizes: Callable[[str], bool]
    largest: int
    write: Callable[[Robot], Written] | None = None
    writes: tuple[str, ...] = ()


# Writers are imported at the first robot that is written: few programs write one.


def _as_urdf(robot: Robot) -> Written:
    from .writers.urdf import robot_as_urdf

    return robot_as_urdf(robot)


def _as_mjcf(robot: Robot) -> Written:
    from .writers.mjcf import robot_as_mjcf

    return robot_as_mjcf(robot)


MJCF = RobotFormat(
    "an MJCF model (.xml, .mjcf)",
    (".xml", ".mjcf"),
    mjcf.read_mjcf_file,
    mjcf.is_mjcf,
    xml.MAX_CHARACTERS,
    _as_mjcf,
    (".xml", ".mjcf"),
)

URDF = RobotFormat(
    "a URDF (.urdf), a xacro file (.xacro)",
    (*urdf_file.URDF_ENDINGS, ".xml"),
    urdf_file.read_urdf_file,
    xml.is_xml,
    xml.MAX_CHARACTERS,
    _as_urdf,
    (".urdf",),
)

DESCRIBED = (
    MJCF,
    URDF,  # last, since it recognizes all XML
)


def format_among(formats: Sequence[RobotFormat], source: str) -> RobotFormat | None:
    """Return the format of a text by its beginning, or of a file by its name, and its text where that leaves several.

    Raises:
        RobotDescriptionError: the text must tell, and the file cannot be read; or it is SDF.
    """
    if source.endswith(".sdf") or xml.root_tag(source) == "sdf":
        label = "robot_description" if xml.is_xml(source) else source
        raise RobotDescriptionError(f"{label:.200}: SDF is not read; convert it to URDF or MJCF")
    if texts := [each for each in formats if each.recognizes(source)]:
        return texts[0]
    named = [each for each in formats if source.endswith(each.endings)]
    if len(named) > 1:
        text = read_text(Path(source), max(each.largest for each in named))
        named = [each for each in named if each.recognizes(text)] or named[-1:]
    return named[0] if named else None
