# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled code on disk, a file for each key.

Each part answers a threat:

- Only the user can write to the folder: others would have their code run.
- The folder is used through one handle: a user who can write to a parent folder could replace it after the check.
- A file ends with a checksum of key and contents: it may be damaged or renamed to another robot's key.
- Complete files are renamed into place: another process may read during a write.
- The library is loaded from a copy in memory of the checked bytes. Overwriting a file in place, for example by
  restoring a backup, would change running code or end the process with SIGBUS.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any

from ..exceptions import KernelError

_SCRATCH = "scratch-"

# Paths of loaded copies, by folder and key: reading and checking an entry takes longer than loading it.
_loaded: dict[tuple[Path, str], Path] = {}
_numbers = count(1)


def cache_directory() -> Path:
    """Absolute path of the cache: ``$EOM_DYNAMICS_CACHE``, by default ``eom_dynamics`` in the user's cache folder."""
    if override := os.environ.get("EOM_DYNAMICS_CACHE"):
        return Path(override).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG Base Directory Specification requires that relative paths are ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "eom_dynamics"


def cached(key: str, build: Callable[[Path], Any]) -> bytes:
    """Library for a key, built if it is missing or damaged.

    Args:
        key: hexadecimal digest of everything that the library depends on, a hyphen, and the digest of the compiler. The
            checksum excludes the compiler. An asterisk in its place selects the newest library of any compiler.
        build: writes the library to a given path.

    Raises:
        KernelError: ``build`` failed; the message names a damaged file.
        OSError: the cache folder cannot be created or written, or other users can write to it.
    """
    with _private_folder(cache_directory()) as folder:
        if (content := _content(folder, key)) is not None:
            return content
        # In the private folder: other users may be able to replace files in TMPDIR. A child process lacks the handle.
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=f"/proc/{os.getpid()}/fd/{folder}") as scratch:
            built = Path(scratch, "built.so")
            try:
                build(built)
            except KernelError as error:
                if damaged := _names(folder, key):
                    path = cache_directory() / damaged[0]
                    raise KernelError(f"{error}; {path} is damaged, or not a file of this user") from None
                raise
            content = built.read_bytes()
            complete = Path(scratch, "complete")
            complete.touch(0o600)
            complete.write_bytes(content + _checksum(key, content))
            os.replace(complete, f"{key}.so", dst_dir_fd=folder)
            return content


@contextmanager
def loadable(key: str, build: Callable[[Path], Any]) -> Iterator[Path]:
    """Context with a path from which the library for a key is loaded; built as by :func:`cached`.

    Each key has one path, so that a process has one copy. Keys never share a path: dlopen treats a library with a known
    path as already loaded.
    """
    place = cache_directory(), key
    if known := _loaded.get(place):
        yield known
        return
    content = cached(key, build)
    with ExitStack() as stack:
        try:
            file = open(os.memfd_create("eom_dynamics"), "wb")  # noqa: SIM115
            # A path through the descriptor folder to itself, different for each number: descriptors are reused.
            detour = [("../fd", "../../self/fd")[bit == "1"] for bit in f"{next(_numbers):b}"]
            path = Path("/proc/self/fd", *detour, str(file.fileno()))
        except (AttributeError, OSError):  # unavailable on this system, or forbidden by vm.memfd_noexec
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache_directory())), key)
            file = path.open("wb")
        stack.enter_context(file)
        file.write(content)
        file.flush()
        yield path
    _loaded[place] = path


def digest(*parts: bytes | str) -> str:
    """Hexadecimal digest of the parts and their lengths."""
    result = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        result.update(len(data).to_bytes(8, "little"))
        result.update(data)
    return result.hexdigest()[:40]


def _checksum(key: str, content: bytes) -> bytes:
    return digest(key.partition("-")[0], content).encode()


@contextmanager
def _private_folder(path: Path) -> Iterator[int]:
    """Descriptor of a folder, created if missing. Raises OSError if other users can write to it."""
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


def _names(folder: int, key: str) -> list[str]:
    """File names of a key, which may end in an asterisk."""
    return [name for name in os.listdir(folder) if fnmatchcase(name, f"{key}.so")]


def _content(folder: int, key: str) -> bytes | None:
    """Library of a key; None if the file is missing, damaged, or owned by another user."""
    if key.endswith("-*"):
        names = _names(folder, key)
        names.sort(key=lambda name: os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns, reverse=True)
        return next(filter(None, (_content(folder, name.removesuffix(".so")) for name in names)), None)
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for its other end.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(f"{key}.so", flags, dir_fd=folder)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
                return None
            data = file.read()
    except OSError:
        return None
    content = data[: -len(_checksum(key, b""))]
    return content if data == content + _checksum(key, content) else None
