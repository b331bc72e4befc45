# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled code on disk.

Only the user can read or write the folder (:mod:`.private_folder`), which is addressed by one handle from check to
load. The name of an entry contains its key and a checksum of key and contents: an entry that was damaged, or renamed
to the key of another robot, is built again. Entries are renamed into place when they are complete.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..scratch import scratch_folder
from .private_folder import private_folder

_CHECKSUM_DIGITS = 32

_INCOMPLETE, _SCRATCH = "incomplete-", "scratch-"

# Age in s of an incomplete entry that was left by a killed process.
_ABANDONED = 24 * 3600.0


def cache_directory() -> Path:
    """Absolute path of the cache: ``$EOM_DYNAMICS_CACHE``, by default ``eom_dynamics`` in the user's cache folder."""
    if override := os.environ.get("EOM_DYNAMICS_CACHE"):
        return Path(override).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG Base Directory Specification demands to ignore relative paths.
    return (base if base.is_absolute() else Path.home() / ".cache") / "eom_dynamics"


@contextmanager
def cached(key: str, build: Callable[[Path], None]) -> Iterator[Path]:
    """File for a key, which is built if it is missing or damaged.

    Args:
        key: hexadecimal digest of everything that the file depends on.
        build: writes the file to a given path.

    Yields:
        Path of the file through the handle of the folder, valid in the context only. Its name is unique to the
        contents.

    Raises:
        OSError: the cache folder cannot be created or written, or other users can write to it.
    """
    with private_folder(cache_directory()) as folder:
        entries = _entries(folder, key)
        entry = next((name for name in entries if _is_whole(folder, name, key)), "")
        if not entry:
            _remove_unusable(folder, key, entries)
            # In the private folder: TMPDIR may be a folder where others can exchange files.
            with scratch_folder(Path(os.readlink(f"/proc/self/fd/{folder}")), _SCRATCH) as scratch:
                built = scratch / "built.so"
                build(built)
                entry = _added(folder, key, built.read_bytes())
        yield Path(f"/proc/self/fd/{folder}/{entry}")


def digest(*parts: bytes | str) -> str:
    """Hexadecimal digest of parts and their lengths."""
    result = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        result.update(len(data).to_bytes(8, "little"))
        result.update(data)
    return result.hexdigest()[:40]


def _entries(folder: int, key: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(f"{key}-") and name.endswith(".so")]


def entry_name(key: str, content: bytes) -> str:
    """Name of the entry of a key with these contents."""
    return f"{key}-{digest(key, content)[:_CHECKSUM_DIGITS]}.so"


def _is_whole(folder: int, name: str, key: str) -> bool:
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for its other end.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            regular = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
            return regular and name == entry_name(key, file.read())
    except OSError:
        return False


def _added(folder: int, key: str, content: bytes) -> str:
    """Write an entry and return its name."""
    incomplete = f"{_INCOMPLETE}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(incomplete, flags, 0o700, dir_fd=folder), "wb") as file:
            file.write(content)
        name = entry_name(key, content)
        os.replace(incomplete, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(incomplete, dir_fd=folder)
        raise
    return name


def _remove_unusable(folder: int, key: str, damaged: list[str]) -> None:
    """Remove damaged entries of a key, and what killed processes have left.

    Not all entries of the key: another process may have added a whole one, which it is about to load.
    """
    remains = [name for name in os.listdir(folder) if name.startswith(_INCOMPLETE) and _age(folder, name) > _ABANDONED]
    for name in (*remains, *(name for name in damaged if not _is_whole(folder, name, key))):
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def _age(folder: int, name: str) -> float:
    try:
        return time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except OSError:  # another process has just renamed it
        return 0.0
