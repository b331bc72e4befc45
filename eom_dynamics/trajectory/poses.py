# SPDX-License-Identifier: Apache-2.0
"""Motions of a tool through poses, C⁴ in SE(3), along straight lines with blends at corners, and of joints that follow.

On each piece the pose is C = P exp(x), P the pose of the last waypoint, and x(t) a spline of degree nine in the
coordinates of the exponential map. With the right Jacobian J of that map, the body twist is

    V = J(x) dx/dt = dx/dt - [x, dx/dt] / 2! + [x, [x, dx/dt]] / 3! - …

and Leibniz' rule gives its derivatives. Each contains the highest derivative of x once, with the factor J(x). So the
derivatives of x at both ends of a piece follow from the twists there, one after the other, and adjacent pieces
agree to the fourth derivative of the pose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import all_finite, checked_pose, joint_states, positive, sequence
from ..arrays import AnyArray, Array, times
from ..exceptions import StateError, TrajectoryError
from ..jet import leibniz
from ..kinematics import Kinematics
from ..kinematics.motion import ToolTracker, predicted
from ..robot.task_space import TWIST
from .trajectory import ORDERS, Scaled, Spline, durations, numbers
from .waypoints import through

_TERMS = 32  # of the twist by brackets: the last term is pi^k / (k + 1)!, below rounding at half a turn
_LARGEST_ANGLE = np.pi - 1e-3  # maximum angle between waypoints, rad; above, the direction of rotation is ambiguous
_DURATIONS = 1e-20, 1e20  # limits of the duration between waypoints, s; beyond, powers overflow


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
        self.twists = np.copy(numbers(twists, "twists", (ORDERS - 1, len(self.t), 6)))
        steps = steps_between(self.poses)
        with np.errstate(over="ignore", invalid="ignore"):
            starts = _coordinates(np.zeros_like(steps), self.twists[:, :-1])
            ends = _coordinates(steps, self.twists[:, 1:])
        if not all_finite(starts, ends):
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
        V = np.reshape(twists_of_coordinates(list(x)), (order, len(at), 6))
        V[:, at != inside] = 0.0
        return (C, *V) if np.ndim(t) else (C[0], *V[:, 0])


def through_poses(
    t: ArrayLike, poses: ArrayLike, *, start: Sequence[ArrayLike] = (), end: Sequence[ArrayLike] = ()
) -> PoseSpline:
    """Smooth motion through poses at given times.

    The twists at the waypoints follow from the trajectory (:func:`.through`) through the development of the path, the
    sums of the screws from pose to pose. The tool rests between equal poses. The motion between two poses alone is a
    screw motion, and the frame of the base does not matter.

    >>> import numpy as np
    >>> from eom_dynamics import lie
    >>> path = through_poses([0.0, 2.0], [np.eye(4), lie.exp([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])])  # 1 rad about z
    >>> C, V = path.derivatives(1.0, order=1)
    >>> lie.rotation_vector(C[:3, :3]).round(6).tolist(), bool(V[2] > 1)
    ([0.0, 0.0, 0.5], True)

    Args:
        t: (K,), increasing, K >= 2, s.
        poses: (K, 4, 4).
        start, end: V, Vd, Vdd, Vddd at the first and last pose, each (6,); omitted derivatives are zero.

    Raises:
        TrajectoryError: as for :class:`PoseSpline`, or times are too uneven for the poses.
    """
    t, P = checked_poses(t, poses)
    development = np.concatenate([np.zeros((1, 6)), np.cumsum(steps_between(P), axis=0)])
    ends = {"start": _end(start, "start"), "end": _end(end, "end")}
    path = through(t, development, ends=ends)
    return PoseSpline(t, P, path.states[1:])


def twists_of_coordinates(x: Sequence[Array]) -> list[Array]:
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
    """Coordinates and their derivatives (5, N, 6) at coordinates x (N, 6), from V, Vd, … (4, N, 6)."""
    derivatives = [x]
    back = lie.right_jacobian_inverse(x)
    for V in twists:
        # Without the highest derivative, as its factor is the right Jacobian.
        known = twists_of_coordinates([*derivatives, np.zeros_like(x)])[-1]
        derivatives.append(times(back, V - known))
    return np.stack(derivatives)


def _bracket(a: Array, b: Array) -> Array:
    """Lie bracket of twists (N, 6)."""
    w, v = a[..., :3], a[..., 3:]
    return np.concatenate([np.cross(w, b[..., :3]), np.cross(w, b[..., 3:]) + np.cross(v, b[..., :3])], axis=-1)


def checked_poses(times: ArrayLike, poses: ArrayLike) -> tuple[Array, Array]:
    """Increasing times (K,) and poses (K, 4, 4) as arrays, K >= 2; raises TrajectoryError for others."""
    t, P = np.copy(numbers(times, "times")), np.copy(checked_pose(poses, "poses", TrajectoryError))
    if t.ndim != 1 or len(t) < 2 or P.shape != (len(t), 4, 4):
        raise TrajectoryError(f"times must be (K,) and poses (K, 4, 4), K >= 2, have {t.shape} and {P.shape}")
    steps = durations(t)
    extreme = (steps < _DURATIONS[0]) | (steps > _DURATIONS[1])
    if np.any(extreme):
        i = int(np.argmax(extreme))
        raise TrajectoryError(
            f"times[{i + 1}] is {steps[i]:.3g} s after the one before, must be from {_DURATIONS[0]:g} to "
            f"{_DURATIONS[1]:g} s"
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


def _end(values: Sequence[ArrayLike], name: str) -> tuple[Array, ...]:
    values = sequence(
        values, name, "twists V, Vd, Vdd, Vddd, or the first of them", most=ORDERS - 1, error=TrajectoryError
    )
    twists = [numbers(x, f"{name}, derivative {k} of the twist,", (6,)) for k, x in enumerate(values)]
    return (*twists, *[np.zeros(6)] * (ORDERS - 1 - len(values)))


# The blend of degree nine from one unit vector to another, over the length 2 d, passes the corner at this share of d
# times the length of their difference.
_PASSING = 35 / 256

_SPEED = 0.25  # nominal speed along the path, m/s; minimum_time replaces the timing

# Number of parts of a blend, and maximum angle of a part of a line, rad: poses between knots are interpolated.
_PARTS = 8
_ANGLE = 0.2


def straight_lines(poses: ArrayLike, corner: float) -> PoseSpline:
    """Straight lines of a tool from pose to pose, with blends that pass inner poses at a given distance.

    On a line the tool turns about a fixed axis, in proportion to its way. A blend is a polynomial of degree nine from
    line to line, of the position and of the rotation vector from the orientation at the corner, so that the path is C⁴.
    It moves at 0.25 m/s on lines: find its timing with :func:`.follow` and :func:`.minimum_time`.

    Args:
        poses: (K, 4, 4), K >= 2, with different positions, m.
        corner: distance between the path and an inner position, m; smaller if a line is too short for it.

    Raises:
        TrajectoryError: a pose is invalid, consecutive positions are equal, the path turns back at one, or there is
            half a turn between two poses.
    """
    P = np.atleast_1d(numbers(poses, "poses"))
    _, P = checked_poses(np.arange(len(P)), P)
    steps = np.diff(P[:, :3, 3], axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    if not np.all(lengths > 0):
        k = int(np.argmin(lengths))
        raise TrajectoryError(f"poses {k} and {k + 1} have the same position; a line needs a length")
    rates = steps_between(P)[:, :3] * _SPEED / lengths[:, np.newaxis]
    way = _blended(P[:, :3, 3], steps, corner).stretched(1 / _SPEED)
    passed = np.append(0.0, np.cumsum(lengths)) / _SPEED
    t, frames, twists = [], [], []
    for begin, end in zip(way.t[:-1], way.t[1:], strict=True):
        inner = np.flatnonzero((passed[1:-1] > begin) & (passed[1:-1] < end)) + 1
        k = int(inner[0]) if len(inner) else int(np.searchsorted(passed, 0.5 * (begin + end))) - 1
        before, after = (rates[k - 1], rates[k]) if len(inner) else (rates[k], rates[k])
        # The rotation vector from the orientation of pose k.
        states = np.zeros((ORDERS, 2, 3))
        states[0] = (begin - passed[k]) * before, (end - passed[k]) * after
        states[1] = before, after
        parts = _PARTS if len(inner) else max(int(np.ceil(np.linalg.norm(before) * (end - begin) / _ANGLE)), 1)
        at = np.linspace(begin, end, parts + 1)[: None if end == way.t[-1] else -1]
        x = np.array(Spline([begin, end], states).derivatives(at))
        R = P[k, :3, :3] @ lie.exp(np.concatenate([x[0], np.zeros_like(x[0])], axis=1))[:, :3, :3]
        q, *p = way.derivatives(at)
        t.append(at)
        frames.append(lie.pose(R, q))
        twists.append(_twists(x, [np.einsum("nji,nj->ni", R, rate) for rate in p]))
    return PoseSpline(np.concatenate(t), np.concatenate(frames), np.concatenate(twists, axis=1))


def _twists(x: Array, p: list[Array]) -> Array:
    """V … Vddd (4, N, 6) from the rotation vector and its derivatives (5, N, 3), and derivatives 1 … 4 of the position.

    The latter are in the tool frame, each (N, 3).
    """
    w = [V[:, :3] for V in twists_of_coordinates([np.concatenate([level, 0 * level], axis=1) for level in x])]

    def derivative(i: int, k: int) -> Array:
        """k-th derivative of p_i, by d/dt (Rᵀ a) = Rᵀ da/dt - w × Rᵀ a."""
        if not k:
            return p[i]
        return np.asarray(derivative(i + 1, k - 1) - leibniz(w, [derivative(i, j) for j in range(k)], k - 1, np.cross))

    return np.concatenate([np.stack(w), np.stack([derivative(0, k) for k in range(len(w))])], axis=2)


def _blended(waypoints: Array, steps: Array, corner: float) -> Spline:
    """Straight lines with blends of degree nine, over the length of the lines."""
    positive(corner, "corner", TrajectoryError)
    lengths = np.linalg.norm(steps, axis=1)
    along = steps / lengths[:, np.newaxis]
    turns = np.linalg.norm(np.diff(along, axis=0), axis=1)
    if np.any(turns > 2 - 1e-6):
        k = int(np.argmax(turns)) + 1
        raise TrajectoryError(f"the path turns back at waypoint {k}, so no blend passes it; end the motion there")
    with np.errstate(divide="ignore"):
        wanted = np.where(turns > 1e-12, corner / (_PASSING * turns), np.inf)
    # At most half of the shorter line, so that neighboring blends do not overlap.
    reach = np.minimum(wanted, 0.5 * np.minimum(lengths[1:], lengths[:-1]))
    at = np.cumsum(lengths)[:-1]
    times, states, rounding = [0.0], [(waypoints[0], along[0])], 1e-12 * float(np.sum(lengths))
    for k, (distance, s) in enumerate(zip(reach, at, strict=True)):
        for sign, direction in ((-1, along[k]), (1, along[k + 1])):
            if s + sign * distance > times[-1] + rounding:
                times.append(s + sign * distance)
                states.append((waypoints[k + 1] + sign * distance * direction, direction))
    if times[-1] + rounding < np.sum(lengths):
        times.append(float(np.sum(lengths)))
        states.append((waypoints[-1], along[-1]))
    derivatives = np.zeros((ORDERS, len(times), waypoints.shape[1]))
    for i, (q, direction) in enumerate(states):
        derivatives[:2, i] = q, direction
    return Spline(times, derivatives)


_QUADRATURE = (1 / 2, 3 / 28, 1 / 84, 1 / 1680)  # of an integral by values and three derivatives at both ends
_SETTLED, _MOST_CORRECTIONS = 1e-15, 6  # largest change, rad or m, and most steps of the iteration of this integral
_MOST_KNOTS = 20_000  # a knot takes some milliseconds
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
) -> ToolMotion:
    """Joint motion that moves a tool along a path. A redundant arm moves with the least weighted joint rates.

    Args:
        kinematics: of the robot.
        path: of the tool.
        start: joint variables (n,) at its start, rad or m; within 0.01 m and rad of its first pose.
        frame: its name; by default the first tool.
        weights: as for :func:`.differential_inverse_kinematics`.
        rate: minimum rate of knots for solutions, Hz; the waypoints of the path are among the knots.

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
        here = [x[i : i + 1] for x in wanted]
        step = times[i] - times[i - 1]
        expected = predicted(states[:, i - 1 : i], step) if i else q[np.newaxis]
        answer = tracker.solve(expected, *here)
        for _ in range(_MOST_CORRECTIONS if i and n > TWIST else 0):
            # The tool does not determine the joints: they continue from their integrated rates.
            before = answer.q
            answer = tracker.solve(states[0, i - 1 : i] + _integral(states[1:, i - 1 : i], answer.rates, step), *here)
            if np.max(np.abs(answer.q - before)) < _SETTLED:
                break
        _require(times[i:], answer.refusals)
        states[0, i], states[1:, i] = answer.q[0], answer.rates[:, 0]
    motion = ToolMotion(tracker, path, times, states)
    motion.derivatives(0.5 * (times[1:] + times[:-1]))  # checks the motion between knots
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
