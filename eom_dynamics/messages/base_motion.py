# SPDX-License-Identifier: Apache-2.0
"""Base motion in messages, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..elastic import BaseMotion
from ..exceptions import StateError
from .fields import ANGULAR_FIELDS, BASE_FIELD, FORCE_FIELDS
from .samples import getter

_FIELDS = ANGULAR_FIELDS + FORCE_FIELDS


def read_base_motion(message: Any) -> BaseMotion | None:
    """Base motion of a setpoint or request; None for a base at rest.

    Args:
        message: a setpoint or request; the entry of its field is a ``BaseMotion``, or rows of an array (7, 3).

    A specific force of exactly zero is refused: it is that of a message whose fields were not filled in, and would
    take gravity off the arm. A base in true free fall has a force that is not exactly zero, such as 1e-9 m/s².

    Raises:
        StateError: there are several entries, a number is not finite, or the specific force is not set.
    """
    entries: Any = getattr(message, BASE_FIELD, ())  # older recordings do not have the field
    if not len(entries):
        return None
    if len(entries) > 1:
        raise StateError(f"base has {len(entries)} entries, must have one or none")
    values = entries[0]
    if not isinstance(values, np.ndarray):
        values = np.array([[vector.x, vector.y, vector.z] for vector in getter(_FIELDS)(values)])
    if not np.isfinite(values).all():
        row, column = map(int, np.argwhere(~np.isfinite(values))[0])
        raise StateError(f"base[0].{_FIELDS[row]}.{'xyz'[column]} is {values[row, column]}")
    if force_is_unset(values):
        raise StateError(
            "base[0].specific_force is zero, as if the base fell freely: set it to what an accelerometer measures, at "
            "rest and upright 9.81 m/s² along z; where the base does fall, set it to 1e-9"
        )
    return base_of_rows(values)


def force_is_unset(values: Array) -> Any:
    """Whether the specific force is exactly zero, in vectors of the fields (7, 3), or in each of (7, N, 3)."""
    return np.all(values[len(ANGULAR_FIELDS)] == 0, axis=-1)


def base_of_rows(values: Array) -> BaseMotion:
    """Base motion from the vectors of its fields (7, 3), or of N messages (7, N, 3)."""
    return BaseMotion(values[: len(ANGULAR_FIELDS)], values[len(ANGULAR_FIELDS) :])
