# SPDX-License-Identifier: Apache-2.0
"""Message types: of ROS 2, of this package, and those that a bag defines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from ..messages.fields import STATE_FIELDS
from ..spelling import listed
from .storage import BagError

PACKAGE = "eom_dynamics"

SETPOINT = f"{PACKAGE}/msg/JointTrajectorySetpoint"
COMMAND = f"{PACKAGE}/msg/FeedforwardCommand"
PAYLOAD = f"{PACKAGE}/msg/Payload"
JOINT_STATE = "sensor_msgs/msg/JointState"
JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
NUMBERS = "std_msgs/msg/Float64MultiArray"
STRING = "std_msgs/msg/String"

# Of a definition: its text, and the fields of a message, with those of the messages in it. Those of ROS 2 have at most
# some ten thousand characters and some hundred fields; others would take minutes to read, or never end.
_LONGEST_TEXT = 2**18
_MOST_FIELDS = 2000
_DEEPEST = 30

# Fields that a bag's own definition of a type that is read must have, None for all; it may lack others, as those of
# earlier releases do.
_NEEDED: dict[str, tuple[str, ...] | None] = {
    SETPOINT: ("header", "joint_names", *STATE_FIELDS),
    COMMAND: ("header", "joint_names"),
    JOINT_STATE: ("header", "name", "position"),
    NUMBERS: None,
    STRING: None,
    JOINT_TRAJECTORY: None,
}

# Read as blocks of numbers, so that each field counts.
_WRENCH = "geometry_msgs/msg/Wrench"
_BLOCKS = (_WRENCH, f"{PACKAGE}/msg/BaseMotion")


@lru_cache(maxsize=1)
def own_definitions() -> dict[str, str]:
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
    for name, text in own_definitions().items():
        store.register(get_types_from_msg(text, name))
    return store


@lru_cache(maxsize=64)
def typestore(name: str, definition: str = "") -> Typestore:
    """Return the types to read and write messages of one type by.

    Args:
        name: of the type, such as ``sensor_msgs/msg/JointState``.
        definition: its text in the bag, in the language of .msg or .idl files, with the types that it uses; those that
            are missing, or all if it is empty, are taken from ROS 2 Jazzy and this package.

    Raises:
        BagError: the type is unknown, or its definition cannot be read, or differs in the fields that are read.
    """
    known = _known()
    if not definition:
        if name not in known.fielddefs:
            raise BagError(f"the bag has no definition of {name}, and neither ROS 2 Jazzy nor this package defines it")
        return known
    if len(definition) > _LONGEST_TEXT:
        raise BagError(
            f"the bag's definition of {name} has {len(definition):,} characters, more than {_LONGEST_TEXT:,}"
        )
    try:
        if definition.startswith("=" * 80 + "\nIDL: "):
            types: dict[str, Any] = dict(get_types_from_idl(definition))
        else:
            types = dict(get_types_from_msg(definition, name))
        _complete(types, known)
        if name in types and _fields(types, name) > _MOST_FIELDS:
            raise TypesysError(f"it has more than {_MOST_FIELDS:,} fields, or arrays of as many messages or texts")
        store = get_typestore(Stores.EMPTY)
        store.register(types)
    except (TypesysError, RecursionError) as error:
        raise BagError(f"the bag's definition of {name} cannot be read: {' '.join(str(error).split())}") from None
    if name not in store.fielddefs:
        raise BagError(f"the bag's definition of {name} only defines {listed(types)}")
    if name in _NEEDED:
        _check_fields(types, name, known.fielddefs, name, "")
    return store


def _check_fields(types: Mapping[str, Any], given: str, known: Mapping[str, Any], name: str, path: str) -> None:
    """Refuse a type that lacks fields of a known one, or has others of their names."""
    own, wanted = dict(types[given][1]), dict(known[name][1])
    missing = [field for field in _NEEDED.get(name) or wanted if field not in own]
    if missing:
        inside = f" in {path}" if path else ""
        raise BagError(
            f"by the bag's own definition of {given} it has no {', '.join(missing)}{inside}; it has {listed(own)}"
        )
    for field, description in wanted.items():
        if field in own:
            _check_field(types, own[field], known, description, f"{path}.{field}" if path else field)


def _check_field(types: Mapping[str, Any], own: Any, known: Mapping[str, Any], wanted: Any, path: str) -> None:
    ours, theirs = _shape(own), _shape(wanted)
    if theirs == ("list of", "message") and wanted[1][0][1] in _BLOCKS:
        name = wanted[1][0][1]
        same = ours == theirs and _numbers_of(types, own[1][0][1]) == _numbers_of(known, name)
        # Earlier releases had numbers in place of wrenches.
        if not same and (name, ours) != (_WRENCH, ("list of", "number")):
            raise BagError(f"by the bag's own definition {path} is not a list of {name}; record the bag anew")
        return
    whole = theirs[-1] == "number" and ours == (*theirs[:-1], "whole number")
    if ours != theirs and not whole:
        raise BagError(f"by the bag's own definition {path} is a {' '.join(ours)}, must be a {' '.join(theirs)}")
    if theirs[-1] == "message":
        (own, wanted) = (own[1][0], wanted[1][0]) if len(theirs) > 1 else (own, wanted)
        _check_fields(types, own[1], known, wanted[1], path)


def _shape(description: Any) -> tuple[str, ...]:
    kind, what = description
    if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        return ("list of", *_shape(what[0]))
    if kind == Nodetype.NAME:
        return ("message",)
    return ("text" if "string" in what[0] else "number" if "float" in what[0] else "whole number",)


def _numbers_of(types: Mapping[str, Any], name: str) -> list[Any]:
    """The fields of a type and of the types in it, in order."""
    return [
        _numbers_of(types, what) if kind == Nodetype.NAME else (field, kind, what)
        for field, (kind, what) in types[name][1]
    ]


def _complete(types: dict[str, Any], known: Typestore) -> None:
    """Add the types that these use and do not define."""
    wanted = list(types)
    while wanted:
        for _, (kind, what) in types[wanted.pop()][1]:
            if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
                kind, what = what[0]
            if kind == Nodetype.NAME and what not in types:
                if what not in known.fielddefs:
                    raise TypesysError(f"{what} is not defined")
                types[what] = known.fielddefs[what]
                wanted.append(what)


def _fields(types: dict[str, Any], name: str, depth: int = 0) -> int:
    """Count the fields of a type that are read one by one, with those of the types in it; stops beyond the limit."""
    if depth > _DEEPEST:
        raise TypesysError(f"its types are nested more than {_DEEPEST} times, or contain themselves")
    count = 0
    for _, (kind, what) in types[name][1]:
        length = what[1] if kind == Nodetype.ARRAY else 1
        kind, what = what[0] if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE) else (kind, what)
        if kind == Nodetype.NAME:
            count += length * (1 + _fields(types, what, depth + 1))
        else:
            count += length if what[0] == "string" else 1
        if count > _MOST_FIELDS:
            break
    return count


def serialized(kind: str, **values: Any) -> bytes:
    """Serialise a message of a type of ROS 2 Jazzy or of this package, as CDR in little-endian order.

    Args:
        values: fields by name, others are zero or empty; messages within it are mappings of their fields.
    """
    store = typestore(kind)
    return bytes(store.serialize_cdr(_message(store, kind, values), kind, little_endian=True))


def _message(store: Typestore, name: str, values: Mapping[str, Any]) -> Any:
    return store.types[name](
        **{field: _entry(store, what, values.get(field)) for field, what in store.fielddefs[name][1]}
    )


def _entry(store: Typestore, description: Any, value: Any) -> Any:
    kind, what = description
    if kind == Nodetype.NAME:
        return _message(store, what, value or {})
    if kind == Nodetype.BASE:
        return value if value is not None else "" if what[0] == "string" else 0
    (element, of), length = what
    entries = value if value is not None else [None] * (length if kind == Nodetype.ARRAY else 0)
    if element == Nodetype.BASE and of[0] != "string":
        return np.array([x or 0 for x in entries] if value is None else entries, dtype=of[0])
    return [_entry(store, (element, of), each) for each in entries]


class Topic(NamedTuple):
    """A topic of a bag.

    Attributes:
        name: of the topic.
        type: of its messages.
        definition: text in the bag of the type and of all types that it uses; empty if the bag has none.
        encoding: of the messages; ROS 2 writes ``cdr``.
    """

    name: str
    type: str
    definition: str
    encoding: str = "cdr"

    def types(self) -> Typestore:
        """Return the types to read the messages by; BagError as for :func:`typestore`."""
        try:
            return typestore(self.type, self.definition)
        except BagError as error:
            raise BagError(f"topic {self.name}: {error}") from None


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
