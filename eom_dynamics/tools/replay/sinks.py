# SPDX-License-Identifier: Apache-2.0
"""Outputs for commands: bags and Parquet tables, which appear only when complete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...bags import Bag, BagError, Storage, open_writer
from ...bags.bag import METADATA
from ...extras import require
from ...messages.fields import COMMAND_FIELDS, EFFORT_FIELDS
from ...robot import Robot
from ..writing import FolderError, whole_file, whole_folder
from .evaluation import Commands
from .job import PROVENANCE, Format, Job
from .messages import Serializer, output_topics


@contextmanager
def open_sink(job: Job, namespace: str, robot: Robot, motor_names: tuple[str, ...]) -> Iterator[_BagSink | _Table]:
    """Begin an output; it appears when the context ends without an error, if it was closed.

    Raises:
        FolderError: the output cannot be written, exists, or was not made by a replay and must not be overwritten.
    """
    if job.format is Format.PARQUET:
        require("parquet")
    if job.force:
        check_replaceable(job)
    replaced = _files_of_bag(job.output) if job.force else []
    if job.format is Format.PARQUET:
        with whole_file(job.output, force=job.force) as file:
            table = _Table(file, robot, motor_names)
            try:
                yield table
            finally:
                table.abort()
        return
    if job.format is Format.MCAP and job.output.suffix == ".mcap":
        with whole_file(job.output, force=job.force) as file, _bag_sink(file.parent, job, namespace) as single:
            yield single
            (written,) = file.parent.glob("*.mcap")
            written.replace(file)
        return
    with whole_folder(job.output, force=job.force) as folder, _bag_sink(folder, job, namespace) as bag:
        yield bag
    for stale in replaced:
        if stale.name not in bag.names:
            stale.unlink(missing_ok=True)


@contextmanager
def _bag_sink(folder: Path, job: Job, namespace: str) -> Iterator[_BagSink]:
    bag = _BagSink(folder, job, namespace)
    try:
        yield bag
    except BaseException:
        bag.abort()
        raise


def check_replaceable(job: Job) -> None:
    """Refuse to overwrite anything but the output of a replay: a recording cannot be repeated."""
    output = job.output
    if not os.path.lexists(output) or (output.is_dir() and not any(output.iterdir())):
        return
    if output.exists() and output.resolve() == job.bag.resolve():
        raise FolderError(f"{output}: is the bag to replay; name another output")
    if output.exists() and provenance_of(output, job.format) is None:
        raise FolderError(f"{output}: was not made by eom_dynamics replay and is not overwritten; name another output")


def _files_of_bag(output: Path) -> list[Path]:
    """Files that the metadata of a replaceable output lists: other recordings in its folder are the user's."""
    if not (output / METADATA).is_file():
        return []
    metadata = yaml.safe_load((output / METADATA).read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
    return [output / Path(name).name for name in metadata["relative_file_paths"]]


def provenance_of(output: Path, kind: Format) -> dict[str, Any] | None:
    """Settings and report of an output, from its metadata; None if it was not made by a replay."""
    try:
        if kind is Format.PARQUET:
            require("parquet")
            import pyarrow.parquet as parquet

            # Of the file: the schema's metadata was written before the replay was done.
            text = (parquet.read_metadata(output).metadata or {})[PROVENANCE.encode()].decode()
        else:
            with Bag(output) as bag:
                text = bag.custom_data[PROVENANCE]
        found = json.loads(text)
    except (BagError, OSError, KeyError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _BagSink:
    """The node's topics, as a bag."""

    def __init__(self, folder: Path, job: Job, namespace: str) -> None:
        self._serializer = Serializer()
        self._folder = folder
        self._writer = open_writer(
            folder, job.output.name.removesuffix(".mcap"), Storage(job.format.value), output_topics(namespace)
        )
        self.names: set[str] = set()

    def write(self, commands: Commands) -> None:
        self._writer.write(commands.stamps.recorded, self._serializer.rows(commands))

    def close(self, provenance: str) -> None:
        self._writer.close({PROVENANCE: provenance})
        self.names = {path.name for path in self._folder.iterdir()}

    def abort(self) -> None:
        self._writer.abort()


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

    def close(self, provenance: str) -> None:
        self._writer.add_key_value_metadata({PROVENANCE: provenance})
        self._writer.close()

    def abort(self) -> None:
        self._writer.close()
