# SPDX-License-Identifier: Apache-2.0
"""Files, read with care: bounded, as text, and only where they are files."""

from __future__ import annotations

import errno
from pathlib import Path

from ..exceptions import RobotDescriptionError


def read_text(path: Path, largest: int) -> str:
    """The text of a file.

    Args:
        path: the file.
        largest: number of bytes that a robot's file of its kind does not exceed.

    Raises:
        RobotDescriptionError: it cannot be read, is larger, or is not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a file")  # to open a pipe would wait for its writer
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise RobotDescriptionError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # no name of a file, such as one with a null character
        raise RobotDescriptionError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(data) > largest:
        raise RobotDescriptionError(f"{path}: larger than {largest} bytes; this is not a robot's file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RobotDescriptionError(f"{path}: not UTF-8 text (byte {error.start})") from None
