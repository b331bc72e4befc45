# SPDX-License-Identifier: Apache-2.0
"""Joint states and wrenches as arrays: one place where their shapes and values are checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .exceptions import StateError

Array = NDArray[Any]

RATE_NAMES = ("q", "qd", "qdd", "qddd", "qdddd")
"""Names of the joint variables and their time derivatives."""


def joint_vectors(n: int, *vectors: ArrayLike) -> list[Array]:
    """The vectors as arrays (n,) of finite numbers; symbols pass as they are.

    Raises:
        StateError: one has another shape, or is not finite.
    """
    return [_checked(vector, (n,), f"derivative {k} of the joint variables") for k, vector in enumerate(vectors)]


def wrenches(wrench: Sequence[ArrayLike], count: int) -> list[Array]:
    """A wrench and its time derivatives as ``count`` arrays (6,); what is not given is zero."""
    given = [_checked(W, (6,), f"derivative {k} of the wrench") for k, W in enumerate(wrench)]
    return (given + [np.zeros(6)] * count)[:count]


def _checked(value: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    array = np.asarray(value)
    if array.dtype != object:
        array = array.astype(float, copy=False)
        if not np.all(np.isfinite(array)):
            raise StateError(f"{name} is not finite: {array}")
    if array.shape != shape:
        raise StateError(f"{name} must have shape {shape}, has {array.shape}")
    return array
