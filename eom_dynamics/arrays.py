# SPDX-License-Identifier: Apache-2.0
"""Arrays of quantities: types for annotations, names of quantities and their time derivatives, and units as text."""

from __future__ import annotations

from collections.abc import Sequence
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


def derivative_names(name: str, count: int) -> tuple[str, ...]:
    """Names of a quantity and its time derivatives: q, qd, qdd, …."""
    return tuple(name + k * "d" for k in range(count))


STATE_NAMES = derivative_names("q", 5)
"""Joint variables and their time derivatives."""

MOTION = ("position", "velocity", "acceleration", "jerk", "snap")
"""Words for these."""

WRENCH_NAMES = derivative_names("W", 3)
"""Tool wrench and its time derivatives."""

PAYLOAD_NAMES = derivative_names("P", 3)
"""Inertial parameters of a payload and their time derivatives."""

EFFORT_NAMES = derivative_names("tau", 3)
"""Joint efforts and their time derivatives."""


def name_of(names: Sequence[str], order: int) -> str:
    """Name of a time derivative of any order, even beyond the given names."""
    return names[order] if order < len(names) else f"{names[0]}, derivative {order},"


UNITS = {
    "position": "rad",
    "velocity": "rad/s",
    "acceleration": "rad/s²",
    "jerk": "rad/s³",
    "snap": "rad/s⁴",
    "effort": "N m",
    "effort_rate": "N m/s",
    "effort_acceleration": "N m/s²",
    "motor_position": "rad",
    "motor_velocity": "rad/s",
    "motor_acceleration": "rad/s²",
    "motor_effort": "N m",
}
"""Of joints, and of motors reflected to the link side of their gears; for revolute and helical joints."""

SHAFT_UNITS = {"speed": "rad/s", "torque": "N m", "current": "A", "voltage": "V"}
"""Of motor shafts, before the gear."""


def unit(quantity: str, joint_type: str = "revolute") -> str:
    """The unit of a quantity of UNITS at a joint."""
    return at_joint(UNITS[quantity], joint_type)


def at_joint(turning: str, joint_type: str) -> str:
    """A unit of revolute joints, or that in its place at prismatic joints: m, N and kg for rad, N m and kg m²."""
    if joint_type != "prismatic":
        return turning
    return turning.replace("N m", "N").replace("kg m²", "kg").replace("rad", "m")
