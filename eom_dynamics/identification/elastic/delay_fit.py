# SPDX-License-Identifier: Apache-2.0
"""Least squares with an unknown delay, of measured signals whose noise does not bias it.

Signals pass a low-pass without phase, by which linear equations stay true. Those that are measured are part of the
design J, and their noise, which feedback brings into the efforts, too, would bias the coefficients. So they are
replaced by what known signals Z, the instruments, explain of them (two-stage least squares),

    x = (Jhᵀ Jh)⁻¹ Jhᵀ y,   Jh = Z (Zᵀ Z)⁻¹ Zᵀ J.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d

from ...arrays import Array
from ..recording import IdentificationError
from ..sampling import column_lengths, continued

Design = Callable[[float], tuple[Array, Array]]
"""From a delay, s, to what is fitted, y (N,), and the columns (N, k)."""

LONGEST = 0.02
"""Longest delay, and least negative one, s."""

REACH = 0.48
"""Time within which a sample counts after the low-pass, over the period of its bandwidth."""

# Candidates over the range of delays, before the best one is refined.
_CANDIDATES = 41

# s: step of differences over the delay, largest change of an iteration, and that of the last one.
_STEP, _FARTHEST, _LAST = 1e-5, 2e-3, 1e-9

_ITERATIONS = 30

# Independent samples of white noise after the low-pass, per second and Hz of its bandwidth.
_INDEPENDENT = float(np.sqrt(np.pi / np.log(2)))


class DelayFit(NamedTuple):
    """Result of a fit.

    Attributes:
        x: coefficients and delay (k + 1,).
        covariance: (k + 1, k + 1).
        residual: (N,).
    """

    x: Array
    covariance: Array
    residual: Array


def fit_delay(design: Design, instruments: Array, seconds: float, bandwidth: float) -> DelayFit:
    """Fit a delay and coefficients.

    Args:
        design: of N samples.
        instruments: (N, l), at least as many as coefficients, the constant among them.
        seconds: time with samples.
        bandwidth: of their low-pass, Hz.

    Raises:
        IdentificationError: the signals do not determine the delay.
    """
    independent = _INDEPENDENT * bandwidth * seconds
    if independent < 2 * instruments.shape[1] or len(instruments) < 2 * instruments.shape[1]:
        raise IdentificationError("the motion is too short to find a delay; record a longer one")
    basis, _ = np.linalg.qr(instruments / column_lengths(instruments))

    def squares(delay: float) -> float:
        y, columns = design(delay)
        y, columns = basis.T @ y, basis.T @ columns
        return float(np.sum((y - columns @ _least(columns, y)) ** 2))

    delay = min(np.linspace(-LONGEST, LONGEST, _CANDIDATES).tolist(), key=squares)
    y, columns = design(delay)
    x = np.append(_least(basis.T @ columns, basis.T @ y), 0.0)
    for _ in range(_ITERATIONS):
        y, J = _linear(design, delay, x[:-1])
        lengths = column_lengths(J)
        J = J / lengths
        explained = basis.T @ J
        scaled, _, rank, _ = np.linalg.lstsq(explained, basis.T @ y, rcond=1e-10)
        x = scaled / lengths
        change = float(np.clip(x[-1], -_FARTHEST, _FARTHEST))
        delay += change
        if rank < len(x) or abs(change) < _LAST or abs(delay) > LONGEST:
            break
    if rank < len(x):
        raise IdentificationError("the motion does not determine the delay; record a longer one, at more frequencies")
    if abs(delay) > LONGEST or abs(change) > _LAST:
        raise IdentificationError(
            f"the delay is not within {1e3 * LONGEST:g} ms: command and motion do not belong together, or the motion "
            "does not determine it"
        )
    residual = y - J @ scaled
    # Sums over samples count each independent one as often, in residual and moments alike.
    covariance = np.linalg.inv(explained.T @ explained) * (residual @ residual) / (independent - len(x))
    x[-1] = delay
    return DelayFit(x, covariance / np.outer(lengths, lengths), residual)


def _least(columns: Array, y: Array) -> Array:
    """Coefficients of least squares."""
    lengths = column_lengths(columns)
    return np.asarray(np.linalg.lstsq(columns / lengths, y, rcond=1e-10)[0] / lengths)


def _linear(design: Design, delay: float, coefficients: Array) -> tuple[Array, Array]:
    """What is fitted (N,), and the columns with that of a change of the delay (N, k + 1)."""
    y, columns = design(delay)
    (before, former), (after, latter) = design(delay - _STEP), design(delay + _STEP)
    rate = (after - before - (latter - former) @ coefficients) / (2 * _STEP)
    return y, np.column_stack([columns, -rate])


def low_passed(values: Array, step: float, bandwidth: float) -> Array:
    """Signals (N, …) after a zero-phase Gaussian low-pass of this bandwidth, Hz.

    The gain at the bandwidth is 1/sqrt(2). Ends are continued by their reflection about the end points.
    """
    width = np.sqrt(np.log(2)) / (2 * np.pi * bandwidth * step)
    half = min(int(np.ceil(5 * width)), len(values) - 1)
    found = gaussian_filter1d(continued(values, half), width, axis=0, truncate=half / width)
    return np.asarray(found[half : len(values) + half])


def smooth(t: Array, values: Array, bandwidth: float) -> CubicSpline:
    """Spline of signals (N, …) at even times after the low-pass."""
    return CubicSpline(t, low_passed(values, float(t[1] - t[0]), bandwidth))
