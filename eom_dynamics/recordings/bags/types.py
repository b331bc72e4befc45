# SPDX-License-Identifier: Apache-2.0
"""Message types of ROS 2, of this package, and of the definitions in a bag."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import Connection, Nodetype
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from ...exceptions import EomDynamicsError
from ...spelling import listed

PACKAGE = "eom_dynamics"

SETPOINT = f"{PACKAGE}/msg/JointTrajectorySetpoint"
COMMAND = f"{PACKAGE}/msg/FeedforwardCommand"
PAYLOAD = f"{PACKAGE}/msg/Payload"
JOINT_STATE = "sensor_msgs/msg/JointState"
JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
NUMBERS = "std_msgs/msg/Float64MultiArray"
STRING = "std_msgs/msg/String"

# Definitions of ROS 2 have at most some ten thousand characters; longer texts could take minutes to read.
_LONGEST_TEXT = 2**16


class BagError(EomDynamicsError):
    """A bag cannot be read or written, or lacks required contents."""


@lru_cache(maxsize=1)
def package_definitions() -> dict[str, str]:
    """Return this package's message definitions by type name."""
    folder = resources.files(__package__) / "definitions"
    return {
        f"{PACKAGE}/msg/{file.name[: -len('.msg')]}": file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".msg")
    }


@lru_cache(maxsize=1)
def _known() -> Typestore:
    """Return the types of ROS 2 and of this package."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in package_definitions().items():
        store.register(get_types_from_msg(text, name))
    return store


@lru_cache(maxsize=64)
def typestore(name: str, definition: str = "") -> Typestore:
    """Return the types of ROS 2 Jazzy and of this package, to read and write messages of one type.

    Args:
        name: of the type, such as ``sensor_msgs/msg/JointState``.
        definition: its text in the bag, in the language of .msg files, with the types that it uses; empty without one.

    Raises:
        BagError: the type is unknown, or the bag defines it with other fields.
    """
    known = _known()
    if name not in known.fielddefs:
        raise BagError(f"neither ROS 2 Jazzy nor this package defines {name}")
    if not definition:
        return known
    if len(definition) > _LONGEST_TEXT:
        raise BagError(f"the bag's definition of {name} has over {_LONGEST_TEXT:,} characters")
    try:
        types = get_types_from_msg(definition, name)
    except (TypesysError, RecursionError) as error:
        raise BagError(f"the bag's definition of {name} cannot be read: {' '.join(str(error).split())}") from None
    for kind in dict.fromkeys([name, *types]):
        theirs, ours = (dict(defs[kind][1]) if kind in defs else {} for defs in (types, known.fielddefs))
        if other := [field for field in {**ours, **theirs} if theirs.get(field) != ours.get(field)]:
            raise BagError(f"the bag defines {kind} with another {listed(other)} than this release; record it anew")
    return known


def serialized(kind: str, **values: Any) -> bytes:
    """Serialize a message of a type of ROS 2 Jazzy or of this package, as CDR in little-endian order.

    Args:
        values: fields by name, others are zero or empty; messages within it are mappings of their fields.
    """
    store = typestore(kind)
    message = _filled(store, (Nodetype.NAME, kind), values)
    return bytes(store.serialize_cdr(message, kind, little_endian=True))


def _filled(store: Typestore, description: Any, value: Any) -> Any:
    """Value of a field; zero or empty for None."""
    kind, what = description
    if kind == Nodetype.NAME:
        parts = value or {}
        return store.types[what](**{name: _filled(store, of, parts.get(name)) for name, of in store.fielddefs[what][1]})
    if kind == Nodetype.BASE:
        return value if value is not None else "" if what[0] == "string" else 0
    (element, of), length = what
    entries = value if value is not None else [None] * (length if kind == Nodetype.ARRAY else 0)
    if element == Nodetype.BASE and of[0] != "string":
        return np.array([x or 0 for x in entries] if value is None else entries, dtype=of[0])
    return [_filled(store, (element, of), entry) for entry in entries]


class Topic(NamedTuple):
    """A topic of a bag, with the type of its messages."""

    name: str
    type: str
    definition: str  # text of the type and of all types that it uses; empty if missing in the bag
    encoding: str = "cdr"  # of the messages, as ROS 2 writes it

    @classmethod
    def of(cls, connection: Connection) -> Topic:
        """Describe a topic of rosbags."""
        encoding = getattr(connection.ext, "serialization_format", "") or "cdr"
        return cls(str(connection.topic), str(connection.msgtype), connection.msgdef.data or "", str(encoding))

    def types(self) -> Typestore:
        """Return the types to read the messages by; BagError as for :func:`typestore`."""
        try:
            return typestore(self.type, self.definition)
        except BagError as error:
            raise BagError(f"topic {self.name}: {error}") from None
