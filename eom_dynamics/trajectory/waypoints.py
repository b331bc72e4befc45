# SPDX-License-Identifier: Apache-2.0
"""Smooth trajectories through waypoints: with the least integral of a squared derivative, or without overshoot.

Pieces of the interpolating spline with the least integral of its squared m-th derivative are polynomials of degree
2m - 1. Given derivatives q … q^(m - 1) at a knot are met on both sides; for each k < m that is not given, q^(k) and
q^(2m - 1 - k) are continuous at inner knots, and q^(2m - 1 - k) is zero at an end: the natural boundary conditions of
the variational problem. For m = 4, minimum snap, see C. Richter, A. Bry, N. Roy, "Polynomial trajectory planning for
aggressive quadrotor flight in dense indoor environments", ISRR 2013. The unknowns are the 2m Taylor coefficients of
each piece. Derivatives at knots or B-splines would be fewer unknowns, but their equations contain the (2m - 1)-th power
of the ratio of durations of adjacent pieces, and lose all digits when a short piece follows long pieces. Here, each
equation is a Taylor expansion or an equality.

Without overshoot, pieces have degree nine, and the rate of a piece is a polynomial of degree eight, which has one sign
if all its Bernstein coefficients b_0 … b_8 have it. b_0 … b_3 follow from the state at the left knot, b_8 … b_5 from
the right knot, and the sum of all is 9 Δq, which determines b_4. Hence, a rising piece is monotone if the four
coefficients of each knot are not negative and their sum is at most 9/2 Δq. These conditions are linear in the
derivatives and separate for each knot, like the conditions of F. N. Fritsch, R. E. Carlson, "Monotone piecewise cubic
interpolation", SIAM J. Numer. Anal. 17 (1980), for cubics. They are sufficient but not necessary, so that derivatives
may be reduced more than required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, factorial, perm
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import all_finite, mapping
from ..arrays import MOTION, Array
from ..exceptions import TrajectoryError
from .trajectory import DEGREE, ORDERS, Spline, durations, numbers

UNSOLVED = (
    "times are too uneven or positions too large for a smooth trajectory; omit waypoints that are close in time, and "
    "check the units of positions and their derivatives"
)
"""Refusal of waypoints with singular or overflowing equations."""


def minimum_snap(steps: Array, states: Array, m: int) -> Array:
    """States (5, K, n) of the spline at its knots, completed from given states with NaN for unknown derivatives.

    All positions are given; other derivatives are given for all joints or no joint. The m-th and higher derivatives are
    returned, but do not affect the spline. Steps (K - 1,), K > 1, are durations of the pieces, s; m is the order of the
    derivative, 2 … 5, at most the number of knots. NumPy may warn about numbers that overflow; they are refused: raises
    TrajectoryError if the equations overflow, or are singular in double precision.
    """
    m = min(m, len(steps) + 1)
    if not np.any(np.isnan(states[:m])):
        return np.where(np.isnan(states), 0.0, states)
    system = _System(steps, states, m)
    try:
        taylor = system.solution()
    except np.linalg.LinAlgError:
        raise TrajectoryError(UNSOLVED) from None
    solved = np.zeros_like(states)
    last = np.tensordot(system.shift, taylor[-1], 1)
    for k in range(min(ORDERS, 2 * m)):
        solved[k, :-1] = factorial(k) * taylor[:, k] / steps[:, np.newaxis] ** k
        solved[k, -1] = factorial(k) * last[k] / steps[-1] ** k
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
_SHARE = DEGREE / 2  # largest sum of the coefficients of one knot, in Δq

# b_r = sum over k of comb(r, k) (8 - k)!/8! p^(k + 1)(0): Bernstein coefficients from derivatives at the end.
_BERNSTEIN = np.array([[comb(r, k) / perm(DEGREE - 1, k) for k in range(_SIDE)] for r in range(_SIDE)])


def without_overshoot(steps: Array, states: Array, fixed: NDArray[np.bool_]) -> Array:
    """States (5, K, n) of a monotone spline near the given states, with pieces of durations (K - 1,), s.

    The derivatives at each knot are moved along the straight line to the derivatives of a monotone spline, as far as
    required. Derivatives that are fixed (K, n) stay zero.
    """
    change = np.diff(states[0], axis=0)
    slope = change / steps[:, np.newaxis]
    size, sign = np.abs(change), np.sign(change)
    before, after = (np.zeros_like(states[0]) for _ in range(2))  # sign of Δq on the pieces next to each knot
    before[1:], after[:-1] = sign, sign
    before[0], after[-1] = after[0], before[-1]
    # Only the smaller slope and curvature of the two neighboring pieces matter.
    least_slope = np.full_like(states[0], np.inf)
    least_curve = np.full_like(states[0], np.inf)
    h = steps[:, np.newaxis]
    for part in (slice(0, -1), slice(1, None)):
        least_slope[part] = np.minimum(least_slope[part], np.abs(slope))
        least_curve[part] = np.minimum(least_curve[part], size / h**2)
    continues = before * after > 0
    turns = before * after < 0

    wanted = states[1:].copy()
    safe = np.zeros_like(wanted)
    # All four coefficients of a knot are v h, with the bound 9/8 Δq.
    safe[0] = np.where(continues, before * np.clip(before * wanted[0], 0.25 * least_slope, least_slope), 0.0)
    # At an extremum v = 0, and the coefficients are a h²/8 times 0, 1, 2, 3, with the bound 3/4 Δq.
    safe[1] = np.where(turns, after * np.clip(after * wanted[1], 0.25 * least_curve, 4.0 * least_curve), 0.0)
    wanted[0] = np.where(continues, wanted[0], 0.0)
    wanted[:, ~(continues | turns)] = 0.0

    share = np.ones_like(states[0])
    for left in (True, False):
        part = slice(0, -1) if left else slice(1, None)
        # From the right knot, time is reversed, which alternates the signs of the derivatives.
        powers = np.stack([(1.0 if left else (-1.0) ** k) * h ** (k + 1) for k in range(_SIDE)])
        b_safe, b_wanted = (np.tensordot(_BERNSTEIN, powers * x[:, part], 1) * sign for x in (safe, wanted))
        room = np.concatenate([b_safe, [_SHARE * size - b_safe.sum(axis=0)]])
        step = np.concatenate([b_wanted - b_safe, [b_safe.sum(axis=0) - b_wanted.sum(axis=0)]])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step < 0, np.maximum(room, 0.0) / -step, np.inf)
        share[part] = np.minimum(share[part], reach.min(axis=0))
    result = states.copy()
    result[1:] = np.where(fixed, 0.0, safe + share * (wanted - safe))
    return result


Ends = Literal["rest", "free"] | Mapping[str, Sequence[ArrayLike]]
"""Conditions at the first and last waypoint; see :func:`through`."""

_DEGREES = {7: 4, 9: 5}  # degree of a spline, and the order of the derivative in the squared integral that it minimizes

# Maximum overshoot between two waypoints, relative to the range of waypoints and their derivatives; number of checked
# parts of each piece.
_LARGEST_OVERSHOOT, _PARTS = 10.0, 4


def through(
    t: ArrayLike,
    positions: ArrayLike,
    *,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
    ends: Ends = "rest",
    overshoot: bool = True,
    degree: int = 7,
) -> Spline:
    """Smoothest C⁴ trajectory through waypoints, with given velocities and accelerations.

    The interpolating spline of degree 2m - 1 that minimizes ∫ (d^m q/dt^m)² dt: with degree 7 the minimum-snap
    trajectory. With positions alone it is C^(degree - 1); velocities and accelerations reduce that by one each. A
    condition at an end that the spline cannot satisfy (the snap with degree 7) is met by a first or last piece of
    degree 9. Time is linear in the number of waypoints.

    Such splines overshoot: a joint moves past a waypoint at which it reverses, more so for more uneven times. If the
    required speeds differ by orders of magnitude (equally distant waypoints with 1/100 of the time
    between some of them), the overshoot is excessive and the waypoints are rejected.

    Without overshoot, each joint is monotone between waypoints and reverses only at them, for any times. The states at
    waypoints are the states of the smoothest trajectory, reduced as far as required by a sufficient condition, see
    the module. This increases speeds between waypoints, jerk and snap, bends straight lines in joint space, since
    it applies to each joint separately, and stops a joint at consecutive equal positions. It is available for positions
    alone, since given derivatives may require overshoot.

    Args:
        t: (K,), s; increasing, K >= 1. With K = 1 the duration is zero.
        positions: (K, n), rad or m.
        velocities, accelerations: (K, n), rad/s and rad/s², or m; rows of NaN, or None, are not given.
        ends: ``"rest"``: zero velocity, acceleration, jerk and snap at both ends, except for given velocities and
            accelerations; ``"free"``: no conditions; or ``{"start": (velocity, acceleration, jerk, snap), "end":
            (...)}``, each (n,) or a number for all joints. Higher derivatives may be omitted, and an end that is
            omitted is free.
        overshoot: whether a joint may leave the range between two consecutive positions.
        degree: 7 or 9, for minimum snap or minimum rate of snap.

    Raises:
        TrajectoryError: shapes differ, times do not increase, a number is not finite, derivatives are contradictory or
            given with ``overshoot=False``, or times are too uneven for the positions.
    """
    t, q = _waypoints(t, positions)
    if degree not in _DEGREES:
        raise TrajectoryError(f"degree must be one of {', '.join(map(str, _DEGREES))}, is {degree!r}")
    states = np.full((ORDERS, *q.shape), np.nan)
    states[0] = q
    for k, (name, values) in enumerate((("velocities", velocities), ("accelerations", accelerations)), start=1):
        if values is not None:
            states[k] = _optional(name, values, q.shape)
    if not overshoot and not np.all(np.isnan(states[1:])):
        raise TrajectoryError("overshoot=False requires positions alone; omit velocities and accelerations")
    _set_ends(states, ends)
    if not overshoot and np.any(np.nan_to_num(states[1:])):
        raise TrajectoryError('overshoot=False requires ends to be "rest" or "free"')
    if len(t) == 1:
        return Spline(t, np.nan_to_num(states))
    # Numbers that overflow are refused; NumPy would warn about each.
    with np.errstate(all="ignore"):
        solved = minimum_snap(np.diff(t), states, _DEGREES[degree])
        if not overshoot:
            solved = without_overshoot(np.diff(t), solved, fixed=~np.isnan(states[1]))
        if not all_finite(solved, np.ptp(q, axis=0)):
            raise TrajectoryError(UNSOLVED)
        spline = Spline(t, solved)
        if overshoot:
            _check_overshoot(spline, states)
    return spline


def _check_overshoot(spline: Spline, states: Array) -> None:
    """Raise an error if a spline overshoots excessively, compared with its given states (5, K, n)."""
    steps, q = np.diff(spline.t), spline.states[0]
    inside = spline.in_pieces(_PARTS, 0, np.arange(len(steps)))[1][0][1:-1]
    farthest = np.max(np.abs(inside - q[:-1]), axis=0)
    longest = np.maximum(np.append(0.0, steps), np.append(steps, 0.0))[:, np.newaxis]
    expected = np.ptp(q, axis=0) + 1e-9
    for k in range(1, ORDERS):
        expected = expected + np.max(np.nan_to_num(np.abs(states[k])) * longest**k, axis=0)
    if np.any(farthest > _LARGEST_OVERSHOOT * expected):
        piece, joint = np.argwhere(farthest > _LARGEST_OVERSHOOT * expected)[0]
        raise TrajectoryError(
            f"times are too uneven for these positions: joint {joint} would overshoot by "
            f"{farthest[piece, joint]:.3g} between waypoints {piece} and {piece + 1}; space times by distance, or set "
            "overshoot=False"
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
