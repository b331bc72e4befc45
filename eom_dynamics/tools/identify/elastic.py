# SPDX-License-Identifier: Apache-2.0
"""Identification of springs and motors by a command: both sides of the springs, resonances, and delays of drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ...actuators.drive_units import FeedbackDelay
from ...arguments import all_finite
from ...arrays import Array
from ...control.fields import MEASURED_FIELDS
from ...control.setpoint_loop import period_note
from ...exceptions import RobotDescriptionError
from ...identification import IdentificationError, Recording, ResonanceFit
from ...identification.elastic.arm import (
    Elasticity,
    ElasticScore,
    elastic_score,
    identify_elasticity,
    measured,
    with_spring_efforts,
)
from ...identification.elastic.delay import Delay, DriveDelay, combined, drive_delay, period_of
from ...identification.elastic.options import ElasticOptions, check_elastic
from ...identification.elastic.resonance import identify_resonance, with_resonance
from ...identification.links.filtering import Filter
from ...identification.links.verification import EffortErrors, ScoringData
from ...identification.recording import ArmRecording, TooFewSamplesError, both_sides
from ...recordings import MotorSource, Source
from ...recordings.sides import TwoSidedRecording, arm_recordings, motors_alone, motors_in_joint_units
from ...robot import Robot
from ...robot.model import DRIVE_INTERPOLATIONS

# Decrease of the sum of squared residuals by chance, in variances of a residual for each parameter: its mean is one.
_CHANCE = 4.0


@dataclass(frozen=True, eq=False)
class ElasticFit:
    """Springs and motors identified from both sides of the springs.

    Attributes:
        robot: as described by its file.
        elasticity: identified springs and rotors.
        training, validation: both sides of the springs, each motion by itself.
        training_score, validation_score: figures of them.
        notes: unidentifiable quantities and warnings, a line each.
    """

    robot: Robot
    elasticity: Elasticity
    training: tuple[ArmRecording, ...]
    validation: tuple[ArmRecording, ...]
    training_score: ElasticScore
    validation_score: ElasticScore | None
    notes: tuple[str, ...]
    method = "from both sides of the springs"

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with these springs and motors."""
        return self.elasticity.applied_to(robot)

    def command_errors(self, identified: Robot, using: Filter) -> EffortErrors | None:
        """Errors of motor efforts that the feedforward commands for the recorded motion of the links.

        The data are those of the validation, or else of the training. Returns None if motor efforts were not recorded,
        or the data are too short for the filter.
        """
        parts = []
        for x in self.validation or self.training:
            effort = np.where([measured(column) for column in x.motor_effort.T], x.motor_effort, np.nan)
            if not np.isnan(effort).all():
                parts.append(replace(x, tau=effort, scale_deviation=None).links(self.robot, "motor efforts"))
        try:
            scoring = ScoringData(parts, using, self.robot, motor_side=True) if parts else None
        except TooFewSamplesError:
            return None
        return None if scoring is None else scoring.score(identified, np.zeros(self.robot.n))


@dataclass(frozen=True, eq=False)
class ResonanceResult:
    """Springs and rotors identified from motor resonances.

    Attributes:
        robot: as described by its file.
        fit: identified motor parameters.
        motors: the recording, on the link side of the gears.
        notes: unidentifiable quantities and warnings, a line each.
    """

    robot: Robot
    fit: ResonanceFit
    motors: Recording
    notes: tuple[str, ...]

    @property
    def method(self) -> str:
        """Source of the identified numbers, in words."""
        return self.fit.method

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with these springs and motors."""
        return with_resonance(robot, self.fit)


def mode_of(
    asked: str, robot: Robot, options: ElasticOptions, training: Sequence[TwoSidedRecording]
) -> tuple[str, list[str]]:
    """Resolve ``auto`` by the recordings, if the robot has springs; return the mode of :class:`.Request` and notes.

    Raises IdentificationError for missing data, RobotDescriptionError if the mode does not fit the robot.
    """
    if asked == "off":
        return "off", []
    for recording in training:
        if recording.motors is None and asked != "auto":
            raise IdentificationError(
                f"{recording.name}: has no motor positions; record motor_states, or motor_position.NAME"
            )
    options.check(robot)
    elastic = options.laws or any(not joint.spring.is_rigid for joint in robot.independent_joints)
    if asked == "auto":
        if not elastic:
            return "off", []
        try:
            check_elastic(robot, options)
        except RobotDescriptionError as error:
            return "off", [f"springs and motors stay as in the file: {error}"]
        if all(recording.motors is None for recording in training):
            return "off", ["motors were not recorded; springs, rotors and motor friction stay as in the file"]
    alone = [x.motors.name for x in training if x.links is None and x.motors is not None]
    if asked == "resonance" or (asked == "auto" and len(alone) == len(training)):
        return "resonance", []
    if alone:
        raise IdentificationError(f"{alone[0]}: has motors only; identify from it alone, --springs resonance")
    return "both", []


def identify_both_sides(
    robot: Robot,
    training: Sequence[TwoSidedRecording],
    validation: Sequence[TwoSidedRecording],
    options: ElasticOptions,
    source: MotorSource,
    progress: Callable[[str, float], None],
) -> ElasticFit:
    """Identify springs and motors; IdentificationError if nothing of any joint can be identified."""
    parts, notes = arm_recordings(training, robot, source)
    judged, more = arm_recordings(validation, robot, source)
    elasticity = identify_elasticity(robot, parts, options, progress=progress)

    def scores(fitted: Elasticity) -> tuple[ElasticScore, ElasticScore | None]:
        return elastic_score(robot, fitted, parts), elastic_score(robot, fitted, judged) if judged else None

    score, judgement = scores(elasticity)
    figures = judgement or score
    worse = {what: list(compress(robot.joint_names, getattr(figures, what).worse)) for what in ("springs", "motors")}
    same = [name for name in _no_better(robot, elasticity, score.springs) if name not in worse["springs"]]
    for kept, than in ((worse, "worse than"), ({"springs": same}, "no better than")):
        if any(kept.values()):
            listed = "; ".join(f"{what} of {', '.join(names)}" for what, names in kept.items() if names)
            notes.append(f"identified ones predict efforts {than} those of the file, which are kept: {listed}")
    if any(worse.values()) or same:
        elasticity = elasticity.without(springs=[*worse["springs"], *same], motors=worse["motors"])
        score, judgement = scores(elasticity)
    notes = list(dict.fromkeys([*notes, *more, *elasticity.notes]))
    return ElasticFit(robot, elasticity, tuple(parts), tuple(judged), score, judgement, tuple(notes))


def _no_better(robot: Robot, elasticity: Elasticity, errors: EffortErrors) -> list[str]:
    """Joints with springs that explain no more of the fitted efforts than the file's springs, beyond chance."""
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = dict(zip(robot.joint_names, np.square(errors.before / errors.after) - 1, strict=True))
    springs = elasticity.springs.items()
    return [name for name, fit in springs if gain[name] * fit.samples <= _CHANCE * len(fit.parameters)]


def link_recordings(
    robot: Robot, sides: Sequence[TwoSidedRecording], fit: ElasticFit | None, source: MotorSource
) -> tuple[list[Recording], list[str]]:
    """Link recordings, with identified spring efforts in place of missing efforts, and notes."""
    recordings, notes = [], []
    for recording in sides:
        if recording.links is None:
            raise IdentificationError(f"{recording.name}: no link data; record links, or use --springs resonance")
        sensed = any(measured(tau[tau == tau]) for tau in recording.links.tau.T)
        if fit is None or recording.motors is None or (sensed and not motors_alone(recording)):
            recordings.append(recording.links)
            continue
        name = recording.links.name
        parts, _ = arm_recordings([recording], robot, source)
        if sensed:
            recordings += [x.links(robot, name) for x in parts]
            continue
        recordings += [with_spring_efforts(robot, fit.elasticity, x).links(robot, name) for x in parts]
        notes.append(f"{name}: efforts of the links were not recorded; those of the identified springs are used")
    return recordings, notes


def identify_motor_side(
    robot: Robot, training: Sequence[TwoSidedRecording], options: ElasticOptions, source: MotorSource
) -> ResonanceResult:
    """Identify springs and rotors from the resonance of motors; IdentificationError if one recording shows none."""
    if len(training) > 1:
        raise IdentificationError("a resonance is identified from one recording; give one")
    (recording,) = training
    assert recording.motors is not None
    motors = motors_in_joint_units(recording.motors, robot, source.unit)
    fit, notes = identify_resonance(robot, motors, options)
    summary = f"springs, rotors and motor friction are {fit.method}; inertias of the links stay as in the file"
    return ResonanceResult(robot, fit, motors, (summary, *(f"{motors.name}: {line}" for line in motors.notes), *notes))


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
        """Delay of the drives, s; zero if not positive; None if not certain."""
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
                f"commands come every {_in_ms(self.period)}; drive_delay is not written: give the time of motor "
                "efforts by --motor-delay (--effort-delay for rigid joints): half a command period if drives report "
                "means of the last period, minus half a period if they report the effort that they start to apply"
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
    """Timing of the commands in recordings, and notes; None without commands."""
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
    """Warning if motor efforts are sampled as rarely as commands, which drives hold; ``known``: their delay, s.

    The effort of a drive that holds commands has a sawtooth of the command period. With one sample per period, the
    identified motor friction has an error of several rotor inertias per second. Efforts with known delay are means.
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
    if robot.transmission is not None or any(
        len(joint.spring.motor_suffixes) != 1 for joint in robot.independent_joints
    ):
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
    # By this file, references of the drives were for the times of their measurements.
    ages = (0.0, *robot.drive_feedback_delay)
    references = [CubicSpline(times, x)(t - age) for x, age in zip(fields, ages, strict=False)]
    # Efforts were shifted to the times of their effect.
    return drive_delay(t, part.theta[now], part.motor_effort[now], references)._replace(early=-late), period
