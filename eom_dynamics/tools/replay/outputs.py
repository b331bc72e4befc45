# SPDX-License-Identifier: Apache-2.0
"""Outputs for commands: bags with the node's messages, and Parquet tables, which appear only when complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS
from ...exceptions import require
from ...recordings.bags import Bag, BagError, BagWriter, Layout, Storage
from ...recordings.bags.layout import Bytes
from ...recordings.bags.types import COMMAND, JOINT_STATE, NUMBERS
from ...robot import Robot
from ..writing import TEMPORARY, FolderError, whole_file, whole_folder
from .evaluation import Commands
from .job import Job

_TOPICS = {"feedforward": COMMAND, "motor_setpoint": JOINT_STATE, "effort_command": NUMBERS}
_MOST_TEMPLATES = 32  # the templates of so many combinations of names are kept

# Writes commands to an output.
_Sink = Callable[[Commands], None]


def output_topics(namespace: str) -> dict[str, str]:
    """Types of the node's topics by their names in a namespace, such as ``/`` or ``/arm``."""
    return {f"{namespace.rstrip('/')}/{name}": kind for name, kind in _TOPICS.items()}


@contextmanager
def open_sink(job: Job, topic: str, robot: Robot, motor_names: tuple[str, ...]) -> Iterator[_Sink]:
    """Begin an output of commands for a topic; it appears when the context ends without an error.

    Raises FolderError if the output cannot be written, exists, or must not be overwritten
    because no replay wrote it.
    """
    if job.format == "parquet":
        require("parquet")
    _check_overwritten(job)
    name = job.output.name.removesuffix(".mcap")
    with (whole_file if job.is_file else whole_folder)(job.output, force=job.force) as target:
        if job.format == "parquet":
            with _table_sink(target, robot, motor_names) as write:
                yield write
        else:
            layouts: dict[tuple[Any, ...], list[Layout]] = {}
            topics = output_topics(topic.rpartition("/")[0])
            folder = target.parent if job.is_file else target
            with BagWriter(folder, name, Storage(job.format), topics) as writer:
                yield lambda commands: writer.write(commands.setpoints.recorded, _messages(commands, layouts))
        _check_overwritten(job)  # again: computing takes its time


def _check_overwritten(job: Job) -> None:
    """Raise FolderError if ``force`` would overwrite anything but commands: a recording cannot be repeated."""
    output = job.output
    if not job.force or not os.path.lexists(output):
        return
    if output.is_dir() and all(path.name.startswith(TEMPORARY) for path in output.iterdir()):
        return
    if output.exists() and output.resolve() == job.bag.resolve():
        raise FolderError(f"{output}: is the bag to replay; name another output")
    if not _has_commands_alone(output):
        raise FolderError(f"{output}: was not made by eom_dynamics replay and is not overwritten; name another output")


def _has_commands_alone(path: Path) -> bool:
    try:
        if path.suffix == ".parquet":
            from pyarrow.parquet import read_schema

            return bool(read_schema(path).names[:2] == ["recorded", "stamp"])
        with Bag(path) as bag:
            return all(topic.type == _TOPICS.get(topic.name.rpartition("/")[2]) for topic in bag.topics)
    except (BagError, OSError, ValueError):
        return False


def _messages(commands: Commands, layouts: dict[tuple[Any, ...], list[Layout]]) -> list[Bytes]:
    """Serialise commands as messages (N, size) of each of :func:`output_topics`; ``layouts`` are kept from before."""
    status = commands.status[:, np.newaxis]
    single = {"held": status != 0, "status": status, "command_lead": np.full(status.shape, commands.lead)}
    header, motors = {"frame_id": commands.setpoints.frame}, commands.motor_names
    kinds: list[tuple[str, dict[str, Any], dict[str, NDArray[Any]]]] = [
        (COMMAND, {"header": header, "joint_names": commands.joint_names, "motor_names": motors}, commands.values),
        (JOINT_STATE, {"header": header, "name": motors}, commands.motor_setpoint),
        (NUMBERS, {}, {"data": commands.effort_command}),
    ]
    # Non-numeric differences within a topic, which change the layout.
    key = (commands.setpoints.frame, commands.joint_names, motors, commands.effort_command.shape[1])
    if key not in layouts:
        if len(layouts) >= _MOST_TEMPLATES:
            layouts.clear()
        layouts[key] = [
            Layout.of(kind, **texts, **{name: np.zeros(x.shape[1]) for name, x in fields.items()})
            for kind, texts, fields in kinds
        ]
    results = []
    for layout, (kind, texts, fields) in zip(layouts[key], kinds, strict=True):
        rows = np.tile(layout.template, (len(commands), 1))
        if "header" in texts:
            layout.set_stamps(rows, commands.setpoints.stamp)
        for name, values in {**fields, **(single if kind == COMMAND else {})}.items():
            layout.set_numbers(rows, name, values)
        results.append(rows)
    return results


@contextmanager
def _table_sink(file: Path, robot: Robot, motor_names: tuple[str, ...]) -> Iterator[_Sink]:
    """Columns ``recorded`` and ``stamp`` (ns), ``frame``, ``held``, and one for each field and joint or motor."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    names_of = {name: robot.joint_names if name in EFFORT_FIELDS else motor_names for name in COMMAND_FIELDS}
    time = pa.timestamp("ns", tz="UTC")
    columns = [("recorded", time), ("stamp", time), ("frame", pa.string()), ("held", pa.bool_())]
    columns += [(f"{field}.{name}", pa.float64()) for field, names in names_of.items() for name in names]
    schema = pa.schema(columns)

    def write(commands: Commands) -> None:
        values: list[Any] = [
            commands.setpoints.recorded,
            commands.setpoints.stamp,
            [commands.setpoints.frame] * len(commands),
        ]
        values.append(commands.status != 0)
        for field, names in names_of.items():
            there = commands.joint_names if field in EFFORT_FIELDS else commands.motor_names
            values += list(np.ascontiguousarray(commands.values[field][:, [there.index(name) for name in names]].T))
        arrays = [pa.array(column, type=kind.type) for column, kind in zip(values, schema, strict=True)]
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

    with parquet.ParquetWriter(file, schema) as writer:
        yield write
