# SPDX-License-Identifier: Apache-2.0
"""Blocks of setpoints to compute commands for, and counts of refused messages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...arrays import Array
from ...control.fields import BASE_FIELD, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ...recordings.bags.layout import Stamps
from ...spelling import without_numbers

_MOST_REASONS = 50  # a damaged bag can have a reason of its own for each message


@dataclass(frozen=True)
class Batch:
    """N setpoints with the same joint names and frame.

    Attributes:
        stamps: their times.
        frame: their frame_id.
        names: their joint_names.
        fields: of JointTrajectorySetpoint, by name: (N, number of entries), wrenches (N, number of entries, 6), moment
            first, motions of the base (N, number of entries, 7, 3); absent or without entries where the messages have
            none.
        measured: (N, n) recorded efforts of the joints in ``names``, or None.
    """

    stamps: Stamps
    frame: str
    names: list[str]
    fields: dict[str, Array]
    measured: Array | None = None

    def __len__(self) -> int:
        return len(self.stamps.recorded)

    def __getitem__(self, rows: Any) -> Batch:
        fields = {name: values[rows] for name, values in self.fields.items()}
        measured = None if self.measured is None else self.measured[rows]
        return replace(self, stamps=self.stamps[rows], fields=fields, measured=measured)

    def entries(self, field: str) -> int:
        """Number of entries of a field in each message."""
        return self.fields[field].shape[1] if field in self.fields else 0

    def message(self, row: int) -> Any:
        """One of the setpoints, as a message for :class:`.SetpointEvaluator`."""
        empty = dict.fromkeys((*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS, BASE_FIELD), ())
        rows = {name: np.ascontiguousarray(values[row]) for name, values in self.fields.items()}
        return SimpleNamespace(joint_names=self.names, **(empty | rows))


@dataclass
class Refusals:
    """Counts of unusable messages, by reason.

    Reasons that differ in their numbers alone, such as the stiffness of each setpoint, are one; its text is the first.

    Attributes:
        reasons: number of messages by reason.
        first: time of recording of the first of them by reason, ns.
        details: for some reasons, what :meth:`text` adds to them, such as values of the worst message.
    """

    reasons: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, str] = field(default_factory=dict)

    def text(self, reason: str) -> str:
        """Return a reason with its detail."""
        return f"{reason}{self.details.get(reason, '')}"

    def add(self, reason: str, time: int, count: int = 1, detail: str = "") -> None:
        """Count messages, the first of them recorded at ``time``, ns; ``detail`` is of the first one with a reason."""
        kind = without_numbers(reason)
        if kind not in self._kinds and len(self._kinds) >= _MOST_REASONS:
            reason = "other reasons"
        else:
            reason = self._kinds.setdefault(kind, reason)
            if detail:
                self.details.setdefault(reason, detail)
        self.first.setdefault(reason, time)
        self.reasons[reason] = self.reasons.get(reason, 0) + count

    def ranked(self) -> list[tuple[str, int]]:
        """Reasons with their counts, the most frequent first."""
        return sorted(self.reasons.items(), key=lambda item: -item[1])

    @property
    def total(self) -> int:
        """Number of refused messages."""
        return sum(self.reasons.values())
