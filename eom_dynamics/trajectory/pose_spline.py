# SPDX-License-Identifier: Apache-2.0
"""Motions of a tool through poses, C⁴ in SE(3).

On each piece the pose is C = P exp(x), P that of the last waypoint, and x(t) a spline of degree nine in the coordinates
of the exponential map. With the right Jacobian J of that map, the body twist is

    V = J(x) dx/dt = dx/dt - [x, dx/dt] / 2! + [x, [x, dx/dt]] / 3! - …

and Leibniz' rule gives its derivatives. Each contains the highest derivative of x once, by the factor J(x): so those of
x at both ends of a piece follow from the twists there, one after the other, and neighbouring pieces agree to the fourth
derivative of the pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arrays import Array, times
from ..exceptions import TrajectoryError
from ..jet import leibniz
from .spline import ORDERS, Spline, durations
from .waypoints import through

# Of the twist by brackets: the last term is pi^k / (k + 1)!, below rounding at half a turn.
_TERMS = 32

# Between waypoints, beyond which the way round is not determined, rad.
_LARGEST_ANGLE = np.pi - 1e-3

# Between waypoints, beyond which powers overflow, s.
_DURATIONS = 1e-20, 1e20

# Largest deviation of a rotation matrix from an orthogonal one.
_ORTHOGONAL = 1e-6


class PoseSpline:
    """Hermite interpolant of poses with body twists and their derivatives at waypoints.

    Like :class:`.Spline`, it is C⁴, exact at the waypoints, and each piece depends on its two ends only.

    Attributes:
        t: of the waypoints (K,), s.
        poses: (K, 4, 4), m.
        twists: V, Vd, Vdd, Vddd there (4, K, 6), rad/s and m/s, and per s, s², s³.
        start, end: first and last time, s.
    """

    def __init__(self, t: ArrayLike, poses: ArrayLike, twists: ArrayLike) -> None:
        """Set increasing times, poses and twists, of at least two waypoints.

        Raises:
            TrajectoryError: a shape is wrong, times do not increase, a number is not finite, a pose invalid, or there
                is half a turn between two poses.
        """
        self.t, self.poses = checked_poses(t, poses)
        self.start, self.end = float(self.t[0]), float(self.t[-1])
        self.twists = np.array(twists, dtype=float)
        expected = (ORDERS - 1, len(self.t), 6)
        if self.twists.shape != expected or not np.all(np.isfinite(self.twists)):
            raise TrajectoryError(f"twists must be finite, of shape {expected}, have {self.twists.shape}")
        steps = steps_between(self.poses)
        with np.errstate(over="ignore", invalid="ignore"):
            starts = _coordinates(np.zeros_like(steps), self.twists[:, :-1])
            ends = _coordinates(steps, self.twists[:, 1:])
        if not np.all(np.isfinite(starts)) or not np.all(np.isfinite(ends)):
            raise TrajectoryError("the motion overflows: a twist or one of its derivatives is too large")
        self._pieces = [
            Spline(self.t[i : i + 2] - self.t[i], np.stack([starts[:, i], ends[:, i]], axis=1))
            for i in range(len(steps))
        ]

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """Pose and derivatives of the pose.

        Args:
            t: time or times (N,), s. Before the start and after the end, the tool rests at the first and last pose.
            order: of the highest derivative of the pose, at most 4.

        Returns:
            C, V, Vd, …: (4, 4) and (6,), or (N, 4, 4) and (N, 6); the body twist and derivatives, ``order`` in all.
        """
        at = np.atleast_1d(np.asarray(t, dtype=float))
        inside = np.clip(at, self.start, self.end)
        piece = np.clip(np.searchsorted(self.t, inside, side="right") - 1, 0, len(self._pieces) - 1)
        x = np.empty((order + 1, len(at), 6))
        by_piece = np.argsort(piece, kind="stable")
        for rows in np.split(by_piece, np.flatnonzero(np.diff(piece[by_piece])) + 1) if len(at) else ():
            i = piece[rows[0]]
            x[:, rows] = self._pieces[i].derivatives(inside[rows] - self.t[i], order)
        C = self.poses[piece] @ lie.exp(x[0])
        V = np.reshape(body_twists(list(x)), (order, len(at), 6))
        V[:, at != inside] = 0.0
        return (C, *V) if np.ndim(t) else (C[0], *V[:, 0])


def through_poses(
    t: ArrayLike, poses: ArrayLike, *, start: Sequence[ArrayLike] = (), end: Sequence[ArrayLike] = ()
) -> PoseSpline:
    """Smooth motion through poses at given times.

    The twists at the waypoints are those of the minimum-snap trajectory (:func:`.through`) through the sums of the
    screws from pose to pose, the development of the path. The motion between two poses alone is a screw motion, and the
    frame of the base does not matter.

    >>> import numpy as np
    >>> from eom_dynamics import lie
    >>> path = through_poses([0.0, 2.0], [np.eye(4), lie.exp([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])])  # 1 rad about z
    >>> C, V = path.derivatives(1.0, order=1)
    >>> lie.rotation_vector(C[:3, :3]).round(6).tolist(), bool(V[2] > 1)
    ([0.0, 0.0, 0.5], True)

    Args:
        t: (K,), increasing, K >= 2, s.
        poses: (K, 4, 4).
        start, end: V, Vd, Vdd, Vddd at the first and last pose, each (6,); omitted ones are zero.

    Raises:
        TrajectoryError: as for :class:`PoseSpline`, or times are too uneven for the poses.
    """
    t, P = checked_poses(t, poses)
    development = np.concatenate([np.zeros((1, 6)), np.cumsum(steps_between(P), axis=0)])
    ends = {"start": _end(start, "start"), "end": _end(end, "end")}
    try:
        path = through(t, development, ends=ends)
    except TrajectoryError:  # which names joints, and a way out that poses do not have
        raise TrajectoryError(
            "times are too uneven for these poses: the tool would swing far beyond them; space times by distance, and "
            "check the units"
        ) from None
    return PoseSpline(t, P, path.states[1:])


def body_twists(x: Sequence[Array]) -> list[Array]:
    """V, Vd, … (N, 6) from coordinates and their derivatives (N, 6)."""
    orders = len(x) - 1
    term = list(x[1:])
    total = [np.array(rate) for rate in term]
    for k in range(1, _TERMS):
        term = [leibniz(x, term, order, _bracket) for order in range(orders)]
        for order in range(orders):
            total[order] += (-1) ** k / factorial(k + 1) * term[order]
    return total


def _coordinates(x: Array, twists: Array) -> Array:
    """Coordinates and their derivatives (5, N, 6) where they are x (N, 6), from V, Vd, … (4, N, 6)."""
    derivatives = [x]
    back = lie.right_jacobian_inverse(x)
    for V in twists:
        # Without the highest derivative, whose factor is the right Jacobian.
        known = body_twists([*derivatives, np.zeros_like(x)])[-1]
        derivatives.append(times(back, V - known))
    return np.stack(derivatives)


def _bracket(a: Array, b: Array) -> Array:
    """Lie bracket of twists (N, 6)."""
    w, v = a[..., :3], a[..., 3:]
    return np.concatenate([np.cross(w, b[..., :3]), np.cross(w, b[..., 3:]) + np.cross(v, b[..., :3])], axis=-1)


def checked_poses(times: ArrayLike, poses: ArrayLike) -> tuple[Array, Array]:
    """Increasing times (K,) and poses (K, 4, 4) as arrays, K >= 2; raises TrajectoryError for others."""
    t, P = np.array(times, dtype=float), np.array(poses, dtype=float)
    if t.ndim != 1 or len(t) < 2 or P.shape != (len(t), 4, 4):
        raise TrajectoryError(f"times must be (K,) and poses (K, 4, 4), K >= 2, have {t.shape} and {P.shape}")
    if not np.all(np.isfinite(t)) or not np.all(np.isfinite(P)):
        raise TrajectoryError("times and poses must be finite")
    steps = durations(t)
    extreme = (steps < _DURATIONS[0]) | (steps > _DURATIONS[1])
    if np.any(extreme):
        i = int(np.argmax(extreme))
        raise TrajectoryError(
            f"times[{i + 1}] is {steps[i]:.3g} s after the one before, must be from {_DURATIONS[0]:g} to "
            f"{_DURATIONS[1]:g} s"
        )
    R = P[:, :3, :3]
    away = np.max(np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)), axis=(1, 2))
    wrong = (away > _ORTHOGONAL) | (np.linalg.det(R) < 0) | np.any(P[:, 3] != [0, 0, 0, 1], axis=1)
    if np.any(wrong):
        raise TrajectoryError(
            f"poses[{int(np.argmax(wrong))}] is not a homogeneous transform: it must be a rotation matrix, a "
            "translation, and a last row 0 0 0 1"
        )
    return t, P


def steps_between(poses: Array) -> Array:
    """Screws (K - 1, 6) from pose to pose, in the first of them."""
    steps = lie.log(lie.inverse(poses[:-1]) @ poses[1:])
    angles = np.linalg.norm(steps[:, :3], axis=1)
    if np.max(angles) > _LARGEST_ANGLE:
        i = int(np.argmax(angles))
        raise TrajectoryError(
            f"between poses[{i}] and poses[{i + 1}] there is half a turn, so that the way round is not determined: "
            "give a pose in between"
        )
    return steps


def _end(given: Sequence[ArrayLike], name: str) -> tuple[Array, ...]:
    if len(given) > ORDERS - 1:
        raise TrajectoryError(f"{name} must be (V, Vd, Vdd, Vddd) or the first of them, has {len(given)}")
    twists = [np.asarray(x, dtype=float) for x in given] + [np.zeros(6)] * (ORDERS - 1 - len(given))
    if any(twist.shape != (6,) or not np.all(np.isfinite(twist)) for twist in twists):
        raise TrajectoryError(f"twists of {name} must have six finite entries")
    return tuple(twists)
