# SPDX-License-Identifier: Apache-2.0
"""States to compute commands for, many at a time, and what came of those that cannot be used."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# More reasons than these are told by their number only: a damaged bag can have one for each message.
_TOLD_REASONS = 50


@dataclass(frozen=True)
class Stamps:
    """Times of N messages.

    Attributes:
        recorded: (N,) of recording, ns.
        sec, nanosec: (N,) those of their headers.
    """

    recorded: NDArray[np.int64]
    sec: NDArray[np.int32]
    nanosec: NDArray[np.uint32]

    def __getitem__(self, rows: Any) -> Stamps:
        return Stamps(self.recorded[rows], self.sec[rows], self.nanosec[rows])

    @property
    def header(self) -> NDArray[np.int64]:
        """(N,) the times of the headers, ns."""
        return self.sec.astype(np.int64) * 1_000_000_000 + self.nanosec


@dataclass(frozen=True)
class Batch:
    """N setpoints with the same joint names and frame; fields as in JointTrajectorySetpoint.

    Attributes:
        stamps: of them.
        frame: their frame_id.
        names: their joint_names.
        fields: (N, length) by name; of length 0 where the messages have none.
        measured: (N, n) the recorded efforts of the joints in ``names``, where there are any.
    """

    stamps: Stamps
    frame: str
    names: list[str]
    fields: dict[str, Array]
    measured: Array | None = None

    def __len__(self) -> int:
        return len(self.stamps.recorded)

    def message(self, row: int) -> Setpoint:
        """One of them, as the node gets it."""
        return Setpoint(self.names, {name: array("d", values[row].tobytes()) for name, values in self.fields.items()})


class Setpoint:
    """A message with the fields of a JointTrajectorySetpoint; those that are not given are empty."""

    def __init__(self, names: list[str], fields: dict[str, array[float]]) -> None:
        self.joint_names = names
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> array[float]:
        if name.startswith("_"):
            raise AttributeError(name)
        return array("d")


@dataclass
class Refusals:
    """Messages that could not be used.

    Attributes:
        reasons: how many, by reason.
        first: time of recording of the first by reason, ns.
    """

    reasons: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, time: int, count: int = 1) -> None:
        """Count messages, the first of them recorded at ``time``, ns."""
        if reason not in self.first:
            if len(self.first) >= _TOLD_REASONS:
                reason = "other reasons"
            self.first.setdefault(reason, time)
        self.reasons[reason] = self.reasons.get(reason, 0) + count

    def ranked(self) -> list[tuple[str, int]]:
        """Reasons with their numbers, the most frequent first."""
        return sorted(self.reasons.items(), key=lambda item: -item[1])

    @property
    def total(self) -> int:
        """How many."""
        return sum(self.reasons.values())
