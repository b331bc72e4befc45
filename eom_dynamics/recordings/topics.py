# SPDX-License-Identifier: Apache-2.0
"""Choice of the topics to read in a bag: measurements, commands, and the motion to replay."""

from __future__ import annotations

from collections.abc import Sequence

from ..spelling import listed
from .bags import Bag, BagError, Topic
from .bags.layout import read_blocks
from .bags.types import JOINT_STATE, JOINT_TRAJECTORY, SETPOINT

# Both are JointStates: of the node, and of a simulated robot.
_MOTOR_TOPICS = ("motor_setpoint", "motor_states")
# Endings of JointState topics with commands: of this node, and of other common ones.
_SENT = (_MOTOR_TOPICS[0], "setpoint", "setpoints", "command", "commands", "desired")
# Types of messages that describe a motion, in order of preference.
_INPUT_TYPES = (SETPOINT, JOINT_TRAJECTORY, JOINT_STATE)


def is_motor_topic(topic: Topic) -> bool:
    """Return whether a topic of JointState has motor positions rather than link positions, by its name."""
    return topic.type == JOINT_STATE and topic.name.endswith(_MOTOR_TOPICS)


def is_sent(topic: Topic) -> bool:
    """Return whether a topic of JointState is ``motor_setpoint``, the node's commands."""
    return topic.type == JOINT_STATE and topic.name.endswith(_SENT[0])


def measured_states(bag: Bag) -> list[Topic]:
    """Return the topics of JointState without commands, by their names."""
    return [topic for topic in bag.topics if topic.type == JOINT_STATE and not topic.name.endswith(_SENT)]


def topics_of_states(bag: Bag, name: str | None = None, option: str = "--topic") -> list[Topic]:
    """The topics of measured joint states, of a name if an ``option`` gives one; raises BagError if there are none."""
    topics = [topic for topic in (bag.topics if name is None else bag.named(name)) if topic.type == JOINT_STATE]
    if not topics:
        wanted = f"topic {name}" if name else "topic"
        raise bag.lacks(f"has no {wanted} of type {JOINT_STATE}")
    if measured := measured_states(bag) if name is None else [topic for topic in topics if not is_sent(topic)]:
        return measured
    raise bag.lacks(
        f"{listed(topic.name for topic in topics)} has commands, not measurements; record joint_states, or name the "
        f"topic of what was measured, {option}"
    )


def only_one(bag: Bag, topics: Sequence[Topic], kind: str, option: str) -> Topic:
    """Return the only topic of this kind; raises BagError for several, with the ``option`` that selects one."""
    names = sorted({topic.name for topic in topics})
    if len(names) > 1:
        raise BagError(f"{bag.path}: has {len(names)} topics {kind}; name one of them, {option}: {listed(names)}")
    if len(topics) > 1:
        raise BagError(f"{bag.path}: topic {names[0]} was recorded with several definitions; split the bag by them")
    return topics[0]


def beside(bag: Bag, topic: Topic, kind: str) -> list[Topic]:
    """Topics of a type in the namespace of another one."""
    space = topic.name.rpartition("/")[0]
    return [other for other in bag.topics if other.type == kind and other.name.rpartition("/")[0] == space]


def choose_topic(bag: Bag, name: str | None = None) -> Topic:
    """Choose the topic to replay: the only one of a name, or of the first type in _INPUT_TYPES, but none of motors.

    Raises BagError if there is no such topic, or more than one.
    """
    usable = [topic for topic in bag.topics if topic.type in _INPUT_TYPES]
    if name is not None:
        named = bag.named(name)
        chosen = [topic for topic in named if topic in usable]
        if named and not chosen:
            raise BagError(f"{bag.path}: topic {name} is of type {named[0].type}, not one of {', '.join(_INPUT_TYPES)}")
    else:
        # Motor positions differ from link positions by the deflection of the springs.
        of_links = [topic for topic in usable if not is_motor_topic(topic)]
        kinds = [kind for kind in _INPUT_TYPES if any(topic.type == kind for topic in of_links)]
        chosen = [topic for topic in of_links if topic.type == kinds[0]] if kinds else []
    if not chosen:
        wanted = f"topic {name}" if name is not None else f"topic of type {' or '.join(_INPUT_TYPES)}"
        motors = listed(topic.name for topic in usable if is_motor_topic(topic)) if name is None else ""
        remedy = f"; {motors}: motor positions, replayed only if named with --topic" if motors else ""
        raise bag.lacks(f"has no {wanted}", remedy)
    if chosen[0].type == JOINT_STATE and name is None:
        _refuse_separate_joints(bag, chosen)
    return only_one(bag, chosen, f"of type {chosen[0].type}", "--topic")


def _refuse_separate_joints(bag: Bag, topics: Sequence[Topic]) -> None:
    """Raise BagError if topics have different joints each, as of the arms of one robot, or of a gripper."""
    first = {topic.name: next(read_blocks(bag, topic, lambda reason, time: None), None) for topic in topics}
    joints = {name: [*block.message.name] for name, block in first.items() if block is not None}
    every = [joint for names in joints.values() for joint in names]
    if len(joints) > 1 and len(every) == len({*every}):
        each = "; ".join(f"{name} has {listed(names)}" for name, names in joints.items())
        raise BagError(
            f"{bag.path}: joints are in separate topics, {each}: record those of a robot in one topic, or name "
            "the one that has all of them, --topic"
        )
