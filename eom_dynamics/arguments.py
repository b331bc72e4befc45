# SPDX-License-Identifier: Apache-2.0
"""Validation of arguments other than joint states, and of options: fields of dataclasses with choices and number rules.

The command line makes its arguments of the same fields; their help is the attribute's text in the class's docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, field, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .exceptions import EomDynamicsError, StateError
from .number_rules import violation
from .spelling import shown
from .states import is_sequence, real_array

# Largest entry of R'R - I of a rotation matrix, which allows for files with seven digits.
_ORTHOGONAL = 1e-6


def checked_pose(value: ArrayLike, name: str, error: type[EomDynamicsError] = StateError) -> Array:
    """A pose as an array (4, 4), or poses (…, 4, 4); raises ``error`` if it is something else."""
    C = real_array(value, name, error=error)
    if C.ndim < 2 or C.shape[-2:] != (4, 4):
        raise error(f"{name} must have shape (4, 4), has {C.shape}")
    R = C[..., :3, :3]
    away = np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)), axis=(-2, -1))
    wrong = (away > _ORTHOGONAL) | (np.linalg.det(R) < 0) | np.any(C[..., 3, :] != [0, 0, 0, 1], axis=-1)
    if np.any(wrong):
        raise error(
            f"{name}{np.argwhere(wrong)[0].tolist() or ''} is not a homogeneous transform: it must be a rotation "
            "matrix, a translation, and a last row 0 0 0 1; see lie.pose"
        )
    return C


def choice(value: Any, name: str, known: Iterable[str], error: type[EomDynamicsError] = StateError) -> None:
    """Raise ``error`` unless the value is one of the known names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise error(f"{name} must be one of {', '.join(names)}, is {shown(value)}")


def count(
    value: Any, name: str, least: int = 0, most: int | None = None, error: type[EomDynamicsError] = StateError
) -> int:
    """An integer from ``least``, up to ``most`` unless None; raises ``error`` if it is something else."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or value < least
        or (most is not None and value > most)
    ):
        end = "" if most is None else f" to {most:,}"
        raise error(f"{name} must be an integer from {least}{end}, is {shown(value)}")
    return int(value)


def flag(value: Any, name: str) -> bool:
    """A bool; raises StateError if it is something else, such as a number or a text."""
    if not isinstance(value, bool | np.bool_):
        raise StateError(f"{name} must be True or False, is {shown(value)}")
    return bool(value)


def number_by_rule(
    value: Any, name: str, error: type[EomDynamicsError] = StateError, *, rule: str, unlimited: float | None = None
) -> float:
    """A number by a rule of :func:`.violation`; raises ``error`` if it is something else, such as a bool or a text.

    The number ``unlimited``, such as infinity, is allowed, too.
    """
    if is_sequence(value):
        raise error(f"{name} must be a number, is {shown(value)}")
    if (reason := violation(value, rule)) and not (np.asarray(value).dtype.kind == "f" and value == unlimited):
        raise error(f"{name} {reason}")
    return float(value)


positive, not_negative = (partial(number_by_rule, rule=rule) for rule in ("positive", "not negative"))


def real_number(value: ArrayLike, name: str) -> float:
    """A finite number; raises StateError if it is something else."""
    return float(real_array(value, name, ()))


Choices = Collection[str] | Callable[[], Collection[str]]


def option(default: Any = None, *, choices: Choices = (), rule: str = "", **words: Any) -> Any:
    """Declare a field of a dataclass of options.

    Args:
        default: value; a dict is copied.
        choices: what the value, or each of its entries, must be one of, or a function that returns it; of a mapping,
            its values are what is chosen.
        rule: number rule of the value, or of each of its entries, see :func:`.number_rules.violation`.
        words: for the command line, see :mod:`eom_dynamics.tools.cli.options`.
    """
    start: dict[str, Any] = {"default_factory": dict} if default == {} else {"default": default}
    return field(**start, metadata={"choices": choices, "rule": rule, **words})


def choices_of(entry: Field[Any]) -> Collection[str]:
    """Choices of a field; empty without any."""
    choices: Any = entry.metadata.get("choices", ())
    return choices() if callable(choices) else choices


def check_options(options: Any, error: type[EomDynamicsError], **known: Collection[str]) -> None:
    """Check the fields of :func:`option` in a ``__post_init__``; a default is always allowed.

    Choices in place of those of the command line are ``known``, by the name of a field, which the error names.
    """
    for entry in fields(options):
        value, choices, rule = getattr(options, entry.name), choices_of(entry), entry.metadata.get("rule")
        if not (choices or rule) or value == entry.default:
            continue
        names = known.get(entry.name, choices.values() if isinstance(choices, Mapping) else choices)
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else [value]
        for part in parts:
            if names and part not in names:
                raise error(f"{entry.name} must be one of {', '.join(map(str, names))}, is {shown(part)}")
            if rule and (reason := violation(part, rule)):
                raise error(f"{entry.name} {reason}")
            if entry.type == "int" and part != int(part):
                raise error(f"{entry.name} must be an integer, is {shown(part)}")
