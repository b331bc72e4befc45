# SPDX-License-Identifier: Apache-2.0
"""Checks of parameters: positive, not negative, finite, of the right shape."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..arrays import Array
from ..exceptions import RobotDescriptionError
from ..number_rules import violation
from ..spelling import shown


class ParameterError(RobotDescriptionError):
    """A parameter has an impossible value.

    Attributes:
        name: name of the parameter, as in robot files.
        reason: what is wrong with it.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def refuse(name: str, reason: str) -> NoReturn:
    """Raise a ParameterError."""
    raise ParameterError(name, reason)


def numbers(name: str, value: Any, rule: str = "") -> Array:
    """The value as an array of floats, by a rule of :func:`.violation`, or of any floats without one.

    Raises:
        ParameterError: it is something else.
    """
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        refuse(name, f"must be numbers, is {shown(value)}")
    if rule and (reason := violation(array, rule)):
        refuse(name, reason)
    return array


finite, positive, not_negative = (partial(numbers, rule=rule) for rule in ("finite", "positive", "not negative"))


def row(name: str, value: Any) -> Array:
    """The value as an array (…, m), m > 0, of finite numbers."""
    array = finite(name, value)
    if array.ndim == 0 or not array.shape[-1]:
        refuse(name, f"must be a list of at least one number, is {array}")
    return array


def square(name: str, value: Any) -> Array:
    """The value as an array (g, g) of finite numbers."""
    array = finite(name, value)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        refuse(name, f"must be square, has shape {array.shape}")
    return array


def repeated(name: str, value: Any, count: int) -> Array:
    """The value as an array (count,), from one number or ``count`` numbers."""
    array = numbers(name, value)
    if array.shape not in ((), (1,), (count,)):
        size = array.size if array.ndim == 1 else f"shape {array.shape}"
        refuse(name, f"must have 1 or {count} entries, has {size}")
    return np.broadcast_to(array, (count,)).copy()
