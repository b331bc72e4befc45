# SPDX-License-Identifier: Apache-2.0
"""Trajectories: protocol, time scaling and sampling; splines of degree nine with given states at their knots, hence C⁴.

All planned and fitted motions are such splines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from math import comb, factorial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import positive, real_array
from ..arrays import STATE_NAMES, Array
from ..exceptions import TrajectoryError

_LARGEST_COUNT = 100_000_000
"""Largest number of samples: 28 GB of states for seven joints. A larger number is due to a wrong unit."""


class Interval(Protocol):
    """Time interval of a trajectory of joints or of a tool."""

    @property
    def start(self) -> float:
        """First time, s; -inf without a start."""
        ...

    @property
    def end(self) -> float:
        """Last time, s; inf without an end."""
        ...


class Trajectory(Interval, Protocol):
    """A motion q(t) of n joints, four times continuously differentiable."""

    @property
    def n(self) -> int:
        """Number of joints."""
        ...

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives up to ``order``, at a time or at times (N,), s.

        Returns:
            ``order`` + 1 arrays, each (n,) for a time or (N, n) for N times. Before ``start`` and after ``end`` the
            joints are at rest in their first and last position.
        """
        ...


class Samples(NamedTuple):
    """States of a motion at given times.

    Attributes:
        t: (N,), s.
        q, qd, qdd, qddd, qdddd: (N, n), rad or m, and per s, s², s³, s⁴.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    qddd: Array
    qdddd: Array


class Scaled:
    """A trajectory slowed down by the factor s, from the same start: its k-th derivative decreases by s^k."""

    def __init__(self, trajectory: Trajectory, s: float | None) -> None:
        """Scale the duration of a trajectory by s > 0.

        Raises:
            TrajectoryError: s is not a positive number, or None as from :attr:`.Verdict.time_scaling`; or the
                trajectory has no start.
        """
        if s is None:
            raise TrajectoryError("there is no time scaling: the trajectory violates its limits at any speed")
        self.trajectory, self.s = trajectory, positive(s, "time scaling", TrajectoryError)
        if not np.isfinite(trajectory.start):
            raise TrajectoryError("a trajectory without a start cannot be scaled in time")
        self.n, self.start = trajectory.n, trajectory.start
        self.end = self.start + self.s * (trajectory.end - self.start)

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives, see :class:`Trajectory`."""
        at = np.asarray(t, dtype=float)
        # Rounding must not exceed the end, because derivatives after the end are zero.
        inner = np.where(at == self.end, self.trajectory.end, self.start + (at - self.start) / self.s)
        return tuple(x / self.s**k for k, x in enumerate(self.trajectory.derivatives(inner, order)))


def sample_times(trajectory: Interval, rate: float) -> Array:
    """Times (N,) in s from the start of a trajectory to its end, at ``rate`` in Hz.

    The last time is the end; the last step is shorter if the duration is not a multiple of the sampling period.

    Raises:
        TrajectoryError: the rate is not a positive number, there are too many samples, or the trajectory has no start
            or end.
    """
    rate = positive(rate, "rate", TrajectoryError)
    duration = trajectory.end - trajectory.start
    if not np.isfinite(duration):
        raise TrajectoryError("a trajectory without start or end requires times of samples")
    if duration * rate > _LARGEST_COUNT:
        raise TrajectoryError(f"{duration:g} s at {rate:g} Hz are more than {_LARGEST_COUNT} samples; lower the rate")
    # A last step of less than a millionth of the others is due to rounding.
    count = max(int(np.ceil(duration * rate - 1e-6)), int(duration > 0))
    with np.errstate(over="ignore"):
        t = trajectory.start + np.arange(count + 1) / rate
    t[-1] = trajectory.end
    return t


def sample(trajectory: Trajectory, rate: float) -> Samples:
    """States of a trajectory from its start to its end at ``rate`` in Hz; errors as in :func:`sample_times`."""
    t = sample_times(trajectory, rate)
    return Samples(t, *trajectory.derivatives(t, len(STATE_NAMES) - 1))


ORDERS = 5  # number of derivatives of a state: q … qdddd
DEGREE = 2 * ORDERS - 1

# For p = sum c_j u^j on a piece u = 0 … 1, (1/k!) d^k p/du^k at u = 1 is the sum of comb(j, k) c_j. The first five
# coefficients are the Taylor coefficients at u = 0; the remaining coefficients follow from the state at u = 1.
_TAYLOR_AT_1 = np.array([[comb(j, k) for j in range(ORDERS)] for k in range(ORDERS)], dtype=float)
_CLOSING = np.round(np.linalg.inv([[comb(j, k) for j in range(ORDERS, DEGREE + 1)] for k in range(ORDERS)]))
_FACTORIALS = np.array([factorial(k) for k in range(ORDERS)], dtype=float)

# Number of times, or pieces, that are evaluated together, so that working memory is bounded and fits a core's cache.
_CHUNK = 1024


numbers = partial(real_array, error=TrajectoryError)
""":func:`.real_array`, which raises TrajectoryError."""


def durations(times: Array) -> Array:
    """Durations (K - 1,) between increasing times (K,), s.

    Raises:
        TrajectoryError: times do not increase.
    """
    with np.errstate(over="ignore"):
        steps: Array = np.diff(times)
    if not np.all(steps > 0):
        late = int(np.argmin(steps > 0)) + 1
        raise TrajectoryError(f"times must increase; times[{late}] = {float(times[late])!r} does not")
    return steps


class Spline:
    """Hermite interpolant of degree nine of states q … qdddd at knots.

    It is C⁴, exact at the knots, and each piece depends only on the states at its two knots.

    Attributes:
        t: times of the knots (K,), s.
        states: q, qd, qdd, qddd, qdddd at the knots (5, K, n), rad or m, and per s, s², s³, s⁴.
        n: number of joints.
        start, end: first and last time, s.
    """

    def __init__(self, t: ArrayLike, states: ArrayLike) -> None:
        """Set increasing times (K,), K >= 1, in s, and states (5, K, n).

        Raises:
            TrajectoryError: a shape is wrong, times do not increase, or a number is not finite.
        """
        self.t, self.states = (np.copy(numbers(x, name)) for x, name in ((t, "times"), (states, "states")))
        if self.t.ndim != 1 or not len(self.t):
            raise TrajectoryError(f"times must have shape (K,), K >= 1, have {self.t.shape}")
        if self.states.ndim != 3 or self.states.shape[:2] != (ORDERS, len(self.t)):
            raise TrajectoryError(f"states must have shape ({ORDERS}, {len(self.t)}, n), have {self.states.shape}")
        self._set(self.t, self.states)

    def _set(self, t: Array, states: Array) -> None:
        self.t, self.states = t, states
        self.n, self.start, self.end = states.shape[2], float(t[0]), float(t[-1])
        self._steps = durations(t)

    @cached_property
    def _coefficients(self) -> Array:
        return _coefficients(self._steps, self.states)

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """Derivatives as in :class:`.Trajectory`; from the fifth on, they jump at knots, to the later piece."""
        at = np.asarray(t, dtype=float)
        rows = at.reshape(-1)
        result = np.empty((order + 1, len(rows), self.n))
        for first in range(0, len(rows), _CHUNK):
            part = slice(first, first + _CHUNK)
            self._evaluate(rows[part], result[:, part])
        return tuple(result.reshape(order + 1, *at.shape, self.n))

    def in_pieces(self, parts: int, order: int, pieces: NDArray[np.intp]) -> tuple[Array, tuple[Array, ...]]:
        """Times that divide each piece evenly, and q and its derivatives up to ``order`` there.

        Faster than :meth:`derivatives`: one matrix of powers for all pieces.

        Args:
            parts: number of parts of each piece.
            order: of the highest derivative.
            pieces: indices (P,).

        Returns:
            Times (parts + 1, P), s, and ``order`` + 1 arrays (parts + 1, P, n).
        """
        u, half, steps = np.arange(parts + 1)[:, np.newaxis] / parts, parts // 2 + 1, self._steps[pieces]
        states = np.empty((order + 1, parts + 1, len(pieces), self.n))
        for rows, origin in ((slice(half), 0), (slice(half, None), 1)):
            powers = np.vander(u[rows, 0] - origin, DEGREE + 1, increasing=True)
            c = self._coefficients[:, :, pieces + origin * len(self._steps)].swapaxes(1, 2)
            for k in range(order + 1):
                np.matmul(powers[:, : len(c)], c.reshape(len(c), -1), out=states[k, rows].reshape(len(powers), -1))
                c = c[1:] * (np.arange(1.0, len(c))[:, np.newaxis] / steps)[..., np.newaxis]
        return self.t[pieces] + u * steps, tuple(states)

    def scaled(self, s: float | None) -> Scaled:
        """The trajectory slowed down by the factor s; see :class:`.Scaled`."""
        return Scaled(self, s)

    def stretched(self, s: float) -> Spline:
        """Spline of the same path, with times from its start multiplied by s."""
        powers = float(s) ** np.arange(ORDERS)[:, np.newaxis, np.newaxis]
        slower = Spline.__new__(Spline)
        slower._set(self.start + s * (self.t - self.start), self.states / powers)
        # Coefficients refer to the relative time in a piece.
        slower._coefficients = self._coefficients
        return slower

    def _evaluate(self, t: Array, out: Array) -> None:
        outside = (t < self.start) | (t > self.end)
        if len(self.t) == 1:
            out[:] = 0.0
            known = min(len(out), ORDERS)
            out[:known] = self.states[:known]
            out[1:, outside] = 0.0
            return
        piece = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self._steps) - 1)
        step = self._steps[piece]
        before, after = t - self.t[piece], t - self.t[piece + 1]
        near_end = -after < before
        u = np.clip(np.where(near_end, after, before) / step, -1.0, 1.0)
        u[outside] = 0.0
        # Times are along the last axis, which NumPy handles fastest.
        c = self._coefficients[:, :, piece + near_end * len(self._steps)]
        value, following = np.zeros((2, len(out), self.n, len(t)))
        for j in range(DEGREE, -1, -1):
            count = min(DEGREE + 1 - j, len(out))  # of the derivatives that are not zero so far
            np.multiply(value[:count], u, out=following[:count])
            following[1:count] += value[: count - 1]
            following[0] += c[j]
            value, following = following, value
        for k in range(len(out)):
            np.multiply(value[k].T, (factorial(k) / step**k)[:, np.newaxis], out=out[k])
        out[1:, outside] = 0.0


@np.errstate(over="ignore", invalid="ignore")  # overflow is refused by the check of the motion
def _coefficients(steps: Array, states: Array) -> Array:
    """Coefficients (10, n, 2 K - 2) of the powers of u on all pieces.

    First of u = (t - t_i)/h from the start of each piece, then of u = (t - t_(i + 1))/h from its end. Each is used for
    the nearer half, so that knots are exact and powers have small rounding errors.
    """
    orders = np.arange(ORDERS)[:, np.newaxis]
    backwards = ((-1.0) ** np.arange(DEGREE + 1))[:, np.newaxis, np.newaxis]
    result = np.empty((DEGREE + 1, states.shape[2], 2 * len(steps)))
    for first in range(0, len(steps), _CHUNK):
        h = steps[first : first + _CHUNK]
        scale = (h**orders / _FACTORIALS[:, np.newaxis])[..., np.newaxis]
        left, right = (states[:, at : at + len(h)] * scale for at in (first, first + 1))
        mirrored = _from_left(right * backwards[:ORDERS], left * backwards[:ORDERS]) * backwards
        for at, half in ((first, _from_left(left, right)), (len(steps) + first, mirrored)):
            result[:, :, at : at + len(h)] = np.moveaxis(half, 1, 2)
    return result


def _from_left(left: Array, right: Array) -> Array:
    """Coefficients (10, K - 1, n) from the scaled derivatives at the start and the end of each piece."""
    # From the difference of positions, so that short pieces do not lose digits.
    gap = right.copy()
    gap[0] -= left[0]
    gap -= np.tensordot(_TAYLOR_AT_1[:, 1:], left[1:], 1)
    return np.concatenate([left, np.tensordot(_CLOSING, gap, 1)])


PER_PIECE = 16
"""Smallest number of instants in a piece of a spline; its velocity has a degree of eight at most."""


def check_times(trajectory: Trajectory, rate: float) -> Array:
    """Increasing sample times (N,), s, at ``rate``, Hz, and inside every piece of a spline.

    A piece may be shorter than a period, and move a joint there and back between two instants.

    Raises:
        TrajectoryError: as :func:`.sample_times`.
    """
    t = sample_times(trajectory, rate)
    if not isinstance(trajectory, Spline):
        return t
    starts, steps = trajectory.t[:-1], np.diff(trajectory.t)
    short = steps * rate < PER_PIECE
    if not short.any():
        return t
    within = np.multiply.outer(steps[short], np.arange(PER_PIECE) / PER_PIECE)
    within += starts[short, np.newaxis]
    # Samples at the rate only in the other pieces. As np.union1d, with fewer copies: there may be millions of instants.
    others = ~np.append(short, False)[np.searchsorted(trajectory.t, t, side="right") - 1]
    instants = np.concatenate([t[others], within.ravel(), trajectory.t[1:][short]])
    del within
    instants.sort()
    return instants[np.append(True, instants[1:] != instants[:-1])]


def dense_states(spline: Spline, rate: float) -> tuple[Array, tuple[Array, ...]] | None:
    """Times (N,), s, as close as :func:`check_times`, and q … qdddd (N, n) there; pieces are divided evenly.

    None if this makes more than 1.5 times as many or 16,384 times, or rounding makes times equal. Takes a third of the
    time of :meth:`Spline.derivatives`.
    """
    pieces, steps = len(spline.t) - 1, np.diff(spline.t) * rate
    parts = np.ceil(np.maximum(steps, PER_PIECE))
    most = parts.max(initial=0.0)
    if not 0 < pieces * most <= min(1.5 * parts.sum(), PER_PIECE * _CHUNK):
        return None
    t, states = spline.in_pieces(int(most), ORDERS - 1, np.arange(pieces))
    times = np.append(t[:-1].T, spline.end)
    if not np.diff(times).all():
        return None
    rows = np.empty((ORDERS, len(times), spline.n))
    for row, x in zip(rows, states, strict=True):
        row[:-1].reshape(pieces, -1, spline.n)[:], row[-1] = x[:-1].swapaxes(0, 1), x[-1, -1]
    return times, tuple(rows)


def basis_rows(t: Array, degree: int, x: Array, interval: NDArray[np.intp], orders: Sequence[int]) -> list[Array]:
    """Derivatives, by order, of the B-splines (N, degree + 1) that are not zero in the intervals (N,) of points (N,).

    Column k belongs to coefficient ``interval + k``; t are the knots, repeated at the ends.
    """
    # Its import takes longer than importing this library.
    from scipy.interpolate import BSpline

    # Consecutive basis splines take turns in the columns.
    count, width = len(t) - degree - 1, degree + 1
    basis = BSpline(t, np.eye(width)[np.arange(count) % width], degree)
    columns = (interval[:, np.newaxis] + np.arange(width)) % width
    return [np.take_along_axis(basis(x, nu=k), columns, axis=1) for k in orders]
