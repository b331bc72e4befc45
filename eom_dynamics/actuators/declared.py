# SPDX-License-Identifier: Apache-2.0
"""Parameters declared in the field annotations of a law: names in robot files, and checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar, get_type_hints

import numpy as np

from ..arrays import Array
from .checks import positive, refuse

SMALLEST, LARGEST = 1e-20, 1e20
"""Sizes of parameters with which laws can be computed; products of others overflow or vanish."""

Kind = TypeVar("Kind", bound="Declared")


class Parameter(NamedTuple):
    """Declaration of a parameter of a law, in the annotation of its field.

    Attributes:
        name: name in robot files and in errors.
        check: one of :mod:`eom_dynamics.actuators.checks`: ``finite``, ``positive``, ``not_negative`` or ``row``.
        scales: whether it is proportional to the effort at a given deflection.
    """

    name: str
    check: Callable[[str, Any], Array]
    scales: bool = False


class Declared:
    """A law whose fields declare its parameters."""

    kind: ClassVar[str]
    """Its type in robot files."""

    def __post_init__(self) -> None:
        """Check all parameters.

        Raises:
            ParameterError: a parameter has an impossible value.
        """
        for attribute, declared in self.parameters().items():
            checked = declared.check(declared.name, getattr(self, attribute))
            least = SMALLEST if declared.check is positive else 0.0
            if np.max(np.abs(checked)) > LARGEST or np.any(np.abs(checked) < least):
                refuse(declared.name, f"must be from {least:g} to {LARGEST:g} in SI units, is {checked}")
            object.__setattr__(self, attribute, float(checked) if checked.ndim == 0 else checked)

    @classmethod
    @cache
    def parameters(cls) -> dict[str, Parameter]:
        """Declarations of the parameters, by attribute."""
        annotations = get_type_hints(cls, include_extras=True)
        return {entry.name: annotations[entry.name].__metadata__[0] for entry in fields(cls)}  # type: ignore[arg-type]

    def scaled(self: Kind, factor: float) -> Kind:
        """The law with ``factor`` times the effort at every deflection."""
        scaling = [attribute for attribute, declared in self.parameters().items() if declared.scales]
        return replace(self, **{attribute: factor * getattr(self, attribute) for attribute in scaling})  # type: ignore[type-var]
