# SPDX-License-Identifier: Apache-2.0
"""Parameters of laws: checks, and declarations in field annotations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar, get_type_hints

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
