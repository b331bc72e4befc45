# SPDX-License-Identifier: Apache-2.0
"""A folder of files, all of them or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ...exceptions import EomDynamicsError


class FolderError(EomDynamicsError):
    """A folder is not to be written to."""


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that holds something, or is none.

    Args:
        folder: where files are to go; it need not exist.
        force: accept a folder that holds something.

    Raises:
        FolderError: it is refused.
        OSError: it cannot be read.
    """
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise FolderError(f"{folder}: is not a folder")
    if not force and any(folder.iterdir()):
        raise FolderError(f"{folder}: is not empty; name another folder, or use --force to write over what is there")


def write_folder(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Write files to a folder that :func:`check_folder` accepts; what else is in it stays.

    All are written aside before the first of them comes to its place.

    Args:
        folder: is made if it is not there.
        files: contents by path within the folder.
        force: write over what is there.

    Raises:
        FolderError: the folder is refused, or cannot be written; what was in it is still there.
    """
    check_folder(folder, force=force)
    try:
        _write(folder, files)
    except OSError as error:
        # The names of files that were written aside mean nothing to anybody.
        raise FolderError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    is_new = not folder.exists()
    home = folder.parent if is_new else folder
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".codegen-", dir=home) as scratch:
        aside = Path(scratch) / "files"
        for name, content in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if is_new:
            aside.rename(folder)
            return
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(aside / name, folder / name)
