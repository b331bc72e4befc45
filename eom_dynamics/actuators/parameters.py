# SPDX-License-Identifier: Apache-2.0
"""Declared fields: parameters of laws, with their checks, and entries of robot files, in the annotations of the fields.

A field such as ``damping: Annotated[float, Entry("viscous friction", "N m s/rad")] = 0.0`` of a dataclass or a named
tuple completely defines an entry: reader, writer, the facts about a robot, the template of robot files and the
reference follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..arguments import violation
from ..arrays import Array
from ..exceptions import RobotDescriptionError
from ..spelling import shown


class ParameterError(RobotDescriptionError):
    """Invalid value of the parameter ``name``, as in robot files, for a ``reason``."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def refuse(name: str, reason: str) -> NoReturn:
    """Raise a ParameterError."""
    raise ParameterError(name, reason)


def parameter_array(name: str, value: Any, rule: str = "") -> Array:
    """Value as an array of floats, checked by a rule of :func:`.violation`, if any; raises ParameterError."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        refuse(name, f"must be numbers, is {shown(value)}")
    if rule and (reason := violation(array, rule)):
        refuse(name, reason)
    return array


finite, positive, not_negative = (
    partial(parameter_array, rule=rule) for rule in ("finite", "positive", "not negative")
)


def row(name: str, value: Any) -> Array:
    """Value as an array (…, m), m > 0, of finite numbers."""
    array = finite(name, value)
    if array.ndim == 0 or not array.shape[-1]:
        refuse(name, f"must be a list of at least one number, is {array}")
    return array


def square(name: str, value: Any) -> Array:
    """Value as an array (g, g) of finite numbers."""
    array = finite(name, value)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        refuse(name, f"must be square, has shape {array.shape}")
    return array


def repeated_parameter(name: str, value: Any, count: int) -> Array:
    """Value as an array (count,), from one number or ``count`` numbers."""
    array = parameter_array(name, value)
    if array.shape not in ((), (1,), (count,)):
        size = array.size if array.ndim == 1 else f"shape {array.shape}"
        refuse(name, f"must have 1 or {count} entries, has {size}")
    return np.broadcast_to(array, (count,)).copy()


SMALLEST, LARGEST = 1e-20, 1e20
"""Range of magnitudes of parameters; products of other numbers overflow or vanish."""

Kind = TypeVar("Kind", bound="Declared")


class Parameter(NamedTuple):
    """Declaration of a law's parameter, in the annotation of its field.

    ``name`` is used in robot files and errors; the check is ``finite``, ``positive``, ``not_negative`` or ``row``;
    ``scales`` marks parameters proportional to the effort at constant deflection.
    """

    name: str
    check: Callable[[str, Any], Array]
    scales: bool = False


class Declared:
    """Law with parameters declared by its fields."""

    kind: ClassVar[str]
    """Type in robot files."""

    def __post_init__(self) -> None:
        """Check all parameters; raises ParameterError for an invalid value."""
        for attribute, declared in self.parameters().items():
            checked = declared.check(declared.name, getattr(self, attribute))
            least = SMALLEST if declared.check is positive else 0.0
            if np.max(np.abs(checked)) > LARGEST or np.any(np.abs(checked) < least):
                refuse(declared.name, f"must be from {least:g} to {LARGEST:g} in SI units, is {checked}")
            object.__setattr__(self, attribute, float(checked) if checked.ndim == 0 else checked)

    @classmethod
    @cache
    def parameters(cls) -> dict[str, Parameter]:
        """Parameter declarations by attribute."""
        annotations = get_type_hints(cls, include_extras=True)
        return {entry.name: annotations[entry.name].__metadata__[0] for entry in fields(cls)}  # type: ignore[arg-type]

    def entries(self) -> dict[str, Any]:
        """Type and all parameters, by name in robot files."""
        values = {declared.name: getattr(self, attribute) for attribute, declared in self.parameters().items()}
        return {"type": self.kind} | {name: np.asarray(x, dtype=float).tolist() for name, x in values.items()}

    def scaled(self: Kind, factor: float) -> Kind:
        """Law with ``factor`` times the effort at every deflection."""
        scaling = [attribute for attribute, declared in self.parameters().items() if declared.scales]
        return replace(self, **{attribute: factor * getattr(self, attribute) for attribute in scaling})  # type: ignore[type-var]


class Entry(NamedTuple):
    """Declaration of an entry of a robot file.

    Attributes:
        meaning: for the template and the reference; empty for an entry that they leave out.
        unit: at a revolute joint.
        rule: of a number, see :func:`.violation`.
        options: of a text, or of texts; for a bool field, the options for False and True, if any.
        name: in files; by default the name of the field.
        section: subsection that holds the entry; by default the section of the class.
        size: count of the numbers of a list; None for at least one.
        example: for the template; None takes the default.
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
        return self.default is MISSING


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
    """Type of a value, without None and, if a number is allowed, without arrays."""
    hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    return get_origin(hint) or hint


def written_entries(part: Any) -> dict[str, Any]:
    """Entries of a part as robot files have them, by name: all entries that differ from their defaults."""
    written: dict[str, Any] = {}
    for each in declared_entries(part.__class__):
        value, entry = getattr(part, each.attribute), each.entry
        if not _differs(value, each.default):
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
    if isinstance(value, bool) and entry.options:
        return entry.options[value]
    if isinstance(value, (str, int)):
        return value
    return np.asarray(value).tolist() if np.ndim(value) else float(value)
