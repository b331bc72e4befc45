# SPDX-License-Identifier: Apache-2.0
"""Setpoints out of a bag, as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..bags import Bag, BagError, Layouts, Rows, Topic
from ..stream.conversions import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from .batch import Batch, Refusals, Stamps

TYPE = "eom_dynamics/msg/JointTrajectorySetpoint"

_NEEDED = ("joint_names", *STATE_FIELDS)
_FIELDS = (*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS)


def setpoint_batches(
    bag: Bag, topic: Topic, refusals: Refusals, progress: Callable[[float], None] | None = None
) -> Iterator[Batch]:
    """The setpoints of a topic, by the definition that the bag itself holds of them.

    Raises:
        BagError: by that definition they lack what a setpoint needs.
    """
    store = topic.types()
    known = [name for name, _ in store.fielddefs[topic.type][1]]
    missing = [name for name in ("header", *_NEEDED) if name not in known]
    if missing:
        raise BagError(
            f"topic {topic.name}: by the bag's own definition of {topic.type} it has no {', '.join(missing)}; it has "
            f"{', '.join(known)}"
        )
    layouts = Layouts(store, topic.type)
    for times, messages in bag.messages(topic, progress):
        recorded = np.array(times, dtype=np.int64)
        for part in layouts.rows(messages):
            if not isinstance(part, Rows):
                place, error = part
                refusals.add(str(error), times[place])
                continue
            start, layout, rows = part
            stamps = Stamps(
                recorded[start : start + len(rows)],
                layout.numbers(rows, "header.stamp.sec")[:, 0],
                layout.numbers(rows, "header.stamp.nanosec")[:, 0],
            )
            fields = {name: layout.numbers(rows, name).astype(float) for name in _FIELDS if layout.has(name)}
            message = layout.message
            yield Batch(stamps, message.header.frame_id, list(message.joint_names), fields)
