# SPDX-License-Identifier: Apache-2.0
"""Content hashes of recordings and robots, which tie a result to its inputs whatever their paths."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.cache import digest
from ..robot import Robot

_PIECE = 2**20

_PARTS_OF_BAGS = re.compile(r"metadata\.yaml|.*\.(db3|mcap)(\.zstd)?")

# Remarks of the reader, which name files.
_REMARKS = ("merged", "assumed")


def robot_hash(robot: Robot) -> str:
    """Return a hash of all robot properties that affect results, independent of its source."""
    return digest(*_parts(robot))


def bag_hash(path: Path, stopped: Callable[[], bool] = lambda: False) -> str:
    """Return the SHA-256 of a bag file, or of the output of ``sha256sum`` for the files of a bag folder.

    Args:
        stopped: whether to give up, asked after each MiB.
    """
    if not path.is_dir():
        return file_hash(path, stopped)
    files = sorted(file for file in path.iterdir() if _PARTS_OF_BAGS.fullmatch(file.name) and file.is_file())
    lines = [f"{file_hash(file, stopped)}  {file.name}\n" for file in files]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


@contextmanager
def hashed_aside(path: Path) -> Iterator[Callable[[], str]]:
    """Compute :func:`bag_hash` in a background thread; yields a function that returns the result."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(bag_hash, path, stop.is_set)
        try:
            yield future.result
        finally:
            stop.set()


def file_hash(path: Path, stopped: Callable[[], bool] = lambda: False) -> str:
    """Return the SHA-256 of a file; ``stopped`` as of :func:`bag_hash`."""
    result = hashlib.sha256()
    with path.open("rb") as file:
        while not stopped() and (piece := file.read(_PIECE)):
            result.update(piece)
    return result.hexdigest()


def _parts(value: Any) -> Iterator[bytes | str]:
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape}"
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, float):
        yield value.hex()
    elif value is None or isinstance(value, (str, int)):
        yield repr(value)
    elif isinstance(value, tuple):
        yield f"{len(value)} entries"
        for entry in value:
            yield from _parts(entry)
    else:
        names = [each.name for each in fields(value) if each.init] if is_dataclass(value) else list(vars(value))
        yield type(value).__name__
        for name in names:
            if name not in _REMARKS:
                yield name
                yield from _parts(getattr(value, name))
