# SPDX-License-Identifier: Apache-2.0
"""Payloads of a bag: the topic ``payload`` beside that of the motion."""

from __future__ import annotations

from typing import Any

from ..bags import Bag, Topic
from .batch import Refusals

TYPE = "eom_dynamics/msg/Payload"


def recorded_payloads(bag: Bag, motion: Topic, refusals: Refusals) -> list[tuple[int, Any]]:
    """Times of recording, ns, and messages of the payloads in the namespace of a motion, in order."""
    found: list[tuple[int, Any]] = []
    for topic in bag.topics:
        if topic.type != TYPE or topic.name.rpartition("/")[0] != motion.name.rpartition("/")[0]:
            continue
        store = topic.types()
        for times, messages in bag.messages(topic):
            for time, message in zip(times, messages, strict=True):
                try:
                    found.append((time, store.deserialize_cdr(message, TYPE)))
                except Exception as error:  # rosbags raises errors of several types for damaged messages
                    refusals.add(f"payload cannot be read: {error}", time)
    return sorted(found, key=lambda entry: entry[0])
