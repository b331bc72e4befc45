# SPDX-License-Identifier: Apache-2.0
"""Setpoints of a bag, as they were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype

from ...arrays import Array
from ...messages.fields import BASE_FIELD, BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ..bags import Bag, Layouts, Rows, Topic
from .batch import Batch, Refusals, Stamps

TYPE = "eom_dynamics/msg/JointTrajectorySetpoint"


def setpoint_batches(
    bag: Bag, topic: Topic, refusals: Refusals, progress: Callable[[float], None] | None = None
) -> Iterator[Batch]:
    """Read the setpoints of a topic by the definition that the bag itself holds of them.

    Wrenches may be ``geometry_msgs/Wrench[]`` or, as in bags of earlier releases, ``float64[]``, moment first.

    Raises:
        BagError: the definition differs in a field that is read.
    """
    store = topic.types()
    definition = dict(store.fielddefs[topic.type][1])
    layouts = Layouts(store, topic.type)
    for times, messages in bag.messages(topic, progress):
        recorded = np.array(times, dtype=np.int64)
        for part in layouts.rows(messages):
            if not isinstance(part, Rows):
                place, error = part
                refusals.add(str(error), times[place])
                continue
            start, layout, rows = part
            stamps = Stamps.of(layout, rows, recorded[start : start + len(rows)])
            fields = {
                name: layout.numbers(rows, name).astype(float)
                for name in (*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS, BASE_FIELD)
                if layout.has(name)
            }
            try:
                fields |= {n: _moment_first(n, fields[n], definition[n]) for n in WRENCH_FIELDS if n in fields}
            except ValueError as error:
                refusals.add(str(error), int(stamps.recorded[0]), len(rows))
                continue
            if BASE_FIELD in fields:
                fields[BASE_FIELD] = fields[BASE_FIELD].reshape(len(rows), -1, *BASE_SHAPE)
            yield Batch(stamps, layout.message.header.frame_id, list(layout.message.joint_names), fields)


def _moment_first(name: str, numbers: Array, description: Any) -> Array:
    """Wrenches (N, number of entries, 6) from the numbers (N, 6 * number of entries) of a field, by its description."""
    _, ((element, _), _) = description
    if element == Nodetype.BASE:
        if numbers.shape[1] % 6:
            raise ValueError(f"{name} has {numbers.shape[1]} entries, must have 6 (moment and force) for each tool")
        return numbers.reshape(len(numbers), -1, 6)
    force_first = numbers.reshape(len(numbers), -1, 2, 3)
    return force_first[:, :, ::-1].reshape(len(numbers), -1, 6)
