# SPDX-License-Identifier: Apache-2.0
"""Files of ``excite``: collision spheres to read; result, bags and tables of an optimal excitation to write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..control.fields import STATE_FIELDS
from ..control.trajectories import trajectory_fields
from ..exceptions import RobotDescriptionError
from ..identification.excitation import Excitation, OptimalExcitation
from ..recordings.bags import BagWriter, Layout, Storage
from ..recordings.bags.types import JOINT_TRAJECTORY, SETPOINT, serialized
from ..recordings.number_files import write_states
from ..robot.formats import PARAMETER_FILE, format_of
from ..robot.readers.files import MAX_CHARACTERS, parse, read_text
from ..trajectory import Trajectory, sample
from .quantity_text import number
from .results import Result, ResultSection, TextTable
from .writing import whole_folder

_WAYPOINTS = 100.0  # rate of the points of the JointTrajectory, Hz
_START = 1_000_000_000  # stamp of the first message, ns; a stamp of zero would stand for the present


def excitation_result(task: Excitation, optimum: OptimalExcitation, folder: Path) -> Result:
    """Make the result of an excitation with its files in a folder."""
    motion, P = optimum.trajectory, len(task.model.columns)
    stuck = "no better motion than the start was found; where springs may go slack, limit efforts by --effort"
    return Result(
        lead=[
            f"{task.robot.name}: {motion.end:g} s, {motion.sine.shape[1]} harmonics of {motion.frequency:.4g} Hz, "
            f"{P} parameters, {task.limits.share:.0%} of the limits"
        ],
        sections=[ResultSection(tables=[_gains(optimum, P)]), ResultSection(tables=[_used(optimum)])],
        notes=[stuck] if optimum.information == optimum.start_information else (),
        failures=() if optimum.verdict.ok else [f"exceeds limits: {optimum.verdict}"],
        files={"folder": folder},
        json=motion_as_json(task, optimum),
    )


def motion_as_json(task: Excitation, optimum: OptimalExcitation) -> dict[str, Any]:
    """Return settings, coefficients and results."""
    motion = optimum.trajectory
    return {
        "robot": task.robot.name,
        "joints": list(task.robot.joint_names),
        "parameters": list(task.model.names),
        "frequency": motion.frequency,
        "periods": motion.periods,
        "duration": motion.end,
        "share": task.limits.share,
        "sine": motion.sine.tolist(),
        "cosine": motion.cosine.tolist(),
        "offset": motion.offset.tolist(),
        "start": optimum.start_information._asdict(),
        "optimized": optimum.information._asdict(),
        "iterations": optimum.iterations,
        "ended": optimum.message,
        "limits": [
            {"joint": peak.name, **{key: getattr(peak, key) for key in ("quantity", "value", "limit", "unit", "ratio")}}
            for peak in optimum.verdict.peaks
            if np.isfinite(peak.limit)
        ],
        "within_limits": optimum.verdict.ok,
    }


def _gains(optimum: OptimalExcitation, parameters: int) -> TextTable:
    before, after = optimum.start_information, optimum.information
    deviation = np.exp((before.log_det - after.log_det) / (2 * parameters))
    scaled = before.scaled_condition / after.scaled_condition
    figures = (
        ("condition number", before.condition, after.condition, before.condition / after.condition),
        ("condition number, columns scaled", before.scaled_condition, after.scaled_condition, scaled),
        ("smallest singular value", before.smallest, after.smallest, after.smallest / before.smallest),
        ("standard deviation, mean of all parameters", 1.0, deviation, 1 / deviation),
    )
    rows = [(name, number(old), number(new), f"{number(gain)} ×") for name, old, new, gain in figures]
    rows.append(("log det of the information", number(before.log_det), number(after.log_det), ""))
    return TextTable(("", "start", "optimised", "gain"), rows)


def _used(optimum: OptimalExcitation) -> TextTable:
    limited = [peak for peak in optimum.verdict.peaks if np.isfinite(peak.limit)]
    ratios = {(peak.name, peak.quantity): f"{peak.ratio:.0%}" for peak in limited}
    names, quantities = (list(dict.fromkeys(entries)) for entries in zip(*ratios, strict=True))
    rows = [(name, *(ratios.get((name, quantity), "") for quantity in quantities)) for name in names]
    return TextTable(("largest share of limits", *(quantity.replace("_", " ") for quantity in quantities)), rows)


def write_outputs(
    folder: Path, task: Excitation, optimum: OptimalExcitation, *, rate: float, force: bool = False
) -> None:
    """Write the bags ``setpoint`` and ``joint_trajectory``, and the motion as JSON, CSV and NumPy arrays.

    The rate, Hz, is the rate of setpoints and states.
    """
    names, motion = task.robot.joint_names, optimum.trajectory
    with whole_folder(folder, force=force) as aside:
        bags = {"setpoint": (write_setpoints, rate), "joint_trajectory": (write_trajectory, _WAYPOINTS)}
        for name, (write, hz) in bags.items():
            (aside / name).mkdir()
            write(aside / name, motion, names, hz)
        fields = trajectory_fields(motion, names, _WAYPOINTS)
        (aside / "joint_trajectory.json").write_text(f"{json.dumps(fields)}\n", encoding="utf-8")
        text = json.dumps(motion_as_json(task, optimum), indent=2)
        (aside / "excitation.json").write_text(f"{text}\n", encoding="utf-8")
        write_states(aside, sample(motion, rate), names)


def write_setpoints(folder: Path, motion: Trajectory, joint_names: Sequence[str], rate: float) -> None:
    """Write a bag with the topic ``setpoint`` at a rate, Hz, into an empty folder, named like the folder."""
    samples = sample(motion, rate)
    since = np.round((samples.t - motion.start) * 1e9).astype(np.int64)
    still = np.zeros(len(joint_names))
    layout = Layout.of(SETPOINT, joint_names=joint_names, **dict.fromkeys(STATE_FIELDS, still))
    rows = np.tile(layout.template, (len(since), 1))
    layout.set_stamps(rows, _START + since)
    for field, values in zip(STATE_FIELDS, samples[1:], strict=True):
        layout.set_numbers(rows, field, values)
    with BagWriter(folder, folder.name, Storage.MCAP, {"/setpoint": SETPOINT}) as writer:
        writer.write(_START + since, [rows])


def write_trajectory(folder: Path, motion: Trajectory, joint_names: Sequence[str], rate: float) -> None:
    """Write a bag with one message on the topic ``joint_trajectory``; arguments as for :func:`write_setpoints`."""
    header = {"stamp": {"sec": _START // 10**9}}
    message = serialized(JOINT_TRAJECTORY, header=header, **trajectory_fields(motion, joint_names, rate))
    with BagWriter(folder, folder.name, Storage.MCAP, {"/joint_trajectory": JOINT_TRAJECTORY}) as writer:
        writer.write(np.array([_START]), [np.frombuffer(message, np.uint8)[np.newaxis]])


def read_spheres(path: Path) -> dict[str, Any]:
    """Read spheres, rows x, y, z, radius in m by name of frame.

    They come from ``collision`` elements of a .urdf file, or lists ``link: [[x, y, z, radius], …]`` of a YAML file.
    """
    text = read_text(path, MAX_CHARACTERS)
    spheres = _of_yaml(text, path) if format_of(str(path)) in (PARAMETER_FILE, None) else _of_urdf(text, str(path))
    if not spheres:
        raise RobotDescriptionError(f"{path}: has no collision spheres; other shapes are not read, see --spheres")
    return spheres


def _of_urdf(text: str, source: str) -> dict[str, Any]:
    spheres: dict[str, Any] = {}
    for link in parse(text, source).children:
        for collision in link.children if link.tag == "link" else ():
            geometry = collision.child("geometry") if collision.tag == "collision" else None
            sphere = geometry.child("sphere") if geometry is not None else None
            if sphere is not None:
                origin, zero = collision.child("origin"), (0.0, 0.0, 0.0)
                center = zero if origin is None else origin.vector("xyz", zero)
                spheres.setdefault(link.attributes.get("name", ""), []).append([*center, sphere.number("radius")])
    return spheres


def _of_yaml(text: str, path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise RobotDescriptionError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise RobotDescriptionError(f"{path}: must hold lists of spheres by name of a link")
    return {str(name): rows for name, rows in document.items()}
