# SPDX-License-Identifier: Apache-2.0
"""Screws from their axes, and axes from twists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, Array, times
from .rotations import skew


class ScrewAxis(NamedTuple):
    """Axis of a screw motion.

    Attributes:
        axis: unit vector (…, 3).
        point: of the axis, nearest to the origin, (…, 3), m; zero for a translation.
        pitch: advance per angle (…), m/rad; infinite for a translation.
        rate: angular velocity about the axis (…), rad/s; for a translation the velocity, m/s.
    """

    axis: Array
    point: Array
    pitch: Array
    rate: Array


def screw(axis: ArrayLike, point: ArrayLike = (0, 0, 0), pitch: ArrayLike = 0) -> AnyArray:
    """Unit screw (…, 6) about a unit vector ``axis`` (…, 3) through ``point`` (…, 3), m, equations (10)-(12).

    Args:
        axis: unit vector.
        point: any point of the axis; without effect on a translation.
        pitch: m/rad: 0 for a revolute joint, infinite for a prismatic one.

    >>> screw([0, 0, 1], point=[1, 0, 0], pitch=0.5).tolist()
    [0.0, 0.0, 1.0, 0.0, -1.0, 0.5]
    """
    e, p, h = np.asarray(axis), np.asarray(point), np.asarray(pitch)
    # Not np.cross(), which mixes symbols and numbers in recent NumPy only.
    turning = times(skew(p), e)
    if h.dtype == object:
        return _stacked(e, turning + h[..., np.newaxis] * e)
    translates = np.isinf(h)[..., np.newaxis]
    advance = np.where(translates, 0, h[..., np.newaxis])
    turning = _stacked(e, turning + advance * e)
    return np.where(translates, _stacked(0 * e, e), turning) if np.any(translates) else turning


def _stacked(angular: AnyArray, linear: AnyArray) -> AnyArray:
    return np.concatenate(np.broadcast_arrays(angular, linear), axis=-1)


def screw_axis(twist: ArrayLike) -> ScrewAxis:
    """Axis, point, pitch and rate of a twist or screw (…, 6); the axis of a zero twist is zero."""
    V = np.asarray(twist, dtype=float)
    w, v = V[..., :3], V[..., 3:]
    turn = np.linalg.norm(w, axis=-1)
    turns = turn > 0
    rate = np.where(turns, turn, np.linalg.norm(v, axis=-1))
    axis = np.where(turns[..., np.newaxis], w, v) / np.where(rate == 0, 1.0, rate)[..., np.newaxis]
    divisor = np.where(turns, turn, 1.0)
    point = np.where(turns[..., np.newaxis], np.cross(axis, v) / divisor[..., np.newaxis], 0.0)
    pitch = np.where(turns, np.sum(axis * v, axis=-1) / divisor, np.inf)
    return ScrewAxis(axis, point, pitch, rate)
