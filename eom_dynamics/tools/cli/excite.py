# SPDX-License-Identifier: Apache-2.0
"""Find the periodic motion within the limits of a robot that is optimal for identifying its parameters, and write it.

The motion is a finite Fourier series that starts and ends each period at rest. OUT gets the bags setpoint and
joint_trajectory, joint_trajectory.json, trajectory.csv, setpoints.npz for the player, and excitation.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from ...arguments import option
from ...control.fields import STATE_FIELDS
from ...control.trajectories import trajectory_fields
from ...elastic.plausibility import objections
from ...exceptions import EomDynamicsError, RobotDescriptionError, require
from ...recordings.number_files import write_states
from ...robot import Robot
from ...robot.formats import PARAMETER_FILE, format_of
from ...robot.readers.files import MAX_CHARACTERS, parse, read_text
from ...trajectory import Trajectory, sample
from ..options import add_json, add_options, add_output_folder, add_robot_arguments, load, options_of
from ..quantity_text import number
from ..results import Result, ResultSection, TextTable, progress_bars
from ..writing import check_folder, whole_folder

if TYPE_CHECKING:
    from ...identification.excitation import Excitation, OptimalExcitation

_WAYPOINTS = 100.0  # rate of the points of the JointTrajectory, Hz
_START = 1_000_000_000  # stamp of the first message, ns; a stamp of zero would stand for the present

# A single number for all joints, or a number for each joint.
_Values = tuple[tuple[str | None, tuple[float, ...]], ...]


@dataclass(frozen=True)
class _Limits:
    """Limits that replace the robot file's: X for all joints, X,X,… for each, or JOINT=X for one.

    Attributes:
        lower: lower end of the position, rad or m; a negative one as --lower=-2.
        upper: upper end of the position, rad or m.
        velocity: largest velocity, rad/s or m/s.
        acceleration: largest acceleration, rad/s² or m/s².
        jerk: largest jerk, rad/s³ or m/s³.
        effort: largest effort, N m or N.
        effort_rate: largest effort rate, N m/s or N/s.
    """

    lower: _Values = option((), metavar="[JOINT=]X,…")
    upper: _Values = option((), metavar="[JOINT=]X,…")
    velocity: _Values = option((), metavar="[JOINT=]X,…")
    acceleration: _Values = option((), metavar="[JOINT=]X,…")
    jerk: _Values = option((), metavar="[JOINT=]X,…")
    effort: _Values = option((), metavar="[JOINT=]X,…")
    effort_rate: _Values = option((), metavar="[JOINT=]X,…")


@dataclass(frozen=True)
class _Options:
    """Optimization and files.

    Attributes:
        spheres: spheres on links that must not overlap: a .urdf file with collision elements, or a YAML file
            with lists LINK: [[x, y, z, radius], …] in m; default: no collision check.
        candidates: number of random motions; the search starts from the best one.
        rate: rate of setpoints, Hz.
    """

    spheres: Path | None = option(metavar="FILE")
    candidates: int = option(100, rule="[1, 10000]", metavar="N")
    rate: float = option(1000.0, rule="positive", metavar="HZ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ...identification import ExcitationOptions

    add_robot_arguments(parser)
    add_output_folder(parser, "OUT")
    add_json(parser)
    for options in (ExcitationOptions, _Limits, _Options):
        add_options(parser, options)


def run(options: argparse.Namespace) -> Result:
    """Optimize, and write the motion; it fails if it exceeds a limit."""
    require("replay")
    from ...identification import Excitation, ExcitationOptions

    robot = load(options, warn=False)
    if doubts := objections(robot):
        consequence = "correct it, or write implausible: accept into the robot file if it is intended"
        raise RobotDescriptionError(f"{robot.name}: not plausible: {'; '.join(doubts)}; {consequence}")
    check_folder(options.output, force=options.force)
    limits: dict[str, dict[str, float]] = {name: {} for name in robot.joint_names}
    for quantity, values in vars(options_of(_Limits, options)).items():
        for name, value in _by_joint(robot, f"--{quantity.replace('_', '-')}", values).items():
            limits[name][quantity] = value
    spheres = read_spheres(options.spheres) if options.spheres else None
    settings = options_of(ExcitationOptions, options, limits=limits, spheres=spheres)
    with progress_bars("{task.fields[state]}") as bars:
        bar = bars.add_task(robot.name, total=1.0, state="code of the robot")
        task = Excitation(robot, settings)
        optimum = task.optimize(
            candidates=options.candidates,
            progress=lambda done, cost: bars.update(bar, completed=done, state=f"{done:4.0%}, cost {cost:.4f}"),
        )
        bars.update(bar, completed=1.0)
    _write_outputs(options.output, task, optimum, rate=options.rate, force=options.force)
    return _result(task, optimum, options.output)


def _by_joint(robot: Robot, flag: str, arguments: _Values) -> dict[str, float]:
    names = robot.joint_names
    result: dict[str, float] = {}
    for name, values in arguments:
        if name not in (None, *names):
            raise EomDynamicsError(f"{flag}: {robot.name} has no joint {name!r}; it has {', '.join(names)}")
        joints = names if name is None else (name,)
        if len(values) not in (1, len(joints)):
            raise EomDynamicsError(f"{flag}: {len(values)} numbers, must be 1 or {len(joints)}: {', '.join(joints)}")
        result |= dict(zip(joints, values * len(joints) if len(values) == 1 else values, strict=True))
    return result


def _result(task: Excitation, optimum: OptimalExcitation, folder: Path) -> Result:
    """Make the result of an excitation with its files in a folder."""
    motion, P = optimum.trajectory, len(task.model.columns)
    stuck = "no better motion than the start was found; if springs may go slack, limit efforts by --effort"
    return Result(
        lead=[
            f"{task.robot.name}: {motion.end:g} s, {motion.sine.shape[1]} harmonics of {motion.frequency:.4g} Hz, "
            f"{P} parameters, {task.limits.share:.0%} of the limits"
        ],
        sections=[ResultSection(tables=[_gains(optimum, P)]), ResultSection(tables=[_used(optimum)])],
        notes=[stuck] if optimum.information == optimum.start_information else (),
        failures=() if optimum.verdict.ok else [f"exceeds limits: {optimum.verdict}"],
        files={"folder": folder},
        json=_as_json(task, optimum),
    )


def _as_json(task: Excitation, optimum: OptimalExcitation) -> dict[str, Any]:
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
    return TextTable(("", "start", "optimized", "gain"), rows)


def _used(optimum: OptimalExcitation) -> TextTable:
    limited = [peak for peak in optimum.verdict.peaks if np.isfinite(peak.limit)]
    ratios = {(peak.name, peak.quantity): f"{peak.ratio:.0%}" for peak in limited}
    names, quantities = (list(dict.fromkeys(entries)) for entries in zip(*ratios, strict=True))
    rows = [(name, *(ratios.get((name, quantity), "") for quantity in quantities)) for name in names]
    return TextTable(("largest share of limits", *(quantity.replace("_", " ") for quantity in quantities)), rows)


def _write_outputs(
    folder: Path, task: Excitation, optimum: OptimalExcitation, *, rate: float, force: bool = False
) -> None:
    """Write the bags ``setpoint`` and ``joint_trajectory``, and the motion as JSON, CSV and NumPy arrays.

    The rate, Hz, is the rate of setpoints and states.
    """
    names, motion = task.robot.joint_names, optimum.trajectory
    with whole_folder(folder, force=force) as aside:
        bags = {"setpoint": (_write_setpoints, rate), "joint_trajectory": (write_trajectory, _WAYPOINTS)}
        for name, (write, hz) in bags.items():
            (aside / name).mkdir()
            write(aside / name, motion, names, hz)
        fields = trajectory_fields(motion, names, _WAYPOINTS)
        (aside / "joint_trajectory.json").write_text(f"{json.dumps(fields)}\n", encoding="utf-8")
        text = json.dumps(_as_json(task, optimum), indent=2)
        (aside / "excitation.json").write_text(f"{text}\n", encoding="utf-8")
        write_states(aside, sample(motion, rate), names)


def _write_setpoints(folder: Path, motion: Trajectory, joint_names: Sequence[str], rate: float) -> None:
    """Write a bag with the topic ``setpoint`` at ``rate``, Hz, into an empty folder, named like the folder."""
    from ...recordings.bags import BagWriter, Layout, Storage
    from ...recordings.bags.types import SETPOINT

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
    """Write a bag with a single message on ``joint_trajectory``; arguments as for :func:`_write_setpoints`."""
    from ...recordings.bags import BagWriter, Storage
    from ...recordings.bags.types import JOINT_TRAJECTORY, serialized

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
