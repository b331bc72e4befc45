# SPDX-License-Identifier: Apache-2.0
"""Outputs for commands: bags and Parquet tables, which appear only when complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...bags import BagWriter, Storage
from ...extras import require
from ...messages.fields import COMMAND_FIELDS, EFFORT_FIELDS
from ...robot import Robot
from ..contents import file_hash
from ..writing import TEMPORARY, FolderError, whole_file, whole_folder
from .evaluation import Commands
from .job import Format, Job, Report
from .manifest import add_to_manifest, read_manifest
from .messages import Serializer, output_topics

Sink = Callable[[Commands], None]
"""Writes commands to an output."""


@contextmanager
def open_sink(job: Job, report: Report, robot: Robot, motor_names: tuple[str, ...]) -> Iterator[Sink]:
    """Begin an output; it appears, and its line in the manifest, when the context ends without an error.

    Args:
        report: on the replay, complete when the context ends.

    Raises:
        FolderError: the output cannot be written, exists, or is the user's and must not be overwritten.
    """
    if job.format is Format.PARQUET:
        require("parquet")
    _superseded(job)
    with (whole_file if job.is_file else whole_folder)(job.output, force=job.force) as target:
        folder = target.parent if job.is_file else target
        if job.format is Format.PARQUET:
            with _Table(target, robot, motor_names) as table:
                yield table.write
        else:
            with _bag_sink(folder, job, report.topic.rpartition("/")[0]) as write:
                yield write
        files = {name: file_hash(folder / name) for name in job.files}
        superseded = _superseded(job)  # again: computing takes its time
    for path in superseded:
        path.unlink(missing_ok=True)
    add_to_manifest(job, report, files)


@contextmanager
def _bag_sink(folder: Path, job: Job, namespace: str) -> Iterator[Sink]:
    serializer = Serializer()
    with BagWriter(folder, job.bag_name, Storage(job.format.value), output_topics(namespace)) as writer:
        yield lambda commands: writer.write(commands.stamps.recorded, serializer.rows(commands))


def _superseded(job: Job) -> list[Path]:
    """Return the files of an earlier replay that ``force`` removes, as the new output has others.

    Raises:
        FolderError: something is not as a replay wrote it: a recording cannot be repeated.
    """
    output = job.output
    if not job.force or not os.path.lexists(output):
        return []
    if output.is_dir() and all(path.name.startswith(TEMPORARY) for path in output.iterdir()):
        return []
    if output.exists() and output.resolve() == job.bag.resolve():
        raise FolderError(f"{output}: is the bag to replay; name another output")
    entry = read_manifest(job.manifest).get(job.name)
    folder = output.parent if job.is_file else output
    names = dict.fromkeys([*job.files, *entry.files]) if entry else ()
    existing = [folder / name for name in names if os.path.lexists(folder / name)]
    if entry is None or not existing:
        raise FolderError(f"{output}: was not made by eom_dynamics replay and is not overwritten; name another output")
    for path in existing:
        if not entry.wrote(path):
            what = "is not what eom_dynamics replay wrote and is not overwritten"
            raise FolderError(f"{path}: {what}; move it elsewhere, or name another output")
    return [path for path in existing if path.name not in job.files]


class _Table:
    """Columns ``recorded`` and ``stamp`` (ns), ``frame``, ``held``, and one for each field and joint or motor."""

    def __init__(self, file: Path, robot: Robot, motor_names: tuple[str, ...]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        self._names = {name: robot.joint_names if name in EFFORT_FIELDS else motor_names for name in COMMAND_FIELDS}
        time = pa.timestamp("ns", tz="UTC")
        columns = [("recorded", time), ("stamp", time), ("frame", pa.string()), ("held", pa.bool_())]
        columns += [(f"{field}.{name}", pa.float64()) for field, names in self._names.items() for name in names]
        self._pa, self._schema = pa, pa.schema(columns)
        self._writer = parquet.ParquetWriter(file, self._schema)

    def write(self, commands: Commands) -> None:
        columns: list[Any] = [commands.stamps.recorded, commands.stamps.header, [commands.frame] * len(commands)]
        columns.append(commands.held)
        for field, names in self._names.items():
            there = commands.joint_names if field in EFFORT_FIELDS else commands.motor_names
            values = commands.values[field][:, [there.index(name) for name in names]]
            columns += list(np.ascontiguousarray(values.T))
        arrays = [self._pa.array(column, type=kind.type) for column, kind in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
