# SPDX-License-Identifier: Apache-2.0
"""Waypoints of a path in CSV, JSON, NumPy arrays or a bag."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..control.joint_order import JointOrder
from ..control.trajectories import read_positions
from ..exceptions import StateError
from ..spelling import listed
from .number_files import read_arrays, read_table

_MOST = 20_000  # largest number of waypoints


def read_waypoints(path: Path, joint_names: Sequence[str]) -> Array:
    """Waypoints (K, n) in a robot's order of joints, rad or m.

    Args:
        path: a ``.csv`` file with a column for each joint, under its name or ``q.NAME``, other columns are ignored; a
            ``.json`` file with ``joint_names`` and ``points`` with ``positions``, or lists of them; a ``.npz`` file
            with ``q`` (K, n), and optionally ``joint_names``; or a bag, of which the first JointTrajectory is read.

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
