# SPDX-License-Identifier: Apache-2.0
"""Validation of arguments other than joint states: poses, counts, tolerances and names of options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .exceptions import StateError
from .states import real_array

# Largest entry of R'R - I of a rotation matrix, which allows for files with seven digits.
_ORTHOGONAL = 1e-6


def checked_pose(value: ArrayLike, name: str) -> Array:
    """A pose as an array (4, 4), or poses (…, 4, 4).

    Raises:
        StateError: it has another shape, is not finite, or is no pose.
    """
    C = real_array(value, name)
    if C.ndim < 2 or C.shape[-2:] != (4, 4):
        raise StateError(f"{name} must have shape (4, 4), has {C.shape}")
    R = C[..., :3, :3]
    away = float(np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)), initial=0.0))
    if away > _ORTHOGONAL or np.any(np.linalg.det(R) < 0) or np.any(C[..., 3, :] != [0, 0, 0, 1]):
        raise StateError(
            f"{name} is no pose: it must be a rotation matrix, a translation, and a last row 0 0 0 1; see lie.pose"
        )
    return C


def choice(value: Any, name: str, known: Iterable[str]) -> None:
    """Raise ValueError unless the value is one of the known names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{name} must be one of {', '.join(names)}, is {value!r:.60}")


def count(value: Any, name: str, least: int = 0) -> int:
    """An integer from ``least``.

    Raises:
        StateError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise StateError(f"{name} must be an integer from {least}, is {value!r:.60}")
    return int(value)


def positive(value: Any, name: str) -> float:
    """A finite number above zero.

    Raises:
        StateError: it is something else.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not 0 < value < np.inf
    ):
        raise StateError(f"{name} must be a finite number > 0, is {value!r:.60}")
    return float(value)


def sequence(value: Any, name: str, of: str) -> list[Any]:
    """The entries of a list, tuple or array.

    Args:
        value: the argument.
        name: its name, for errors.
        of: what it must be a sequence of.

    Raises:
        StateError: it is something else, such as None, one number or a string.
    """
    if isinstance(value, str) or not np.iterable(value):
        raise StateError(f"{name} must be a sequence of {of}, is {value!r:.60}")
    return list(value)


def wrench_sequence(value: Any) -> list[Any]:
    """The tool wrench with its time derivatives; raises StateError if it is no sequence."""
    return sequence(value, "wrench", "the wrench and its time derivatives, (W, Wd, …), () for none")


def real_number(value: ArrayLike, name: str) -> float:
    """A finite number; raises StateError if it is something else."""
    return float(real_array(value, name, ()))
