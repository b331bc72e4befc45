# SPDX-License-Identifier: Apache-2.0
"""Replay job of one bag, its report, and the manifest: what outputs were made of, by content hashes."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import __version__
from ..provenance import file_hash
from ..recording_options import CommandOptions, Sampling
from ..robot_options import RobotOptions
from .batch import Refusals

_MANIFEST = "replayed.jsonl"  # name of the file with what outputs were made of, a line for each


@dataclass(frozen=True)
class Job:
    """Replay job of one bag.

    Attributes:
        bag: its path.
        output: folder of the bag to write, .mcap file to write alone, or Parquet file.
        robot: as :func:`load_robot` takes it; None for the URDF that the bag has on robot_description.
        robot_options: part of the robot to take.
        topic: to replay; None for the only candidate.
        format: of the output: ``mcap``, ``sqlite3`` or ``parquet``.
        options: the node's parameters.
        sampling: fit of measured positions, samples of planned trajectories, and conventions of the recording.
        against: field of the command to compare with the recorded effort, effort or motor_effort; or None.
        force: overwrite an output that exists.
        folder: of all outputs, with their manifest; None for a manifest in the folder of a bag, or beside a file.
    """

    bag: Path
    output: Path
    robot: str | None = None
    topic: str | None = None
    format: str = "mcap"
    options: CommandOptions = field(default_factory=CommandOptions)
    sampling: Sampling = field(default_factory=Sampling)
    against: str | None = None
    force: bool = False
    robot_options: RobotOptions = field(default_factory=RobotOptions)
    folder: Path | None = None

    @property
    def is_file(self) -> bool:
        """Whether the output is one file, not the folder of a bag."""
        return self.format == "parquet" or (self.format == "mcap" and self.output.suffix == ".mcap")

    @property
    def name(self) -> str:
        """Name of the output in its manifest."""
        return self.output.name if self.folder is None else self.output.relative_to(self.folder).as_posix()

    @property
    def manifest(self) -> Path:
        """File with what outputs were made of."""
        if self.folder is None and self.is_file:
            return self.output.with_name(f"{self.output.name}.{_MANIFEST}")
        return (self.folder or self.output) / _MANIFEST

    @property
    def bag_name(self) -> str:
        """Name of the bag that is written, without an ending."""
        return self.output.name.removesuffix(".mcap")

    @property
    def files(self) -> list[str]:
        """Names of the files of the output: in its folder, or its own name."""
        if self.is_file:
            return [self.output.name]
        ending = "mcap" if self.format == "mcap" else "db3"
        return ["metadata.yaml", f"{self.bag_name}.{ending}"]

    def settings(self) -> dict[str, Any]:
        """All settings that affect the output, besides the contents of bag and robot."""
        return {
            "version": __version__,
            "topic": self.topic,
            "format": self.format,
            "options": asdict(self.options) | {"parameters": dict(self.options.parameters)},
            "cutoff": self.sampling.cutoff,
            "rate": self.sampling.rate,
            "against": self.against,
            **({"robot_options": options} if (options := self.robot_options.as_json()) else {}),
            **({"conventions": conventions} if (conventions := self.sampling.conventions.as_json()) else {}),
        }


@dataclass
class Report:
    """The report on a replayed bag.

    Attributes:
        topic: that was replayed.
        robot: its name.
        joint_names: of the numbers below that have one entry for each joint.
        command_lead: of the commands, s.
        commands: number of commands written; ``held`` of them repeat an earlier one for a refused setpoint.
        seconds: from the first to the last time of recording.
        refusals: messages that could not be used.
        exceeded: lines on limits of the motors that commands exceed.
        damage: lines on parts of the bag that could not be read.
        deviation, largest_deviation, seam: of measured positions from their fit, rad or m: root mean square, largest,
            and the largest step where two windows of the fit meet; empty where nothing was fitted.
        repeated: number of measured samples that repeat the positions of the one before during a motion; the first of
            them was recorded at ``first_repeated``, ns.
        rms: of computed less recorded efforts, N m or N; empty where they were not compared.
        warnings: about the robot that the bag describes, and a joint that moves over many turns.
        bag_hash, robot_hash: SHA-256 of their contents.
    """

    topic: str = ""
    robot: str = ""
    joint_names: tuple[str, ...] = ()
    command_lead: float = 0.0
    commands: int = 0
    held: int = 0
    seconds: float = 0.0
    refusals: Refusals = field(default_factory=Refusals)
    exceeded: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    deviation: list[float] = field(default_factory=list)
    largest_deviation: list[float] = field(default_factory=list)
    seam: list[float] = field(default_factory=list)
    repeated: int = 0
    first_repeated: int | None = None
    rms: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    bag_hash: str = ""
    robot_hash: str = ""

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Report:
        """The report of a dictionary of its values."""
        refusals = Refusals(**values["refusals"])
        return cls(**{**values, "refusals": refusals, "joint_names": tuple(values["joint_names"])})


def effort_failures(report: Report, tolerances: Mapping[str | None, float]) -> list[str]:
    """Return a line for each joint whose RMS effort difference exceeds its tolerance, or that the robot lacks.

    Tolerances are N m or N, by joint; None stands for all joints that are not named.
    """
    lines = [
        f"{report.topic}: tolerance of joint {name!r}: robot {report.robot} has no such joint; it has "
        f"{', '.join(report.joint_names)}"
        for name in tolerances
        if name is not None and name not in report.joint_names
    ]
    for name, rms in zip(report.joint_names, report.rms, strict=True) if report.rms else ():
        allowed = tolerances.get(name, tolerances.get(None))
        if allowed is not None and not rms <= allowed:
            lines.append(f"{report.topic}: RMS effort error of joint {name} is {rms:.3g}, tolerance {allowed:g}")
    return lines


def exceeding(report: Report) -> list[str]:
    """Return a line on limits that commands exceed, with the worst of them; empty without any."""
    first, *worst = report.exceeded or [""]
    return [f"{report.topic}: {first} {worst[0]}"] if worst else []


def incomplete(report: Report) -> list[str]:
    """Return a line for damage of a bag, and one for messages that could not be used; empty for an intact bag."""
    lines = [f"damaged: {report.damage[0]}"] if report.damage else []
    if total := report.refusals.total:
        (reason, _), *_ = report.refusals.ranked()
        lines.append(f"{total:,} messages of topic {report.topic} refused: {report.refusals.text(reason)}")
    return lines


class Entry(NamedTuple):
    """What an output was made of.

    Attributes:
        settings: of the replay, as of :meth:`.Job.settings`.
        report: on it, with the content hashes.
        files: SHA-256 of the files written, by name.
    """

    settings: dict[str, Any]
    report: Report
    files: dict[str, str]

    def wrote(self, path: Path) -> bool:
        """Whether a file has the content that the replay wrote: any other is the user's."""
        return path.is_file() and file_hash(path) == self.files.get(path.name)


Manifest = dict[str, Entry]
"""Entries by the name of the output."""


def add_to_manifest(job: Job, report: Report, files: dict[str, str], folder: Path) -> None:
    """Add a complete output with its ``files`` as of :class:`Entry` to the manifest in a folder.

    Processes of a command share it.
    """
    sources = {"bag": job.bag.name, "robot": job.robot}
    entry = {"output": job.name, "sources": sources, "settings": job.settings(), "report": asdict(report)}
    entry["files"] = files
    with (folder / job.manifest.name).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(entry, default=np.generic.item) + "\n")
        file.flush()


def read_manifest(path: Path) -> Manifest:
    """Read a manifest: of several lines on an output the last one counts, and lines that are cut off do not."""
    entries: Manifest = {}
    try:
        lines = path.read_bytes().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return entries
    for line in lines:
        try:
            entry = json.loads(line)
            files = {Path(name).name: value for name, value in entry["files"].items()}
            entries[entry["output"]] = Entry(entry["settings"], Report.from_json(entry["report"]), files)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
    return entries
