# SPDX-License-Identifier: Apache-2.0
"""Delay from recorded commands to the motion of the motors, and the period of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ...arrays import Array
from ...control.fields import MEASURED_FIELDS
from ...elastic import ElasticArm
from ...identification import IdentificationError
from ...identification.elastic.delay import Delay, DriveDelay, combined, drive_delay, period_of
from ...identification.recording import both_sides
from ...robot import Robot
from ...robot.model import DRIVE_INTERPOLATIONS, FeedbackDelay
from ..recording_options import MotorSource, Source
from .sides import TwoSidedRecording, arm_recordings

_LOST = 5.0  # periods without a command after which the motion is that of a loss
_DIGITS = 7  # digits of times that are written: 0.1 µs


@dataclass(frozen=True)
class CommandTiming:
    """When commands act.

    Attributes:
        found: mean age of the command that acts, and ages of what the drives measure.
        period: of the commands, s.
        interpolation: of the drives, one of :data:`.DRIVE_INTERPOLATIONS`.
    """

    found: DriveDelay
    period: Delay
    interpolation: str = "none"

    @property
    def drive_delay(self) -> float:
        """Delay of the drives, s; zero where it is not positive."""
        held = DRIVE_INTERPOLATIONS[self.interpolation] * self.period.value
        return max(round(self.found.delay.value - held, _DIGITS), 0.0)

    @property
    def ages(self) -> FeedbackDelay | None:
        """Ages of what the drives measure; None where they are not certain."""
        position, velocity = self.found.position_age, self.found.velocity_age
        if self.found.ages_unknown or position is None or velocity is None:
            return None
        return FeedbackDelay(round(position.value, _DIGITS), max(round(velocity.value, _DIGITS), 0.0))

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with what is certain of this timing."""
        robot = replace(robot, command_period=round(self.period.value, _DIGITS))
        if self.found.uncertain:
            return robot
        ages = robot.drive_feedback_delay if self.ages is None else self.ages
        return replace(robot, drive_delay=self.drive_delay, drive_feedback_delay=ages)

    def as_text(self) -> list[str]:
        """Lines for the notes."""
        timing = self.found
        line = f"commands act after {_in_ms(timing.delay)} and come every {_in_ms(self.period)}"
        if timing.uncertain:
            return [
                f"{line}: drive_delay is not written: {timing.uncertain}; tell when recorded motor efforts act, "
                "--motor-delay (--effort-delay of rigid joints), or record efforts of springs, or a longer motion"
            ]
        held = 100 * DRIVE_INTERPOLATIONS[self.interpolation]
        lines = [f"{line}: drive_delay, without {held:g} % of the period, is {1e3 * self.drive_delay:.3f} ms"]
        if self.ages is None:
            return [*lines, f"drive_feedback_delay is not written: {timing.ages_unknown}"]
        position, velocity = (_in_ms(age) for age in (timing.position_age, timing.velocity_age) if age is not None)
        return [*lines, f"drives measure positions of an age of {position}, velocities of {velocity}"]

    def as_json(self) -> dict[str, Any]:
        """Values and standard deviations, s; ages that are unknown are null."""
        timing = self.found
        return {
            "delay": timing.delay._asdict(),
            "period": self.period._asdict(),
            "drive_delay": None if timing.uncertain else self.drive_delay,
            "drive_feedback_delay": None if timing.uncertain or self.ages is None else self.ages._asdict(),
        }


def _in_ms(delay: Delay) -> str:
    return f"{1e3 * delay.value:.3f} ms (standard deviation {1e3 * delay.standard_deviation:.3f})"


def command_timing(
    robot: Robot, recordings: Sequence[TwoSidedRecording], source: Source, motors: MotorSource
) -> tuple[CommandTiming | None, list[str]]:
    """Timing of the commands in recordings, and notes; None where there are none.

    Of the identified robot, only the shapes of the laws of its springs count.
    """
    timings, notes = [], []
    for recording in recordings:
        try:
            commands = _commands(recording, robot, source)
            if commands is not None:
                timings.append(_of_one(ElasticArm(robot), recording, source, motors, commands))
        except IdentificationError as error:
            notes.append(f"{recording.name}: the delay of its commands is not identified: {error}")
    if not timings:
        return None, notes
    delays, periods = zip(*timings, strict=True)
    return CommandTiming(DriveDelay.of_all(delays), combined(periods), robot.drive_interpolation), notes


# Stamps (N,), ns, and fields (N, n).
_Commands: TypeAlias = tuple[NDArray[np.int64], list[Array]]


def _commands(recording: TwoSidedRecording, robot: Robot, source: Source) -> _Commands | None:
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
    arm: ElasticArm, recording: TwoSidedRecording, source: Source, motors: MotorSource, commands: _Commands
) -> tuple[DriveDelay, Delay]:
    stamps, fields = commands
    if len(arm.motor_joint) != arm.robot.n or arm.transmission:
        raise IdentificationError("it needs a motor at each joint")
    if arm.robot.compensated_by_robot:
        raise IdentificationError("drives add efforts of the robot, which have no delay")
    if recording.links is None or (recording.motors is None and not arm.rigid.all()):
        raise IdentificationError("positions of links or of motors were not recorded")
    if recording.motors is None:
        links = recording.links
        parts = [replace(x, tau=np.full_like(x.tau, np.nan)) for x in both_sides(links, links, period=links.period)]
        late = source.effort_delay or None
    else:
        parts, _ = arm_recordings([recording], arm.robot, motors)
        late = motors.delay
    times = (stamps - recording.origin) * 1e-9
    period = period_of(times)
    # The longest time of one motion with commands.
    lost = np.flatnonzero(np.diff(times) > _LOST * period.value) + 1
    spans = [(run[0], run[-1]) for run in np.split(times, lost)]
    longest = max(((part, (part.t >= a) & (part.t <= b)) for part in parts for a, b in spans), key=lambda x: x[1].sum())
    part, now = longest
    if now.sum() < 2:
        raise IdentificationError("there are no commands while the arm was recorded")
    if not np.isfinite(part.motor_effort[now]).all():
        raise IdentificationError("the efforts that motors apply were not recorded")
    t = part.t[now]
    # Drives were sent references for the times at which they measure, by this file.
    ages = (0.0, *arm.robot.drive_feedback_delay)
    references = [CubicSpline(times, x)(t - age) for x, age in zip(fields, ages, strict=False)]
    motion = part.q[now], part.theta[now], part.motor_effort[now]
    # Efforts are at the times at which they act, if those are known.
    early = None if late is None else 0.0
    return drive_delay(arm, t, *motion, references, spring_effort=part.tau[now], early=early), period
