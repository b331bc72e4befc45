# SPDX-License-Identifier: Apache-2.0
"""A topic to write."""

from __future__ import annotations

from typing import NamedTuple

from .types import typestore


class OutputTopic(NamedTuple):
    """A topic to write.

    Attributes:
        name: of the topic.
        type: of its messages.
        definition: text of the type and of all types that it uses.
        hash: of the type (REP 2016).
    """

    name: str
    type: str
    definition: str
    hash: str

    @classmethod
    def of(cls, name: str, kind: str) -> OutputTopic:
        """Describe a topic of a type of ROS 2 Jazzy or of this package; BagError if the type is unknown."""
        store = typestore(kind)
        return cls(name, kind, store.generate_msgdef(kind, ros_version=2)[0], store.hash_rihs01(kind))
