# SPDX-License-Identifier: Apache-2.0
"""Numbers in files: tables in CSV, arrays in NumPy archives, and waypoints of a path in these, in JSON or in a bag."""

from __future__ import annotations

import csv
import json
import re
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np
import yaml
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


class NumberTable(NamedTuple):
    """Numbers of a text file.

    Attributes:
        names: of the columns, from the first line; None if it contains numbers.
        values: numbers (N, k), NaN for empty cells.
        notes: separator and ignored columns, if they are not commas and none.
    """

    names: list[str] | None
    values: Array
    notes: tuple[str, ...] = ()


_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", None: "blanks"}


def read_table(path: Path) -> NumberTable:
    """Read a text file of numbers, separated by commas, semicolons, tabs or blanks.

    The first line may name the columns, after an optional ``#``. Columns of text are ignored. Between semicolons,
    numbers may have decimal commas.

    Raises:
        ValueError: names are equal, or a line has no numbers or not as many, on one line.
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8-sig", newline="") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a file without rows
        try:
            first = file.readline()
            separator = next((x for x in _SEPARATORS if x and x in first), None)
            names = _split(re.sub(r"^# *", "", first), separator)
            has_names = not all(map(_is_number, names))
            start = [*([] if has_names else [first]), *islice(file, 2)]
            used = _numeric_columns([_split(line, separator) for line in start], len(names), separator)
            lines: Iterable[str] = chain(start, file)
            if separator == ";":
                lines = (line.replace(",", ".") for line in lines)
            kept = used if len(used) < len(names) else None
            options: Any = {"delimiter": separator, "usecols": kept, "ndmin": 2}
            try:
                table = np.loadtxt(lines, **options)
            except ValueError:
                file.seek(0)
                table = np.loadtxt(_without_gaps(file, separator, skip=has_names), **options)
        except UnicodeDecodeError:
            raise ValueError("is not a text file") from None
        except csv.Error as error:
            raise ValueError(str(error)) from None
        except ValueError as error:
            line = _wrong_line(path, separator, used, len(names), has_names=has_names)
            raise ValueError(line or " ".join(str(error).split())) from None
    if has_names and (twice := duplicates(names)):
        raise ValueError(f"has columns of the same name: {listed(twice)}; remove one of each")
    if not table.size:
        raise ValueError("has no rows of numbers")
    if table.shape[1] != len(used):
        raise ValueError(_wrong_line(path, separator, used, len(names), has_names=has_names))
    notes = [] if separator == "," else [f"columns are separated by {_SEPARATORS[separator]}"]
    if has_names and (texts := [name for k, name in enumerate(names) if k not in used]):
        notes.append(f"columns of text are ignored: {listed(texts)}")
    return NumberTable([names[k] for k in used] if has_names else None, table, tuple(notes))


def _split(line: str, separator: str | None) -> list[str]:
    """Entries of a line, without blanks around them; names may be quoted."""
    entries = line.split() if separator is None else next(csv.reader([line], strict=True, delimiter=separator), [])
    return [entry.strip() for entry in entries]


def _numeric_columns(rows: Sequence[Sequence[str]], columns: int, separator: str | None) -> list[int]:
    """Indices of the columns without text in the first two rows."""
    texts = [
        {k for k, entry in enumerate(row) if entry and not _is_number(_point(entry, separator))}
        for row in rows
        if len(row) == columns
    ]
    ignored = texts[0] & texts[1] if len(texts) > 1 else set()
    return [k for k in range(columns) if k not in ignored]


def _point(text: str, separator: str | None) -> str:
    return text.replace(",", ".") if separator == ";" else text


def _without_gaps(lines: Iterable[str], separator: str | None, *, skip: bool) -> Iterator[str]:
    """Rows with ``nan`` in empty cells, which loggers leave if signals have different times."""
    for number, line in enumerate(lines):
        if number >= skip:
            entries = _point(line.rstrip("\r\n"), separator).split(separator)
            yield line if separator is None else separator.join(x if x.strip() else "nan" for x in entries)


def _wrong_line(path: Path, separator: str | None, used: Sequence[int], columns: int, *, has_names: bool) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            entries = [_point(x.strip(), separator) for x in line.strip().split(separator)]
            numbers = len(entries) == columns and all(not entries[k] or _is_number(entries[k]) for k in used)
            if number > has_names and any(entries) and not numbers:
                return (
                    f"line {number} must have {len(used)} numbers, separated by {_SEPARATORS[separator]}, as the first "
                    f"line, is {shown(line.strip())}: correct it, or remove it if the file was cut"
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
            ``.json`` or ``.yaml`` file with a JointTrajectory or RobotTrajectory, also in a message of ``ros2 topic
            echo``, or with lists of positions; a ``.npz`` file with ``q`` (K, n), and optionally ``joint_names``; or a
            bag, with the first JointTrajectory in it.

    Raises StateError if the file has no waypoints of these joints, BagError and OSError if it cannot be read.
    """
    readers = {".csv": _csv, ".json": _json, ".yaml": _yaml, ".yml": _yaml, ".npz": _npz}
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
    names, table, _ = read_table(path)
    return names and [name.removeprefix("q.") for name in names], table


def _json(path: Path) -> tuple[list[str] | None, Any]:
    return _positions(json.loads(path.read_text(encoding="utf-8")))


def _yaml(path: Path) -> tuple[list[str] | None, Any]:
    """Positions of the first message."""
    try:
        with path.open(encoding="utf-8") as file:
            return _positions(next(yaml.load_all(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader)), None))
    except yaml.YAMLError as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from None


def _positions(content: Any) -> tuple[list[str] | None, Any]:
    """Names and positions of lists, of a JointTrajectory, or of a message that contains one."""
    while isinstance(content, dict) and "points" not in content:
        content = next((content[key] for key in _CONTAINERS if key in content), {"points": None})
        if isinstance(content, list) and len(content) > 1:
            raise ValueError(f"has {len(content)} trajectories; write one of them to a file")
        content = content[0] if isinstance(content, list) else content
    if not isinstance(content, dict):
        return None, content
    if content["points"] is None:
        raise ValueError(f"has no points, nor {' or '.join(_CONTAINERS)} with points")
    if any(point == "..." for point in content["points"]) or any(
        "..." in map(str, x["positions"]) for x in content["points"]
    ):
        raise ValueError("is incomplete: ros2 topic echo writes all entries with --full-length")
    return content.get("joint_names") or None, [point["positions"] for point in content["points"]]


_CONTAINERS = ("joint_trajectory", "trajectory")  # of RobotTrajectory, and of DisplayTrajectory and goals


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
