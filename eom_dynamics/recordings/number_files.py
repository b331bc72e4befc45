# SPDX-License-Identifier: Apache-2.0
"""Numbers in files: tables in CSV, arrays in NumPy archives, and waypoints of a path in these, in JSON or in a bag."""

from __future__ import annotations

import csv
import json
import struct
import warnings
import zlib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from ..arrays import STATE_NAMES, Array
from ..control.joint_order import JointOrder
from ..control.trajectories import read_positions
from ..exceptions import StateError
from ..spelling import duplicates, listed, shown
from ..trajectory import Samples

# Exceptions of NumPy and zipfile for archives that are damaged, encrypted, or claim more than the memory holds.
_UNREADABLE = (
    *(ValueError, KeyError, EOFError, BadZipFile, TypeError, OverflowError, RuntimeError, MemoryError),
    *(NotImplementedError, zlib.error, struct.error),
)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a NumPy archive by name.

    Raises:
        ValueError: it cannot be read, on one line.
        OSError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            if not is_zipfile(file):
                raise ValueError("is not a .npz archive")
        with np.load(path, allow_pickle=False) as data:
            entries = {name: data[name] for name in data.files}
    except _UNREADABLE as error:
        lines = str(error.args[0] if error.args else error).splitlines()
        if lines and lines[0].startswith("Object arrays"):
            lines = ["has an array of Python objects; write it as numbers or text"]
        raise ValueError(lines[0] if lines else type(error).__name__) from None
    return {name: entry for name, entry in entries.items() if isinstance(entry, np.ndarray)}


def read_table(path: Path) -> tuple[list[str] | None, Array]:
    """Read a CSV file of numbers.

    Returns:
        The names in its first line (None if it contains numbers), and the numbers (N, k).

    Raises:
        ValueError: names are equal, or a line has no numbers or not as many, on one line.
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8-sig", newline="") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a file without rows
        try:
            first = file.readline()
            names = [name.strip() for name in next(csv.reader([first], strict=True), [])]
            has_names = not all(map(_is_number, names))
            table = np.loadtxt(file if has_names else chain([first], file), delimiter=",", ndmin=2)
        except UnicodeDecodeError:
            raise ValueError("is not a text file") from None
        except csv.Error as error:
            raise ValueError(str(error)) from None
        except ValueError as error:
            raise ValueError(_wrong_line(path, has_names, len(names)) or " ".join(str(error).split())) from None
    if has_names and (twice := duplicates(names)):
        raise ValueError(f"has columns of the same name: {listed(twice)}; remove one of each")
    if not table.size:
        raise ValueError("has no rows of numbers")
    if table.shape[1] != len(names):
        raise ValueError(_wrong_line(path, has_names, len(names)))
    return names if has_names else None, table


def _wrong_line(path: Path, has_names: bool, columns: int) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            entries = line.strip().split(",")
            if number > has_names and any(entries) and not (len(entries) == columns and all(map(_is_number, entries))):
                return (
                    f"line {number} must have {columns} numbers, separated by commas, as the first line, is "
                    f"{shown(line.strip())}: correct it, or remove it if the file was cut"
                )
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def write_table(path: Path, header: Sequence[str], columns: Sequence[Array]) -> None:
    """Write columns (N,) and (N, n) as CSV; names with a comma are quoted, against formula injection."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(header)
        np.savetxt(file, np.column_stack(columns), fmt="%.17g", delimiter=",")


def write_states(folder: Path, samples: Samples, joint_names: Sequence[str]) -> None:
    """Write setpoints.npz and trajectory.csv with the states of a motion."""
    arrays: dict[str, Any] = dict(zip(STATE_NAMES, samples[1:], strict=True))
    np.savez_compressed(folder / "setpoints.npz", t=samples.t, joint_names=np.array(joint_names), **arrays)
    header = ["t", *(f"{state}.{joint}" for state in STATE_NAMES for joint in joint_names)]
    write_table(folder / "trajectory.csv", header, samples)


_MOST = 20_000  # largest number of waypoints


def read_waypoints(path: Path, joint_names: Sequence[str]) -> Array:
    """Waypoints (K, n) in a robot's order of joints, rad or m.

    Args:
        path: a ``.csv`` file with a column for each joint, under its name or ``q.NAME``, other columns are ignored; a
            ``.json`` file with ``joint_names`` and ``points`` with ``positions``, or lists of them; a ``.npz`` file
            with ``q`` (K, n), and optionally ``joint_names``; or a bag, with the first JointTrajectory in it.

    Raises StateError if the file has no waypoints of these joints, BagError and OSError if it cannot be read.
    """
    readers = {".csv": _csv, ".json": _json, ".npz": _npz}
    try:
        names, positions = readers.get(path.suffix, _bag)(path)
        waypoints = np.asarray(positions, dtype=float)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"has no {error}" if isinstance(error, KeyError) else error
        raise StateError(f"{path}: cannot be read as waypoints: {reason}") from None
    if waypoints.ndim != 2 or not len(waypoints):
        raise StateError(f"{path}: has no table of waypoints, one row for each")
    if len(waypoints) > _MOST:
        raise StateError(f"{path}: has {len(waypoints)} waypoints, may have {_MOST}; a path needs few of them")
    names = list(names) if names is not None else list(joint_names)
    if lacking := [name for name in joint_names if name not in names]:
        raise StateError(f"{path}: lacks {listed(lacking)}; it has {listed(names)}")
    if waypoints.shape[1] != len(names):
        raise StateError(f"{path}: rows have {waypoints.shape[1]} positions, must have {len(names)}")
    return waypoints[:, [names.index(name) for name in joint_names]]


def _csv(path: Path) -> tuple[list[str] | None, Any]:
    names, table = read_table(path)
    return names and [name.removeprefix("q.") for name in names], table


def _json(path: Path) -> tuple[list[str] | None, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(content, list):
        return None, content
    return content.get("joint_names") or None, [point["positions"] for point in content["points"]]


def _npz(path: Path) -> tuple[list[str] | None, Any]:
    arrays = read_arrays(path)
    return arrays["joint_names"].tolist() if "joint_names" in arrays else None, arrays["q"]


def _bag(path: Path) -> tuple[list[str] | None, Any]:
    from .bags import Bag
    from .bags.layout import read_messages
    from .bags.types import JOINT_TRAJECTORY

    def refuse(reason: str, time: int) -> None:
        raise StateError(reason)

    with Bag(path) as bag:
        for topic in bag.topics:
            if topic.type == JOINT_TRAJECTORY:
                for _, message in read_messages(bag, topic, refuse):
                    names = list(message.joint_names)
                    return names, read_positions(message, JointOrder(names, []))
    raise StateError(f"the bag has no {JOINT_TRAJECTORY}")
