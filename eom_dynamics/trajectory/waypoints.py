# SPDX-License-Identifier: Apache-2.0
"""Smooth trajectories through waypoints: as smooth as monotone pieces allow.

The wanted states at waypoints are those of the spline with the least integral of its squared snap, of degree seven; see
C. Richter, A. Bry, N. Roy, "Polynomial trajectory planning for aggressive quadrotor flight in dense indoor
environments", ISRR 2013. Given derivatives are met at a knot on both sides; for each k < 4 that is not given, q^(k) and
q^(7 - k) are continuous at inner knots, and q^(7 - k) is zero at an end: the natural boundary conditions of the
variational problem. The unknowns are the Taylor coefficients of each piece. Derivatives at knots or B-splines would be
fewer unknowns, but their equations contain the seventh power of the ratio of durations of adjacent pieces, and lose all
digits when a short piece follows long pieces. Here, each equation is a Taylor expansion or an equality.

Joints have zero velocity where they reverse, and rest between equal positions. Pieces of the result have degree nine,
and the rate of a piece is a polynomial of degree eight, which has one sign if all its Bernstein coefficients b_0 … b_8
have it. b_0 … b_3 follow from the state at the left knot, b_8 … b_5 from the right knot, and the sum of all is 9 Δq,
which determines b_4. Hence, a rising piece is monotone if these eight coefficients are not negative and their sum is at
most 9 Δq. The conditions are linear in the derivatives, like the conditions of F. N. Fritsch, R. E. Carlson, "Monotone
piecewise cubic interpolation", SIAM J. Numer. Anal. 17 (1980), for cubics. They are sufficient but not necessary, so
that derivatives may be reduced more than required.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import comb, factorial, perm
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import all_finite, mapping
from ..arrays import MOTION, Array
from ..exceptions import TrajectoryError
from .trajectory import DEGREE, ORDERS, Spline, durations, numbers

_ORDER = 4  # of the derivative in the squared integral

UNSOLVED = (
    "times are too uneven or positions too large for a smooth trajectory; omit waypoints that are close in time, and "
    "check the units of positions and their derivatives"
)
"""Refusal of waypoints with singular or overflowing equations."""


def minimum_snap(steps: Array, states: Array) -> Array:
    """States (5, K, n) of the spline with minimum snap at its knots, completed from given states with NaN for unknown.

    All positions are given. A given snap does not affect the spline. Steps (K - 1,), K > 1, s, are durations of pieces.
    NumPy may warn about numbers that overflow.

    Raises:
        TrajectoryError: the equations overflow, or are singular in double precision.
    """
    m = min(_ORDER, len(steps) + 1)
    solved, unknown = np.zeros_like(states), np.isnan(states[:m])
    patterns = defaultdict[bytes, list[int]](list)
    for joint in np.flatnonzero(unknown.any(axis=(0, 1))).tolist():
        patterns[unknown[:, :, joint].tobytes()].append(joint)
    for joints in patterns.values():
        system = _System(steps, states[..., joints], m)
        try:
            taylor = system.solution()
        except np.linalg.LinAlgError:
            raise TrajectoryError(UNSOLVED) from None
        last = np.tensordot(system.shift, taylor[-1], 1)
        for k in range(min(ORDERS, 2 * m)):
            solved[k, :-1, joints] = (factorial(k) * taylor[:, k] / steps[:, np.newaxis] ** k).T
            solved[k, -1, joints] = factorial(k) * last[k] / steps[-1] ** k
    if not all_finite(solved):
        raise TrajectoryError(UNSOLVED)
    return np.where(np.isnan(states), solved, states)


class _System:
    """Equations of the Taylor coefficients x_k = q^(k) h^k/k! at the start of each piece, x_0 minus its given position.

    Rows: m for the first knot, 2m for each inner knot, m for the last; each involves only the neighboring pieces.
    """

    def __init__(self, steps: Array, states: Array, m: int) -> None:
        self.steps, self.states, self.m = steps, states, m
        self.size = 2 * m
        orders = range(self.size)
        # (1/k!) d^k/du^k at u = 1 of the powers of u.
        self.shift = np.array([[comb(j, k) for j in orders] for k in orders], dtype=float)
        self._width = 3 * m - 1
        unknowns = self.size * len(steps)
        self._bands = np.zeros((2 * self._width + 1, unknowns))
        self._right = np.zeros((unknowns, states.shape[2]))
        fixed = ~np.isnan(states[:m, :, 0])
        for k in range(m):
            self._start(k, bool(fixed[k, 0]))
            self._inside(k, fixed[k, 1:-1])
            self._end(k, bool(fixed[k, -1]))

    def solution(self) -> Array:
        """Taylor coefficients (K - 1, 2m, n) of all pieces."""
        width = self._width
        # Its import takes as long as importing this library, and nodes that play trajectories do not need it.
        from scipy.linalg import solve_banded

        x = solve_banded((width, width), self._bands, self._right, overwrite_ab=True, check_finite=False)
        x = x.reshape(len(self.steps), self.size, -1)
        x[:, 0] = self.states[0, :-1]
        return x

    def _start(self, k: int, fixed: bool) -> None:
        order = k if fixed else self.size - 1 - k
        self._put(np.array([k]), np.array([0]), order, 1.0)
        if fixed and k:
            self._right[k] = self._scaled(k, 0, 0)

    def _end(self, k: int, fixed: bool) -> None:
        row, piece = len(self._right) - self.m + k, len(self.steps) - 1
        self._expand(np.array([row]), np.array([piece]), k if fixed else self.size - 1 - k, np.ones(1))
        if fixed:
            self._right[row] = self._change(piece) if k == 0 else self._scaled(k, -1, -1)

    def _inside(self, k: int, fixed: NDArray[np.bool_]) -> None:
        before = np.arange(len(self.steps) - 1)
        first = self.m + self.size * before + k
        known, open_ = before[fixed], before[~fixed]
        for order, rows in ((k, first[~fixed]), (self.size - 1 - k, first[~fixed] + self.m)) if len(open_) else ():
            # Scaled by the longer of the two steps, so that pivots can be compared.
            unit = np.maximum(self.steps[open_], self.steps[open_ + 1])
            self._expand(rows, open_, order, (unit / self.steps[open_]) ** order)
            self._put(rows, open_ + 1, order, -((unit / self.steps[open_ + 1]) ** order))
        self._expand(first[fixed], known, k, np.ones(len(known)))
        self._put(first[fixed] + self.m, known + 1, k, 1.0)
        if k == 0:
            self._right[first[fixed]] = self._change(known)
        else:
            self._right[first[fixed]] = self._scaled(k, known + 1, known)
            self._right[first[fixed] + self.m] = self._scaled(k, known + 1, known + 1)

    def _put(
        self, rows: NDArray[np.intp], pieces: NDArray[np.intp], order: int | NDArray[np.intp], values: Array | float
    ) -> None:
        columns = self.size * pieces + order
        self._bands[self._width + rows - columns, columns] = values

    def _expand(self, rows: NDArray[np.intp], pieces: NDArray[np.intp], order: int, values: Array) -> None:
        """Add the derivative at the end of pieces; for order 0 without the position at the start."""
        j = np.arange(max(order, 1), self.size)
        self._put(rows[:, np.newaxis], pieces[:, np.newaxis], j, values[:, np.newaxis] * self.shift[order, j])

    def _change(self, piece: int | NDArray[np.intp]) -> Array:
        return self.states[0, np.add(piece, 1)] - self.states[0, piece]

    def _scaled(self, k: int, knot: int | NDArray[np.intp], piece: int | NDArray[np.intp]) -> Array:
        """Given derivative at a knot as a Taylor coefficient of a piece."""
        return self.states[k, knot] * (self.steps[piece] ** k / factorial(k))[..., np.newaxis]


_SIDE = ORDERS - 1  # number of Bernstein coefficients of the rate that follow from one knot

# Knots at the beginnings and at the ends of pieces.
_KNOTS = slice(0, -1), slice(1, None)

_PASSES = 2  # solutions, the second with reduced velocities

# b_r = sum over k of comb(r, k) (8 - k)!/8! p^(k + 1)(0): Bernstein coefficients from derivatives at the end.
_BERNSTEIN = np.array([[comb(r, k) / perm(DEGREE - 1, k) for k in range(_SIDE)] for r in range(_SIDE)])


class _Shape:
    """Conditions for monotone pieces of a spline with durations (K - 1,), s, through positions (K, n).

    ``lower`` and ``budget`` (K - 1, n) are the least coefficient and the largest sum of coefficients of a piece, 0 and
    9 Δq, or as far beyond as fixed derivatives demand. ``excess`` (K - 1, n) bounds the distance from the hull then.
    """

    def __init__(self, steps: Array, q: Array) -> None:
        self._h, change = steps[:, np.newaxis], np.diff(q, axis=0)
        self.size, self.sign = np.abs(change), np.where(change < 0, -1.0, 1.0)
        before, after = (np.zeros_like(q) for _ in range(2))  # sign of Δq on the pieces next to each knot
        before[1:], after[:-1] = np.sign(change), np.sign(change)
        before[0], after[-1] = after[0], before[-1]
        self._direction, self.turns = np.where(before * after > 0, after, 0.0), before * after < 0
        self._after = after
        # Only the smaller slope and curvature of the two neighboring pieces matter.
        self._least = np.full((2, *q.shape), np.inf)
        for part in _KNOTS:
            for k, least in enumerate(self._least, start=1):
                least[part] = np.minimum(least[part], self.size / self._h**k)

    def start(self, wanted: Array, fixed: NDArray[np.bool_]) -> Array:
        """Derivatives (4, K, n) of a monotone spline, with wanted ones where they are fixed; sets the conditions."""
        (slope, curve), safe = self._least, np.zeros_like(wanted)
        # All four coefficients of a knot are v h.
        safe[0] = self._direction * np.clip(self._direction * wanted[0], 0.25 * slope, slope)
        safe[0] = np.where(fixed[0], wanted[0], safe[0])
        # At an extremum v = 0, and the coefficients are a h²/8 times 0, 1, 2, 3.
        bend = self._after * np.clip(self._after * wanted[1], 0.25 * curve, 4.0 * curve)
        safe[1] = np.where(self.turns & (safe[0] == 0), bend, 0.0)
        safe = np.where(fixed, wanted, safe)
        b = self._coefficients(safe)
        self.lower = 2 * np.minimum(b.min(axis=(0, 1)), 0.0)
        self.budget = np.maximum(9 * self.size - self.lower, b.sum(axis=(0, 1)))
        self.excess = self.budget / 9 - self.size - self.lower
        return safe

    def move(self, x: Array, target: Array) -> tuple[Array, Array]:
        """Derivatives (4, K, n) on the line from x to a target, and the shares (K, n), as far as pieces allow."""
        b, change = self._coefficients(x), self._coefficients(target - x)
        spare = np.maximum(self.budget - b.sum(axis=(0, 1)), 0.0)
        growth = np.maximum(change.sum(axis=1), 0.0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(change < 0, np.maximum(b - self.lower, 0.0) / -change, np.inf).min(axis=1)
            reach = np.minimum(reach, np.where(growth > 0, spare / growth, np.inf))
        share = np.ones_like(x[0])
        for part, most in zip(_KNOTS, reach, strict=True):
            share[part] = np.minimum(share[part], most)
        return x + share * (target - x), share

    def _coefficients(self, x: Array) -> Array:
        """Coefficients (2, 4, K - 1, n) from the left and the right knot of each piece, positive in its direction."""
        # From the right knot, time is reversed, which alternates the signs of the derivatives.
        powers = np.stack([self._h ** (k + 1) for k in range(_SIDE)])
        backwards = ((-1.0) ** np.arange(_SIDE))[:, np.newaxis, np.newaxis]
        sides = powers * x[:, :-1], powers * backwards * x[:, 1:]
        return np.stack([np.tensordot(_BERNSTEIN, side, 1) for side in sides]) * self.sign


def _fit(steps: Array, states: Array, fixed: NDArray[np.bool_]) -> tuple[Array, Array]:
    """States (5, K, n) with monotone pieces, and how far a piece may leave its hull (K - 1, n).

    They complete given states with NaN for unknown derivatives. Of these, fixed ones are met.
    """
    shape, flat = _Shape(steps, states[0]), np.diff(states[0], axis=0) == 0
    states[1] = np.where(shape.turns & np.isnan(states[1]), 0.0, states[1])
    moves = (fixed & (states[1:] != 0)).any(axis=0)
    rests = flat & ~moves[:-1] & ~moves[1:]
    fixed = fixed | (states[1:] == 0)
    for part in _KNOTS:
        states[1:, part][:, rests] = 0.0
        fixed[:, part] |= rests
    for _ in range(_PASSES):
        wanted = minimum_snap(steps, states)[1:]
        x, share = shape.move(shape.start(wanted, fixed), wanted)
        for k in 2 * [*range(_SIDE)]:
            target = x.copy()
            target[k] = wanted[k]
            x, _ = shape.move(x, target)
        # Others adapt to a velocity that has been reduced.
        reduced = (share < 1) & np.isnan(states[1])
        if not reduced.any():
            break
        states[1] = np.where(reduced, x[0], states[1])
    return np.concatenate([states[:1], x]), shape.excess


Ends = Literal["rest", "free"] | Mapping[str, Sequence[ArrayLike]]
"""Conditions at the first and last waypoint; see :func:`through`."""

_PARTS, _ROUNDING = 8, 1e-9  # checked parts of each piece; relative rounding of positions


def through(
    t: ArrayLike,
    positions: ArrayLike,
    *,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
    ends: Ends = "rest",
) -> Spline:
    """Smooth C⁴ trajectory through waypoints, in which each joint stays between neighboring waypoints.

    Each joint is monotone between waypoints, reverses only at them, and rests between equal positions, for any times.
    Within these conditions, see the module, it is near the minimum-snap trajectory. A joint leaves the range between
    two waypoints only if given derivatives or ``ends`` demand it. Given accelerations are reduced if they demand it and
    disagree with the given velocities, as after a pause.
    Time is linear in the number of waypoints.

    Dense positions of a smooth motion require velocities: without them, joints reverse at waypoints beside the
    extremum, with high jerk and snap.

    Args:
        t: (K,), s; increasing, K >= 1. With K = 1 the duration is zero.
        positions: (K, n), rad or m.
        velocities, accelerations: (K, n), rad/s and rad/s², or m; rows of NaN, or None, are not given.
        ends: ``"rest"``: zero velocity, acceleration, jerk and snap at both ends, except for given velocities and
            accelerations; ``"free"``: no conditions; or ``{"start": (velocity, acceleration, jerk, snap), "end":
            (...)}``, each (n,) or a number for all joints. Higher derivatives may be omitted, and an end that is
            omitted is free.

    Raises:
        TrajectoryError: shapes differ, times do not increase, a number is not finite, derivatives are contradictory, or
            times are too uneven for the positions.
    """
    t, q = _waypoints(t, positions)
    states = np.full((ORDERS, *q.shape), np.nan)
    states[0] = q
    for k, (name, values) in enumerate((("velocities", velocities), ("accelerations", accelerations)), start=1):
        if values is not None:
            states[k] = _optional(name, values, q.shape)
    soft = ~np.isnan(states[2])
    _set_ends(states, ends)
    soft &= ~_agree(np.diff(t)[:, np.newaxis], *np.abs(states[1:3]))
    if len(t) == 1:
        return Spline(t, np.nan_to_num(states))
    fixed = ~np.isnan(states[1:])
    fixed[1] &= ~soft
    # Numbers that overflow are refused; NumPy would warn about each.
    with np.errstate(all="ignore"):
        solved, excess = _fit(np.diff(t), states, fixed)
        if not all_finite(solved, np.ptp(q, axis=0)):
            raise TrajectoryError(UNSOLVED)
        spline = Spline(t, solved)
        check_hull(spline, excess)
    return spline


def _agree(steps: Array, speed: Array, acceleration: Array) -> NDArray[np.bool_]:
    """Return whether accelerations (K, n) are at most those of speeds that grow with the third power of time."""
    most = 3 * (speed[:-1] + speed[1:]) / steps
    agree = np.ones(speed.shape, bool)
    for part in _KNOTS:
        agree[part] &= acceleration[part] <= most
    return agree


def check_hull(spline: Spline, excess: Array) -> None:
    """Raise TrajectoryError if a joint leaves the range between two knots by more than an excess (K - 1, n)."""
    q = spline.states[0]
    inside = spline.in_pieces(_PARTS, 0, np.arange(len(q) - 1))[1][0]
    beyond = np.maximum(inside - np.maximum(q[:-1], q[1:]), np.minimum(q[:-1], q[1:]) - inside).max(axis=0)
    far = ~(beyond <= excess + _ROUNDING * (np.ptp(q, axis=0) + np.abs(q[1:])))
    if far.any():
        piece, joint = np.argwhere(far)[0]
        raise TrajectoryError(
            f"times are too uneven: between waypoints {piece} and {piece + 1}, joint {joint} leaves their range by "
            f"{beyond[piece, joint]:.3g} rad or m; space times by distance"
        )


def _waypoints(times: ArrayLike, positions: ArrayLike) -> tuple[Array, Array]:
    t, q = numbers(times, "times"), numbers(positions, "positions")
    if t.ndim != 1 or q.ndim != 2 or not len(t) or len(q) != len(t) or not q.shape[1]:
        raise TrajectoryError(
            f"times must have shape (K,) and positions (K, n), K, n >= 1, have {t.shape} and {q.shape}"
        )
    durations(t)
    return t, q


def _optional(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = numbers(values, name, shape, finite=False)
    missing = np.isnan(array)
    partly = np.flatnonzero(np.any(missing, axis=1) & ~np.all(missing, axis=1))
    if len(partly) or np.any(np.isinf(array)):
        row = int(partly[0] if len(partly) else np.argwhere(np.isinf(array))[0, 0])
        raise TrajectoryError(f"{name} must be finite, or NaN for all joints; waypoint {row} has {array[row]}")
    return array


def _set_ends(states: Array, ends: Ends) -> None:
    """Set conditions at the ends in the given states (5, K, n); NaN is not given."""
    if isinstance(ends, str):
        if ends not in ("rest", "free"):
            raise TrajectoryError(f'ends must be "rest", "free" or a mapping of derivatives, is {ends!r}')
        if ends == "rest":
            for row in (0, -1):
                states[:, row] = np.nan_to_num(states[:, row])
        return
    of = '"start" and "end" to derivatives, or "rest" or "free"'
    for end, values in mapping(ends, "ends", of, TrajectoryError).items():
        if end not in ("start", "end"):
            raise TrajectoryError(f'ends has an unknown key {end!r}; use "start" and "end"')
        if len(values) > len(MOTION[1:]):
            raise TrajectoryError(f"ends[{end!r}] has {len(values)} derivatives; at most 4, up to the snap")
        row = 0 if end == "start" else -1
        for k, (name, value) in enumerate(zip(MOTION[1:], values, strict=False), start=1):
            asked = numbers(value, f"ends[{end!r}] {name}")
            if asked.shape not in ((), states.shape[2:]):
                raise TrajectoryError(f"ends[{end!r}] {name} must be a number, or {states.shape[2]} of them")
            present = states[k, row]
            if not np.all(np.isnan(present) | (present == asked)):
                raise TrajectoryError(f"ends[{end!r}] {name} differs from the waypoint")
            states[k, row] = asked
