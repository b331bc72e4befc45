# SPDX-License-Identifier: Apache-2.0
"""Entries of robot files, declared in the annotations of the fields that hold them.

A field such as ``damping: Annotated[float, Entry("viscous friction", "N m s/rad")] = 0.0`` of a dataclass or a named
tuple is all there is to an entry: reader, writer, the facts about a robot, the template of robot files and the
reference follow from it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from .parameters import Declared


class Entry(NamedTuple):
    """Declaration of an entry of a robot file.

    Attributes:
        meaning: for the template and the reference; empty for an entry that they leave out.
        unit: at a revolute joint.
        rule: of a number, see :func:`.violation`.
        options: of a text, or of texts; of a field that is a bool those for False and True.
        name: in files; by default the name of the field.
        section: subsection that holds the entry; by default the section of the class.
        size: count of the numbers of a list; None for at least one.
        example: for the template; None takes the default.
        file_default: where it is not the default of the field.
        is_inline: whether the entries of a part stand in the section of the class itself.
        completes: whether entries of a part that a file omits keep their values; else they get their defaults.
        of_motor: whether a joint without a motor lacks it.
    """

    meaning: str = ""
    unit: str = ""
    rule: str = "finite"
    options: tuple[str, ...] = ()
    name: str = ""
    section: str = ""
    size: int | None = None
    example: Any = None
    file_default: Any = None
    is_inline: bool = False
    completes: bool = False
    of_motor: bool = False


class DeclaredEntry(NamedTuple):
    """An entry of a class: attribute, name in files, type of its value, default and declaration.

    Numbers that may be arrays, for several motors, have the type of one number. The default is
    :data:`dataclasses.MISSING` where a file must have the entry.
    """

    attribute: str
    name: str
    kind: Any
    default: Any
    entry: Entry

    @property
    def is_required(self) -> bool:
        """True if a file must have the entry."""
        return self.default is MISSING and self.entry.file_default is None


@cache
def declared_entries(kind: type) -> tuple[DeclaredEntry, ...]:
    """Entries that the fields of a class declare, in their order; none for a class without any."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        DeclaredEntry(attribute, entry.name or attribute, _kind_of_value(hints[attribute]), default, entry)
        for attribute, default in _defaults(kind).items()
        for entry in getattr(hints[attribute], "__metadata__", ())
        if isinstance(entry, Entry)
    )


def _defaults(kind: type) -> dict[str, Any]:
    """Default of each field, in their order; MISSING without one."""
    if hasattr(kind, "_field_defaults"):
        return {name: kind._field_defaults.get(name, MISSING) for name in kind._fields}  # type: ignore[attr-defined]
    if not is_dataclass(kind):
        return {}
    defaults = {field.name: field.default for field in fields(kind)}
    # A class may derive one default from other values.
    made = kind() if MISSING not in defaults.values() else None
    return {name: getattr(made, name, default) for name, default in defaults.items()}


def _kind_of_value(hint: Any) -> Any:
    """Type of a value, without None and, where one number will do, without arrays."""
    hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    return get_origin(hint) or hint


def written_entries(part: Any) -> dict[str, Any]:
    """Entries of a part as robot files have them, by name: all entries that differ from their defaults."""
    written: dict[str, Any] = {}
    for each in declared_entries(part.__class__):
        value, entry = getattr(part, each.attribute), each.entry
        if not _differs(value, each.default) and (value is None or entry.file_default is None):
            continue
        plain = _plain(value, entry)
        section = written.setdefault(entry.section, {}) if entry.section else written
        if entry.is_inline:
            section |= plain
        elif plain != {}:
            section[each.name] = plain
    return written


def _differs(value: Any, default: Any) -> bool:
    """True if a value is known, neither None nor NaN, and is not the default."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return False
    return not np.array_equal(value, default) if isinstance(value, np.ndarray) else bool(value != default)


def _plain(value: Any, entry: Entry) -> Any:
    """A value in types of YAML."""
    if isinstance(value, Declared):
        return value.entries()
    if declared_entries(value.__class__):
        return written_entries(value)
    if isinstance(value, bool):
        return entry.options[value]
    if isinstance(value, (str, int)):
        return value
    return np.asarray(value).tolist() if np.ndim(value) else float(value)
