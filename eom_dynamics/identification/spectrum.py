# SPDX-License-Identifier: Apache-2.0
"""Spectrum of a recording: band of the motion, and noise of positions and velocities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import welch

from ..arrays import Array
from .filtering import Filter, uniform
from .recording import Recording
from .sampling import HIGHEST

# The lowest cut-off that is tried, in frequencies below which half of the power of velocities is.
_LOWEST = 2.0

RATIO = 1.5
"""Ratio of neighbouring cut-offs."""

# The noise is that of the upper part of the spectrum, from this share of the Nyquist frequency on.
_NOISE_FROM = 0.5

_SEGMENT = 4096


def power(recording: Recording, values: Array) -> tuple[Array, Array]:
    """Frequencies (F,), Hz, and power spectral density (F, n) of uniform values (N, n), per Hz."""
    f, density = welch(values, fs=1 / recording.period, nperseg=min(_SEGMENT, len(values)), axis=0, detrend="linear")
    return f, density


def candidates(recordings: Sequence[Recording]) -> list[float]:
    """Cut-off candidates, Hz: from the lowest that keeps most of the motion to just below Nyquist."""
    lowest, highest = np.inf, np.inf
    for recording in recordings:
        for motion in recording.motions():
            samples = uniform(motion)[0]
            f, density = power(samples, samples.q)
            velocity = density * np.square(f)[:, np.newaxis]
            total = np.cumsum(velocity, axis=0)
            moving = total[-1] > 1e-3 * np.max(total[-1])
            share = total[:, moving] / total[-1, moving]
            lowest = min(lowest, float(np.min(f[np.argmax(share > 0.5, axis=0)])))
            highest = min(highest, HIGHEST * float(f[-1]))
    lowest = min(_LOWEST * max(lowest, 0.1), highest / 2)
    count = int(np.log(highest / lowest) / np.log(RATIO)) + 1
    return [float(lowest * RATIO**k) for k in range(count)]


def noise(recording: Recording, values: Array, cutoff: float) -> Array:
    """Power spectral density of the noise (n,) of values (N, n), per Hz, from far above the cut-off."""
    f, density = power(recording, values)
    above = f > max(_NOISE_FROM * float(f[-1]), min(1.5 * cutoff, 0.8 * float(f[-1])))
    return np.asarray(np.median(density[above], axis=0))


def derivative_noise(density: Array, cutoff: float, order: int) -> Array:
    """Standard deviation (n,) of the k-th derivative of white noise below a cut-off.

    The square root of the integral of (2 pi f)^(2 k) S from 0 to the cut-off.
    """
    return np.asarray(np.sqrt((2 * np.pi) ** (2 * order) * density * cutoff ** (2 * order + 1) / (2 * order + 1)))


def noise_of_motion(recordings: Sequence[Recording], using: Filter) -> tuple[Array, Array]:
    """Standard deviations (n,) of the noise of filtered velocities and accelerations, by the spectrum of the data."""
    found = []
    for recording in recordings:
        if using.measured_velocity and recording.qd is not None:
            density = noise(recording, recording.qd, using.cutoff)
            found.append([derivative_noise(density, using.cutoff, k) for k in (0, 1)])
        else:
            density = noise(recording, recording.q, using.cutoff)
            found.append([derivative_noise(density, using.cutoff, k) for k in (1, 2)])
    qd, qdd = np.sqrt(np.mean(np.square(found), axis=0))
    return qd, qdd
