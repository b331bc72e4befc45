# SPDX-License-Identifier: Apache-2.0
"""What to do with a bag, and what became of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .batch import Refusals
from .evaluation import Options

REMARK = "eom_dynamics replay"
"""Where an output says what it was made of, and how."""

AGAINST = ("effort", "motor_effort")
"""Fields of the command that can be compared with recorded efforts."""


class Format(Enum):
    """What commands are written as."""

    MCAP = "mcap"
    SQLITE3 = "sqlite3"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Job:
    """What to do with a bag.

    Attributes:
        bag: its path.
        output: folder of the bag to write, or Parquet file.
        robot: as :func:`load_robot` takes it; None for the URDF that the bag has on robot_description.
        topic: to replay; None for the only one that can be.
        format: of the output.
        options: as the node's parameters.
        cutoff: Hz, of the fit of measured positions.
        rate: Hz, of states on planned trajectories.
        against: field of the command to compare with the recorded effort, or None.
        force: write over an output that is there.
    """

    bag: Path
    output: Path
    robot: str | None = None
    topic: str | None = None
    format: Format = Format.MCAP
    options: Options = field(default_factory=Options)
    cutoff: float = 5.0
    rate: float = 1000.0
    against: str | None = None
    force: bool = False

    def settings(self) -> dict[str, Any]:
        """All that decides what is written."""
        return {
            "version": __version__,
            "bag": self.bag.name,
            "robot": self.robot,
            "topic": self.topic,
            "format": self.format.value,
            "options": asdict(self.options),
            "cutoff": self.cutoff,
            "rate": self.rate,
            "against": self.against,
        }


@dataclass
class Report:
    """What became of a bag.

    Attributes:
        topic: that was replayed.
        robot: its name.
        joint_names: of the numbers below that are one a joint.
        commands: number that was written; ``held`` of them repeat an earlier one for a setpoint that was refused.
        seconds: from the first to the last time of recording.
        refusals: messages that could not be used.
        exceeded: lines on limits of the motors that commands exceed.
        damage: what of the bag could not be read, one line each.
        deviation, largest_deviation, seam: of measured positions from their fit, rad or m: root mean square, largest,
            and the largest step where two windows of the fit meet; empty where nothing was fitted.
        repeated: number of measured samples with the positions of the one before, amid a motion; the first of them was
            recorded at ``first_repeated``, ns.
        rms: of computed less recorded efforts, N m or N; empty where they were not compared.
    """

    topic: str = ""
    robot: str = ""
    joint_names: tuple[str, ...] = ()
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

    def as_json(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Report:
        """The inverse of :meth:`as_json`."""
        refusals = Refusals()
        refusals.reasons.update(values["refusals"]["reasons"])
        refusals.first.update(values["refusals"]["first"])
        return cls(**{**values, "refusals": refusals, "joint_names": tuple(values["joint_names"])})


def remark(job: Job, report: Report) -> str:
    """What an output says of itself."""
    return json.dumps({"settings": job.settings(), "report": report.as_json()}, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not for JSON")
