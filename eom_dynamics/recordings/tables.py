# SPDX-License-Identifier: Apache-2.0
"""Tables of a recording, in CSV, Parquet or NumPy archives.

A table has a column ``t`` or ``time`` (s), and for each joint NAME ``position.NAME`` and ``effort.NAME``, and
``velocity.NAME`` if it was recorded; ``q.NAME``, ``qd.NAME`` and ``tau.NAME`` are the same. Tables of ``eom_dynamics
replay`` have ``stamp`` (ns) for the time. For columns of motors see :mod:`.sides`. A .npz file has these columns as
arrays (T,), or arrays of all joints: q, qd, tau (T, n) with joint_names (n,), and theta, thetad with motor_names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..arrays import Array
from ..control.fields import EFFORT_FIELDS, MEASURED_FIELDS, MOTOR_SETPOINT_FIELDS
from ..exceptions import require
from ..identification import IdentificationError
from ..spelling import duplicates, listed
from . import Conventions
from .number_files import read_arrays, read_table
from .streams import Refusals, Stream

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


@dataclass(frozen=True, eq=False)
class NumericTable:
    """Columns of numbers (N,) of a table, by name; aliases, which it wrote, are replaced."""

    path: Path
    values: dict[str, Array]
    written: dict[str, str]

    def stream(self, side: str, conventions: Conventions, refusals: Refusals) -> Stream:
        """Read positions, velocities and efforts of one of :data:`COLUMNS`.

        Raises IdentificationError if there are no times, or no positions.
        """
        named, columns = self.values, COLUMNS[side]
        if "t" in named:
            t = named["t"]
        elif "stamp" in named:
            t = named["stamp"] * 1e-9
        else:
            raise IdentificationError(f"{self.path}: has no column t or time, of times in s; it has {listed(named)}")
        position = columns[0]
        joints = tuple(name.partition(".")[2] for name in named if name.startswith(f"{position}."))
        if not joints:
            raise IdentificationError(f"{self.path}: has no columns {position}.NAME; it has {listed(named)}")
        known = np.isfinite(t)
        start = t[np.argmax(known)] if known.any() else 0.0
        known &= np.abs(t - start) < _LONGEST
        if not known.all():
            refusals.add("its time is not a finite number", 0, int(np.sum(~known)))
        fields: dict[str, Array] = {}
        for field, source in zip(MEASURED_FIELDS, columns, strict=True):
            there = [named.get(f"{source}.{joint}") for joint in joints]
            if any(column is not None for column in there):
                fields[field] = np.column_stack([np.full(len(t), np.nan) if c is None else c for c in there])[known]
        stamp = np.round(1e9 * (t[known] - start)).astype(np.int64)
        return Stream("the table", stamp, stamp, tuple(conventions.names(joints)), fields)


def read_numeric_table(path: Path) -> NumericTable:
    """Read a table; IdentificationError if the file is not a table or contains commands, OSError if not readable."""
    if not path.is_file():
        raise IdentificationError(f"{path}: there is no such file")
    try:
        columns = TABLES[path.suffix](path)
    except ValueError as error:
        wanted = "; its columns are t, position.JOINT and effort.JOINT" if path.suffix == ".csv" else ""
        raise IdentificationError(f"{path}: {' '.join(str(error).split())}{wanted}") from None
    # Alone or before a dot, as in q.NAME.
    parts = [(name.strip().partition("."), values) for name, values in columns]
    named = [(_ALIASES.get(kind, kind) + dot + joint, values) for (kind, dot, joint), values in parts]
    if twice := duplicates(name for name, _ in named):
        raise IdentificationError(f"{path}: has columns of the same name: {listed(twice)}; remove one of each")
    kinds = {_ALIASES.get(kind, kind): kind for (kind, _, _), _ in parts}
    if not kinds.keys().isdisjoint(_COMPUTED):
        raise IdentificationError(f"{path}: has commands, not measurements; name the recording that they were made of")
    return NumericTable(path, dict(named), kinds)


def _csv(path: Path) -> list[tuple[str, Array]]:
    names, table = read_table(path)
    if names is None:
        raise ValueError("the first line must name the columns")
    return list(zip(names, table.T, strict=True))


def _parquet(path: Path) -> list[tuple[str, Array]]:
    require("parquet")
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    result = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        scale = 1.0
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
            scale = 1.0 if name == "stamp" else 1e-9
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            result.append((name, scale * np.asarray(column.to_numpy(), dtype=float)))
    return result


def _npz(path: Path) -> list[tuple[str, Array]]:
    """Columns of an archive: arrays (N, n) by ``joint_names``, and arrays (N,) by their own name."""
    arrays = read_arrays(path)
    if (t := arrays.get("t", arrays.get("time"))) is None:
        raise ValueError(f"has no array t; it has {listed(arrays) or 'nothing'}")
    joints = [str(name) for name in arrays.pop("joint_names", np.array([])).ravel()]
    motors = [str(name) for name in arrays.pop("motor_names", np.array(joints)).ravel()]
    columns = []
    for field, values in arrays.items():
        if values.dtype.kind not in "fiu" or values.shape[:1] != t.shape:  # texts, or values of the whole recording
            continue
        names = motors if _ALIASES.get(field, field).startswith("motor_") else joints
        if values.ndim == 1:
            columns.append((field, np.asarray(values, dtype=float)))
        elif not joints:
            raise ValueError(f"has no array joint_names, which names the columns of {field}")
        elif values.shape == (t.size, len(names)):
            columns += [
                (f"{field}.{name}", np.asarray(x, dtype=float)) for name, x in zip(names, values.T, strict=True)
            ]
    return columns


TABLES = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}
"""Readers of tables by ending: each returns names and values of columns."""
