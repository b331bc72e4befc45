# SPDX-License-Identifier: Apache-2.0
"""Checks of parameters: positive, not negative, finite, of the right shape."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..arrays import Array
from ..exceptions import RobotDescriptionError


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


def numbers(name: str, value: Any) -> Array:
    """The value as an array of floats.

    Raises:
        ParameterError: it is not an array of numbers.
    """
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        refuse(name, f"must be numbers, is {value!r:.60}")


def finite(name: str, value: Any) -> Array:
    """The value as an array of finite numbers."""
    array = numbers(name, value)
    if not np.all(np.isfinite(array)):
        refuse(name, f"must be finite, is {array}")
    return array


def positive(name: str, value: Any) -> Array:
    """The value as an array of finite, positive numbers."""
    array = numbers(name, value)
    if not np.all((array > 0) & np.isfinite(array)):
        refuse(name, f"must be finite and positive, is {array}")
    return array


def not_negative(name: str, value: Any) -> Array:
    """The value as an array of finite numbers that are not negative."""
    array = numbers(name, value)
    if not np.all((array >= 0) & np.isfinite(array)):
        refuse(name, f"must be finite and not negative, is {array}")
    return array


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
