# SPDX-License-Identifier: Apache-2.0
"""Setpoints of a bag, as they were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rosbags.interfaces import Nodetype

from ...arrays import Array
from ...messages.fields import BASE_FIELD, BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ..bags import Bag, Topic
from ..recordings import read_blocks
from .batch import Batch, Refusals

TYPE = "eom_dynamics/msg/JointTrajectorySetpoint"


def setpoint_batches(
    bag: Bag, topic: Topic, refusals: Refusals, progress: Callable[[float], None] | None = None
) -> Iterator[Batch]:
    """Read the setpoints of a topic by the definition that the bag itself holds of them.

    Wrenches may be ``geometry_msgs/Wrench[]`` or, as in bags of earlier releases, ``float64[]``, moment first.

    Raises:
        BagError: the definition differs in a field that is read.
    """
    definition = dict(topic.types().fielddefs[topic.type][1])
    for block in read_blocks(bag, topic, refusals.add, progress):
        stamps = block.stamps()
        fields = {
            name: block.numbers(name)
            for name in (*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS, BASE_FIELD)
            if block.layout.has(name)
        }
        try:
            fields |= {n: _moment_first(n, fields[n], definition[n]) for n in WRENCH_FIELDS if n in fields}
        except ValueError as error:
            refusals.add(str(error), int(stamps.recorded[0]), len(block))
            continue
        if BASE_FIELD in fields:
            fields[BASE_FIELD] = fields[BASE_FIELD].reshape(len(block), -1, *BASE_SHAPE)
        yield Batch(stamps, block.message.header.frame_id, list(block.message.joint_names), fields)


def _moment_first(name: str, numbers: Array, description: Any) -> Array:
    """Wrenches (N, number of entries, 6) from the numbers (N, 6 * number of entries) of a field, by its description."""
    _, ((element, _), _) = description
    if element == Nodetype.BASE:
        if numbers.shape[1] % 6:
            raise ValueError(f"{name} has {numbers.shape[1]} entries, must have 6 (moment and force) for each tool")
        return numbers.reshape(len(numbers), -1, 6)
    force_first = numbers.reshape(len(numbers), -1, 2, 3)
    return force_first[:, :, ::-1].reshape(len(numbers), -1, 6)
