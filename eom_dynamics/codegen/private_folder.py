# SPDX-License-Identifier: Apache-2.0
"""Folder that only the user can write to, so that what is loaded from it is the user's own."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def private_folder(path: Path) -> Iterator[int]:
    """Open a folder, which is created if it is missing.

    Args:
        path: absolute path of the folder.

    Yields:
        Descriptor of the folder, which stays the same if a parent folder is renamed.

    Raises:
        OSError: the folder cannot be created or opened, belongs to another user, or other users can write to it or
            replace a folder above it; the message names that folder and what to do.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid():
            raise PermissionError(f"{path}: belongs to another user; set EOM_DYNAMICS_CACHE to a folder that you own")
        if status.st_mode & 0o022:
            raise PermissionError(f"{path}: other users can write to it; run: chmod go-w {path}")
        for folder in Path(os.readlink(f"/proc/self/fd/{descriptor}")).parents:
            _refuse_replaceable(folder, path)
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_replaceable(folder: Path, path: Path) -> None:
    """Refuse a folder whose entries other users can rename."""
    status = folder.stat()
    remedy = f"set EOM_DYNAMICS_CACHE to another folder than {path}"
    if status.st_uid not in (0, os.getuid()):
        raise PermissionError(f"{folder}: belongs to another user; {remedy}")
    # In a sticky folder such as /tmp, only the owner of an entry can rename it.
    if not status.st_mode & stat.S_ISVTX and (status.st_mode & 0o002 or _group_has_others(status)):
        raise PermissionError(f"{folder}: other users can write to it; run: chmod go-w {folder}, or {remedy}")


def _group_has_others(status: os.stat_result) -> bool:
    """Whether a group with write access has other members. Many systems give each user a group of their own."""
    if not status.st_mode & 0o020 or status.st_gid == 0:
        return False
    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(status.st_gid)
    except KeyError:
        return True
    return group.gr_gid != user.pw_gid or group.gr_name != user.pw_name or set(group.gr_mem) - {user.pw_name} != set()
