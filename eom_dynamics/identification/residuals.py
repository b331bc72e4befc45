# SPDX-License-Identifier: Apache-2.0
"""Figures of residuals: RMS, relative size, and whether they are white."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from ..arrays import Array

LAGS = 20
"""Autocorrelations that decide on whiteness."""

# Of white noise, 95 % of the autocorrelations are within this many standard deviations 1/sqrt(N).
_BAND = 1.96


@dataclass(frozen=True, eq=False, kw_only=True)
class EffortErrors:
    """How well efforts are predicted, by joint (n,), N m or N; NaN without efforts.

    Attributes:
        before, after: RMS of predicted less measured efforts by the robot's file, and by the identified parameters;
            efforts filtered like the positions.
        spread: standard deviation of the measured efforts.
    """

    before: Array
    after: Array
    spread: Array

    @property
    def relative(self) -> Array:
        """RMS residual after, relative to the standard deviation of the measured efforts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.after / self.spread)


@dataclass(frozen=True, eq=False, kw_only=True)
class Score(EffortErrors):
    """Errors of efforts, and whether the residuals are white, by joint (n,).

    Attributes:
        unfiltered: RMS of the identified prediction less the efforts as they were recorded, N m or N.
        whiteness: share of the first autocorrelations of the residual that are those of white noise; 0.95 if it is, and
            0.65 to 0.95 if it is white noise that passed the filter.
        samples: number of them.
    """

    unfiltered: Array
    whiteness: Array
    samples: int


def score(
    measured: Sequence[Array], raw: Sequence[Array], before: Sequence[Array], after: Sequence[Array], spacing: int = 1
) -> Score:
    """Compare predictions with measured efforts.

    Args:
        measured: filtered efforts of each motion (N, n); NaN where they were not recorded.
        raw: the same as they were recorded.
        before, after: predictions.
        spacing: samples between those that decide on whiteness.
    """

    def rms(predicted: Sequence[Array], desired: Sequence[Array]) -> Array:
        return root_mean_square(np.concatenate([p - d for p, d in zip(predicted, desired, strict=True)]))

    everything = np.concatenate(list(measured))
    absent = np.isnan(everything).all(axis=0)
    # Some that are missing count as zero, which is all that is known of them.
    residuals = [
        np.where(absent, np.nan, np.nan_to_num((a - m)[::spacing])) for a, m in zip(after, measured, strict=True)
    ]
    center = np.where(absent, np.nan, np.nan_to_num(everything).sum(axis=0) / np.maximum(_known(everything), 1))
    spread = root_mean_square(everything - center)
    return Score(
        before=rms(before, measured),
        after=rms(after, measured),
        spread=spread,
        unfiltered=rms(after, raw),
        whiteness=whiteness(residuals),
        samples=len(everything),
    )


def root_mean_square(values: Array) -> Array:
    """Root mean square (n,) of the values (N, n) that are known; NaN where none is."""
    count = _known(values)
    squares = np.sum(np.square(np.nan_to_num(values)), axis=0)
    return np.where(count > 0, np.sqrt(squares / np.maximum(count, 1)), np.nan)


def _known(values: Array) -> NDArray[np.intp]:
    """How many of the values (N, n) are no NaN, (n,)."""
    return np.asarray(np.sum(~np.isnan(values), axis=0))


def autocorrelations(residuals: Sequence[Array], lags: int) -> Array:
    """Autocorrelations (lags + 1, n) of residuals (N, n) of several motions; NaN where there are none."""
    n = residuals[0].shape[1]
    products, counts = np.zeros((lags + 1, n)), np.zeros(lags + 1)
    for part in residuals:
        own = min(lags + 1, len(part))
        # The power spectrum of a series followed by zeros is that of its products with itself (Wiener and Khinchin).
        size = next_fast_len(len(part) + own, real=True)
        products[:own] += irfft(np.square(np.abs(rfft(part, size, axis=0))), size, axis=0)[:own]
        counts[:own] += len(part) - np.arange(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = products / np.maximum(counts, 1)[:, np.newaxis]
        return np.asarray(means / means[0])


def whiteness(residuals: Sequence[Array]) -> Array:
    """Share (n,) of the first autocorrelations within the band of white noise."""
    total = sum(len(part) for part in residuals)
    found = autocorrelations([part - np.mean(part, axis=0) for part in residuals], LAGS)[1:]
    share = np.mean(np.abs(found) <= _BAND / np.sqrt(max(1, total)), axis=0)
    return np.where(np.isnan(found).any(axis=0), np.nan, share)


def correlation_time(residuals: Sequence[Array]) -> Array:
    """Samples (n,) for one independent sample: 1 + 2 sum of the autocorrelations, at least 1.

    The sum ends with the first that is not positive (C. Geyer, Statistical Science 7, 1992).
    """
    longest = max(len(part) for part in residuals)
    found = autocorrelations(residuals, max(1, longest // 4))
    time = np.ones(found.shape[1])
    for j, column in enumerate(found.T):
        if np.isnan(column).any():
            continue
        ends = np.flatnonzero(column <= 0)
        time[j] = 1 + 2 * float(np.sum(column[1 : ends[0] if len(ends) else None]))
    return time
