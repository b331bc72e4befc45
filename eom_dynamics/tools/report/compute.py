# SPDX-License-Identifier: Apache-2.0
"""Compute the commands of a recording that has none, as :mod:`eom_dynamics.tools.replay` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...arrays import Array
from ...messages.fields import EFFORT_FIELDS, MOTOR_FIELDS, STATE_FIELDS
from ..bags import Bag
from ..recordings import Stamps
from ..replay import CommandOptions, joint_states, setpoints, trajectories
from ..replay.batch import Refusals
from ..replay.evaluation import Evaluation
from ..replay.joint_states import FitFigures
from ..replay.sources import Sampling, choose_topic
from .parts import Part, joined
from .record import Record


def with_commands(
    record: Record, bag: Bag, sampling: Sampling, progress: Callable[[float], None] | None = None
) -> Record:
    """Add commands, and setpoints if missing, computed from the motion in the bag.

    Args:
        record: of a known robot, without commands.
        bag: of the record.
        sampling: of trajectories and measured positions.
        progress: is called with the fraction of the bag read, 0 to 1.

    Raises:
        BagError: the motion cannot be read.
    """
    source = record.setpoint or record.measured
    topic = choose_topic(bag, None if source is None else source.topic)
    refusals = Refusals()
    arm = record.arm
    assert arm is not None
    evaluation = Evaluation(arm, CommandOptions(), refusals)
    states: list[Part] = []
    efforts: list[Part] = []
    motors: list[Part] = []
    for batch, computed in evaluation.of_topic(bag, topic, sampling, FitFigures(), progress):
        states.append(_part(batch.stamps, batch.names, batch.fields, STATE_FIELDS))
        for commands in computed:
            stamps = commands.stamps
            efforts.append(_part(stamps, commands.joint_names, commands.values, EFFORT_FIELDS))
            motors.append(_part(stamps, commands.motor_names, commands.values, MOTOR_FIELDS))
    lines = evaluation.violations.lines()
    notes = [
        *(f"{count:,} messages of {topic.name} refused: {reason}" for reason, count in refusals.ranked()),
        *([f"{lines[0]} {'; '.join(lines[1:])}"] if lines else []),
    ]
    if not efforts:
        return replace(record, notes=(*record.notes, *notes, f"no commands could be computed from {topic.name}"))
    what = {
        setpoints.TYPE: f"the setpoints of {topic.name}",
        trajectories.TYPE: f"the trajectories of {topic.name}, interpolated and sampled at {sampling.rate:g} Hz",
        joint_states.TYPE: f"a fit of the positions of {topic.name} with a cutoff of {sampling.cutoff:g} Hz",
    }[topic.type]
    about = f"Commands were not recorded: they are computed for {arm.robot.name} from {what}."
    fitted = topic.type == joint_states.TYPE
    setpoint = record.setpoint or joined(
        f"{topic.name}, {'fit' if fitted else 'interpolated'}", states, is_recorded=False, is_fitted=fitted
    )
    return replace(
        record,
        setpoint=setpoint,
        command=joined("commands, computed", efforts, is_recorded=False),
        motors=record.motors or joined("commands, computed", motors, is_recorded=False),
        about=about,
        notes=(*record.notes, *notes),
    )


def _part(stamps: Stamps, names: Sequence[str], values: Mapping[str, Array], fields: Sequence[str]) -> Part:
    own = {field: values[field] for field in fields if values[field].shape[1] == len(names)}
    return Part(stamps.recorded, stamps.header, tuple(names), own)
