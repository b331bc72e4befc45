# SPDX-License-Identifier: Apache-2.0
"""Uniformly sampled signals: zero-phase low-pass filter, time derivatives, decimation, noise, and residual statistics.

A linear filter on both sides of a linear equation of motion does not change its parameters. So positions, efforts and
nonlinear terms pass the same filter, without delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import butter, sosfiltfilt, welch

from ..arguments import real_array, violation
from ..arrays import Array
from ..correlation import autocorrelations
from .recording import IdentificationError

_JITTER = 0.01  # largest difference between time steps, relative to the median
ORDER = 4  # of the Butterworth filter; run forward and backward, its gain is 1 / (1 + (f/cutoff)^8)
HIGHEST = 0.8  # maximum cut-off, relative to the Nyquist frequency; higher cut-offs are reduced to it
PER_PERIOD = 2.5  # samples kept per period of the cut-off: two would do for an ideal filter
EDGE = 1.5  # length of the filter's transients at both ends of a signal, in periods of the cut-off
_LEAST_PERIODS = 24.0  # periods of the cut-off in a recording: the filter needs six for nonlinear terms
_NOISE_SHARE = 0.005  # share of noise in a derivative behind the filter
_SEGMENT = 8.0  # length of segments of spectra, s
_LEAST_CUTOFF, _MOST_CUTOFF = 0.002, 0.1  # bounds of the cut-off as shares of the sample rate
LAGS = 20  # autocorrelations that decide on whiteness

# For white noise, 95 % of the autocorrelations are within this many standard deviations 1/sqrt(N).
_BAND = 1.96


def even_signals(t: ArrayLike, signals: Mapping[str, ArrayLike]) -> tuple[float, dict[str, Array]]:
    """Checked sample period, s, and signals (N,) or (N, n) of one shape by name, for times (N,), s, in even steps.

    Raises:
        IdentificationError: times are not even, shapes differ, or a number is not finite; naming the signal.
    """
    times = real_array(t, "t", finite=False, error=IdentificationError)
    if times.ndim != 1 or len(times) < 16:
        raise IdentificationError(f"t must have shape (N,), N of at least 16, has {times.shape}")
    steps = np.diff(times)
    period = float(np.median(steps))
    uneven = np.flatnonzero(~(np.abs(steps - period) <= _JITTER * period))
    if len(uneven) or not period > 0:
        where = int(uneven[0]) if len(uneven) else 0
        raise IdentificationError(
            f"t must increase in even steps; step {where} is {steps[where]:g} s, the median {period:g} s: resample"
        )
    arrays = {name: real_array(x, name, error=IdentificationError) for name, x in signals.items()}
    shape = next(iter(arrays.values())).shape
    for name, x in arrays.items():
        if x.shape != shape or x.ndim not in (1, 2) or len(x) != len(times):
            raise IdentificationError(f"{name} must have shape ({len(times)},) or ({len(times)}, n), has {x.shape}")
    return (times[-1] - times[0]) / (len(times) - 1), arrays


def noise_level(x: Array) -> float:
    """Standard deviation of the white noise of a signal (N,), from the upper quarter of its spectrum."""
    power = np.abs(np.fft.rfft((x - np.mean(x)) * np.hanning(len(x)))) ** 2
    # The median of exponentially distributed powers is log 2 of their mean.
    floor = np.median(power[len(power) * 3 // 4 :]) / np.log(2)
    return float(np.sqrt(floor / np.sum(np.hanning(len(x)) ** 2)))


def cutoff_of(period: float, x: Array, order: int) -> float:
    """Cut-off for a derivative of a measured signal (N,), Hz.

    It is the highest frequency up to which the noise of the derivative, s_x² (2 pi f)^(2 order) by frequency, adds up
    to at most 0.5 % of the derivative's RMS, so that a regression on it has a bias of 2.5e-5, less than the standard
    deviation of identified parameters. It is at least the cut-off that leaves a part of the recording.
    """
    rate = 1 / period
    frequency, power = welch(np.diff(x, order) * rate**order, rate, nperseg=min(len(x) - order, int(_SEGMENT * rate)))
    gain = (2 * rate * np.sin(np.pi * frequency * period)) ** (2 * order)
    upper = slice(len(power) * 3 // 4, None)
    floor = np.median(power[upper] / gain[upper])
    clear = frequency[np.cumsum(floor * gain) <= _NOISE_SHARE**2 * np.cumsum(power)]
    return float(np.clip(clear[-1] if len(clear) else 0.0, *cutoff_bounds(period, len(x))))


def cutoff_bounds(period: float, count: int) -> tuple[float, float]:
    """Least and largest cut-off by noise, Hz, for ``count`` samples of this ``period``, s."""
    rate = 1 / period
    return max(_LEAST_CUTOFF * rate, min(_LEAST_PERIODS * rate / count, _MOST_CUTOFF * rate)), _MOST_CUTOFF * rate


def decimation(period: float, cutoff: float) -> int:
    """Decimation factor for samples of this ``period``, s, at a cut-off, Hz."""
    return max(1, int(1 / (PER_PERIOD * cutoff * period)))


class LowPass:
    """Zero-phase low-pass filter: Butterworth, forward and backward, with half the gain at the cut-off, Hz.

    Samples at both ends within its ``reach`` have transients; ``decimation`` is the distance of
    the samples that the cut-off needs, in samples.
    """

    def __init__(self, period: float, cutoff: float) -> None:
        """Design the filter; raises IdentificationError unless the cut-off is below half the sample rate."""
        if violation(cutoff, "positive") or not cutoff < 0.5 / period:
            raise IdentificationError(f"cutoff must be between 0 and half the sample rate, {0.5 / period:g} Hz")
        self.period, self.cutoff = period, cutoff
        self.reach = round(EDGE / (cutoff * period))
        self.decimation = decimation(period, cutoff)
        self._sections = butter(ORDER, min(cutoff, HIGHEST / (2 * period)), fs=1 / period, output="sos")
        # Padding over the filter's memory.
        self._padding = round(2 / (cutoff * period)) + 3 * ORDER

    def inner(self, count: int) -> slice:
        """Samples without transients of a signal with ``count`` samples."""
        return slice(self.reach, max(self.reach, count - self.reach))

    def whole(self, x: Array) -> Array:
        """Filtered signal (N, …), with transients at its ends."""
        return np.asarray(sosfiltfilt(self._sections, x, axis=0, padlen=min(len(x) - 1, self._padding)))

    def __call__(self, x: Array) -> Array:
        """The filtered signal (N - 2 reach, …) without its ends; raises IdentificationError if it is too short."""
        if len(x) <= 4 * self.reach:
            raise IdentificationError(
                f"{len(x)} samples are too few for a cut-off of {self.cutoff:g} Hz; record more than {4 * self.reach}"
            )
        return self.whole(x)[self.inner(len(x))]

    def thinned(self, x: Array) -> Array:
        """Filtered signal, decimated and without its ends."""
        return self(x)[:: self.decimation]


def column_lengths(A: Array) -> Array:
    """Lengths (k,) of the columns of A (N, k); 1 for columns of zeros."""
    length = np.linalg.norm(A, axis=0)
    return np.where(length > 0, length, 1.0)


def least_squares(A: Array, b: Array, dependent: float | None = None) -> Array:
    """Solve A x = b with columns of length one; the smallest singular values count as zero."""
    length = column_lengths(A)
    return np.asarray(np.linalg.lstsq(A / length, b, rcond=dependent)[0] / length)


def rate_of(x: Array, period: float) -> Array:
    """Time derivative (N - 4,) of a signal (N,) by central differences of order four."""
    return (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * period)


def of_one_motion(count: int, starts: Sequence[int], margin: int, step: int) -> NDArray[np.bool_] | slice:
    """Rows of a filtered signal that depend on one motion alone; rows are every ``step``-th sample from ``margin`` on.

    A filter of finite length that runs over a joint of two motions makes a sample of neither. ``count`` are the samples
    of the joined signal, ``starts`` the first samples of the second and further motions, and ``margin`` the number of
    samples before and after that a filtered one depends on.
    """
    if not len(starts):
        return slice(None)
    centers, begin = np.arange(margin, count - margin, step)[:, np.newaxis], np.asarray(starts)
    return np.asarray(np.all((centers + margin < begin) | (centers - margin >= begin), axis=1))


def longest(count: int, starts: Sequence[int]) -> slice:
    """Samples of the longest motion."""
    ends = [0, *starts, count]
    k = int(np.argmax(np.diff(ends)))
    return slice(ends[k], ends[k + 1])


def mean_of_known(values: Array) -> Array:
    """Mean (n,) of the values (N, n) that are not NaN; NaN without such values."""
    count = np.sum(~np.isnan(values), axis=0)
    return np.where(count > 0, np.sum(np.nan_to_num(values), axis=0) / np.maximum(count, 1), np.nan)


def sum_of_squares(x: Array) -> float:
    """Sum of squares of all elements."""
    return float(np.sum(np.square(x)))


def root_mean_square(values: Array) -> Array:
    """Root mean square (n,) of the values (N, n) that are not NaN; NaN without such values."""
    return np.sqrt(mean_of_known(np.square(values)))


def whiteness(residuals: Sequence[Array]) -> Array:
    """Fraction (n,) of the first autocorrelations within the white-noise band; NaN without residuals."""
    total = sum(len(part) for part in residuals)
    correlations = autocorrelations([part - np.mean(part, axis=0) for part in residuals], LAGS)[1:]
    share = np.mean(np.abs(correlations) <= _BAND / np.sqrt(max(1, total)), axis=0)
    return np.where(np.isnan(correlations).any(axis=0), np.nan, share)
