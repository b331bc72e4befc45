# SPDX-License-Identifier: Apache-2.0
"""Identity of a trajectory message, since trajectories without stamps share the same header."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from ..arrays import Array


class RequestNames:
    """Names of the trajectories of a topic, in the order of their arrival.

    Args:
        topic: its name.
    """

    def __init__(self, topic: str) -> None:
        self._topic, self._count = topic, 0

    def next(self, message: Any) -> str:
        """Name of a message that has arrived: its own ``request``, or topic, number and checksum."""
        self._count += 1
        return getattr(message, "request", "") or f"{self._topic}/{self._count}/{checksum(message):08x}"


def checksum(message: Any) -> int:
    """CRC-32 of the positions of a trajectory, which its sender can compute as well.

    Of 64-bit floating-point numbers, little-endian: the coefficients of a SplineTrajectory, else point by point the
    positions of a JointTrajectory, or of a MultiDOFJointTrajectory translation (x, y, z) and rotation (x, y, z, w) of
    each transform.
    """
    return crc32(np.asarray(_positions(message), dtype="<f8").tobytes())


def _positions(message: Any) -> Array:
    if hasattr(message, "coefficients"):
        return np.asarray(message.coefficients)
    rows = [
        x
        for point in message.points
        for x in ([point.positions] if hasattr(point, "positions") else map(_transform, point.transforms))
    ]
    return np.concatenate([np.zeros(0), *rows])


def _transform(transform: Any) -> tuple[float, ...]:
    shift, turn = transform.translation, transform.rotation
    return shift.x, shift.y, shift.z, turn.x, turn.y, turn.z, turn.w
