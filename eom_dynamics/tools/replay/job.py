# SPDX-License-Identifier: Apache-2.0
"""Replay job of one bag, and the report on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...recordings.bags.bag import METADATA
from ...recordings.options import Sampling
from ...recordings.streams import Refusals
from ...robot import Robot
from ..options import CommandOptions, RobotOptions
from .compare import Golden


@dataclass(frozen=True)
class Job:
    """Replay job of one bag.

    Attributes:
        bag: its path.
        output: folder of the bag to write, .mcap file to write alone, or Parquet file.
        robot: the robot, or its source, as :func:`load_robot` takes it; None for the URDF that the bag has on
            robot_description.
        robot_options: part of the robot to take.
        topic: to replay; None for the only candidate.
        format: of the output: ``mcap``, ``sqlite3`` or ``parquet``.
        options: the node's parameters.
        sampling: fit of measured positions, samples of planned trajectories, and conventions of the recording.
        against: field of the command to compare with the recorded effort, effort or motor_effort; or None.
        golden: bag to compare the output with, or None.
        force: overwrite an output that exists.
        resume: keep an output that is complete.
    """

    bag: Path
    output: Path
    robot: Robot | str | None = None
    topic: str | None = None
    format: str = "mcap"
    options: CommandOptions = field(default_factory=CommandOptions)
    sampling: Sampling = field(default_factory=Sampling)
    against: str | None = None
    golden: Golden | None = None
    force: bool = False
    resume: bool = False
    robot_options: RobotOptions = field(default_factory=RobotOptions)

    @property
    def is_file(self) -> bool:
        """True if the output is one file, not the folder of a bag."""
        return self.format == "parquet" or (self.format == "mcap" and self.output.suffix == ".mcap")

    @property
    def is_complete(self) -> bool:
        """True if the output exists: it appears as a whole."""
        return (self.output if self.is_file else self.output / METADATA).is_file()


@dataclass
class Report:
    """The report on a replayed bag.

    Attributes:
        topic: that was replayed.
        robot: its name.
        joint_names: of the numbers below that have one entry for each joint.
        joint_types: their types by name.
        command_lead: of the commands, s.
        commands: number of commands written; ``held`` of them repeat an earlier one for a refused setpoint.
        early: number of setpoints whose stamps ran ahead of their arrival, not counted as refusals.
        seconds: from the first to the last time of recording.
        refusals: messages that could not be used.
        exceeded: lines on limits of the motors that commands exceed.
        deviation, largest_deviation: of measured positions from their fit, rad or m: root mean square and largest;
            empty where nothing was fitted.
        repeated: number of measured samples that repeat the positions of the one before during a motion; the first of
            them was recorded at ``first_repeated``, ns.
        rms: of computed less recorded efforts, N m or N; empty where they were not compared.
        warnings: about the robot that the bag describes.
        motion: notes on how positions were read.
    """

    topic: str = ""
    robot: str = ""
    joint_names: tuple[str, ...] = ()
    joint_types: dict[str, str] = field(default_factory=dict)
    command_lead: float = 0.0
    commands: int = 0
    held: int = 0
    early: int = 0
    seconds: float = 0.0
    refusals: Refusals = field(default_factory=Refusals)
    exceeded: list[str] = field(default_factory=list)
    deviation: list[float] = field(default_factory=list)
    largest_deviation: list[float] = field(default_factory=list)
    repeated: int = 0
    first_repeated: int | None = None
    rms: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    motion: list[str] = field(default_factory=list)

    def effort_failures(self, tolerances: Mapping[str | None, float]) -> list[str]:
        """Return a line for each joint whose RMS effort difference exceeds its tolerance, or that the robot lacks.

        Tolerances are N m or N, by joint; None stands for all joints that are not named.
        """
        lines = [
            f"{self.topic}: tolerance of joint {name!r}: robot {self.robot} has no such joint; it has "
            f"{', '.join(self.joint_names)}"
            for name in tolerances
            if name is not None and name not in self.joint_names
        ]
        for name, rms in zip(self.joint_names, self.rms, strict=True) if self.rms else ():
            allowed = tolerances.get(name, tolerances.get(None))
            if allowed is not None and not rms <= allowed:
                lines.append(f"{self.topic}: RMS effort error of joint {name} is {rms:.3g}, tolerance {allowed:g}")
        return lines

    def exceeding(self) -> list[str]:
        """Return a line on limits that commands exceed, with the worst of them; empty without any."""
        first, *worst = self.exceeded or [""]
        return [f"{self.topic}: {first} {worst[0]}"] if worst else []

    def incomplete(self) -> list[str]:
        """Return a line on messages that could not be used; empty without any."""
        if not (total := self.refusals.total):
            return []
        (reason, _), *_ = self.refusals.ranked()
        return [f"{total:,} messages of topic {self.topic} refused: {self.refusals.text(reason)}"]
