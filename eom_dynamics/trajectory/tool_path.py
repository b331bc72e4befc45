# SPDX-License-Identifier: Apache-2.0
"""Joint motion that moves a tool along a path through poses."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arrays import Array
from ..exceptions import StateError, TrajectoryError
from ..kinematics import Kinematics, inverse_kinematics, inverse_motion
from ..states import joint_states
from .pose_spline import PoseSpline
from .spline import ORDERS
from .trajectory import sample_times

# Largest distance of the start of the path from the tool at the given configuration, m and rad.
_START_TOLERANCE = 0.01

# Of the pose, m and rad: Newton's last step leaves rounding.
_TOLERANCE = 1e-13

# Largest difference of a solution from its prediction by the Taylor series of the one before, rad or m: beyond, it is
# another branch.
_JUMP = 0.1


class ToolMotion:
    """Joint motion along a path of a tool: a :class:`.Trajectory`, exact at each time.

    q by inverse kinematics from the Taylor series of the knot before, and qd … qdddd from the twist of the path.

    Attributes:
        n: number of joints; start, end: s.
        path: of the tool.
        times: of the knots (K,), s.
        states: q, qd, qdd, qddd, qdddd at the knots (5, K, n).
    """

    def __init__(
        self,
        kinematics: Kinematics,
        path: PoseSpline,
        times: Array,
        states: Array,
        of: str | None,
        weights: ArrayLike | None,
    ) -> None:
        """Set the knots, as :func:`follow` finds them."""
        self._kinematics, self._of, self._weights = kinematics, of, weights
        self.path, self.times, self.states = path, times, states
        self.n, self.start, self.end = states.shape[2], path.start, path.end

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """See :class:`.Trajectory`; orders above 4 are not available.

        Raises:
            TrajectoryError: between two knots, the path leaves the workspace or the ranges of the joints.
        """
        times = np.atleast_1d(np.asarray(t, dtype=float))
        inside = np.clip(times, self.start, self.end)
        knot = np.clip(np.searchsorted(self.times, inside, side="right") - 1, 0, len(self.times) - 1)
        expected = _taylor(self.states[:, knot], (inside - self.times[knot])[:, np.newaxis])
        wanted = self.path.derivatives(inside, order)
        q, rates, _ = _solved(self._kinematics, inside, wanted, expected, of=self._of, weights=self._weights)
        rates[:, times != inside] = 0.0
        return (q, *rates) if np.ndim(t) else (q[0], *rates[:, 0])


def follow(
    kinematics: Kinematics,
    path: PoseSpline,
    start: ArrayLike,
    *,
    of: str | None = None,
    weights: ArrayLike | None = None,
    rate: float = 100.0,
) -> ToolMotion:
    """Joint motion that moves a tool along a path. A redundant arm moves with the least weighted joint rates.

    Args:
        kinematics: of the robot.
        path: of the tool.
        start: joint variables (n,) at its start, rad or m; within 0.01 m and rad of its first pose.
        of: name of the frame; by default the first tool.
        weights: as for :func:`.inverse_motion`.
        rate: of the knots from which solutions start, Hz.

    Raises:
        TrajectoryError: the path starts elsewhere, leaves the workspace or the ranges of the joints, or comes close to
            a singularity; the message has the time.
        StateError: start has the wrong shape, or there is no such frame.
    """
    n = kinematics.robot.n
    q = joint_states(n, start)[0]
    if q.ndim != 1:
        raise StateError(f"start must have shape ({n},), has {q.shape}")
    times = sample_times(path, rate)
    wanted = path.derivatives(times, ORDERS - 1)
    _require_start(kinematics.pose(q, of=of), wanted[0][0])
    states = np.zeros((ORDERS, len(times), n))
    expected = q[np.newaxis]
    for i, t in enumerate(times):
        here = [x[i : i + 1] for x in wanted]
        found, rates, damping = _solved(kinematics, times[i : i + 1], here, expected, of=of, weights=weights)
        if i and np.max(np.abs(found - expected)) > _JUMP:
            raise TrajectoryError(f"at {t:.4g} s the joints would jump: the path passes a singularity of the arm")
        if np.any(damping):
            raise TrajectoryError(f"at {t:.4g} s the path comes too close to a singularity of the arm")
        states[0, i], states[1:, i] = found[0], rates[:, 0]
        if i + 1 < len(times):
            expected = _taylor(states[:, i : i + 1], np.array(times[i + 1] - t))
    return ToolMotion(kinematics, path, times, states, of, weights)


def _solved(
    kinematics: Kinematics,
    times: Array,
    wanted: Sequence[Array],
    expected: Array,
    *,
    of: str | None,
    weights: ArrayLike | None,
) -> tuple[Array, Array, Array]:
    """q (N, n) near ``expected``, its derivatives (order, N, n), and the damping (N,), for C, V, … at times (N,)."""
    C, *twists = wanted
    found = inverse_kinematics(kinematics, C, expected, of=of, attempts=1, tolerance=_TOLERANCE)
    if not np.all(found.solved):
        i = int(np.argmin(found.solved))
        raise TrajectoryError(
            f"at {times[i]:.4g} s the tool cannot reach its pose within the ranges of the joints: it stays "
            f"{float(found.distance[i]):.3g} m and {float(found.angle[i]):.3g} rad away"
        )
    if not twists:
        return found.q, np.zeros((0, *found.q.shape)), np.zeros(len(times))
    motion = inverse_motion(kinematics, found.q, *twists, of=of, weights=weights)
    return found.q, np.stack(motion.rates), motion.damping


def _taylor(states: Array, step: Array) -> Array:
    """q after a time, by the Taylor series of states (5, N, n)."""
    total = states[0]
    for k in range(1, ORDERS):
        total = total + states[k] * step**k / factorial(k)
    return total


def _require_start(here: Array, first: Array) -> None:
    away = lie.log(lie.inverse(here) @ first)
    if np.max(np.abs(away)) > _START_TOLERANCE:
        raise TrajectoryError(
            f"the path starts {np.linalg.norm(away[3:]):.3g} m and {np.linalg.norm(away[:3]):.3g} rad from the tool, "
            f"must be at most {_START_TOLERANCE:g} of each"
        )
