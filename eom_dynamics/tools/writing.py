# SPDX-License-Identifier: Apache-2.0
"""Atomic writing of files: into a temporary folder next to the target, then moved there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..exceptions import EomDynamicsError

TEMPORARY = ".eom_dynamics-"
"""Prefix of the names of temporary folders."""


class FolderError(EomDynamicsError):
    """An output cannot or must not be written."""


def check_folder(folder: Path, *, force: bool) -> None:
    """Raise FolderError unless ``folder`` is, or can become, a folder to write to; with ``force`` it may hold files."""
    place = folder
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        reason = "is not a folder" if place == folder else f"cannot be written: {place} is not a folder"
        raise FolderError(f"{folder}: {reason}")
    if not os.access(place, os.W_OK | os.X_OK):
        raise FolderError(f"{folder}: cannot be written: no permission to write to {place}")
    if place == folder and not force and any(folder.iterdir()):
        raise FolderError(f"{folder}: is not empty; name another folder, or use --force to overwrite its files")


@contextmanager
def whole_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder; its files move to ``folder`` when the context ends without an error.

    A new folder appears with all its files in one step. In an existing folder, ``force`` overwrites files of the same
    names and keeps others. Raises FolderError if :func:`check_folder` refuses the folder, or it cannot be written.
    """
    check_folder(folder, force=force)
    is_new = not folder.exists()
    with _temporary(folder, folder.parent if is_new else folder) as temporary:
        yield temporary
        if is_new:
            os.replace(temporary, folder)
            return
        moves = {path: folder / path.relative_to(temporary) for path in temporary.rglob("*") if path.is_file()}
        for target in moves.values():  # steps that can fail come first
            target.parent.mkdir(parents=True, exist_ok=True)
        for path, target in moves.items():
            os.replace(path, target)


def check_file(path: Path, *, force: bool) -> None:
    """Raise FolderError if something is at ``path``, unless it is a file and ``force`` allows to overwrite it."""
    if os.path.lexists(path) and not (force and path.is_file()):
        remedy = "name another file, or use --force to overwrite it" if path.is_file() else "it is not a file"
        raise FolderError(f"{path}: exists already; {remedy}")


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary path; its file, if any, moves to ``path`` when the context ends without an error.

    Raises FolderError if :func:`check_file` refuses the path, or it cannot be written.
    """
    check_file(path, force=force)
    with _temporary(path, path.parent) as temporary:
        yield temporary / path.name
        if (temporary / path.name).exists():
            os.replace(temporary / path.name, path)


def write_file(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file, as :func:`whole_file` does."""
    with whole_file(path, force=force) as temporary:
        temporary.write_bytes(content)


def write_folder(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Write files, contents by path within ``folder``, as :func:`whole_folder` does."""
    with whole_folder(folder, force=force) as temporary:
        for name, content in files.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@contextmanager
def _temporary(target: Path, parent: Path) -> Iterator[Path]:
    """Make a temporary folder in ``parent``, which is made if missing; OSErrors become FolderErrors of ``target``."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=parent) as folder:
            files = Path(folder, "files")  # with the permissions of a new folder, not of a temporary one
            files.mkdir()
            yield files
    except OSError as error:
        place = next((place for place in (parent, *parent.parents) if os.path.lexists(place)), parent)
        reason = (error.strerror or str(error)) if place.is_dir() else f"{place} is not a folder"
        raise FolderError(f"{target}: cannot be written: {reason}") from None
