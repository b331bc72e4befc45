# SPDX-License-Identifier: Apache-2.0
"""Comparison of two Parquet tables of commands, row by row, like that of bags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...bags import BagError
from ...extras import require
from ...messages.fields import COMMAND_FIELDS
from .compare import Difference, Match, MatchedRows, Tolerances, differences, matched

NAME = "table"
"""Stands for a topic in the results."""

_TIMES = ("recorded", "stamp")

# Rows read at a time.
_BLOCK = 4096


def check_golden_table(golden: Path) -> None:
    """Refuse a golden table without comparable columns, before anything is computed."""
    with _reading(golden):
        _columns(golden, _open(golden).schema_arrow)


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def compare_tables(path: Path, golden: Path, tolerances: Tolerances, match: Match = Match.RECORDED) -> list[Difference]:
    """Compare a table of commands, as a replay writes it, with a golden one.

    Returns:
        A row for each field; those with ``beyond`` > 0 differ.

    Raises:
        BagError: a table cannot be read.
        OSError: a file cannot be read.
    """
    return differences(NAME, matched(_parts(path, match), _parts(golden, match)), tolerances, match)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn pyarrow's errors into a BagError of the file; OSErrors of the system stay."""
    require("parquet")
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split())
        raise BagError(f"{path}: cannot be read as a Parquet table: {reason:.300}") from None


def _open(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    if not path.is_file():
        reason = "is not a Parquet file" if path.exists() else "there is no such table"
        raise BagError(f"{path}: {reason}; compare tables with tables, bags with bags")
    return ParquetFile(path)


def _columns(path: Path, schema: Any) -> dict[str, list[str]]:
    """Return the columns of commands by field; BagError if the table is not one of commands."""
    import pyarrow as pa

    kinds = dict(zip(schema.names, schema.types, strict=True))
    wanted = {**dict.fromkeys(_TIMES, _is_nanoseconds), "frame": pa.types.is_string, "held": pa.types.is_boolean}
    found: dict[str, list[str]] = {"held": ["held"]}
    for name in kinds.keys() - wanted.keys():
        field = name.partition(".")[0]
        if field in COMMAND_FIELDS:
            wanted[name] = pa.types.is_float64
            found.setdefault(field, []).append(name)
    wrong = [name for name, test in wanted.items() if name not in kinds or not test(kinds[name])]
    if wrong or len(found) == 1:
        reason = f"column {wrong[0]} is {kinds.get(wrong[0], 'missing')}" if wrong else "it has no commands"
        raise BagError(f"{path}: is not a table of commands: {reason}; name one that eom_dynamics replay wrote")
    return {field: sorted(found[field]) for field in (*COMMAND_FIELDS, "held") if field in found}


def _is_nanoseconds(kind: Any) -> bool:
    return getattr(kind, "unit", "") == "ns" and str(kind).startswith("timestamp")


def _parts(path: Path, match: Match) -> Iterator[MatchedRows]:
    with _reading(path):
        file = _open(path)
        columns = _columns(path, file.schema_arrow)
        names = [name for of_field in columns.values() for name in of_field]
        entries = {field: [name.partition(".")[2] for name in of_field] for field, of_field in columns.items()}
        for batch in file.iter_batches(_BLOCK, columns=[*_TIMES, "frame", *names]):
            times = {name: _times(path, batch.column(name), name) for name in _TIMES}
            found = {name: batch.column(name).to_numpy(zero_copy_only=False).astype(float) for name in names}
            numbers = {
                field: np.column_stack([found[name] for name in of_field]) for field, of_field in columns.items()
            }
            numbers["header.stamp"] = np.column_stack(np.divmod(times["stamp"], 1_000_000_000)).astype(float)
            keys = times["recorded" if match is Match.RECORDED else "stamp"]
            frames = np.array(batch.column("frame").to_pylist(), dtype=object)
            cuts = [0, *(np.flatnonzero(frames[1:] != frames[:-1]) + 1).tolist(), len(frames)]
            for first, end in pairwise(cuts):
                if first < end:
                    texts = "\0".join([str(frames[first]), *names]).encode()
                    yield MatchedRows(keys, texts, numbers, entries).part(slice(first, end))


def _times(path: Path, column: Any, name: str) -> NDArray[np.int64]:
    if column.null_count:
        raise BagError(f"{path}: column {name} lacks values; write the table anew")
    return np.asarray(column.cast("int64"))
