# SPDX-License-Identifier: Apache-2.0
"""Array types for annotations, and the product of matrices and vectors."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
"""Array of double-precision numbers."""

AnyArray = NDArray[Any]
"""Array of numbers or symbols."""

Scalar: TypeAlias = Any
"""A number, an array (elementwise), or an expression of a program."""


def times(matrix: AnyArray, vector: ArrayLike) -> AnyArray:
    """Products (…, m) of matrices (…, m, n) and vectors (…, n)."""
    return (matrix @ np.asarray(vector)[..., np.newaxis])[..., 0]
