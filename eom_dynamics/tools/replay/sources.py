# SPDX-License-Identifier: Apache-2.0
"""The motion of a bag: choice of its topic, and reading of its setpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...bags import Bag, BagError, Topic
from ...bags.message_blocks import read_blocks, read_messages
from ...bags.types import COMMAND, JOINT_STATE, JOINT_TRAJECTORY, PAYLOAD, SETPOINT
from ...messages.fields import BASE_FIELD, BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ...robot import Robot
from ...spelling import listed
from ..drive_numbers import DriveNumbers, is_of_motors
from ..recording_options import Sampling
from . import joint_states, trajectories
from .batch import Batch, Refusals
from .joint_states import FitFigures

INPUT_TYPES = (SETPOINT, JOINT_TRAJECTORY, JOINT_STATE)
"""Types of messages that describe a motion; the first one that a bag has is taken."""


def read_setpoints(
    bag: Bag, topic: Topic, robot: Robot, sampling: Sampling, refusals: Refusals, figures: FitFigures
) -> Iterator[Batch]:
    """Read the setpoints of a topic, sample its trajectories, or fit its measured positions."""
    names = sampling.conventions.names
    if topic.type == JOINT_STATE:
        return joint_states.joint_state_batches(
            bag,
            topic,
            robot.joint_names,
            sampling.cutoff,
            refusals,
            figures,
            sampling.conventions,
            DriveNumbers(robot),
        )
    if topic.type == SETPOINT:
        batches = _setpoint_batches(bag, topic, refusals)
    else:
        batches = trajectories.trajectory_batches(bag, topic, sampling.rate, refusals)
    return (replace(batch, names=names(batch.names)) for batch in batches)


def command_lead(bag: Bag, topic: Topic, robot: Robot, given: float | None = None) -> float:
    """Lead of the commands over the motion of a topic, s.

    Args:
        given: by default, that of the first command which was recorded with the setpoints, or that of the robot; none
            for motions that were measured or planned.
    """
    if given is not None:
        return given
    if topic.type != SETPOINT:
        return 0.0
    for other in _beside(bag, topic, COMMAND):
        for block in read_blocks(bag, other, lambda reason, time: None):
            return float(block.numbers("command_lead")[0, 0])
    return robot.command_lead


def recorded_payloads(bag: Bag, topic: Topic, refusals: Refusals) -> list[tuple[int, Any]]:
    """Times of recording, ns, and messages of the payloads in the namespace of a motion, in order."""

    def refuse(reason: str, time: int) -> None:
        refusals.add(f"payload cannot be read: {reason}", time)

    found = [pair for other in _beside(bag, topic, PAYLOAD) for pair in read_messages(bag, other, refuse)]
    return sorted(found, key=lambda pair: pair[0])


def _beside(bag: Bag, topic: Topic, kind: str) -> list[Topic]:
    """Topics of a type in the namespace of another."""
    space = topic.name.rpartition("/")[0]
    return [each for each in bag.topics if each.type == kind and each.name.rpartition("/")[0] == space]


def choose_topic(bag: Bag, name: str | None = None) -> Topic:
    """Choose the topic to replay.

    Args:
        name: of the topic; by default the only one of the first type in INPUT_TYPES that the bag has, motor topics
            excluded.

    Raises:
        BagError: there is no such topic, or more than one.
    """
    usable = [topic for topic in bag.topics if topic.type in INPUT_TYPES]
    if name is not None:
        named = bag.named(name)
        chosen = [topic for topic in named if topic in usable]
        if named and not chosen:
            raise BagError(f"{bag.path}: topic {name} is of type {named[0].type}, not one of {', '.join(INPUT_TYPES)}")
    else:
        # Motor positions differ from link positions by the deflection of the springs.
        of_links = [topic for topic in usable if not is_of_motors(topic)]
        kinds = [kind for kind in INPUT_TYPES if any(topic.type == kind for topic in of_links)]
        chosen = [topic for topic in of_links if topic.type == kinds[0]] if kinds else []
    if not chosen:
        wanted = f"topic {name}" if name is not None else f"topic of type {' or '.join(INPUT_TYPES)}"
        motors = listed(topic.name for topic in usable if is_of_motors(topic)) if name is None else ""
        remedy = f"; {motors}: motor positions, replayed only if named with --topic" if motors else ""
        raise BagError(f"{bag.path}: has no {wanted}; it has {bag.topics_in_words}{remedy}")
    if len(chosen) > 1:
        names = listed(sorted({topic.name for topic in chosen}))
        if len({topic.name for topic in chosen}) == 1:
            raise BagError(f"{bag.path}: topic {names} was recorded with several definitions; split the bag by them")
        raise BagError(
            f"{bag.path}: has {len(chosen)} topics of type {chosen[0].type}; name one of them, --topic: {names}"
        )
    return chosen[0]


def _setpoint_batches(bag: Bag, topic: Topic, refusals: Refusals) -> Iterator[Batch]:
    """Read the setpoints of a topic."""
    for block in read_blocks(bag, topic, refusals.add):
        fields = {name: block.numbers(name) for name in (*STATE_FIELDS, *STIFFNESS_FIELDS)}
        # Messages have the force first.
        fields |= {name: block.numbers(name).reshape(len(block), -1, 2, 3)[:, :, ::-1] for name in WRENCH_FIELDS}
        fields |= {name: fields[name].reshape(len(block), -1, 6) for name in WRENCH_FIELDS}
        fields[BASE_FIELD] = block.numbers(BASE_FIELD).reshape(len(block), -1, *BASE_SHAPE)
        yield Batch(block.stamps(), block.message.header.frame_id, list(block.message.joint_names), fields)
