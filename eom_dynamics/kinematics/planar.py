# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of the planar arm with two revolute joints, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import StateError
from ..states import real_array

# Rounding of a distance, relative to the reach.
_ROUNDING = 1e-15


def planar_2r_inverse(lengths: tuple[float, float], target: ArrayLike) -> tuple[Array, Array]:
    """Both elbow configurations that reach a point of the plane, by the law of cosines.

    Args:
        lengths: of the links, m.
        target: x, y (2,), m, from the first joint.

    Returns:
        Joint angles (2,), rad, with the elbow to the right of the line to the target (second angle not negative), and
        to its left. They are equal at the border of the workspace.

    >>> right, left = planar_2r_inverse((1.0, 1.0), (1.0, 1.0))
    >>> right.round(6).tolist(), left.round(6).tolist()
    ([0.0, 1.570796], [1.570796, -1.570796])

    Raises:
        StateError: the target is out of reach, or the first angle is not determined.
    """
    first, second = real_array(lengths, "lengths", (2,)).tolist()
    x, y = real_array(target, "target", (2,)).tolist()
    if not (first > 0 and second > 0 and np.isfinite(first + second + x + y)):
        raise StateError(f"lengths must be positive and their sum finite, are {first:g} and {second:g}")
    distance = float(np.hypot(x, y))
    longest, shortest = first + second, abs(first - second)
    away = max(distance - longest, shortest - distance)
    if away > _ROUNDING * longest:
        reach = f"more than {longest:.6g} m" if distance > longest else f"less than {shortest:.6g} m"
        raise StateError(f"out of reach by {away:.6g} m: the target is {distance:.6g} m from the first joint, {reach}")
    if distance <= _ROUNDING * longest:
        raise StateError("the target is on the first joint, whose angle is therefore not determined")
    # By half angles: the cosine of the elbow's angle loses digits at the border.
    elbow = 2 * np.arctan2(
        np.sqrt(max((longest - distance) * (longest + distance), 0.0)),
        np.sqrt(max((distance - shortest) * (distance + shortest), 0.0)),
    )

    def configuration(angle: float) -> Array:
        shoulder = np.arctan2(y, x) - np.arctan2(second * np.sin(angle), first + second * np.cos(angle))
        return np.array([np.arctan2(np.sin(shoulder), np.cos(shoulder)), angle])

    return configuration(elbow), configuration(-elbow)
