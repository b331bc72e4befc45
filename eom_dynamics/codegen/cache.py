# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled code on disk.

The name of an entry contains its key and the checksum of its contents. Entries are written to a scratch folder and
renamed, and loaded only if they match their checksum, never while another process writes them or after the disk was
full. Only the user can read or write the folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_CHECKSUM_DIGITS = 32

_SCRATCH = "building-"

# Age in s of a scratch folder that was left by a killed process.
_ABANDONED = 24 * 3600.0


def cache_directory() -> Path:
    """Absolute path of the cache: ``$EOM_DYNAMICS_CACHE``, by default ``eom_dynamics`` in the user's cache folder."""
    if override := os.environ.get("EOM_DYNAMICS_CACHE"):
        return Path(override).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG Base Directory Specification demands to ignore relative paths.
    return (base if base.is_absolute() else Path.home() / ".cache") / "eom_dynamics"


def cached(key: str, build: Callable[[Path], None]) -> Path:
    """Path of the file for a key, which is built if it is missing or damaged.

    Args:
        key: hexadecimal digest of everything that the file depends on.
        build: writes the file to a given path.

    Raises:
        OSError: the cache folder cannot be created or written, or other users can write to it.
    """
    directory = cache_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(directory)
    for entry in directory.glob(f"{key}-*.so"):
        if _is_whole(entry):
            return entry
        entry.unlink(missing_ok=True)
    for abandoned in filter(_is_abandoned, directory.glob(f"{_SCRATCH}*")):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=directory) as scratch:
        built = Path(scratch) / "built.so"
        build(built)
        built.chmod(0o700)
        entry = directory / f"{key}-{_checksum(built)}.so"
        os.replace(built, entry)
    return entry


def digest(*parts: bytes | str) -> str:
    """Hexadecimal digest of parts and their lengths."""
    result = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        result.update(len(data).to_bytes(8, "little"))
        result.update(data)
    return result.hexdigest()[:40]


def _refuse_foreign(directory: Path) -> None:
    # Other users who can write here could run code as this user.
    status = directory.stat()
    if status.st_uid != os.getuid():
        raise PermissionError(f"{directory}: belongs to another user; set EOM_DYNAMICS_CACHE to a folder that you own")
    if status.st_mode & 0o022:
        raise PermissionError(f"{directory}: other users can write to it; run: chmod go-w {directory}")


def _is_whole(entry: Path) -> bool:
    try:
        return entry.stat().st_uid == os.getuid() and entry.stem.endswith(f"-{_checksum(entry)}")
    except OSError:
        return False


def _is_abandoned(scratch: Path) -> bool:
    try:
        return time.time() - scratch.stat().st_mtime > _ABANDONED
    except OSError:  # another process has just removed it
        return False


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:_CHECKSUM_DIGITS]
