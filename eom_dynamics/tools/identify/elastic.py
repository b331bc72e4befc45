# SPDX-License-Identifier: Apache-2.0
"""Identification of springs and motors by a command: from both sides of the springs, or from resonances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from ...exceptions import RobotDescriptionError
from ...identification import IdentificationError, Recording, ResonanceFit
from ...identification.elastic.arm import (
    Elasticity,
    ElasticOptions,
    ElasticScore,
    check_elastic,
    elastic_score,
    identify_elasticity,
    measured,
    with_spring_efforts,
)
from ...identification.elastic.resonance import identify_resonance, with_resonance
from ...identification.links.verification import EffortErrors
from ...identification.recording import ArmRecording
from ...recordings.options import MotorSource
from ...recordings.sides import TwoSidedRecording, arm_recordings, motors_alone, motors_in_joint_units
from ...robot import Robot

# Decrease of the sum of squared residuals by chance, in variances of a residual for each parameter: its mean is one.
_CHANCE = 4.0


@dataclass(frozen=True, eq=False)
class ElasticFit:
    """Springs and motors identified from both sides of the springs.

    Attributes:
        robot: as described by its file.
        elasticity: identified springs and rotors.
        training: both sides of the springs, each motion by itself.
        training_score, validation_score: figures of them.
        notes: unidentifiable quantities and warnings, a line each.
    """

    robot: Robot
    elasticity: Elasticity
    training: tuple[ArmRecording, ...]
    training_score: ElasticScore
    validation_score: ElasticScore | None
    notes: tuple[str, ...]
    method = "from both sides of the springs"

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with these springs and motors."""
        return self.elasticity.applied_to(robot)


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
    """Resolve ``auto`` by the recordings, where the robot has springs; return the mode of :class:`.Request` and notes.

    Raises IdentificationError if what was asked for was not recorded, RobotDescriptionError if the robot lacks it.
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
    return ElasticFit(robot, elasticity, tuple(parts), score, judgement, tuple(notes))


def _no_better(robot: Robot, elasticity: Elasticity, errors: EffortErrors) -> list[str]:
    """Joints with springs that explain no more of the fitted efforts than the file's springs, beyond chance."""
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = dict(zip(robot.joint_names, np.square(errors.before / errors.after) - 1, strict=True))
    springs = elasticity.springs.items()
    return [name for name, fit in springs if gain[name] * fit.samples <= _CHANCE * len(fit.parameters)]


def link_recordings(
    robot: Robot, sides: Sequence[TwoSidedRecording], fit: ElasticFit | None, source: MotorSource
) -> tuple[list[Recording], list[str]]:
    """Link recordings, with identified spring efforts where none were measured, and notes."""
    recordings, notes = [], []
    for recording in sides:
        if recording.links is None:
            raise IdentificationError(f"{recording.name}: has motors only, but links are to be identified")
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
