# SPDX-License-Identifier: Apache-2.0
"""Residual statistics: RMS, relative size and whiteness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from ..arrays import Array

LAGS = 20
"""Autocorrelations that decide on whiteness."""

# Standard deviations, and parts of an RMS, by which a prediction is worse than another one; and part that is nothing.
_SURE, _WORSE, _NOTHING = 3.0, 0.02, 1e-3

# Of white noise, 95 % of the autocorrelations are within this many standard deviations 1/sqrt(N).
_BAND = 1.96


@dataclass(frozen=True, eq=False, kw_only=True)
class EffortErrors:
    """Prediction errors of efforts, by joint (n,), N m or N; NaN without efforts.

    Attributes:
        before, after: RMS of predicted less measured efforts by the robot that was given, and by the one that was
            found; motion and measured efforts filtered.
        spread: standard deviation of the measured efforts.
    """

    before: Array
    after: Array
    spread: Array

    @property
    def worse(self) -> NDArray[np.bool_]:
        """(n,) whether the RMS error of the identified robot is larger than that of the given one by 2 %."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.after > (1 + _WORSE) * self.before)

    @property
    def relative(self) -> Array:
        """RMS residual after, relative to the standard deviation of the measured efforts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.after / self.spread)


@dataclass(frozen=True, eq=False, kw_only=True)
class Score(EffortErrors):
    """Prediction errors of the feedforward of two robots, the given and the identified, by joint (n,).

    Attributes:
        before_unfiltered, unfiltered: as ``before`` and ``after``, but of the efforts as they were recorded, N m or N.
        of_fit: RMS residual of the fit, with terms that only the fit has: dry friction that is filtered like the
            efforts, and terms that no robot file has; N m or N.
        noise: standard deviation of the difference of the squares of ``after`` and ``before``, (N m)² or N².
        whiteness: fraction of the first autocorrelations of that residual within the band of white noise; 0.95 if it
            is, and 0.65 to 0.95 if it is white noise that passed the filter.
        samples: number of them.
    """

    before_unfiltered: Array
    unfiltered: Array
    of_fit: Array
    noise: Array
    whiteness: Array
    samples: int

    @property
    def surely_worse(self) -> NDArray[np.bool_]:
        """(n,) whether the identified robot predicts worse than the given one, beyond noise.

        Its mean square is larger by more than three standard deviations of the difference, and its RMS by more than
        0.1 %.
        """
        with np.errstate(invalid="ignore"):
            more = np.square(self.after) - np.square(self.before)
            return np.asarray((more > _SURE * self.noise) & (self.after > (1 + _NOTHING) * self.before))

    @property
    def worse(self) -> NDArray[np.bool_]:
        """(n,) whether it predicts worse, beyond noise or by 2 % of RMS, filtered or not."""
        with np.errstate(invalid="ignore"):
            unfiltered = self.unfiltered > (1 + _WORSE) * self.before_unfiltered
        return np.asarray(self.surely_worse | super().worse | unfiltered)


def score(parts: Sequence[Sequence[Array]], spacing: int) -> Score:
    """Score from residuals of successive motions, NaN where efforts were not recorded.

    Args:
        parts: of each motion, arrays (N, n): filtered efforts; errors of the predictions before and after, against
            filtered efforts; the same two against efforts as they were recorded; and the last of these with what only
            the fit knows, filtered.
        spacing: samples between those that decide on whiteness.
    """
    measured, before, after, before_unfiltered, unfiltered, of_fit = (
        np.concatenate(x) for x in zip(*parts, strict=True)
    )
    absent = np.isnan(measured).all(axis=0)

    def spaced(motions: Iterable[Array]) -> list[Array]:
        # Some that are missing count as zero, which is all that is known of them.
        return [np.where(absent, np.nan, np.nan_to_num(part))[::spacing] for part in motions]

    center = np.where(absent, np.nan, np.nan_to_num(measured).sum(axis=0) / np.maximum(_known(measured), 1))
    gain = np.square(after) - np.square(before)
    mean = np.nan_to_num(gain).sum(axis=0) / np.maximum(_known(gain), 1)
    gains = spaced(np.square(part[2]) - np.square(part[1]) - mean for part in parts)
    spread = np.nan_to_num(root_mean_square(np.concatenate(gains)))
    independent = np.maximum(sum(map(len, gains)) / correlation_time(gains), 1.0)
    return Score(
        before=root_mean_square(before),
        after=root_mean_square(after),
        spread=root_mean_square(measured - center),
        before_unfiltered=root_mean_square(before_unfiltered),
        unfiltered=root_mean_square(unfiltered),
        of_fit=root_mean_square(of_fit),
        noise=spread / np.sqrt(independent),
        whiteness=whiteness(spaced(part[5] for part in parts)),
        samples=len(measured),
    )


def root_mean_square(values: Array) -> Array:
    """Root mean square (n,) of the known values among (N, n); NaN if there are none."""
    count = _known(values)
    squares = np.sum(np.square(np.nan_to_num(values)), axis=0)
    return np.where(count > 0, np.sqrt(squares / np.maximum(count, 1)), np.nan)


def _known(values: Array) -> NDArray[np.intp]:
    """Number of values (N, n) that are not NaN, (n,)."""
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
    """Fraction (n,) of the first autocorrelations within the white-noise band."""
    total = sum(len(part) for part in residuals)
    found = autocorrelations([part - np.mean(part, axis=0) for part in residuals], LAGS)[1:]
    share = np.mean(np.abs(found) <= _BAND / np.sqrt(max(1, total)), axis=0)
    return np.where(np.isnan(found).any(axis=0), np.nan, share)


def correlation_time(residuals: Sequence[Array]) -> Array:
    """Correlation time (n,) in samples: 1 + 2 sum of the autocorrelations, at least 1.

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
