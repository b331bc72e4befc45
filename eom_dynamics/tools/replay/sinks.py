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
from ..writing import FolderError, whole_file, whole_folder
from .evaluation import Commands
from .job import Format, Job
from .manifest import Manifest, read_manifest
from .messages import Serializer, output_topics

Sink = Callable[[Commands], None]
"""Writes commands to an output."""


@contextmanager
def open_sink(job: Job, namespace: str, robot: Robot, motor_names: tuple[str, ...]) -> Iterator[Sink]:
    """Begin an output; it appears when the context ends without an error.

    Raises:
        FolderError: the output cannot be written, exists, or was not made by a replay and must not be overwritten.
    """
    if job.format is Format.PARQUET:
        require("parquet")
    replaced = check_replaceable(job, read_manifest(job.manifest)) if job.force else []
    if job.format is Format.PARQUET:
        with whole_file(job.output, force=job.force) as file, _Table(file, robot, motor_names) as table:
            yield table.write
    elif job.is_file:
        with whole_file(job.output, force=job.force) as file, _bag_sink(file.parent, job, namespace) as write:
            yield write
    else:
        with whole_folder(job.output, force=job.force) as folder, _bag_sink(folder, job, namespace) as write:
            yield write
        for name in replaced:
            if name not in job.files:
                (job.output / name).unlink(missing_ok=True)


@contextmanager
def _bag_sink(folder: Path, job: Job, namespace: str) -> Iterator[Sink]:
    serializer = Serializer()
    with BagWriter(folder, job.bag_name, Storage(job.format.value), output_topics(namespace)) as writer:
        yield lambda commands: writer.write(commands.stamps.recorded, serializer.rows(commands))


def check_replaceable(job: Job, made: Manifest) -> list[str]:
    """Refuse to overwrite anything but the output of a replay: a recording cannot be repeated.

    Args:
        made: by earlier replays.

    Returns:
        Names of the files that are replaced, if the output is a folder: other recordings in it are the user's.
    """
    output = job.output
    if not os.path.lexists(output) or (output.is_dir() and not any(output.iterdir())):
        return []
    if output.exists() and output.resolve() == job.bag.resolve():
        raise FolderError(f"{output}: is the bag to replay; name another output")
    if job.name not in made:
        raise FolderError(f"{output}: was not made by eom_dynamics replay and is not overwritten; name another output")
    return made[job.name].files


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
