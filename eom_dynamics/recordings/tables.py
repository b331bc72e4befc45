# SPDX-License-Identifier: Apache-2.0
"""Tables of a recording: text, Parquet, NumPy archives, and folders of LeRobot data sets.

A table has a column of times, and for each joint NAME ``position.NAME`` and ``effort.NAME``, and ``velocity.NAME`` if
it was recorded; ``q.NAME``, ``qd.NAME`` and ``tau.NAME`` are the same. The option ``--column`` names other columns
(:mod:`.columns`). For columns of motors see :mod:`.sides`.

A list column ``x`` of Parquet, or an array (N, n) of an archive, becomes columns ``x[0]``, ``x[1]``, …, or ``x.NAME``
if the file or its data set names the entries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..control.fields import EFFORT_FIELDS, MEASURED_FIELDS, MOTOR_SETPOINT_FIELDS
from ..exceptions import require
from ..identification import IdentificationError
from ..spelling import duplicates, listed
from . import Conventions
from .columns import TIME, UNITS, Column, mapped, suggested
from .number_files import read_arrays, read_table
from .streams import Refusals, Stream

Columns = tuple[list[tuple[str, Array]], Sequence[str]]

_ALIASES = {
    **{"q": "position", "qd": "velocity", "tau": "effort", "time": "t"},
    **{"theta": "motor_position", "thetad": "motor_velocity"},
}

COLUMNS = {
    "links": MEASURED_FIELDS,
    "motors": tuple(MOTOR_SETPOINT_FIELDS.values()),
    "currents": ("motor_position", "motor_velocity", "current"),
}
"""Prefixes of the columns of positions, velocities and efforts, by side of the springs."""

_COMPUTED = (*EFFORT_FIELDS[1:], "motor_acceleration")  # columns of commands that no sensor measures
_LONGEST = 9e9  # s: a stamp of 64 bits in ns holds no more
_TEXT = (".csv", ".tsv", ".txt")
_TIMES = ("timestamp", "%time", "__time", "Time", "field.header.stamp")  # of RTDE and LeRobot, ROS 1, PlotJuggler
_SINCE_1970 = {"ns": 1e17, "us": 1e14, "ms": 1e11, "s": 0.0}  # least size of times by their unit
_BETWEEN = 1.0  # s, from the end of an episode to the start of the next


@dataclass(frozen=True, eq=False)
class NumericTable:
    """Columns of numbers (N,) of a table.

    Attributes:
        path: of the file.
        values: columns by ``t`` (s), ``stamp`` (ns) and ``QUANTITY.NAME``.
        written: name or pattern of a quantity's columns in the file, such as ``q.NAME``.
        columns: all columns by their name in the file.
        notes: interpretation of the file, a line each.
    """

    path: Path
    values: dict[str, Array]
    written: dict[str, str]
    columns: dict[str, Array]
    notes: tuple[str, ...] = ()

    def mapped(self, columns: Sequence[Column], joints: Sequence[str]) -> NumericTable:
        """Return the table with mapped columns of a robot's joints; IdentificationError if a column is missing."""
        if not columns:
            return self
        new = mapped(columns, self.columns, joints, str(self.path))
        if TIME in new:
            new["t"] = new.pop(TIME)
        written = {column.quantity.partition(".")[0]: column.pattern for column in columns}
        return replace(self, values=self.values | new, written=self.written | written)

    def stream(self, side: str, conventions: Conventions, refusals: Refusals, joints: Sequence[str]) -> Stream:
        """Read positions, velocities and efforts of one of :data:`COLUMNS`; ``joints`` of the robot, for messages.

        Raises IdentificationError if there are no times, or no positions.
        """
        named, columns = self.values, COLUMNS[side]
        if "t" in named:
            t = named["t"]
        elif "stamp" in named:
            t = named["stamp"] * 1e-9
        else:
            remedy = "name it: --column time=COLUMN:UNIT"
            raise IdentificationError(f"{self.path}: has no column t or time; it has {listed(self.columns)}; {remedy}")
        position = columns[0]
        recorded = tuple(name.partition(".")[2] for name in named if name.startswith(f"{position}."))
        if not recorded:
            remedy = f"name them: {suggested(self.columns, joints)}"
            raise IdentificationError(
                f"{self.path}: has no columns {position}.NAME; it has {listed(self.columns)}; {remedy}"
            )
        known = np.isfinite(t)
        start = t[np.argmax(known)] if known.any() else 0.0
        known &= np.abs(t - start) < _LONGEST
        if not known.all():
            refusals.add("its time is not a finite number", 0, int(np.sum(~known)))
        fields: dict[str, Array] = {}
        for field, source in zip(MEASURED_FIELDS, columns, strict=True):
            there = [named.get(f"{source}.{joint}") for joint in recorded]
            if any(column is not None for column in there):
                fields[field] = np.column_stack([np.full(len(t), np.nan) if c is None else c for c in there])[known]
        stamp = np.round(1e9 * (t[known] - start)).astype(np.int64)
        return Stream("the table", stamp, stamp, tuple(conventions.names(recorded)), fields)


def is_table(path: Path) -> bool:
    """Whether a path is a table by its ending, or a folder of a LeRobot data set."""
    return (path / _DATA_SET).is_file() if path.is_dir() else path.suffix in TABLES


def read_numeric_table(path: Path) -> NumericTable:
    """Read a table; IdentificationError if the file is not a table or contains commands, OSError if not readable."""
    if not path.exists():
        raise IdentificationError(f"{path}: there is no such file")
    try:
        columns, notes = TABLES["" if path.is_dir() else path.suffix](path)
    except ValueError as error:
        wanted = "; its columns are t, position.JOINT and effort.JOINT" if path.suffix in _TEXT else ""
        raise IdentificationError(f"{path}: {' '.join(str(error).split())}{wanted}") from None
    # Alone or before a dot, as in q.NAME.
    parts = [(name.strip().partition("."), values) for name, values in columns]
    named = [(_ALIASES.get(kind, kind) + dot + joint, values) for (kind, dot, joint), values in parts]
    if twice := duplicates(name for name, _ in named):
        raise IdentificationError(f"{path}: has columns of the same name: {listed(twice)}; remove one of each")
    kinds = {_ALIASES.get(kind, kind): kind for (kind, _, _), _ in parts}
    if not kinds.keys().isdisjoint(_COMPUTED):
        raise IdentificationError(f"{path}: has commands, not measurements; name the recording that they were made of")
    written = {kind: f"{name}.NAME" for kind, name in kinds.items()}
    table = NumericTable(path, dict(named), written, {name.strip(): x for name, x in columns}, tuple(notes))
    return table if {"t", "stamp"} & table.values.keys() else _with_time(table)


def _with_time(table: NumericTable) -> NumericTable:
    """Return a table with the times of another logger: their unit follows from their size, since 1970 or from 0."""
    for name in _TIMES:
        if (t := table.columns.get(name)) is None or not np.isfinite(t).any():
            continue
        size = float(np.nanmax(np.abs(t)))
        unit = next(unit for unit, least in _SINCE_1970.items() if size >= least)
        note = f"times are column {name}, {unit}"
        return replace(table, values=table.values | {"t": t * UNITS[unit]}, notes=(*table.notes, note))
    return table


def _csv(path: Path) -> Columns:
    names, table, notes = read_table(path)
    if names is None:
        raise ValueError("the first line must name the columns")
    return list(zip(names, table.T, strict=True)), notes


def _parquet(path: Path) -> Columns:
    """Columns of a file, which may belong to a data set."""
    folder = next((folder for folder in [*path.absolute().parents][:_DEPTH] if (folder / _DATA_SET).is_file()), None)
    return (_numbers(path), ()) if folder is None else _episodes(folder, [path])


def _numbers(path: Path) -> list[tuple[str, Array]]:
    """Columns of numbers, times and lists of numbers of a Parquet file."""
    require("parquet")
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    result: list[tuple[str, Array]] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        scale = 1.0
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
            scale = 1.0 if name == "stamp" else 1e-9
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            result.append((name, scale * np.asarray(column.to_numpy(), dtype=float)))
        elif pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
            result += _entries(name, column.to_pylist())
    return result


def _entries(name: str, rows: list[Any]) -> list[tuple[str, Array]]:
    """Columns of a list column whose rows have the same number of numbers; otherwise none."""
    try:
        values = np.array(rows, dtype=float)
    except (TypeError, ValueError):
        return []
    return [(f"{name}[{k}]", x) for k, x in enumerate(values.T)] if values.ndim == 2 else []


_DATA_SET = Path("meta", "info.json")
"""File of a LeRobot data set with the names of the entries of list columns."""

_DEPTH = 3  # of the folders of files in a data set: data/chunk-000/file-000.parquet


def _data_set(folder: Path) -> Columns:
    """Columns of all files of a data set, one after the other."""
    if not (files := sorted(folder.glob("data/**/*.parquet"))):
        raise ValueError("has no data/**/*.parquet")
    return _episodes(folder, files)


def _episodes(folder: Path, files: Sequence[Path]) -> Columns:
    """Columns of files of a LeRobot data set; each episode begins after the end of the previous episode."""
    try:
        features = json.loads((folder / _DATA_SET).read_text(encoding="utf-8"))["features"]
        names = {
            f"{feature}[{k}]": f"{feature}.{name}"
            for feature, about in features.items()
            for k, name in enumerate(about.get("names") or ())
        }
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{_DATA_SET} has no names of features: {error}") from None
    parts = [dict(_numbers(file)) for file in files]
    columns = {
        names.get(name, name): np.concatenate([part[name] for part in parts])
        for name in parts[0]
        if all(name in part for part in parts)
    }
    if not {"episode_index", "timestamp"} <= columns.keys():
        return list(columns.items()), ()
    starts = np.flatnonzero(np.diff(columns["episode_index"])) + 1
    columns["timestamp"] = _continued(columns["timestamp"], starts)
    return list(columns.items()), (
        f"LeRobot data set of {len(starts) + 1} episodes, which count as {_BETWEEN:g} s apart",
    )


def _continued(t: Array, starts: NDArray[np.intp]) -> Array:
    """Times (N,), s, of parts that begin at rows ``starts``, each later than the previous part."""
    result = t.copy()
    for start in starts:
        result[start:] += result[start - 1] + _BETWEEN - result[start]
    return result


def _npz(path: Path) -> Columns:
    """Columns of an archive: arrays (N, n) by ``joint_names`` or their index, and arrays (N,) by their own name."""
    arrays = read_arrays(path)
    joints = [str(name) for name in arrays.pop("joint_names", np.array([])).ravel()]
    motors = [str(name) for name in arrays.pop("motor_names", np.array(joints)).ravel()]
    rows = {len(x) for name, x in arrays.items() if x.ndim == 1 and _ALIASES.get(name, name) in ("t", *_TIMES)}
    columns: list[tuple[str, Array]] = []
    for field, array in arrays.items():
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or (rows and len(array) not in rows):
            continue  # texts, or values of the whole recording
        values, names = np.asarray(array, dtype=float), joints
        if _ALIASES.get(field, field).startswith("motor_"):
            names = motors
        if values.ndim == 1:
            columns.append((field, values))
        elif len(names) == values.shape[1]:
            columns += [(f"{field}.{name}", x) for name, x in zip(names, values.T, strict=True)]
        else:
            columns += [(f"{field}[{k}]", x) for k, x in enumerate(values.T)]
    if not columns:
        raise ValueError(f"has no arrays of numbers; it has {listed(arrays) or 'nothing'}")
    return columns, ()


TABLES: Mapping[str, Callable[[Path], Columns]] = {
    **dict.fromkeys(_TEXT, _csv),
    ".parquet": _parquet,
    ".npz": _npz,
    "": _data_set,
}
"""Readers of tables by ending, and of folders; each returns names and values of columns, and notes."""
