# SPDX-License-Identifier: Apache-2.0
"""Autocorrelations of residuals, and their correlation time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Array


def autocorrelations(residuals: Sequence[Array], lags: int) -> Array:
    """Autocorrelations (lags + 1, n) of residuals (N, n) of several motions."""
    n = residuals[0].shape[1]
    products, counts = np.zeros((lags + 1, n)), np.zeros((lags + 1, 1))
    for part in residuals:
        count = min(lags + 1, len(part))
        # The power spectrum of a zero-padded series is the spectrum of its autocorrelation (Wiener and Khinchin). Not
        # by scipy.fft: its import would be a fifth of the node's import time.
        size = 1 << (len(part) + count - 1).bit_length()
        power = np.square(np.abs(np.fft.rfft(part, size, axis=0)))
        products[:count] += np.fft.irfft(power, size, axis=0)[:count]
        counts[:count, 0] += len(part) - np.arange(count)
    products /= np.maximum(counts, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return products / products[0]


def correlation_time(residuals: Sequence[Array]) -> Array:
    """Correlation time (n,) in samples: 1 + 2 sum of the autocorrelations, at least 1.

    The sum ends with the first autocorrelation that is not positive (C. Geyer, Statistical Science 7, 1992).
    """
    correlations = autocorrelations(residuals, max(1, max(map(len, residuals)) // 4))
    counted = np.logical_and.accumulate(correlations > 0, axis=0)
    return np.asarray(1 + 2 * np.sum(correlations[1:], axis=0, where=counted[1:]))
