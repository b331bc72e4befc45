# SPDX-License-Identifier: Apache-2.0
"""Arrays of quantities: types for annotations, names of quantities and their time derivatives, and units as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .vectors import FAMILIES, JOINTS, MOTORS
from .vectors import SHAFT_UNITS as SHAFT_UNITS

Array = NDArray[np.float64]
"""Array of double-precision numbers."""

AnyArray = NDArray[Any]
"""Array of numbers or symbols."""

Scalar: TypeAlias = Any
"""Number, array (elementwise), or expression of a program."""


def times(matrix: AnyArray, vector: ArrayLike) -> AnyArray:
    """Products (…, m) of matrices (…, m, n) and vectors (…, n)."""
    return (matrix @ np.asarray(vector)[..., np.newaxis])[..., 0]


def derivative_names(name: str, count: int) -> tuple[str, ...]:
    """Names of a quantity and its time derivatives: q, qd, qdd, …."""
    return tuple(name + k * "d" for k in range(count))


STATE_NAMES, MOTION = FAMILIES["q"].names, FAMILIES["q"].fields
"""Names of joint variables and their time derivatives, and the terms for them."""

WRENCH_NAMES, PAYLOAD_NAMES, EFFORT_NAMES = (FAMILIES[name].names for name in ("W", "P", "tau"))
"""Names of tool wrench, inertial parameters of a payload, and joint efforts, with time derivatives."""


def name_of(names: Sequence[str], order: int) -> str:
    """Name of a time derivative of any order, even beyond ``names``."""
    return names[order] if order < len(names) else f"{names[0]}, derivative {order},"


UNITS = {
    field: x.unit + ("", "/s", "/s²", "/s³", "/s⁴")[k + x.order]
    for x in FAMILIES.values()
    for k, field in enumerate(x.fields)
    if x.unit and x.of in (JOINTS, MOTORS)
}
"""Units of message fields, for revolute joints and for motors on the link side of their gears."""


def unit(quantity: str, joint_type: str = "revolute") -> str:
    """Unit of a quantity of UNITS at a joint."""
    return at_joint(UNITS[quantity], joint_type)


def at_joint(turning: str, joint_type: str) -> str:
    """Unit at a joint, from the unit of revolute joints: at prismatic joints m, N and kg for rad, N m and kg m²."""
    if joint_type != "prismatic":
        return turning
    return turning.replace("N m", "N").replace("kg m²", "kg").replace("rad", "m")
