# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled code on disk, a file for each key.

Each part answers a threat:

- Only the user can write to the folder: others would have their code run.
- The folder is used through one handle: who can write to a folder above it could exchange it after that check.
- A file ends with a checksum of key and contents: it may be damaged, or renamed to the key of another robot.
- Files are renamed into place when they are complete: another process may read while one writes.
- Loaded is a copy in memory of the bytes that were checked: overwriting a file in place, such as by a backup that is
  restored, would change running code, or end the process with SIGBUS.
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

# Paths of copies that have been loaded, by folder and key: to read and check an entry takes longer than to load it.
_loaded: dict[tuple[Path, str], Path] = {}
_numbers = count(1)


def cache_directory() -> Path:
    """Absolute path of the cache: ``$EOM_DYNAMICS_CACHE``, by default ``eom_dynamics`` in the user's cache folder."""
    if override := os.environ.get("EOM_DYNAMICS_CACHE"):
        return Path(override).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG Base Directory Specification demands to ignore relative paths.
    return (base if base.is_absolute() else Path.home() / ".cache") / "eom_dynamics"


def cached(key: str, build: Callable[[Path], Any]) -> bytes:
    """The library for a key, which is built if it is missing or damaged.

    Args:
        key: hexadecimal digest of everything that the library depends on. After a hyphen, that of its compiler, which
            the checksum leaves out; an asterisk there takes the newest library of any compiler.
        build: writes the library to a given path.

    Raises:
        KernelError: that of ``build``, with the file that is damaged.
        OSError: the cache folder cannot be created or written, or other users can write to it.
    """
    with _private_folder(cache_directory()) as folder:
        if (content := _content(folder, key)) is not None:
            return content
        # In the private folder: TMPDIR may be a folder where others can exchange files. A child has not this handle.
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
    """Context with a path to load the library for a key from, which is built as by :func:`cached`.

    It is the same for the same key, so that a process has one copy, and never that of another key: dlopen takes a
    library with a known path for the one that it has loaded.
    """
    place = cache_directory(), key
    if known := _loaded.get(place):
        yield known
        return
    content = cached(key, build)
    with ExitStack() as stack:
        try:
            file = open(os.memfd_create("eom_dynamics"), "wb")  # noqa: SIM115
            # A way from a folder of descriptors to itself, different for each number: descriptors are used again.
            detour = [("../fd", "../../self/fd")[bit == "1"] for bit in f"{next(_numbers):b}"]
            path = Path("/proc/self/fd", *detour, str(file.fileno()))
        except (AttributeError, OSError):  # not this system, or forbidden by vm.memfd_noexec
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache_directory())), key)
            file = path.open("wb")
        stack.enter_context(file)
        file.write(content)
        file.flush()
        yield path
    _loaded[place] = path


def digest(*parts: bytes | str) -> str:
    """Hexadecimal digest of parts and their lengths."""
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


def _names(folder: int, key: str) -> list[str]:
    """Names of the files of a key, which may end in an asterisk."""
    return [name for name in os.listdir(folder) if fnmatchcase(name, f"{key}.so")]


def _content(folder: int, key: str) -> bytes | None:
    """The library of a key; None if there is none, or if its file is damaged or not one of this user."""
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
