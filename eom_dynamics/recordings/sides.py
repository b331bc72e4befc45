# SPDX-License-Identifier: Apache-2.0
"""Read both sides of the springs: links, motors and currents of a recording.

In a bag, motors are on a topic of JointState such as ``motor_states``, and currents are the efforts of another topic.
Table columns are ``motor_position.NAME``, ``motor_effort.NAME`` and ``current.NAME``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..arrays import Array
from ..identification import IdentificationError, Recording
from ..identification.recording import ArmRecording, both_sides
from ..robot import Robot
from . import MotorSource, Source
from .bags import Bag, BagError
from .bags.types import COMMAND
from .joint_recordings import opened, read_stamped, refuse_missing
from .streams import Stream, TopicReader, measured_states, only_one, topics_of_states
from .tables import NumericTable

_STATES = "motor_states"  # topics of measured motors, rather than of their references
_SAME = (0.5, 2.0)  # ratio of motor motion to link motion in a common unit
_CLOSE = 0.1
_LONGEST_STEP = 0.5  # between samples, s; longer steps are in other units, such as ms
_MOTION = 1e-2  # rad or m: less motion of a link says nothing of the unit


@dataclass(frozen=True, eq=False)
class TwoSidedRecording:
    """Link and motor side of one recording, on one clock.

    Attributes:
        links: positions and efforts of the links; None if only motors were recorded.
        motors: positions and efforts of the motors; None if they were not recorded.
        currents: of the motors, A, as efforts; None if they were not recorded.
        origin: stamp of their time zero, ns.
        commands: by topic.
    """

    links: Recording | None = None
    motors: Recording | None = None
    currents: Recording | None = None
    origin: int = 0
    commands: Mapping[str, Stream] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the recording."""
        side = self.motors if self.links is None else self.links
        return "a recording" if side is None else side.name

    @property
    def source(self) -> str:
        """Topics or columns of the recording."""
        sides = {"links": self.links, "motors": self.motors, "currents": self.currents}
        return f"{self.name}: {'; '.join(f'{k}: {x.source}' for k, x in sides.items() if x is not None)}"

    def split(self, share: float) -> tuple[TwoSidedRecording, TwoSidedRecording]:
        """Split into training data, and held-out blocks with this ``share`` of the link samples.

        Raises IdentificationError if a part has too few samples.
        """
        if self.links is None:
            raise IdentificationError(
                f"{self.name}: links were not recorded; no part of it can be held out for validation"
            )
        training, held_out, spans = self.links.held_out(share)

        def parts(side: Recording | None) -> tuple[Recording | None, Recording | None]:
            if side is None:
                return None, None
            held = np.any([(side.t >= start) & (side.t < end) for start, end in spans], axis=0)
            return side[~held], side[held]

        motors, currents = parts(self.motors), parts(self.currents)
        return (
            TwoSidedRecording(training, motors[0], currents[0], self.origin),
            TwoSidedRecording(held_out, motors[1], currents[1], self.origin),
        )


def read_sides(
    path: Path,
    robot: Robot,
    source: Source | None = None,
    motors: MotorSource | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    links_alone: bool = False,
) -> TwoSidedRecording:
    """Read a recording of links, motors, or both, with the commands in a bag; errors as for :func:`.read_recording`.

    Joints and motors, one each, have the same names. ``progress`` is called with the fraction read; ``links_alone``
    leaves out the motors.
    """
    source, motors = source or Source(), motors or MotorSource()
    motor_source = replace(
        source,
        effort_topic=motors.effort_topic,
        conventions=source.conventions.names_alone,
        effort_delay=0.0,
        position_unit="rad",
        side="motors",
    )
    current_source = replace(motor_source, side="currents")
    with opened(path, robot, source) as file:
        if isinstance(file, Bag):
            file.progress = progress
        sources = {"links": source}
        if isinstance(file, Bag) and not links_alone:
            links, topic = _topics(file, source.topic, motors.topic)
            if topic is None and (motors.effort_topic or motors.current_topic):
                raise BagError(f"{path}: has no topic of motor positions; name it, --motor-topic")
            sources = sources if links else {}
            if topic is not None:
                sources["motors"] = replace(motor_source, topic=topic)
            if motors.current_topic is not None:
                sources["currents"] = replace(current_source, topic=topic, effort_topic=motors.current_topic)
        elif isinstance(file, NumericTable) and not links_alone:
            names = {name.partition(".")[0] for name in file.values}
            efforts = names & {"motor_effort", "current"}
            if "motor_position" in names:
                sources = sources if "position" in names else {}
                sources["motors"] = motor_source
            elif efforts:
                raise IdentificationError(
                    f"{path}: has columns {' and '.join(sorted(efforts))}.NAME, but no motor_position.NAME; add these"
                )
            if "current" in names:
                sources["currents"] = current_source
        recordings: dict[str, Recording] = {}
        origin = None
        for side, where in sources.items():
            recording, start = read_stamped(file, robot, where)
            origin = start if origin is None else origin
            if len(recording) > 1 and (step := np.median(np.diff(np.sort(recording.t)))) > _LONGEST_STEP:
                raise IdentificationError(
                    f"{path.name}: samples are {step:.3g} s apart, more than {_LONGEST_STEP} s: write times in s"
                )
            recordings[side] = replace(recording, t=recording.t + (start - origin) * 1e-9)
        for side, recording in recordings.items():
            # The other side fills in for a joint without an encoder on one side.
            others = [x.assumed for other, x in recordings.items() if other != side]
            refuse_missing(recording, source, [x for x in robot.joint_names if any(x not in y for y in others)])
        commands = {}
        if isinstance(file, Bag):
            topics = [topic for topic in file.topics if topic.type == COMMAND]
            commands = {topic.name: TopicReader(file, topic, source.conventions).motion() for topic in topics}
    return TwoSidedRecording(**recordings, origin=origin or 0, commands=commands)


def arm_recordings(
    sides: Sequence[TwoSidedRecording], robot: Robot, source: MotorSource
) -> tuple[list[ArmRecording], list[str]]:
    """Both sides of the springs at common times, in link-side units: a recording for each motion, and notes.

    Raises IdentificationError if sides were not recorded at the same time, or units are unclear.
    """
    parts, notes, period = [], [], 0.0
    for recording in sides:
        if recording.links is None or recording.motors is None:
            continue
        period = period or max(x.links.period for x in sides if x.links is not None)
        notes += [f"{recording.motors.name}, motors: {line}" for line in recording.motors.notes]
        common_parts = both_sides(recording.links, recording.motors, recording.currents, period=period)
        common = sum(part.t[-1] - part.t[0] for part in common_parts)
        for side, what in ((recording.links, "links"), (recording.motors, "motors")):
            if common < (1 - _CLOSE) * side.duration:
                notes.append(
                    f"{side.name}: of {side.duration:.1f} s of the {what}, {common:.1f} s have both sides of the "
                    "springs, and are used to identify them"
                )
        converted, unit = _in_joint_units(common_parts, robot, source.unit, recording.motors.name)
        if unit != "rad" and source.unit == "auto":
            notes.append(f"{recording.motors.name}: motor positions are {_MEANING[unit]}; converted")
        if filled := motors_alone(recording):
            notes.append(
                f"{recording.links.name}: positions of {', '.join(filled)} were not recorded; those of their motors "
                "are used, and their springs and motors stay as in the file"
            )
            without = [name in filled for name in robot.joint_names]
            converted = [replace(x, q=np.where(without, x.theta, x.q), qd=None) for x in converted]
        parts += [part.centered(source.delay) if source.delay else part for part in converted]
    return parts, notes


def motors_alone(sides: TwoSidedRecording) -> list[str]:
    """Return the joints with a recorded motor, but no recorded link."""
    if sides.links is None or sides.motors is None:
        return []
    return [name for name in sides.links.assumed if name not in sides.motors.assumed]


def motors_in_joint_units(motors: Recording, robot: Robot, unit: str) -> Recording:
    """Motor positions and efforts on the link side of the gears; without links, ``auto`` is ``rad``."""
    position, effort = _factors(robot, "rad" if unit == "auto" else unit)
    return replace(motors, q=motors.q * position, tau=motors.tau * effort)


_MEANING = {"shaft": "positions of the shafts, before the gears", "deg": "in degrees"}


def _in_joint_units(
    parts: Sequence[ArmRecording], robot: Robot, unit: str, name: str
) -> tuple[list[ArmRecording], str]:
    known = None if unit == "auto" else unit
    sharing = (
        () if robot.transmission is None else robot.transmission[0]
    )  # their motors move otherwise than their links
    for k, joint in enumerate(robot.independent_joints):
        if k in sharing:
            continue
        q, theta = (
            np.concatenate([x[:, k] - np.mean(x[:, k]) for x in (getattr(p, s) for p in parts)]) for s in ("q", "theta")
        )
        if not (np.ptp(q) > _MOTION and np.ptp(theta) > 0):
            continue
        ratio = float(q @ theta / (q @ q))
        if unit == "auto" and (guessed := _unit(robot, k, ratio)) is not None:
            if known not in (None, guessed):
                raise IdentificationError(
                    f"{name}: motor positions of {joint.name} are in another unit than earlier joints; "
                    "name the unit, --motor-unit"
                )
            known = guessed
        scale = float(_factors(robot, known or "rad")[0][k])
        if not _SAME[0] < scale * ratio < _SAME[1]:
            raise IdentificationError(
                f"{name}: the motor of {joint.name} moves {ratio:.4g} times as far as the link, gear ratio "
                f"{joint.gear_ratio:g}; check signs, or name the unit, --motor-unit deg or shaft"
            )
    known = known or "rad"
    position, effort = _factors(robot, known)
    converted = [replace(x, theta=x.theta * position, motor_effort=x.motor_effort * effort) for x in parts]
    return converted, known


def _unit(robot: Robot, joint: int, ratio: float) -> str | None:
    """Return the motor unit for a ``ratio`` of motor motion to link motion of a joint; None if no unit fits."""
    if _SAME[0] < ratio < _SAME[1]:
        return "rad"
    fitting = (unit for unit in _MEANING if abs(ratio * _factors(robot, unit)[0][joint] - 1) < _CLOSE)
    return next(fitting, None)


def _factors(robot: Robot, unit: str) -> tuple[Array, Array]:
    """Factors (n,) of positions and of efforts to the link side of the gears."""
    one, ratios = np.ones(robot.n), np.array([joint.gear_ratio for joint in robot.independent_joints])
    degrees = np.array([1.0 if joint.type == "prismatic" else np.pi / 180 for joint in robot.independent_joints])
    return {"rad": (one, one), "shaft": (1 / ratios, ratios), "deg": (degrees, one)}[unit]


def _topics(bag: Bag, links: str | None, motors: str | None) -> tuple[bool, str | None]:
    """Return whether a bag has links, and its motor topic; BagError if a topic is missing, or several are of motors."""
    states = measured_states(bag)
    named = [] if links is None else bag.named(links)
    topics = [topic for topic in states if topic.name.endswith(_STATES) and topic not in named]
    if motors is not None:
        topics = topics_of_states(bag, motors, "--motor-topic")
    if not topics:
        return True, None
    return links is not None or not set(states) <= set(topics), only_one(bag, topics, "of motors", "--motor-topic").name
