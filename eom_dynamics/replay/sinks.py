# SPDX-License-Identifier: Apache-2.0
"""Where commands go: a bag, or a Parquet table. Either appears when it is complete."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..bags import Bag, BagError, Storage, open_writer
from ..exceptions import EomDynamicsError
from ..robot import Robot
from ..stream.conversions import COMMAND_FIELDS, EFFORT_FIELDS
from ..writing import FolderError, whole_file, whole_folder
from .evaluation import Commands
from .job import REMARK, Format, Job
from .messages import Serializer, output_topics


class Sink(Protocol):
    """Takes commands."""

    def write(self, commands: Commands) -> None:
        """Take some."""
        ...

    def close(self, remark: str) -> None:
        """Take no more; ``remark`` stays beside them."""
        ...


@contextmanager
def open_sink(job: Job, namespace: str, robot: Robot, motor_names: tuple[str, ...]) -> Iterator[Sink]:
    """Begin an output; it comes to its place when the context ends without an error, if it was closed.

    Args:
        job: says what and where.
        namespace: of the topics.
        robot, motor_names: whose commands come.

    Raises:
        FolderError: the output cannot be written, is there already, or is not one of these to be written over.
    """
    if job.format is Format.PARQUET:
        require("pyarrow")
    if job.force:
        check_replaceable(job)
    if job.format is Format.PARQUET:
        with whole_file(job.output, force=job.force) as file:
            table = _Table(file, robot, motor_names)
            try:
                yield table
            finally:
                table.abort()
        return
    with whole_folder(job.output, force=job.force) as folder:
        bag = _BagSink(folder, job, namespace)
        try:
            yield bag
        except BaseException:
            bag.abort()
            raise
    for stale in job.output.iterdir():  # with --force, those of the bag that was there
        if stale.suffix in (".mcap", ".db3") and not bag.wrote(stale.name):
            stale.unlink()


def check_replaceable(job: Job) -> None:
    """Refuse to write over what replay did not make: a recording cannot be made anew.

    Raises:
        FolderError: the output is the bag that is read, or is not of this program.
    """
    output = job.output
    if not os.path.lexists(output) or (output.is_dir() and not any(output.iterdir())):
        return
    if output.exists() and output.resolve() == job.bag.resolve():
        raise FolderError(f"{output}: is the bag that is read; name another output")
    if output.exists() and remark_of(output, job.format) is None:
        raise FolderError(
            f"{output}: was not made by eom_dynamics replay, and is not written over; name another output"
        )


def require(module: str) -> None:
    """Refuse to go on where a package of an extra is missing."""
    if importlib.util.find_spec(module) is None:
        raise EomDynamicsError(f"{module} is missing: make build, or pip install 'eom_dynamics[fleet]'")


def remark_of(output: Path, kind: Format) -> dict[str, Any] | None:
    """What an output that is there says of itself; None where it says nothing, as it is not of this program."""
    try:
        if kind is Format.PARQUET:
            require("pyarrow")
            import pyarrow.parquet as parquet

            text = (parquet.read_schema(output).metadata or {})[REMARK.encode()].decode()
        else:
            with Bag(output) as bag:
                text = bag.remarks[REMARK]
        return dict(json.loads(text))
    except (BagError, OSError, KeyError, ValueError):
        return None


class _BagSink:
    def __init__(self, folder: Path, job: Job, namespace: str) -> None:
        self._serializer = Serializer()
        self._folder = folder
        self._writer = open_writer(folder, job.output.name, Storage(job.format.value), output_topics(namespace))
        self._names: set[str] = set()

    def write(self, commands: Commands) -> None:
        self._writer.write(commands.stamps.recorded, self._serializer.rows(commands))

    def close(self, remark: str) -> None:
        self._writer.close({REMARK: remark})
        self._names = {path.name for path in self._folder.iterdir()}

    def abort(self) -> None:
        self._writer.abort()

    def wrote(self, name: str) -> bool:
        return name in self._names


class _Table:
    """Columns ``recorded`` and ``stamp`` (ns), ``frame``, ``held``, and one for each field and joint or motor."""

    def __init__(self, file: Path, robot: Robot, motor_names: tuple[str, ...]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        self._names = {name: robot.joint_names if name in EFFORT_FIELDS else motor_names for name in COMMAND_FIELDS}
        numbers = [(f"{field}.{name}", pa.float64()) for field, names in self._names.items() for name in names]
        self._pa, self._schema = (
            pa,
            pa.schema(
                [
                    *(("recorded", pa.timestamp("ns", tz="UTC")), ("stamp", pa.timestamp("ns", tz="UTC"))),
                    *(("frame", pa.string()), ("held", pa.bool_())),
                    *numbers,
                ]
            ),
        )
        self._writer = parquet.ParquetWriter(file, self._schema)

    def write(self, commands: Commands) -> None:
        there = {name: commands.joint_names if name in EFFORT_FIELDS else commands.motor_names for name in self._names}
        columns: list[Any] = [commands.stamps.recorded, commands.stamps.header, [commands.frame] * len(commands)]
        columns.append(commands.held)
        for field, names in self._names.items():
            places = [there[field].index(name) for name in names]
            columns += list(np.ascontiguousarray(commands.values[field][:, places].T))
        arrays = [self._pa.array(column, type=kind.type) for column, kind in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self, remark: str) -> None:
        self._writer.add_key_value_metadata({REMARK: remark})
        self._writer.close()

    def abort(self) -> None:
        self._writer.close()
