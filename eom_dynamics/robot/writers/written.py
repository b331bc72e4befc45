# SPDX-License-Identifier: Apache-2.0
"""Shared by the writers of all formats: result, names, and numbers that survive a round trip."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ..inertia import Inertial

# Relative to the inertia about the origin: rounding error of the shift to the centre of mass.
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Written:
    """A robot as text.

    Attributes:
        text: contents of the file.
        lost: properties that the format cannot express, one line each, by name.
    """

    text: str
    lost: tuple[str, ...]


def moments(body: Inertial) -> list[float]:
    """Return inertia xx xy xz yy yz zz about a body's centre of mass, kg m², with rounding of zeros removed."""
    scale = float(np.max(np.abs(body.about_origin)))
    about_center = np.where(np.abs(body.about_center_of_mass) <= _ROUNDING * scale, 0.0, body.about_center_of_mass)
    return [float(about_center[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]


def rpy(rotation: Array) -> list[float]:
    """Return roll, pitch and yaw, rad, of a rotation matrix (3, 3); accurate even at a pitch of ±pi/2."""
    R = rotation
    yaw = math.atan2(R[1, 0], R[0, 0])
    s, c = math.sin(yaw), math.cos(yaw)
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return [roll, math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0]), yaw]
