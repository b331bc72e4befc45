# SPDX-License-Identifier: Apache-2.0
"""Smooth path within a tolerance of waypoints, with knots at the bends of the path.

Interpolation of dense waypoints follows their rounding: a step of one digit between points that are close is a sharp
bend. Here, the path is the spline of degree seven with the least integral of its squared third derivative among those
within the tolerance, on the fewest knots, by a smoothing spline for each joint: C. H. Reinsch, "Smoothing by spline
functions", Numerische Mathematik 10 (1967). Its parameter is the length of the path. A path with reversals is split,
with a stop at each reversal. Waypoints that are few for the bends of a path are interpolated; a waypoint at which all
joints reverse is a stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import violation
from ..arrays import Array
from ..exceptions import TrajectoryError
from .trajectory import ORDERS, Spline, basis_rows, numbers
from .waypoints import through

_DEGREE, _SMOOTHED = 7, 3  # of the spline, and the order of the derivative in the squared integral that it minimizes
_FINEST, _COARSEST, _NOISY = 1e-6, 1e-3, 1e-2  # range of tolerances by default, and the largest by noise, rad or m
_NOISE_ORDER, _NOISE_RMS = 6, 924**0.5  # order of differences, and their RMS for white noise of RMS 1
_OF_NOISE, _OF_PART = 4.0, 2.0  # tolerance over the RMS of noise of all waypoints, and of the noisiest part
_RESTS, _OF_REST = 5.0, 5.0  # noise of a part over the usual noise at which the arm rests; tolerance over that noise
_MEDIAN = 0.6745  # median magnitude of noise over its RMS
_DIGITS, _EXACT = 12, 4.0  # most digits of rounded numbers, and their rounding errors, in rounding errors of floats
_PIECES, _COARSER = 100, 100.0  # number of pieces above which the default tolerance is increased, and by which factor
_TURN = 4.0  # minimum distance of waypoints around a visible reversal, in tolerances
_CLOSE = 0.8  # largest distance of the path from a waypoint, in tolerances: waypoints are off by half a digit
_SPARSE = 2  # minimum number of waypoints per coefficient of the spline; fewer waypoints are interpolated
_ROUGHEST, _SMOOTHEST = -12, 6  # powers of ten of the weight of the smoothness, relative to the weight of the waypoints
_FIRST = 8  # pieces to begin with
_HALVINGS = 10  # of the interval of these powers
# Nodes on 0 … 1 and weights of a quadrature that is exact for the square of the derivative.
_GAUSS, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(_DEGREE - _SMOOTHED + 1))
_GAUSS = _GAUSS + 0.5
_MANY = 40  # minimum number of waypoints for an estimate of their noise
_FINE = 2000  # number of line segments for the length of a path


class SmoothSpline(Spline):
    """Spline of degree seven with continuous fifth and sixth derivatives."""


class WaypointPath(NamedTuple):
    """Paths between the stops of a path through waypoints, and their parameters (K,); each part starts at the last end.

    ``tolerance`` (n,), rad or m, is by joint; ``positions`` (K, n) are on the path.
    """

    parts: tuple[Spline, ...]
    parameters: Array
    positions: Array
    tolerance: Array


def path_through(path: ArrayLike, velocity: Array, tolerance: float | None = None) -> WaypointPath:
    """Smoothest path within a tolerance of waypoints (K, n), rad or m, over a parameter that grows with the distance.

    Distances are times at the velocity limits (n,), infinite without limits. Waypoints within the tolerance of the
    previous waypoint are ignored.

    Args:
        path: waypoints (K, n).
        velocity: velocity limits (n,).
        tolerance: maximum distance of each joint from a waypoint, rad or m; None: :func:`waypoint_tolerance`, or larger
            up to 1e-3 if the bends of the path need more than a hundred pieces.

    Raises TrajectoryError for fewer than two waypoints, or if all are within the tolerance of the first waypoint.
    """
    q = numbers(path, "path, if it is no trajectory,")
    if q.ndim != 2 or len(q) < 2 or not q.shape[1]:
        raise TrajectoryError(f"waypoints must have shape (K, n), K >= 2, have {q.shape}")
    if tolerance is not None and violation(tolerance, "positive"):
        raise TrajectoryError(f"the path tolerance must be positive, rad or m, is {tolerance}")
    allowed = waypoint_tolerance(q) if tolerance is None else np.full(q.shape[1], float(tolerance))
    if len(_apart(q / allowed, 1.0)) < 2:
        raise TrajectoryError(
            f"the path does not move: all {len(q)} waypoints are within the path tolerance, {np.max(allowed):.3g} rad "
            "or m, of the first waypoint"
        )
    velocity = velocity[: q.shape[1]]
    weights = np.where(np.isfinite(velocity), velocity, np.max(velocity[np.isfinite(velocity)], initial=1.0))
    while True:
        fixed = tolerance is not None or bool(np.all(allowed >= _COARSEST))
        if path_within := _within(q, allowed, weights, len(q) if fixed else _PIECES):
            return path_within
        allowed = np.maximum(np.minimum(_COARSER * allowed, _COARSEST), allowed)


def _within(
    q: Array, allowed: Array, weights: Array, most: int, stops: Sequence[int] | None = None
) -> WaypointPath | None:
    """The path within tolerances (n,) of waypoints (K, n); None if a part needs more than ``most`` pieces."""
    stops, parts, parameters, begin = stops or _stops(q / allowed), list[Spline](), np.zeros(len(q)), 0.0
    positions = np.empty_like(q)
    for first, last in pairwise(stops):
        if (part := _part(q[first : last + 1], allowed, weights, most)) is None:
            return None
        spline, u = part
        # All joints reverse or rest at the same waypoint.
        rests = spline.t[1:-1][~spline.states[1, 1:-1].any(axis=1)]
        if len(rests):
            return _within(q, allowed, weights, most, sorted({*stops, *(first + np.searchsorted(u, rests)).tolist()}))
        parts.append(SmoothSpline(begin + spline.t, spline.states))
        parameters[first : last + 1] = begin + u
        positions[first : last + 1] = spline.derivatives(u, 0)[0]
        begin = parts[-1].end
    return WaypointPath(tuple(parts), parameters, positions, allowed)


def waypoint_tolerance(q: Array) -> Array:
    """Tolerance (n,), rad or m, by digits of waypoints (K, n), 1e-6 to 1e-3, by those and noise of many, up to 1e-2.

    Digits are decimals or significant digits as of ``%g``, whichever are coarser; noise follows from sixth differences.
    """
    size = np.maximum(np.max(np.abs(q), axis=0), np.finfo(float).tiny)
    exponents = np.floor(np.log10(np.where(q == 0, 1.0, np.abs(q))))
    places, largest = -_digits(q), np.floor(np.log10(size)) - _digits(q / 10.0**exponents)
    unit = 10.0 ** np.maximum(places, largest)
    # Many waypoints with steps mostly below a digit: the path is a staircase of digits.
    stairs = (len(q) >= _MANY) & (np.mean(np.abs(np.diff(q, axis=0)), axis=0) < 0.5 * unit)
    unit = np.minimum(unit, np.where(stairs, _NOISY, _COARSEST))
    q = q[np.append(True, np.any(np.diff(q, axis=0) != 0, axis=1))]
    if len(q) >= _MANY:
        change = np.abs(np.diff(q, _NOISE_ORDER, axis=0)) / _NOISE_RMS
        # Readings of an arm at rest, for example at the start, are noisy even if the others are smooth.
        parts = [np.median(x, axis=0) for x in np.array_split(change, len(q) // _MANY)]
        usual, most = np.median(change, axis=0) / _MEDIAN, np.max(parts, axis=0) / _MEDIAN
        noise = np.maximum(_OF_NOISE * usual, np.where(most > _RESTS * usual, _OF_REST, _OF_PART) * most)
        unit = np.maximum(unit, np.minimum(noise, _NOISY))
    return np.asarray(np.maximum(unit, _FINEST))


def _digits(x: Array) -> float:
    """Number of decimals of numbers; infinite above twelve."""
    for digits in range(_DIGITS):
        scaled = np.abs(x) * 10.0**digits
        if np.all(np.abs(scaled - np.round(scaled)) <= _EXACT * np.spacing(np.maximum(scaled, 1.0))):
            return digits
    return np.inf


def _apart(x: Array, distance: float) -> list[int]:
    """Indices of points (K, n), each farther than a distance from the one before: the first and the last among them.

    Only the first if all others are within the distance from it.
    """
    rows = x.tolist()  # few numbers: NumPy takes ten times as long

    def far(i: int, k: int) -> bool:
        return any(abs(a - b) > distance for a, b in zip(rows[i], rows[k], strict=True))

    kept = [0]
    for i in range(1, len(x)):
        if far(i, kept[-1]):
            kept.append(i)
    last = len(x) - 1
    if len(kept) > 1 and kept[-1] != last:
        while len(kept) > 1 and not far(last, kept[-1]):
            kept.pop()
        kept.append(last)
    return kept


def _stops(x: Array) -> list[int]:
    """Indices of the ends, and of reversals at points (K, n), in tolerances."""
    kept, stops = _apart(x, _TURN), [0]
    before, there, after = x[kept[:-2]], x[kept[1:-1]], x[kept[2:]]
    back = np.minimum(_distances(after, before, there), _distances(before, there, after)) <= 1.0
    for k in np.flatnonzero(back):
        a, c = kept[k], kept[k + 2]
        between = x[a : c + 1]
        reach = np.max(np.abs(between - x[a]), axis=1) + np.max(np.abs(between - x[c]), axis=1)
        stops.append(a + int(np.argmax(reach)))
    return [*stops, len(x) - 1]


def _distances(points: Array, starts: Array, ends: Array) -> Array:
    """Largest distance of a joint of points (K, n) from lines between two points each (K,)."""
    lines = ends - starts
    along, squared = np.sum((points - starts) * lines, axis=1), np.sum(lines**2, axis=1)
    shares = np.clip(along / np.maximum(squared, np.finfo(float).tiny), 0.0, 1.0)
    return np.asarray(np.max(np.abs(starts + shares[:, np.newaxis] * lines - points), axis=1))


def _part(q: Array, allowed: Array, weights: Array, pieces: int) -> tuple[Spline, Array] | None:
    """Path without a stop between waypoints (K, n), and their parameters (K,); None for more than ``pieces`` pieces."""
    kept = np.array(_apart(q / allowed, 1.0)) if len(q) > 2 else np.arange(len(q))
    most = len(kept) // _SPARSE - (_DEGREE - 2)  # pieces, each with a coefficient; others are at the ends
    if most > 0:
        # Without those near the start, of an arm that rests there.
        moved = q[np.append(0, np.arange(kept[1], len(q)))]
        coarse, way = np.array(_apart(moved / allowed, _TURN)), _lengths(moved / weights)
        coarse = coarse if len(coarse) > 1 else np.array([0, len(moved) - 1])
        u = np.interp(way, way[coarse], _lengths(moved[coarse] / weights))
        knots = np.linspace(u[0], u[-1], min(_FIRST, most) + 1)
        if rough := _smoothest(moved, u, knots, allowed, _TURN, min(most, pieces)):
            before, u = u, _measured(rough, moved, u, allowed, weights)
            knots = np.unique(np.interp(rough.t, before, u))
            if smooth := _smoothest(moved, u, knots, allowed, _CLOSE, min(most, pieces)):
                return smooth, np.append(np.zeros(kept[1] - 1), u)
    if most > pieces:
        return None
    # Distances of the joint that takes longest.
    u = np.append(0.0, np.cumsum(np.max(np.abs(np.diff(q[kept], axis=0)) / weights, axis=1)))
    return through(u, q[kept], ends="free"), u[np.searchsorted(kept, np.arange(len(q)), side="right") - 1]


def _lengths(q: Array) -> Array:
    """Lengths (K,) of the lines through points (K, n), up to each of them."""
    return np.append(0.0, np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1)))


def _smoothest(q: Array, u: Array, knots: Array, allowed: Array, close: float, most: int) -> SmoothSpline | None:
    """Smoothest spline through the ends that passes waypoints (K, n), at parameters (K,), at a distance in tolerances.

    It adds knots near points that it passes farther away.

    None if that needs more than ``most`` pieces, or points are too uneven.
    """
    line = np.array([q[0], q[-1] - q[0]])
    line[1] /= u[-1]
    off = (q - line[0] - np.multiply.outer(u, line[1])) / allowed
    while len(knots) - 1 <= most:
        fit = _SmoothingSpline(knots, u, off)
        try:
            far = fit.misses(close)
        except np.linalg.LinAlgError:
            return None
        if not len(far):
            states = fit.states(close) * allowed
            states[0] += line[0] + np.multiply.outer(knots, line[1])
            states[1] += line[1]
            return SmoothSpline(knots, states)
        pieces = np.unique(np.clip(np.searchsorted(knots, u[far], side="right") - 1, 0, len(knots) - 2))
        knots = np.union1d(knots, 0.5 * (knots[pieces] + knots[pieces + 1]))
    return None


class _SmoothingSpline:
    """Splines that are zero at both ends and near values (K, n), the nearer the less smooth."""

    def __init__(self, knots: Array, u: Array, values: Array) -> None:
        # Their import takes longer than importing this library.
        from scipy.interpolate import BSpline

        self._knots, self._values = knots, values
        self._t = np.concatenate([np.repeat(knots[0], _DEGREE), knots, np.repeat(knots[-1], _DEGREE)])
        steps = np.diff(knots)[:, np.newaxis]
        places = (knots[:-1, np.newaxis] + steps * _GAUSS).ravel()
        count = len(knots) - 1 + _DEGREE
        self._at = BSpline.design_matrix(u, self._t, _DEGREE)
        near = self._at.data.reshape(-1, _DEGREE + 1), self._at.indices.reshape(-1, _DEGREE + 1)[:, 0]
        interval = np.repeat(np.arange(len(steps)), len(_GAUSS))
        (bent,) = basis_rows(self._t, _DEGREE, places, interval, [_SMOOTHED])
        self._near = _bands(*near, count)
        self._bend = _bands(bent * (steps * _WEIGHTS).ravel()[:, np.newaxis] ** 0.5, interval, count)
        self._bend *= np.sum(self._near[0]) / np.sum(self._bend[0])
        self._wanted = (self._at.T @ values)[1:-1]

    def misses(self, close: float) -> NDArray[np.intp]:
        """Indices of the values that the nearest spline passes at a larger distance."""
        return np.flatnonzero(np.max(self._distances(self._coefficients(_ROUGHEST)), axis=1) > close)

    def states(self, close: float) -> Array:
        """States (5, knots, n) at the knots of splines that are as smooth as a distance allows, by joint."""
        from scipy.interpolate import BSpline  # as above

        low, high = (np.full(self._values.shape[1], float(x)) for x in (_ROUGHEST, _SMOOTHEST))
        c = self._coefficients(_ROUGHEST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            tried = np.concatenate(
                [self._coefficients(x, slice(joint, joint + 1)) for joint, x in enumerate(middle)], axis=1
            )
            passed = np.max(self._distances(tried), axis=0) <= close
            low, high, c = np.where(passed, middle, low), np.where(passed, high, middle), np.where(passed, tried, c)
        spline = BSpline(self._t, c, _DEGREE)
        return np.array([spline(self._knots, nu=k) for k in range(ORDERS)])

    def _coefficients(self, exponent: float, joints: slice = slice(None)) -> Array:
        """Coefficients with a weight of the smoothness, a power of ten; the first and the last are zero."""
        from scipy.linalg import solveh_banded  # as above

        bands = self._near + 10.0**exponent * self._bend
        wanted = self._wanted[:, joints]
        c = np.zeros((len(wanted) + 2, wanted.shape[1]))
        c[1:-1] = solveh_banded(bands, wanted, lower=True, check_finite=False)
        return c

    def _distances(self, c: Array) -> Array:
        return np.asarray(np.abs(self._values - self._at @ c))


def _bands(rows: Array, first: NDArray[np.intp], count: int) -> Array:
    """Lower bands of RᵀR (8, m), for rows (K, 8) of R from their first columns (K,) on, without its outer columns."""
    bands, width = np.zeros((_DEGREE + 1, count)), rows.shape[1]
    for i in range(width):
        for k in range(width - i):
            bands[k] += np.bincount(first + i, rows[:, i] * rows[:, i + k], count)
    return bands[: count - 2, 1:-1]


def _measured(path: Spline, q: Array, u: Array, allowed: Array, weights: Array) -> Array:
    """Lengths along a path up to its points nearest to waypoints (K, n); parameters (K,) are initial values."""
    at, rate = path.derivatives(u, 1)
    rate /= allowed
    step = np.sum((q - at) / allowed * rate, axis=1) / np.maximum(np.sum(rate**2, axis=1), 1e-300)
    u = np.maximum.accumulate(np.clip(u + step, path.start, path.end))
    u[0], u[-1] = path.start, path.end
    fine = np.union1d(u, np.linspace(path.start, path.end, _FINE))
    return np.asarray(np.interp(u, fine, _lengths(path.derivatives(fine, 0)[0] / weights)))
