# SPDX-License-Identifier: Apache-2.0
"""From recordings to an identified robot: read, determine the recorded quantities, identify, and score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ...identification import Fit, IdentificationError, Recording, fit, identified_robot, verified
from ...identification.elastic.options import coupled_springs
from ...identification.links.verification import EffortErrors
from ...identification.recording import LEAST_SAMPLES, TooFewSamplesError
from ...recordings.sides import TwoSidedRecording, read_sides
from ...recordings.tables import is_table
from ...robot import Robot
from ...robot.model import ModelUncertainty
from ..quantity_text import effort_units, number
from . import HELD_OUT, Request
from .elastic import (
    CommandTiming,
    ElasticFit,
    ResonanceResult,
    aliased_efforts,
    command_timing,
    identify_both_sides,
    identify_motor_side,
    link_recordings,
    mode_of,
)

Progress = Callable[[str, float], None]

_SHORT = 10.0  # s: shorter recordings in total, or half of it with motion, are not held out from by default
_NOT_BETTER = "no file is written: no identified parameters predict the arm better than the given file"
_UNVALIDATED = (
    "not validated: {}; record 10 s of motion or more, name a recording, --validate, or accept figures of the training "
    "data, --hold-out 0"
)
_RESONANCE = "not validated: a resonance needs the whole recording; accept its figures with --hold-out 0"
_ALIASED = "no file is written: motor efforts alias, see below; --suspect use writes it"


@dataclass(frozen=True, eq=False)
class IdentificationResult:
    """Result of an identification.

    Attributes:
        given: the robot as its file describes it.
        robot: the identified robot.
        link_fit: identified links; None if they were not recorded.
        elastic: identified springs and motors; None if not requested or not possible.
        training, validation: recordings of the links.
        held_out: share of each recording that was held out for validation.
        tolerance: of RMS residuals of the links, N m or N, or None.
        timing: of the commands; None if they were not recorded.
        sources: topics or columns that were read, a line for each recording.
        read: number of samples that were read.
        aliased: that motor efforts alias, a line; empty if they do not.
        commands: errors of the motor efforts that the feedforward commands; None if motors were not recorded.
        shared: line on springs that joints share, which stay as in the file; empty without them.
        unvalidated: reason of a missing validation; "" if the result is validated, or no validation was requested.
    """

    original: Robot
    robot: Robot
    link_fit: Fit | None
    elastic: ElasticFit | ResonanceResult | None
    training: tuple[Recording, ...]
    validation: tuple[Recording, ...]
    held_out: float = 0.0
    tolerance: float | None = None
    timing: CommandTiming | None = None
    sources: tuple[str, ...] = ()
    unvalidated: str = ""
    read: int = 0
    aliased: tuple[str, ...] = ()
    commands: EffortErrors | None = None
    shared: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """Failed checks, a line each."""
        if self.link_fit is None:
            return (self.unvalidated,) if self.unvalidated else ()
        beyond = [] if self.tolerance is None else _beyond(self.link_fit, self.tolerance)
        blind = [_UNVALIDATED.format(self.unvalidated)] if self.unvalidated else []
        unwritten = [self.unwritten] if self.unwritten else []
        kept = [] if self.link_fit.contradictions else _kept(self.link_fit, unexplained=True)
        worse = _worse_commands(self.link_fit, self.commands)
        first = (*self.link_fit.lost, *unwritten, *self.aliased, *blind, *_contradictions(self.link_fit), *kept)
        return (*first, *self.shared, *worse, *beyond)

    @property
    def unwritten(self) -> str:
        """Line with the reason for writing no file; "" if the file is written."""
        fit = self.link_fit
        if fit is not None and fit.refused and self.timing is None:
            elasticity = self.elastic.elasticity if isinstance(self.elastic, ElasticFit) else None
            if elasticity is None or not (elasticity.springs or elasticity.motors):
                return _NOT_BETTER
        return _ALIASED if fit is not None and fit.options.suspect == "keep" and self.aliased else ""

    def verified(self, written: Robot) -> IdentificationResult:
        """These results with the figures of the written and reloaded robot.

        Links that predict worse are as given: springs, motors and timing were checked without them.
        """
        if self.link_fit is None:
            return self
        links = verified(self.link_fit, written, self.training, self.validation)
        rejected = links.refused and not self.link_fit.refused
        robot = _with(self.original, self.elastic, self.timing) if rejected else self.robot
        commands = None
        if isinstance(self.elastic, ElasticFit):
            commands = self.elastic.command_errors(robot if rejected else written, links.filter)
        return replace(self, link_fit=links, robot=robot, commands=commands)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the identification, each a line."""
        parts = [] if self.link_fit is None else [tuple(_kept(self.link_fit, unexplained=False)), self.link_fit.notes]
        if self.link_fit is not None and self.link_fit.options.suspect == "use":
            parts.append(self.link_fit.contradictions)
        parts += [] if self.elastic is None else [self.elastic.notes]
        parts += [] if self.timing is None else [tuple(self.timing.as_text())]
        parts.append(self.sources)
        return tuple(dict.fromkeys(line for part in parts for line in part))


def _contradictions(fit: Fit) -> list[str]:
    """Lines on recordings that contradict the file, unless identified parameters predict held-out blocks."""
    end = ": the given parameters are kept; --suspect use accepts the recording"
    ignored = fit.options.suspect == "use" and fit.validation is not None and not fit.refused
    return [] if ignored else [line + (end if fit.options.suspect == "keep" else "") for line in fit.contradictions]


def _kept(fit: Fit, *, unexplained: bool) -> list[str]:
    """Line for each kept joint, with unexplained efforts or without."""
    if (rejected := fit.rejected) is None:
        return []
    end = "; check unit, sign and coupling of its efforts" if unexplained else ""
    rows = zip(fit.robot.joint_names, effort_units(fit.robot), rejected.after, rejected.before, strict=True)
    return [
        f"{name} keeps the given parameters: identified ones predict {judged(fit)} efforts to {number(after)} {unit}, "
        f"given ones to {number(before)} {unit}{end}"
        for name, unit, after, before in rows
        if name in fit.kept and (name in fit.unexplained) == unexplained
    ]


def _worse_commands(fit: Fit, commands: EffortErrors | None) -> list[str]:
    """Line for each joint with worse motor efforts of commands than by the given file."""
    if commands is None:
        return []
    rows = zip(fit.robot.joint_names, effort_units(fit.robot), commands.after, commands.before, strict=True)
    return [
        f"the new file predicts motor efforts of {name} to {number(after)} {unit}, the given file to {number(before)} "
        f"{unit}; check their sign and unit, or keep its motor, --springs off"
        for (name, unit, after, before), worse in zip(rows, commands.worse, strict=True)
        if worse
    ]


def _shared(robot: Robot) -> tuple[str, ...]:
    """Line on springs that joints share, if there are any."""
    names = coupled_springs(robot)
    line = "share a spring: their springs and motors stay as in the file; check them, or accept them with --springs off"
    return (f"{', '.join(names)} {line}",) if names else ()


def _beyond(fit: Fit, tolerance: float) -> list[str]:
    """Return a line for each joint with an RMS residual above the tolerance, on validation if available."""
    pairs = zip(fit.robot.joint_names, effort_units(fit.robot), fit.judged.after, strict=True)
    return [
        f"RMS {judged(fit)} residual of {name} is {number(rms)} {unit}, tolerance {tolerance:g}"
        for name, unit, rms in pairs
        if rms > tolerance
    ]


def judged(fit: Fit) -> str:
    """Name of the data that judge a fit."""
    return "training" if fit.validation is None else "validation"


def identify(robot: Robot, request: Request, progress: Progress) -> IdentificationResult:
    """Identify a robot, as its file describes it, from files; ``progress`` takes a step and the fraction of it done.

    Raises EomDynamicsError if a recording or the robot cannot be used, or options contradict each other, and OSError.
    """
    asked = request.springs
    if request.link_options.side == "motor" or request.link_options.payload is not None:
        if asked in ("both", "resonance"):
            raise IdentificationError(
                f"--springs {asked} cannot be combined with --side motor or --payload; leave these out"
            )
        asked = "off"

    def read(file: Path) -> TwoSidedRecording:
        done = partial(progress, f"read {file.name}")
        return read_sides(file, robot, request.source, request.motors, done, links_alone=asked == "off")

    training, validation = [read(file) for file in request.training], [read(file) for file in request.validation]
    complete, sources = training, tuple(recording.source for recording in (*training, *validation))
    mode, notes = mode_of(asked, robot, request.elastic_options, training)
    notes += _without_effect(request, mode)
    if request.link_options.side == "motor" and any(not x.spring.is_rigid for x in robot.independent_joints):
        notes.append("springs stay as in the file: efforts of the motor side alone say nothing of them")
    if mode == "resonance":
        return replace(_from_motors(robot, request, training, notes), sources=sources)
    if mode == "off":
        training, validation = _links_alone(training), _links_alone(validation)
    share, lacking = request.hold_out, ""
    if share is None and not validation:
        share = HELD_OUT if all(_long_enough(recording) for recording in training) else 0.0
        lacking = "" if share else "the recording, or its motion, is too short to hold out a part of it"
    # Blocks are at least as long as the filter needs; fewer blocks are used if too little training data is left.
    for attempt in (share, *((min(2 * share, 0.5), min(4 * share, 0.5), share / 2, 0.0) if share else ())):
        try:
            parts = _held_out(training, attempt) if attempt else (training, validation)
            elastic, links, train, judge, filled_in = _identified(robot, request, mode, parts, progress)
        except TooFewSamplesError as error:
            if attempt == 0.0 or not share:
                raise
            lacking = str(error)
        else:
            share = attempt
            break
    if share and lacking:
        notes.append(f"{share:g} of each recording is held out: {lacking}")
    if elastic is not None and links.contradictions and links.options.suspect == "keep":
        elastic = None  # springs and motors are identified by the same efforts
        notes.append("springs and motors are those of the file that was given, too")
    identified = _with(robot if links.refused else identified_robot(links), elastic)
    if elastic is not None:
        identified = replace(identified, uncertainty=_uncertainty(identified.uncertainty, elastic, links))
    timing, more = command_timing(identified, complete, request.source, request.motors)
    aliased = list[str]()
    if elastic is not None or request.link_options.side == "motor":
        known = request.source.effort_delay or None if elastic is None else request.motors.delay
        aliased = aliased_efforts(robot, complete, timing, known)
    wrong = links.contradictions
    if request.source.conventions.effort_scale:
        again = "; multiply the present scale by it (held-out"
        wrong = tuple(x.replace(" (held-out", again) if "--effort-scale" in x else x for x in wrong)
    links = replace(links, notes=(*links.notes, *notes, *filled_in, *more), contradictions=wrong)
    return IdentificationResult(
        robot,
        _with(identified, timing),
        links,
        elastic,
        tuple(train),
        tuple(judge),
        share or 0.0,
        request.tolerance,
        timing,
        sources,
        unvalidated="" if judge or request.hold_out == 0 else lacking,
        aliased=tuple(aliased),
        shared=_shared(robot) if elastic is not None else (),
        read=sum(len(x.links) for x in (*complete, *(() if share else validation)) if x.links is not None),
    )


_Sides = Sequence[TwoSidedRecording]


def _held_out(recordings: _Sides, share: float) -> tuple[_Sides, _Sides]:
    """Training and validation data of recordings."""
    training, validation = zip(*(recording.split(share) for recording in recordings), strict=True)
    return training, validation


def _identified(
    robot: Robot, request: Request, mode: str, parts: tuple[_Sides, _Sides], progress: Progress
) -> tuple[ElasticFit | None, Fit, list[Recording], list[Recording], list[str]]:
    """Springs and motors, links, the recordings to train on and to judge by, and notes."""
    training, validation = parts
    elastic = None
    if mode == "both":
        elastic = identify_both_sides(robot, training, validation, request.elastic_options, request.motors, progress)
    train, filled_in = link_recordings(robot, training, elastic, request.motors)
    judge, _ = link_recordings(robot, validation, elastic, request.motors)
    settings = request.link_options
    if elastic is not None:  # friction belongs to the motors
        settings = replace(settings, side="joint", terms=("offset",) if settings.terms is None else settings.terms)
    return elastic, fit(robot, train, judge, settings, progress=progress), train, judge, filled_in


def _uncertainty(present: ModelUncertainty, elastic: ElasticFit, links: Fit) -> ModelUncertainty:
    """Relative deviations: of springs and rotors, root mean squares; of masses, the residual over the efforts."""

    def relative(estimates: Iterable[tuple[float, float] | None], otherwise: float) -> float:
        shares = [deviation / value for value, deviation in filter(None, estimates) if 0 < deviation < abs(value)]
        return float(np.sqrt(np.mean(np.square(shares)))) if shares else otherwise

    score = links.validation or links.training
    return ModelUncertainty(
        relative((x.stiffness for x in elastic.elasticity.springs.values()), present.stiffness),
        min(float(np.sqrt(np.nansum(score.after**2) / np.nansum(score.spread**2))), 0.99),
        relative((x.rotor_inertia for x in elastic.elasticity.motors.values()), present.rotor_inertia),
    )


def _with(robot: Robot, *parts: ElasticFit | ResonanceResult | CommandTiming | None) -> Robot:
    for part in parts:
        robot = robot if part is None else part.applied_to(robot)
    return robot


def _without_effect(request: Request, mode: str) -> list[str]:
    topics = {
        "--topic": request.source.topic,
        "--effort-topic": request.source.effort_topic,
        "--motor-topic": request.motors.topic,
        "--motor-effort-topic": request.motors.effort_topic,
        "--current-topic": request.motors.current_topic,
    }
    lines = []
    if all(is_table(file) for file in (*request.training, *request.validation)):
        lines += [f"{option} has no effect: a table has no topics" for option, topic in topics.items() if topic]
    if request.elastic_options.laws and mode != "both":
        reason = {"off": "no springs are identified", "resonance": "a resonance identifies linear springs"}[mode]
        lines.append(f"--spring-law has no effect: {reason}")
    return lines


def _long_enough(sides: TwoSidedRecording) -> bool:
    """True if a part of a recording can be held out, and has all recorded quantities."""
    try:
        if sides.links is None:
            return False
        links = sides.links.cleaned()
        if links.duration < _SHORT or links[links.in_motion].duration < _SHORT / 2:
            return False
        parts = sides.split(HELD_OUT)
    except IdentificationError:
        return False
    recorded = [x for part in parts for x in (part.links, part.motors, part.currents) if x is not None]
    return all(len(x) >= LEAST_SAMPLES for x in recorded)


def _links_alone(sides: Sequence[TwoSidedRecording]) -> list[TwoSidedRecording]:
    """Recordings of the links; motors alone count as rigid joints."""
    return [TwoSidedRecording(recording.motors if recording.links is None else recording.links) for recording in sides]


def _from_motors(
    robot: Robot, request: Request, training: Sequence[TwoSidedRecording], notes: Sequence[str]
) -> IdentificationResult:
    judged = {"--hold-out": request.hold_out, "--validate": request.validation, "--tolerance": request.tolerance}
    for option, value in judged.items():
        if value:
            raise IdentificationError(
                f"{option}: links were not recorded, so the result cannot be validated; a resonance is identified from "
                "one recording of motors"
            )
    resonance = identify_motor_side(robot, training, request.elastic_options, request.motors)
    resonance = replace(resonance, notes=(*resonance.notes, *notes))
    unvalidated = "" if request.hold_out == 0 else _RESONANCE
    return IdentificationResult(robot, resonance.applied_to(robot), None, resonance, (), (), unvalidated=unvalidated)
