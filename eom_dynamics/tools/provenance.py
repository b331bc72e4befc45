# SPDX-License-Identifier: Apache-2.0
"""Provenance of results: date, software and machine, and content hashes, which tie a result to its inputs."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..codegen.cache import digest
from ..robot import Robot


def date() -> str:
    """Return date and time, with the time zone."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def software() -> str:
    """Return the versions of eom_dynamics, Python and NumPy."""
    return f"eom_dynamics {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"


def machine() -> str:
    """Return processor, number of cores, and operating system."""
    return f"{processor()}, {os.cpu_count()} logical cores, {platform.system()} {platform.machine()}"


def processor() -> str:
    """Return the name of the processor."""
    return cpuinfo().get("model name") or platform.processor() or platform.machine()


def cpuinfo() -> dict[str, str]:
    """Return what Linux says about the first processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))


_PIECE = 2**20
_PARTS_OF_BAGS = re.compile(r"metadata\.yaml|.*\.(db3|mcap)(\.zstd)?")
_REMARKS = ("merged", "assumed")  # remarks of the reader, which name files


def robot_hash(robot: Robot) -> str:
    """Return a hash of all robot properties that affect results, independent of its source."""
    return digest(json.dumps(robot, default=_plain))


def bag_hash(path: Path, stopped: Callable[[], bool] = lambda: False) -> str:
    """Return the SHA-256 of a bag file, or of the output of ``sha256sum`` for the files of a bag folder.

    It gives up when ``stopped``, asked after each MiB, is true.
    """
    if not path.is_dir():
        return file_hash(path, stopped)
    files = sorted(file for file in path.iterdir() if _PARTS_OF_BAGS.fullmatch(file.name) and file.is_file())
    lines = [f"{file_hash(file, stopped)}  {file.name}\n" for file in files]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


@contextmanager
def hashed_in_background(path: Path) -> Iterator[Callable[[], str]]:
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


def _plain(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, value.tobytes().hex()]
    names = [entry.name for entry in fields(value) if entry.init] if is_dataclass(value) else list(vars(value))
    return [type(value).__name__, {name: getattr(value, name) for name in names if name not in _REMARKS}]
