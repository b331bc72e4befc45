# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled code on disk.

Only the user can read or write its folder, which is used through one handle: exchanging it, or a folder above it, does
not matter. The name of an entry contains its key and a checksum of key and contents: an entry that was damaged, or
renamed to the key of another robot, is built again. Entries are renamed into place when they are complete. What is
loaded is a copy in memory of the bytes that were checked: overwriting an entry in place, such as by a backup that is
restored, would change running code, or end the process with SIGBUS.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

from ..scratch import scratch_folder

_CHECKSUM_DIGITS = 32

_INCOMPLETE, _SCRATCH = "incomplete-", "scratch-"

# Age in s of an incomplete entry that was left by a killed process.
_ABANDONED = 24 * 3600.0

# Copies that have been loaded, by the name of their entry, which is unique to the contents.
_loaded: dict[str, Path] = {}
_numbers = count(1)


def cache_directory() -> Path:
    """Absolute path of the cache: ``$EOM_DYNAMICS_CACHE``, by default ``eom_dynamics`` in the user's cache folder."""
    if override := os.environ.get("EOM_DYNAMICS_CACHE"):
        return Path(override).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG Base Directory Specification demands to ignore relative paths.
    return (base if base.is_absolute() else Path.home() / ".cache") / "eom_dynamics"


def cached(key: str, build: Callable[[Path], None]) -> tuple[str, bytes]:
    """Name and contents of the library for a key, which is built if it is missing or damaged.

    Args:
        key: hexadecimal digest of everything that the library depends on.
        build: writes the library to a given path.

    Raises:
        OSError: the cache folder cannot be created or written, or other users can write to it.
    """
    with _private_folder(cache_directory()) as folder:
        names = _entries(folder, key)
        for name in names:
            if (content := _content(folder, name, key)) is not None:
                return name, content
        _remove_unusable(folder, key, names)
        # In the private folder: TMPDIR may be a folder where others can exchange files. A child has not this handle.
        with scratch_folder(Path(f"/proc/{os.getpid()}/fd/{folder}"), _SCRATCH) as scratch:
            built = scratch / "built.so"
            build(built)
            content = built.read_bytes()
            return _added(folder, key, content), content


@contextmanager
def loadable(name: str, content: bytes) -> Iterator[Path]:
    """Context with a path to load a library from.

    It is the same for the same name, so that a process has one copy, and never that of another name: dlopen takes a
    library with a known path for the one that it has loaded.

    Args:
        name: unique to the contents.
        content: the library.
    """
    if known := _loaded.get(name):
        yield known
        return
    with ExitStack() as stack:
        try:
            file = open(os.memfd_create("eom_dynamics"), "wb")  # noqa: SIM115
            path = Path("/proc/self/fd", *_detour(next(_numbers)), str(file.fileno()))
        except (AttributeError, OSError):  # not this system, or forbidden by vm.memfd_noexec
            path = stack.enter_context(scratch_folder(cache_directory(), _SCRATCH)) / name
            file = path.open("wb")
        stack.enter_context(file)
        file.write(content)
        file.flush()
        yield path
    _loaded[name] = path


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


@contextmanager
def _private_folder(path: Path) -> Iterator[int]:
    """Open a folder, which is created if it is missing, as a descriptor; OSError if other users can write to it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid():
            raise PermissionError(f"{path}: belongs to another user; set EOM_DYNAMICS_CACHE to a folder that you own")
        if status.st_mode & 0o022:
            raise PermissionError(f"{path}: other users can write to it; run: chmod go-w {path}")
        yield descriptor
    finally:
        os.close(descriptor)


def _content(folder: int, name: str, key: str) -> bytes | None:
    """Contents of an entry; None if it is damaged, or not a file of this user."""
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for its other end.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
                return None
            content = file.read()
    except OSError:
        return None
    return content if name == entry_name(key, content) else None


def _detour(number: int) -> list[str]:
    """A way from a folder of descriptors to itself that is different for each number, since they are used again."""
    return [("../fd", "../../self/fd")[bit == "1"] for bit in f"{number:b}"]


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
    for name in (*remains, *(name for name in damaged if _content(folder, name, key) is None)):
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def _age(folder: int, name: str) -> float:
    try:
        return time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except OSError:  # another process has just renamed it
        return 0.0
