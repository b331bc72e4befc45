# SPDX-License-Identifier: Apache-2.0
"""Temporary folders; those left by killed processes are removed by the next process."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Age below which a folder is left alone, s: its process may be about to lock it.
_YOUNG = 10.0


@contextmanager
def scratch_folder(parent: Path | None = None, prefix: str = "eom_dynamics-") -> Iterator[Path]:
    """Temporary folder, locked while this process lives; by default in the system's temporary folder.

    Args:
        parent: folder to make it in.
        prefix: beginning of its name, and of those to remove.

    Raises:
        OSError: it cannot be made.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    for folder in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            _remove_abandoned(folder)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield Path(name)
        finally:
            os.close(descriptor)


def _remove_abandoned(folder: Path) -> None:
    """Remove a folder of this user that no process has locked.

    Raises:
        OSError: it is locked, no folder, or cannot be removed.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid == os.getuid() and time.time() - status.st_mtime > _YOUNG:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    finally:
        os.close(descriptor)
