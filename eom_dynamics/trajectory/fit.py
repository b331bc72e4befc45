# SPDX-License-Identifier: Apache-2.0
"""Fit of smooth trajectories to noisy recordings.

The smoothing spline of degree nine minimizes

    ∫ (y - q)² dt + w_c^-10 ∫ (d⁵q/dt⁵)² dt

over all curves q, for samples y weighted by their time steps. Its gain at the angular frequency w is
1/(1 + (w/w_c)^10), without phase shift: 1/2 at the cut-off, as for a fifth-order Butterworth filter applied forward and
backward, so that the fourth derivative, with its factor w⁴, falls off as well. It is the penalized spline of
P. H. C. Eilers, B. D. Marx, "Flexible smoothing with B-splines and penalties", Statistical Science 11 (1996), but with
the integral of the squared derivative as the penalty, on uniform knots with a fraction of the cut-off's period.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import violation
from ..arrays import Array
from ..exceptions import TrajectoryError
from .trajectory import DEGREE, ORDERS, Spline, numbers

_PENALISED = ORDERS  # order of the penalized derivative
_BASIS = DEGREE + 1  # number of B-splines that are not zero on a piece
_PIECES_A_PERIOD = 6  # pieces of the spline in one period of the cut-off frequency
_FEWEST = 2 * ORDERS

# With a valid cut-off there are at most three pieces for each sample; many more are due to wrong time stamps.
_MOST_PIECES_A_SAMPLE = 20

_CHUNK = 16384


class TrajectoryFit(NamedTuple):
    """A smooth trajectory and its deviation from the recording.

    Attributes:
        trajectory: from the first sample to the last.
        deviation: RMS of the trajectory minus the positions for each joint (n,), rad or m.
        largest_deviation: largest magnitude for each joint (n,), rad or m.
        samples: number of samples that were used.
        dropped: number of samples with a nonfinite time, position or velocity.
        disordered: number of samples that precede the sample before them; they were sorted.
        repeated: number of samples with the time of another; they were averaged.
        gaps: (start, end) in s of time steps longer than ``gap``, across which the motion is a smoothed straight line.
    """

    trajectory: Spline
    deviation: Array
    largest_deviation: Array
    samples: int
    dropped: int
    disordered: int
    repeated: int
    gaps: tuple[tuple[float, float], ...]


def fit_trajectory(
    t: ArrayLike, positions: ArrayLike, *, cutoff: float, velocities: ArrayLike | None = None, gap: float | None = None
) -> TrajectoryFit:
    """Fit a smooth trajectory to recorded positions at arbitrary times.

    Time and memory are linear in the number of samples. Within about half a period of the cut-off from both ends, the
    higher derivatives are less accurate.

    Args:
        t: (N,), s; for a system clock, subtract its first time, since double precision has 16 digits.
        positions: (N, n), rad or m.
        cutoff: frequency with a gain of 1/2, Hz; above the frequencies of the motion and below half the sample rate.
        velocities: (N, n), rad/s or m/s, if measured; their errors divided by w_c have the weight of errors of
            positions, and the gain at the cut-off is 2/3.
        gap: time steps longer than this are reported, s; by default half a period of the cut-off.

    Raises:
        TrajectoryError: shapes differ, there are fewer than ten samples, the cut-off is too low for their duration or
            too high for their rate, or the duration is too long for their number, as after a step of the clock.
    """
    t, y, counts = _cleaned(t, positions, velocities)
    duration, step = t[-1] - t[0], float(np.median(np.diff(t)))
    if violation(cutoff) or not 1 / duration <= cutoff <= 0.5 / step:
        raise TrajectoryError(
            f"cutoff must be from {1 / duration:.4g} Hz (one period in the recording) to {0.5 / step:.4g} Hz (half "
            f"the sample rate), is {cutoff}"
        )
    gap = 0.5 / cutoff if gap is None else gap
    if not gap > 0:
        raise TrajectoryError(f"gap must be a positive number of seconds, is {gap}")
    pieces = int(np.ceil(duration * cutoff * _PIECES_A_PERIOD))
    if pieces > _MOST_PIECES_A_SAMPLE * len(t):
        late = int(np.argmax(np.diff(t)))
        raise TrajectoryError(
            f"{len(t)} samples in {duration:.4g} s are too few for {cutoff:g} Hz; the longest gap is from "
            f"{t[late]:.4f} s to {t[late + 1]:.4f} s: cut the recording there"
        )
    system = _NormalEquations(t[0], duration / pieces, pieces, y[0].shape[1])
    rows, values = _bridged(t, y, 0.5 / cutoff)
    steps = np.diff(rows)
    weights = (np.append(steps, 0.0) + np.append(0.0, steps)) / 2
    pulsation = 2 * np.pi * cutoff
    for order, value in enumerate(values):
        system.add(rows, value, weights / pulsation ** (2 * order), order)
    # The integral of the squared fifth derivative, by Gauss-Legendre quadrature, is a sum over samples of zero.
    nodes, weights = (np.tile(x, pieces) for x in np.polynomial.legendre.leggauss(_BASIS))
    places = t[0] + (np.repeat(np.arange(pieces), _BASIS) + (nodes + 1) / 2) * system.step
    weights *= 0.5 * system.step * pulsation ** (-2 * _PENALISED)
    system.add(places, np.zeros((len(places), 0)), weights, _PENALISED)
    trajectory = Spline(np.append(t[0] + np.arange(pieces) * duration / pieces, t[-1]), system.states())
    residual = trajectory.derivatives(t, order=0)[0] - y[0]
    gaps = np.flatnonzero(np.diff(t) > gap)
    return TrajectoryFit(
        trajectory,
        np.sqrt(np.mean(residual**2, axis=0)),
        np.max(np.abs(residual), axis=0),
        len(t),
        *counts,
        tuple((float(t[i]), float(t[i + 1])) for i in gaps),
    )


def _cleaned(
    times: ArrayLike, positions: ArrayLike, velocities: ArrayLike | None
) -> tuple[Array, list[Array], tuple[int, int, int]]:
    """A recording in order of time: times, positions and, if given, velocities, each (N, n).

    And the numbers of samples that were dropped, disordered and repeated.
    """
    columns = [positions] if velocities is None else [positions, velocities]
    t, *values = (
        numbers(x, name, finite=False)
        for x, name in zip((times, *columns), ("times", "positions", "velocities"), strict=False)
    )
    shape = values[0].shape
    if t.ndim != 1 or len(shape) != 2 or not shape[1] or any(x.shape != (len(t), shape[1]) for x in values):
        shapes = ", ".join(str(x.shape) for x in (t, *values))
        raise TrajectoryError(f"times must have shape (N,), positions and velocities (N, n); {shapes}")
    finite = np.isfinite(t) & np.all([np.all(np.isfinite(x), axis=1) for x in values], axis=0)
    t, values = t[finite], [x[finite] for x in values]
    disordered = int(np.sum(np.diff(t) < 0))
    if disordered:
        order = np.argsort(t, kind="stable")
        t, values = t[order], [x[order] for x in values]
    first = np.flatnonzero(np.append(True, np.diff(t) > 0))[: len(t)]
    repeated = len(t) - len(first)
    if repeated:
        counts = np.diff(np.append(first, len(t)))[:, np.newaxis]
        t, values = t[first], [np.add.reduceat(x, first, axis=0) / counts for x in values]
    if len(t) < _FEWEST:
        raise TrajectoryError(
            f"{len(t)} samples have different times and finite values; a fit requires at least {_FEWEST}"
        )
    return t, values, (int(np.sum(~finite)), disordered, repeated)


def _bridged(t: Array, values: list[Array], longest: float) -> tuple[Array, list[Array]]:
    """The recording with longer time steps filled by a straight line, to prevent overshoot of the fit."""
    steps = np.diff(t)
    late = np.flatnonzero(steps > longest)
    if not len(late):
        return t, values
    parts = np.ceil(4 * steps[late] / longest).astype(int)
    fill = np.concatenate([np.linspace(t[i], t[i + 1], k + 1)[1:-1] for i, k in zip(late, parts, strict=True)])
    before = np.repeat(late, parts - 1)
    share = ((fill - t[before]) / steps[before])[:, np.newaxis]
    change = values[0][before + 1] - values[0][before]
    lines = [values[0][before] + share * change, change / steps[before][:, np.newaxis]]
    whole = np.concatenate([t, fill])
    order = np.argsort(whole, kind="stable")
    return whole[order], [np.concatenate([x, line])[order] for x, line in zip(values, lines, strict=False)]


class _NormalEquations:
    """Normal equations of the coefficients of B-splines on uniform knots, in banded form."""

    def __init__(self, start: float, step: float, pieces: int, n: int) -> None:
        self.start, self.step, self.pieces = start, step, pieces
        unknowns = pieces + DEGREE
        self._bands, self._right = np.zeros((_BASIS, unknowns)), np.zeros((unknowns, n))

    def add(self, t: Array, y: Array, weights: Array, order: int) -> None:
        """Add samples (N, n) of the derivative of an order."""
        for first in range(0, len(t), _CHUNK):
            part = slice(first, first + _CHUNK)
            place = (t[part] - self.start) / self.step
            piece = np.clip(place.astype(np.intp), 0, self.pieces - 1)
            basis = _basis()(place - piece, nu=order) / self.step**order
            low, high = int(piece.min()), int(piece.max()) + 1
            weighted = basis * weights[part, np.newaxis]
            for a in range(_BASIS):
                for b in range(a, _BASIS):
                    sums = np.bincount(piece - low, weighted[:, a] * basis[:, b], high - low)
                    self._bands[b - a, low + a : high + a] += sums
                for joint in range(y.shape[1]):
                    sums = np.bincount(piece - low, weighted[:, a] * y[part, joint], high - low)
                    self._right[low + a : high + a, joint] += sums

    def states(self) -> Array:
        """q … qdddd at the knots (5, pieces + 1, n)."""
        from scipy.linalg import solveh_banded  # here for its import, as in _basis

        x = solveh_banded(self._bands, self._right, lower=True, check_finite=False)
        rows = np.lib.stride_tricks.sliding_window_view(x, _BASIS, axis=0)  # (pieces, n, 10)
        result = np.empty((ORDERS, self.pieces + 1, x.shape[1]))
        for k in range(ORDERS):
            left, right = _basis()([0.0, 1.0], nu=k) / self.step**k
            result[k, :-1] = rows @ left
            result[k, -1] = rows[-1] @ right
        return result


@cache
def _basis() -> Any:
    """Nonzero B-splines (10,) on the piece from 0 to 1, ordered by their start."""
    # Its import takes as long as importing this library, and most users of trajectories do not need it.
    from scipy.interpolate import BSpline

    return BSpline(np.arange(-DEGREE, _BASIS + 1), np.eye(_BASIS), DEGREE)
