# SPDX-License-Identifier: Apache-2.0
"""Checks of the reports on replayed bags: effort errors within tolerances, and input without damage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .job import Report


@dataclass(frozen=True)
class EffortTolerances:
    """Largest allowed RMS difference of computed and recorded efforts, N m or N.

    Attributes:
        every: of joints that are not named; None to check only those that are.
        by_joint: by the joint's name.
    """

    every: float | None = None
    by_joint: Mapping[str, float] = field(default_factory=dict)

    def failures(self, report: Report) -> list[str]:
        """Return a line for each joint that exceeds its tolerance, and for each that the robot lacks."""
        unknown = [name for name in self.by_joint if name not in report.joint_names]
        lines = [
            f"{report.topic}: tolerance of joint {name!r}: robot {report.robot} has no such joint; it has "
            f"{', '.join(report.joint_names)}"
            for name in unknown
        ]
        for name, rms in zip(report.joint_names, report.rms, strict=True) if report.rms else ():
            allowed = self.by_joint.get(name, self.every)
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
    if report.refusals.total:
        (reason, _), *_ = report.refusals.ranked()
        lines.append(
            f"{report.refusals.total:,} messages of topic {report.topic} refused: {report.refusals.text(reason)}"
        )
    return lines
