# SPDX-License-Identifier: Apache-2.0
"""URDF and xacro files."""

from __future__ import annotations

from ..description import Description
from .files import DescriptionFile
from .urdf import description_from_urdf
from .xml import MAX_CHARACTERS

XACRO_ENDING = ".xacro"

URDF_ENDINGS = (".urdf", XACRO_ENDING)
"""Endings of the names of URDF and xacro files."""


def read_urdf_file(file: DescriptionFile) -> Description:
    """Read the text of a URDF, a ``.urdf`` file, or a ``.xacro`` file."""
    file.refuse_inertia_reference()
    if file.path is None or not file.path.name.endswith(XACRO_ENDING):
        return description_from_urdf(file.text(MAX_CHARACTERS).removeprefix("\ufeff"), file.label)
    # Lines are those of the expanded file.
    text = file.expand(file.path, file.xacro_arguments)
    return description_from_urdf(text.removeprefix("\ufeff"), f"{file.label}: as the command xacro expands it")
