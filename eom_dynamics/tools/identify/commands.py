# SPDX-License-Identifier: Apache-2.0
"""Delay from recorded commands to the motion of the motors, and the period of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ...arrays import Array
from ...elastic import ElasticArm
from ...identification import IdentificationError
from ...identification.elastic.delay import Delay, combined, drive_delay, period_of
from ...identification.recording import both_sides
from ...messages.fields import MEASURED_FIELDS
from ...robot import Robot
from ...robot.model import DRIVE_INTERPOLATIONS
from ..recording_options import MotorSource, Source
from .sides import TwoSidedRecording, arm_recordings

# Periods without a command after which the motion is that of a loss.
_LOST = 5.0

# Digits of times that are written: 0.1 µs.
_DIGITS = 7


@dataclass(frozen=True)
class CommandTiming:
    """When commands act.

    Attributes:
        delay: mean age of the command that acts, s.
        period: of the commands, s.
        interpolation: of the drives, one of :data:`.DRIVE_INTERPOLATIONS`.
    """

    delay: Delay
    period: Delay
    interpolation: str = "none"

    @property
    def drive_delay(self) -> float:
        """Delay of the drives, s; zero where it is not positive."""
        return max(round(self.delay.value - DRIVE_INTERPOLATIONS[self.interpolation] * self.period.value, _DIGITS), 0.0)

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with this timing."""
        return replace(robot, command_period=round(self.period.value, _DIGITS), drive_delay=self.drive_delay)

    def as_text(self) -> str:
        """A line for the notes."""
        delay, period = (
            f"{1e3 * x.value:.3f} ms (standard deviation {1e3 * x.standard_deviation:.3f})"
            for x in (self.delay, self.period)
        )
        return (
            f"commands act after {delay} and come every {period}: drive_delay, without "
            f"{100 * DRIVE_INTERPOLATIONS[self.interpolation]:g} % of the period, is {1e3 * self.drive_delay:.3f} ms"
        )

    def as_json(self) -> dict[str, Any]:
        """Values and standard deviations, s."""
        return {"delay": self.delay._asdict(), "period": self.period._asdict(), "drive_delay": self.drive_delay}


def command_timing(
    robot: Robot, recordings: Sequence[TwoSidedRecording], source: Source, motors: MotorSource
) -> tuple[CommandTiming | None, list[str]]:
    """Timing of the commands in recordings, and notes; None where there are none.

    Of the identified robot, only the shapes of the laws of its springs count.
    """
    delays, periods, notes = [], [], []
    for each in recordings:
        try:
            commands = _commands(each, robot, source)
            if commands is None:
                continue
            delay, period = _of_one(ElasticArm(robot), each, motors, *commands)
        except IdentificationError as error:
            notes.append(f"{each.name}: the delay of its commands is not identified: {error}")
        else:
            delays.append(delay)
            periods.append(period)
    if not delays:
        return None, notes
    return CommandTiming(combined(delays), combined(periods), robot.drive_interpolation), notes


def _commands(
    recording: TwoSidedRecording, robot: Robot, source: Source
) -> tuple[NDArray[np.int64], list[Array]] | None:
    """Stamps (N,) of the commands, ns, and the commands of each motor (N, n); None where there are none.

    Raises:
        IdentificationError: there are several topics of commands.
    """
    topics = recording.commands
    if len(topics) > 1:
        raise IdentificationError(f"it has {len(topics)} topics of them, {', '.join(topics)}")
    if not topics:
        return None
    (columns,) = topics.values()
    names = source.conventions.names(columns.names)
    if not set(robot.joint_names) <= set(names) or "effort" not in columns.values:
        return None
    places = [list(names).index(name) for name in robot.joint_names]
    fields = [columns.values[name][:, places] for name in ("effort", *MEASURED_FIELDS[:2]) if name in columns.values]
    known = np.isfinite(fields[0]).all(axis=1)
    stamps, first = np.unique(columns.stamp[known], return_index=True)
    fields = [x[known][first] for x in fields]
    return stamps, [x for x in fields if np.isfinite(x).all()]


def _of_one(
    arm: ElasticArm,
    recording: TwoSidedRecording,
    motors: MotorSource,
    stamps: NDArray[np.int64],
    commands: Sequence[Array],
) -> tuple[Delay, Delay]:
    if len(arm.motor_joint) != arm.robot.n or arm.transmission:
        raise IdentificationError("it needs a motor at each joint")
    if recording.links is None or (recording.motors is None and not arm.rigid.all()):
        raise IdentificationError("positions of links or of motors were not recorded")
    if recording.motors is None:
        parts = both_sides(recording.links, recording.links, None, period=recording.links.period)
    else:
        parts, _ = arm_recordings([recording], arm.robot, motors)
    times = (stamps - recording.origin) * 1e-9
    period = period_of(times)
    # The longest time of one motion with commands.
    lost = np.flatnonzero(np.diff(times) > _LOST * period.value) + 1
    spans = [(run[0], run[-1]) for run in np.split(times, lost)]
    found = max(((part, (part.t >= a) & (part.t <= b)) for part in parts for a, b in spans), key=lambda x: x[1].sum())
    part, now = found
    if now.sum() < 2:
        raise IdentificationError("there are no commands while the arm was recorded")
    given = [CubicSpline(times, x)(part.t[now]) for x in commands]
    return drive_delay(arm, part.t[now], part.q[now], part.theta[now], given), period
