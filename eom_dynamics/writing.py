# SPDX-License-Identifier: Apache-2.0
"""A folder of files, all of them or none; or one file."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .exceptions import EomDynamicsError

ASIDE = ".eom_dynamics-"
"""How the names of folders begin in which something is written aside. Each is locked for as long as it is in use."""


class FolderError(EomDynamicsError):
    """A folder is not to be written to."""


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that holds something, is none, or can be seen not to take files.

    Args:
        folder: where files are to go; it need not exist.
        force: accept a folder that holds something.

    Raises:
        FolderError: it is refused.
        OSError: it cannot be read.
    """
    place = folder
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        reason = "is not a folder" if place == folder else f"cannot be written: {place} is not a folder"
        raise FolderError(f"{folder}: {reason}")
    if not os.access(place, os.W_OK | os.X_OK):
        raise FolderError(f"{folder}: cannot be written: no permission to write to {place}")
    if place == folder and not force and any(folder.iterdir()):
        raise FolderError(f"{folder}: is not empty; name another folder, or use --force to write over what is there")


@contextmanager
def whole_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """A place aside for the files of a folder that :func:`check_folder` accepts; what else is in it stays.

    They come to the folder when the context ends without an error, after the last of them is complete: one that is
    not there yet comes as a whole, and else no file takes the place of another before all can.

    Args:
        folder: is made if it is not there.
        force: write over what is there.

    Raises:
        FolderError: the folder is refused, or cannot be written; what was in it is still there.
    """
    check_folder(folder, force=force)
    is_new = not folder.exists()
    home = folder.parent if is_new else folder
    try:
        home.mkdir(parents=True, exist_ok=True)
        with _scratch(home) as aside:
            yield aside
            if is_new:
                aside.rename(folder)
            else:
                _replace(aside, folder)
    except OSError as error:
        # The names of files that were written aside mean nothing to anybody.
        raise FolderError(f"{folder}: cannot be written: {error.strerror or error}") from None


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A place aside for a file, which comes to its own when the context ends without an error.

    Args:
        path: of the file; folders that it is in are made if they are not there.
        force: write over a file that is there.

    Raises:
        FolderError: there is such a file, or it cannot be written; what was there still is.
    """
    if os.path.lexists(path) and not (force and path.is_file()):
        hint = "name another file, or use --force to write over it" if path.is_file() else "it is not a file"
        raise FolderError(f"{path}: is there already; {hint}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _scratch(path.parent) as aside:
            yield aside / path.name
            os.replace(aside / path.name, path)
    except OSError as error:
        raise FolderError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_folder(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Write files to a folder as :func:`whole_folder` does; ``files`` are contents by path within it."""
    with whole_folder(folder, force=force) as aside:
        for name, content in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def sweep(folder: Path) -> None:
    """Remove from a folder what processes that were killed had written aside, and nothing that is still in use."""
    for path in folder.glob(f"{ASIDE}*"):
        with suppress(OSError), _lock(path):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder to write to beside others, locked, and gone when the context ends."""
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=folder) as name, ExitStack() as stack:
        with suppress(OSError):  # a file system without locks: then no sweep gets one either
            stack.enter_context(_lock(Path(name)))
        aside = Path(name) / "files"
        aside.mkdir()
        yield aside


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a folder; a process that is killed lets go of it.

    Raises:
        OSError: another one holds it, or its file system has no locks.
    """
    # A file that can be written, as NFS locks no others.
    held = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(held)


def _replace(aside: Path, folder: Path) -> None:
    """Move files, with the folders they are in, over those of another folder."""
    names = [path.relative_to(aside) for path in sorted(aside.rglob("*")) if path.is_file()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        os.replace(aside / name, folder / name)
