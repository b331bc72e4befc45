# SPDX-License-Identifier: Apache-2.0
"""Fit of smooth trajectories to noisy recordings.

The smoothing spline of degree nine minimises

    ∫ (y - q)² dt + w_c^-10 ∫ (d⁵q/dt⁵)² dt

over all curves q, for samples y weighted by their time steps. Its gain at the angular frequency w is
1/(1 + (w/w_c)^10), without phase shift: 1/2 at the cut-off and that of a fifth-order Butterworth filter applied forward
and backward, so that the fourth derivative, with its factor w⁴, falls off as well. It is the penalised spline of
P. H. C. Eilers, B. D. Marx, "Flexible smoothing with B-splines and penalties", Statistical Science 11 (1996), but with
the integral of the squared derivative as the penalty, on uniform knots with a fraction of the cut-off's period.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array
from ..exceptions import TrajectoryError
from .spline import DEGREE, ORDERS, Spline, numbers

_PENALISED = ORDERS
"""Order of the penalised derivative."""

_PIECES_A_PERIOD = 6
"""Pieces of the spline in one period of the cut-off frequency."""

_FEWEST = 2 * ORDERS

# With a valid cut-off there are at most three pieces for each sample; many more are due to wrong time stamps.
_MOST_PIECES_A_SAMPLE = 20


class TrajectoryFit(NamedTuple):
    """A smooth trajectory and its deviation from the recording.

    Attributes:
        trajectory: from the first sample to the last.
        deviation: RMS of the trajectory minus the positions for each joint (n,), rad or m.
        largest_deviation: largest magnitude for each joint (n,), rad or m.
        samples: number of samples that were used.
        dropped: number of samples with a time or position that is not finite.
        disordered: number of samples that precede the sample before them; they were sorted.
        repeated: number of samples with the time of another; they were averaged.
        gaps: (start, end) in s of steps above half a period of the cut-off, crossed by a smoothed straight line.
    """

    trajectory: Spline
    deviation: Array
    largest_deviation: Array
    samples: int
    dropped: int
    disordered: int
    repeated: int
    gaps: tuple[tuple[float, float], ...]


def fit_trajectory(t: ArrayLike, positions: ArrayLike, *, cutoff: float) -> TrajectoryFit:
    """Fit a smooth trajectory to recorded positions at arbitrary times.

    Time and memory are linear in the number of samples. Within about half a period of the cut-off from both ends, the
    higher derivatives are less accurate.

    Args:
        t: (N,), s; subtract the first from those of a system clock, since double precision has 16 digits.
        positions: (N, n), rad or m.
        cutoff: frequency with a gain of 1/2, Hz; above those of the motion and below half the sample rate.

    Raises:
        TrajectoryError: shapes differ, there are fewer than ten samples, the cut-off is too low for their duration or
            too high for their rate, or the duration is too long for their number, as after a step of the clock.
    """
    t, y, counts = _cleaned(t, positions)
    duration, step = t[-1] - t[0], float(np.median(np.diff(t)))
    if not (np.isfinite(cutoff) and 1 / duration <= cutoff <= 0.5 / step):
        raise TrajectoryError(
            f"cutoff must be from {1 / duration:.4g} Hz (one period in the recording) to {0.5 / step:.4g} Hz (half "
            f"the sample rate), is {cutoff}"
        )
    pieces = int(np.ceil(duration * cutoff * _PIECES_A_PERIOD))
    if pieces > _MOST_PIECES_A_SAMPLE * len(t):
        gap = int(np.argmax(np.diff(t)))
        raise TrajectoryError(
            f"{len(t)} samples in {duration:.4g} s are too few for {cutoff:g} Hz; the longest gap is from "
            f"{t[gap]:.4f} s to {t[gap + 1]:.4f} s: cut the recording there"
        )
    late = np.diff(t) > 0.5 / cutoff
    states = _smoothed(*_bridged(t, y, late, 0.5 / cutoff), pieces, 2 * np.pi * cutoff)
    trajectory = Spline(np.append(t[0] + np.arange(pieces) * duration / pieces, t[-1]), states)
    residual = trajectory.derivatives(t, order=0)[0] - y
    return TrajectoryFit(
        trajectory,
        np.sqrt(np.mean(residual**2, axis=0)),
        np.max(np.abs(residual), axis=0),
        len(t),
        *counts,
        tuple(zip(t[:-1][late].tolist(), t[1:][late].tolist(), strict=True)),
    )


def _cleaned(times: ArrayLike, positions: ArrayLike) -> tuple[Array, Array, tuple[int, int, int]]:
    """A recording in order of time: times (N,) and positions (N, n).

    And the numbers of samples that were dropped, disordered and repeated.
    """
    t, y = (numbers(x, "times and positions must be arrays of numbers") for x in (times, positions))
    if t.ndim != 1 or y.ndim != 2 or not y.shape[1] or len(y) != len(t):
        raise TrajectoryError(f"times must have shape (N,) and positions (N, n); {t.shape}, {y.shape}")
    finite = np.isfinite(t) & np.all(np.isfinite(y), axis=1)
    t, y = t[finite], y[finite]
    disordered = int(np.sum(np.diff(t) < 0))
    if disordered:
        order = np.argsort(t, kind="stable")
        t, y = t[order], y[order]
    first = np.flatnonzero(np.append(True, np.diff(t) > 0))[: len(t)]
    repeated = len(t) - len(first)
    if repeated:
        counts = np.diff(np.append(first, len(t)))[:, np.newaxis]
        t, y = t[first], np.add.reduceat(y, first, axis=0) / counts
    if len(t) < _FEWEST:
        raise TrajectoryError(
            f"{len(t)} samples have different times and finite values; a fit requires at least {_FEWEST}"
        )
    return t, y, (int(np.sum(~finite)), disordered, repeated)


def _bridged(t: Array, y: Array, late: NDArray[np.bool_], longest: float) -> tuple[Array, Array]:
    """The recording with late samples led to by a straight line, without which the fit would overshoot there."""
    parts = np.ceil(4 * np.diff(t)[late] / longest).astype(int)
    pairs = zip(t[:-1][late], t[1:][late], parts + 1, strict=True)
    fill = np.concatenate([t[:0], *(np.linspace(start, end, count)[1:-1] for start, end, count in pairs)])
    line = np.column_stack([np.interp(fill, t, x) for x in y.T])
    order = np.argsort(np.concatenate([t, fill]), kind="stable")
    return np.concatenate([t, fill])[order], np.concatenate([y, line])[order]


def _smoothed(t: Array, y: Array, pieces: int, pulsation: float) -> Array:
    """States (5, pieces + 1, n) at even knots of the smoothing spline through positions (N, n)."""
    # Their import takes as long as that of this library, which most users of trajectories can do without.
    from scipy.interpolate import BSpline
    from scipy.linalg import solveh_banded
    from scipy.sparse import diags

    step, unknowns = (t[-1] - t[0]) / pieces, pieces + DEGREE
    knots = np.arange(-DEGREE, unknowns + 1.0)  # in pieces

    def design(places: Array, order: int) -> Any:
        """Matrix from the coefficients of the B-splines to a derivative at places, in pieces."""
        matrix = BSpline.design_matrix(places, knots[order : len(knots) - order], DEGREE - order)
        for rows in range(unknowns - order, unknowns):
            matrix = matrix @ diags([-1.0, 1.0], [0, 1], shape=(rows, rows + 1))
        return matrix / step**order

    steps = np.diff(t)
    weights = (np.append(steps, 0.0) + np.append(0.0, steps)) / 2
    matrix = design(np.clip((t - t[0]) / step, 0, pieces), 0)
    weighted = matrix.multiply(weights[:, np.newaxis]).T.tocsr()
    normal, right = weighted @ matrix, weighted @ y
    # The integral of the squared fifth derivative, a polynomial of degree eight on each piece.
    nodes, shares = np.polynomial.legendre.leggauss(_PENALISED)
    matrix = design((np.arange(pieces)[:, np.newaxis] + (nodes + 1) / 2).ravel(), _PENALISED)
    shares = np.tile(0.5 * step * shares / pulsation ** (2 * _PENALISED), pieces)
    normal = normal + matrix.T @ matrix.multiply(shares[:, np.newaxis])
    bands = np.array([np.append(normal.diagonal(k), np.zeros(k)) for k in range(DEGREE + 1)])
    spline = BSpline(knots, solveh_banded(bands, right, lower=True, check_finite=False), DEGREE)
    return np.array([spline(np.arange(pieces + 1.0), nu=k) / step**k for k in range(ORDERS)])
