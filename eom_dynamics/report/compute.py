# SPDX-License-Identifier: Apache-2.0
"""The commands that the node would give for a recording that has none, by :mod:`eom_dynamics.replay`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..actuators import ElasticArm
from ..bags import Bag, Topic
from ..replay import Options, joint_states, setpoints, trajectories
from ..replay.batch import Batch, Refusals, Stamps
from ..replay.evaluation import Evaluation
from ..replay.joint_states import FitFigures
from ..replay.sources import choose_topic
from ..robot import Robot
from .fields import EFFORTS, MOTION, MOTORS
from .parts import Part, joined
from .record import Array, Record


@dataclass(frozen=True)
class Settings:
    """How commands are computed.

    Attributes:
        cutoff: Hz, of the fit of measured positions.
        rate: Hz, of states on planned trajectories.
    """

    cutoff: float = 5.0
    rate: float = 1000.0


DEFAULT = Settings()


def with_commands(
    record: Record, bag: Bag, settings: Settings, progress: Callable[[float], None] | None = None
) -> Record:
    """A record of a known robot with setpoints and commands computed from what its bag has of the motion.

    Args:
        record: without commands; its own setpoints stay.
        bag: that it is from.
        settings: of the computation.
        progress: is told the share of the bag that is behind.

    Raises:
        BagError: the motion cannot be read.
    """
    robot = record.robot
    assert robot is not None
    source = record.setpoint or record.measured
    topic = choose_topic(bag, None if source is None else source.topic)
    refusals = Refusals()
    evaluation = Evaluation(ElasticArm(robot), Options(), refusals)
    states: list[Part] = []
    efforts: list[Part] = []
    motors: list[Part] = []
    for batch in _batches(bag, topic, robot, settings, refusals, progress):
        states.append(_part(batch.stamps, batch.names, batch.fields, MOTION))
        for commands in evaluation.commands(batch):
            stamps = commands.stamps
            efforts.append(_part(stamps, commands.joint_names, commands.values, EFFORTS))
            motors.append(_part(stamps, commands.motor_names, commands.values, MOTORS))
    lines = evaluation.excesses.lines()
    notes = [
        *(f"{count:,} messages of {topic.name} refused: {reason}" for reason, count in refusals.ranked()),
        *([f"{lines[0]} {'; '.join(lines[1:])}"] if lines else []),
    ]
    if not efforts:
        return replace(record, notes=(*record.notes, *notes, f"nothing of {topic.name} could be computed"))
    what = {
        setpoints.TYPE: f"the setpoints of {topic.name}",
        trajectories.TYPE: f"the trajectories of {topic.name}, interpolated and sampled at {settings.rate:g} Hz",
        joint_states.TYPE: f"a fit of the positions of {topic.name}, which follows them up to {settings.cutoff:g} Hz",
    }[topic.type]
    about = f"Commands were not recorded: they are computed for {robot.name} from {what}."
    own = record.setpoint
    return replace(
        record,
        setpoint=own or joined(f"{topic.name}, {_MADE[topic.type]}", states, is_recorded=False),
        command=joined("commands, computed", efforts, is_recorded=False),
        motors=record.motors or joined("commands, computed", motors, is_recorded=False),
        about=about,
        notes=(*record.notes, *notes),
    )


_MADE = {trajectories.TYPE: "interpolated", joint_states.TYPE: "fitted"}


def _batches(
    bag: Bag,
    topic: Topic,
    robot: Robot,
    settings: Settings,
    refusals: Refusals,
    progress: Callable[[float], None] | None,
) -> Iterator[Batch]:
    if topic.type == setpoints.TYPE:
        return setpoints.setpoint_batches(bag, topic, refusals, progress)
    if topic.type == trajectories.TYPE:
        return trajectories.trajectory_batches(bag, topic, settings.rate, refusals, progress)
    return joint_states.joint_state_batches(
        bag, topic, robot.joint_names, settings.cutoff, refusals, FitFigures(), progress
    )


def _part(stamps: Stamps, names: Sequence[str], values: Mapping[str, Array], fields: Sequence[str]) -> Part:
    own = {field: values[field] for field in fields if values[field].shape[1] == len(names)}
    return Part(stamps.recorded, stamps.header, tuple(names), own)
