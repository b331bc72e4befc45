# SPDX-License-Identifier: Apache-2.0
"""Types of messages: those of ROS 2, this package's own, and those that a bag brings with it."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from .errors import BagError

PACKAGE = "eom_dynamics"


@lru_cache(maxsize=1)
def own_definitions() -> dict[str, str]:
    """The text of each of this package's definitions, by the name of its type."""
    folder = resources.files(__package__) / "definitions"
    return {
        f"{PACKAGE}/msg/{file.name[: -len('.msg')]}": file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".msg")
    }


@lru_cache(maxsize=1)
def _known() -> Typestore:
    """ROS 2's types and this package's."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in own_definitions().items():
        store.register(get_types_from_msg(text, name))
    return store


@lru_cache(maxsize=64)
def typestore(name: str, definition: str = "") -> Typestore:
    """The types that messages of a type are read and written by.

    Args:
        name: of the type, such as ``sensor_msgs/msg/JointState``.
        definition: its text as the bag holds it, in the language of .msg or .idl files, with all types that it needs;
            what it lacks, and all where it is empty, is taken from ROS 2 Jazzy and this package.

    Raises:
        BagError: the type is unknown, or its definition cannot be read.
    """
    known = _known()
    if not definition:
        if name not in known.fielddefs:
            raise BagError(f"the bag holds no definition of {name}, and it is none of ROS 2 Jazzy or of this package")
        return known
    try:
        if definition.startswith("=" * 80 + "\nIDL: "):
            types: dict[str, Any] = dict(get_types_from_idl(definition))
        else:
            types = dict(get_types_from_msg(definition, name))
        _complete(types, known)
        store = get_typestore(Stores.EMPTY)
        store.register(types)
    except (TypesysError, RecursionError) as error:
        raise BagError(f"the bag's definition of {name} cannot be read: {' '.join(str(error).split())}") from None
    if name not in store.fielddefs:
        raise BagError(f"the bag's definition of {name} defines {', '.join(types)} only")
    return store


def _complete(types: dict[str, Any], known: Typestore) -> None:
    """Add the types that these need and do not define."""
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
