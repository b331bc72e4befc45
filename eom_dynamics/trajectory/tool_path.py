# SPDX-License-Identifier: Apache-2.0
"""Joint motion that moves a tool along a path of poses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import joint_states, positive
from ..arrays import AnyArray, Array
from ..exceptions import StateError, TrajectoryError
from ..kinematics import Kinematics
from ..kinematics.motion import ToolTracker, predicted
from ..robot.task_space import TWIST
from .pose_spline import PoseSpline
from .spline import ORDERS, Spline
from .trajectory import Scaled

_QUADRATURE = (1 / 2, 3 / 28, 1 / 84, 1 / 1680)  # of an integral by values and three derivatives at both ends
_SETTLED, _MOST_CORRECTIONS = 1e-15, 6  # largest change, rad or m, and most steps of the iteration of this integral
_MOST_KNOTS = 20_000  # a knot takes some milliseconds
_CHUNK = 50  # knots between two calls of `progress`, which take some tens of milliseconds
_START_TOLERANCE = 0.01  # largest distance of the start of the path from the tool, m and rad


class ToolMotion:
    """Joint motion along a path of a tool: a :class:`.Trajectory`, exact at each time.

    q by inverse kinematics next to a spline through the states at the knots, and qd … qdddd from the twist of the path.

    Attributes:
        n: number of joints; start, end: s.
        path: of the tool.
        t: of the knots (K,), s.
        states: q, qd, qdd, qddd, qdddd at the knots (5, K, n).
        spline: polynomials that share these states.
    """

    def __init__(self, tracker: ToolTracker, path: PoseSpline, t: Array, states: Array) -> None:
        """Set the knots, as :func:`follow` finds them."""
        self._tracker = tracker
        self.path, self.t, self.states = path, t, states
        self.n, self.start, self.end = states.shape[2], path.start, path.end
        self.spline = Spline(t, states)

    def scaled(self, s: float | None) -> Scaled:
        """The motion slowed down by the factor s; see :class:`.Scaled`."""
        return Scaled(self, s)

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives, at most four; see :class:`.Trajectory`.

        Raises:
            TrajectoryError: between two knots, the path leaves the workspace or the ranges of the joints.
        """
        at = np.atleast_1d(np.asarray(t, dtype=float))
        inside = np.clip(at, self.start, self.end)
        (expected,) = self.spline.derivatives(inside, 0)
        q, rates, refusals = self._tracker.solve(expected, *self.path.derivatives(inside, order))
        _require(inside, refusals)
        rates[:, at != inside] = 0.0
        return (q, *rates) if np.ndim(t) else (q[0], *rates[:, 0])


def follow(
    kinematics: Kinematics,
    path: PoseSpline,
    start: ArrayLike,
    *,
    frame: str | None = None,
    weights: ArrayLike | None = None,
    rate: float = 50.0,
    progress: Callable[[float], Any] = lambda fraction: None,
) -> ToolMotion:
    """Joint motion that moves a tool along a path. A redundant arm moves with the least weighted joint rates.

    Args:
        kinematics: of the robot.
        path: of the tool.
        start: joint variables (n,) at its start, rad or m; within 0.01 m and rad of its first pose.
        frame: its name; by default the first tool.
        weights: as for :func:`.differential_inverse_kinematics`.
        rate: smallest one of the knots from which solutions start, Hz; the waypoints of the path are among them.
        progress: called at times with the fraction that is done; exceptions that it raises end the computation.

    Raises:
        TrajectoryError: the path starts elsewhere, leaves the workspace or the ranges of the joints, or comes close to
            a singularity; the message has the time.
        StateError: start has the wrong shape, or there is no such frame.
        StateError: rate is not positive.
    """
    n = kinematics.robot.n
    q = joint_states(n, start, names=("start",))[0]
    if q.ndim != 1:
        raise StateError(f"start must have shape ({n},), has {q.shape}")
    tracker = ToolTracker(kinematics, frame, weights)
    rate = positive(rate, "rate")
    times = _knots(path, rate)
    wanted = path.derivatives(times, ORDERS - 1)
    away = lie.log(lie.inverse(kinematics.pose(q, frame)) @ wanted[0][0])
    if np.max(np.abs(away)) > _START_TOLERANCE:
        raise TrajectoryError(
            f"the path starts {math.hypot(*away[3:]):.3g} m and {math.hypot(*away[:3]):.3g} rad from the tool, "
            f"must be at most {_START_TOLERANCE:g} of each"
        )
    states = np.zeros((ORDERS, len(times), n))
    for i in range(len(times)):
        if i % _CHUNK == 0:
            progress(i / len(times))
        here = [x[i : i + 1] for x in wanted]
        step = times[i] - times[i - 1]
        expected = predicted(states[:, i - 1 : i], step) if i else q[np.newaxis]
        answer = tracker.solve(expected, *here)
        for _ in range(_MOST_CORRECTIONS if i and n > TWIST else 0):
            # The tool does not determine the joints: they are where their rates have brought them.
            before = answer.q
            answer = tracker.solve(states[0, i - 1 : i] + _integral(states[1:, i - 1 : i], answer.rates, step), *here)
            if np.max(np.abs(answer.q - before)) < _SETTLED:
                break
        _require(times[i:], answer.refusals)
        states[0, i], states[1:, i] = answer.q[0], answer.rates[:, 0]
    motion = ToolMotion(tracker, path, times, states)
    motion.derivatives(0.5 * (times[1:] + times[:-1]))  # refuses what happens between knots
    return motion


def _integral(before: Array, after: Array, step: float) -> Array:
    """Integral of a function over a step, by its derivatives 0 … 3 at both ends (4, …)."""
    total: Array = np.zeros(())
    for k, factor in enumerate(_QUADRATURE):
        total = total + factor * step ** (k + 1) * (before[k] + (-1) ** k * after[k])
    return total


def _knots(path: PoseSpline, rate: float) -> Array:
    # At waypoints, the fifth derivative jumps: polynomials that continued across one would be less exact.
    counts = np.maximum(np.ceil(np.diff(path.t) * rate - 1e-6), 1)
    if not np.sum(counts) <= _MOST_KNOTS:
        raise TrajectoryError(
            f"{path.end - path.start:.4g} s at {rate:g} Hz are more than {_MOST_KNOTS:,} knots: follow it in parts"
        )
    counts = counts.astype(int)
    pieces = zip(path.t[:-1], path.t[1:], counts, strict=True)
    return np.append(np.concatenate([np.linspace(a, b, k, endpoint=False) for a, b, k in pieces]), path.end)


def _require(times: Array, refusals: AnyArray) -> None:
    if np.any(refusals != ""):
        i = int(np.argmax(refusals != ""))
        raise TrajectoryError(f"at {times[i]:.4g} s {refusals[i]}")
