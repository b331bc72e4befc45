# SPDX-License-Identifier: Apache-2.0
"""Delay from recorded commands to the motion of the motors, and the period of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ...arguments import all_finite
from ...arrays import Array
from ...control.diagnosis import period_note
from ...control.fields import MEASURED_FIELDS
from ...identification import IdentificationError
from ...identification.elastic.delay import Delay, DriveDelay, combined, drive_delay, period_of
from ...identification.recording import both_sides
from ...recordings.options import MotorSource, Source
from ...recordings.sides import TwoSidedRecording, arm_recordings
from ...robot import Robot
from ...robot.model import DRIVE_INTERPOLATIONS, FeedbackDelay

_LOST = 5.0  # periods without a command that count as a loss
_SHORTEST_HELD, _AS_SELDOM = 1.9e-3, 0.6  # period of commands that alias, s, and share of it between efforts
_DIGITS = 7  # digits of times that are written: 0.1 µs


@dataclass(frozen=True)
class CommandTiming:
    """When commands act.

    Attributes:
        measured: mean age of the command that acts, and ages of the drives' measurements; None if it is not known when
            recorded efforts act.
        period: of the commands, s.
        interpolation: of the drives, one of :data:`.DRIVE_INTERPOLATIONS`.
    """

    measured: DriveDelay | None
    period: Delay
    interpolation: str = "none"

    @property
    def drive_delay(self) -> float | None:
        """Delay of the drives, s; zero where it is not positive; None where it is not certain."""
        if self.measured is None or self.measured.uncertain:
            return None
        held = DRIVE_INTERPOLATIONS[self.interpolation] * self.period.value
        return max(round(self.measured.delay.value - held, _DIGITS), 0.0)

    @property
    def ages(self) -> FeedbackDelay | None:
        """Ages of the drives' measurements; None if they are not certain."""
        if self.measured is None or self.drive_delay is None or self.measured.ages_unknown:
            return None
        position, velocity = self.measured.position_age, self.measured.velocity_age
        assert position is not None and velocity is not None
        return FeedbackDelay(round(position.value, _DIGITS), max(round(velocity.value, _DIGITS), 0.0))

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with the ages that are certain."""
        robot = replace(robot, command_period=round(self.period.value, _DIGITS))
        if self.drive_delay is None:
            return robot
        ages = robot.drive_feedback_delay if self.ages is None else self.ages
        return replace(robot, drive_delay=self.drive_delay, drive_feedback_delay=ages)

    def as_text(self) -> list[str]:
        """Lines for the notes."""
        if (timing := self.measured) is None:
            return [
                f"commands come every {_in_ms(self.period)}; drive_delay is not written: it counts from the time at "
                "which recorded motor efforts act, --motor-delay (--effort-delay of rigid joints): half a period of "
                "the commands if drives report means of the last one, minus that if they report what they begin to "
                "apply"
            ]
        line = f"commands act after {_in_ms(timing.delay)} and come every {_in_ms(self.period)}"
        if self.drive_delay is None:
            return [f"{line}: drive_delay is not written: {timing.uncertain}; record a longer motion"]
        held = 100 * DRIVE_INTERPOLATIONS[self.interpolation]
        lines = [f"{line}: drive_delay, without {held:g} % of the period, is {1e3 * self.drive_delay:.3f} ms"]
        if self.ages is None:
            return [*lines, f"drive_feedback_delay is not written: {timing.ages_unknown}"]
        position, velocity = (_in_ms(age) for age in (timing.position_age, timing.velocity_age) if age is not None)
        return [*lines, f"drives measure positions of an age of {position}, velocities of {velocity}"]

    def as_json(self) -> dict[str, Any]:
        """Values and standard deviations, s; ages that are unknown are null."""
        return {
            "delay": None if self.measured is None else self.measured.delay._asdict(),
            "period": self.period._asdict(),
            "drive_delay": self.drive_delay,
            "drive_feedback_delay": None if self.ages is None else self.ages._asdict(),
        }


def _in_ms(delay: Delay) -> str:
    return f"{1e3 * delay.value:.3f} ms (standard deviation {1e3 * delay.standard_deviation:.3f})"


def command_timing(
    robot: Robot, recordings: Sequence[TwoSidedRecording], source: Source, motors: MotorSource
) -> tuple[CommandTiming | None, list[str]]:
    """Timing of the commands in recordings, and notes; None where there are none."""
    timings, notes = [], []
    for recording in recordings:
        try:
            commands = _commands(recording, robot)
            if commands is not None:
                timings.append(_of_one(robot, recording, source, motors, commands))
        except IdentificationError as error:
            notes.append(f"{recording.name}: the delay of its commands is not identified: {error}")
    if not timings:
        return None, notes
    measured, periods = zip(*timings, strict=True)
    notes += period_note(robot, combined(periods).value)
    delays = [x for x in measured if x is not None]
    timing = DriveDelay.of_all(delays) if delays else None
    return CommandTiming(timing, combined(periods), robot.drive_interpolation), notes


def aliased_efforts(
    robot: Robot, recordings: Sequence[TwoSidedRecording], timing: CommandTiming | None, known: float | None
) -> list[str]:
    """A line if motor efforts are sampled as seldom as commands come, which drives hold; ``known``: their delay, s.

    The effort of a drive that holds a command has a saw-tooth of that period; of one sample in each, friction of the
    motors is off by several rotor inertias a second. Efforts whose delay is known are means.
    """
    if timing is None or known is not None or robot.drive_interpolation != "none":
        return []
    sides = [x.links if x.motors is None else x.motors for x in recordings]
    period = max((side.period for side in sides if side is not None), default=0.0)
    if timing.period.value < _SHORTEST_HELD or period < _AS_SELDOM * timing.period.value:
        return []
    return [
        f"motor efforts alias: they come every {1e3 * period:.3g} ms, commands, which drives hold, every "
        f"{1e3 * timing.period.value:.3g} ms; send commands at 1 kHz, or record efforts at twice their rate"
    ]


# Stamps (N,), ns, and fields (N, n).
_Commands: TypeAlias = tuple[NDArray[np.int64], list[Array]]


def _commands(recording: TwoSidedRecording, robot: Robot) -> _Commands | None:
    topics = recording.commands
    if len(topics) > 1:
        raise IdentificationError(f"it has {len(topics)} topics of them, {', '.join(topics)}")
    if not topics:
        return None
    (stream,) = topics.values()
    if not set(robot.joint_names) <= set(stream.names) or "effort" not in stream.values:
        return None
    values = stream.ordered(robot.joint_names).values
    known = np.isfinite(values["effort"]).all(axis=1)
    stamps, first = np.unique(stream.stamp[known], return_index=True)
    fields = [values[name][known][first] for name in ("effort", *MEASURED_FIELDS[:2]) if name in values]
    return stamps, [x for x in fields if all_finite(x)]


def _of_one(
    robot: Robot, recording: TwoSidedRecording, source: Source, motors: MotorSource, commands: _Commands
) -> tuple[DriveDelay | None, Delay]:
    stamps, fields = commands
    if robot.transmission is not None or any(len(joint.spring.motors) != 1 for joint in robot.independent_joints):
        raise IdentificationError("it needs a motor at each joint")
    if robot.compensated_by_robot:
        raise IdentificationError("drives add efforts of the robot, which have no delay")
    rigid = all(joint.spring.is_rigid for joint in robot.independent_joints)
    if recording.links is None or (recording.motors is None and not rigid):
        raise IdentificationError("positions of links or of motors were not recorded")
    if recording.motors is None:
        links, late = recording.links, source.effort_delay or None
        parts = both_sides(links, links, period=links.period)
    else:
        parts, _ = arm_recordings([recording], robot, motors)
        late = motors.delay
    times = (stamps - recording.origin) * 1e-9
    period = period_of(times)
    if late is None:
        return None, period
    # The longest time of one motion with commands.
    lost = np.flatnonzero(np.diff(times) > _LOST * period.value) + 1
    spans = [(run[0], run[-1]) for run in np.split(times, lost)]
    longest = max(((part, (part.t >= a) & (part.t <= b)) for part in parts for a, b in spans), key=lambda x: x[1].sum())
    part, now = longest
    if now.sum() < 2:
        raise IdentificationError("there are no commands while the arm was recorded")
    if not all_finite(part.motor_effort[now]):
        raise IdentificationError("the efforts that motors apply were not recorded")
    t = part.t[now]
    # Drives were sent references for the times at which they measure, by this file.
    ages = (0.0, *robot.drive_feedback_delay)
    references = [CubicSpline(times, x)(t - age) for x, age in zip(fields, ages, strict=False)]
    # Efforts were moved to the times at which they act.
    return drive_delay(t, part.theta[now], part.motor_effort[now], references)._replace(early=-late), period
