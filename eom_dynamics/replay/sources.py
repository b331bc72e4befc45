# SPDX-License-Identifier: Apache-2.0
"""Which topic of a bag holds the motion."""

from __future__ import annotations

from ..bags import Bag, BagError, Topic
from . import joint_states, setpoints, trajectories

INPUT_TYPES = (setpoints.TYPE, trajectories.TYPE, joint_states.TYPE)
"""Types of messages that say a motion; where a bag has several, the first of these is taken."""

# What the node sends and a simulated arm answers, both as JointState.
_OF_MOTORS = ("motor_setpoint", "motor_states")

_TOLD_TOPICS = 20


def is_of_motors(topic: Topic) -> bool:
    """Whether the positions of a topic of JointState are of motors, not of links, by its name."""
    return topic.type == joint_states.TYPE and topic.name.endswith(_OF_MOTORS)


def choose_topic(bag: Bag, name: str | None = None) -> Topic:
    """The topic to replay.

    Args:
        bag: the bag.
        name: of the topic; by default the only one of the first type in INPUT_TYPES that the bag has, without those
            of motors.

    Raises:
        BagError: there is no such topic, or there are several.
    """
    usable = [topic for topic in bag.topics if topic.type in INPUT_TYPES]
    if name is not None:
        # The same topic can have been recorded with messages of several types.
        named = [topic for topic in bag.topics if topic.name.lstrip("/") == name.lstrip("/")]
        chosen = [topic for topic in named if topic in usable]
        if named and not chosen:
            raise BagError(f"{bag.path}: topic {name} is of type {named[0].type}, not one of {', '.join(INPUT_TYPES)}")
    else:
        # Motors stand off the links by what the springs give; they are no motion of the links unless that is said.
        of_links = [topic for topic in usable if not is_of_motors(topic)]
        kinds = [kind for kind in INPUT_TYPES if any(topic.type == kind for topic in of_links)]
        chosen = [topic for topic in of_links if topic.type == kinds[0]] if kinds else []
    if not chosen:
        there = ", ".join(f"{topic.name} ({topic.type})" for topic in bag.topics[:_TOLD_TOPICS]) or "no topic at all"
        wanted = f"topic {name}" if name is not None else f"topic of type {' or '.join(INPUT_TYPES)}"
        motors = ", ".join(topic.name for topic in usable if is_of_motors(topic)) if name is None else ""
        remedy = f"; {motors}: positions of motors, replayed only where --topic names them" if motors else ""
        raise BagError(f"{bag.path}: has no {wanted}; it has {there}{remedy}")
    if len(chosen) > 1:
        names = ", ".join(sorted({topic.name for topic in chosen}))
        if len({topic.name for topic in chosen}) == 1:
            raise BagError(f"{bag.path}: topic {names} was recorded by several definitions; replay them apart")
        raise BagError(
            f"{bag.path}: has {len(chosen)} topics of type {chosen[0].type}; name one of them, --topic: {names}"
        )
    return chosen[0]
