# SPDX-License-Identifier: Apache-2.0
"""Zero-phase filtering of positions, efforts and friction alike, derivatives, and decimation.

A linear filter F on both sides preserves tau = Y x: F tau = (F Y) x. The regressor of inertias follows from filtered
positions, which is equivalent for motion that is slow compared with the cut-off. The bases of dry friction jump, and
are filtered themselves. After M. Gautier, "Dynamic identification of robots with power model", ICRA 1997, where filter
and decimation are called parallel filtering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator, make_interp_spline
from scipy.ndimage import binary_opening, maximum_filter1d
from scipy.signal import welch

from ...actuators.parallel_springs import ParallelSpring
from ...arrays import Array
from ...robot import Robot
from ..recording import REST, Recording
from ..sampling import HIGHEST, LowPass, root_mean_square
from .regressor import LINE, TERMS, Motion, coupled, transmission_matrix

_JITTER = 0.02  # maximum relative deviation of a step from the usual step without interpolation

# A joint moves above this many smoothing velocities of its friction, but not above this part of its RMS velocity.
_SMOOTHING, _SLOW = 3.0, 0.1
_REVERSAL = 0.03  # rad/s or m/s, the least of these thresholds before the share of the RMS: motors may stick below
_NOISE = 3.0  # minimum velocity of a moving joint, in standard deviations of its noise
AT_LIMIT = 0.999  # efforts beyond this part of their limit are saturated
MOSTLY_BEYOND = 0.5  # fraction of efforts at or beyond the limit that shows another limit or unit
_EQUAL = 4  # number of equal extremes in a row that count as saturated
_GAP = 0.25  # longest gap of efforts that is bridged, in periods of the cut-off
_BRIDGES = 4  # times that the filtered signal replaces the samples of a gap

USED = "used"
"""Reason for efforts that are used in the identification."""

_ARRAYS = ("t", "q", "qd", "qdd", "tau", "measured", "used")


_NOISE_FROM = 0.5  # fraction of the Nyquist frequency above which the spectrum is noise
_SEGMENT = 4096


@dataclass(frozen=True, eq=False)
class FilteredSamples:
    """N filtered and decimated samples of one motion of n joints.

    Attributes:
        t: (N,) s.
        q, qd, qdd: (N, n), rad or m, and per s and s².
        tau: filtered efforts (N, n), N m or N; NaN if not recorded.
        measured: recorded efforts (N, n).
        bases: of terms by name, (N, n), filtered like the efforts.
        used: (N, n) whether an effort is used to identify.
        counts: number (n,) of recorded efforts, used or unused by reason; their sum is the number in the motion.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    measured: Array
    bases: dict[str, Array]
    used: NDArray[np.bool_]
    counts: dict[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: slice) -> FilteredSamples:
        arrays = {name: getattr(self, name)[rows] for name in _ARRAYS}
        return replace(self, **arrays, bases={name: basis[rows] for name, basis in self.bases.items()})

    @classmethod
    def joined(cls, parts: Sequence[FilteredSamples]) -> FilteredSamples:
        """Samples of several motions, one after the other, without counts."""
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
        return cls(**arrays, bases={name: np.concatenate([x.bases[name] for x in parts]) for name in parts[0].bases})


@dataclass(frozen=True)
class Filter:
    """Filter settings for the preparation of samples.

    Attributes:
        cutoff: Hz.
        smoothing_velocity: v_0 of dry friction (n,), rad/s or m/s.
        effort_limits: (n,) N m or N; infinite where unknown.
        velocity_noise: (n,) standard deviation of filtered velocities, rad/s or m/s.
        springs: parallel springs of the file (n,).
        transmission: T (n, n) for efforts of motors behind a transmission, else None.
        measured_velocity: use recorded velocities instead of differences of positions.
        decimate: keep no more samples than the cut-off needs.
    """

    cutoff: float
    smoothing_velocity: Array
    effort_limits: Array
    velocity_noise: Array
    springs: tuple[ParallelSpring | None, ...]
    transmission: Array | None = None
    measured_velocity: bool = False
    decimate: bool = True

    def rates(self, x: Array) -> Array:
        """Rates of friction and rotors (N, n): joint rates, or motor rates behind a transmission."""
        return x if self.transmission is None else x @ np.linalg.inv(self.transmission).T

    def motion(self, states: Sequence[Array]) -> Motion:
        """Motion as the joint terms take it, from q, qd and qdd, each (N, n)."""
        q, qd, qdd = states[:3]
        among = False if self.transmission is None else coupled(self.transmission)
        rates = self.rates(qd), self.rates(qdd)
        return Motion(*rates, self.smoothing_velocity, q, self.springs, among)


def default_filter(robot: Robot, cutoff: float, *, motor_side: bool = False) -> Filter:
    """Filter for a robot, with its friction velocities and limits."""
    joints = robot.independent_joints
    laws = [joint.actuator.friction if motor_side else joint.friction_law for joint in joints]
    return Filter(
        cutoff,
        np.array([float(law.smoothing_velocity) for law in laws]),
        np.array([joint.limits.effort for joint in joints]),
        np.zeros(robot.n),
        tuple(joint.parallel_spring for joint in joints),
        transmission_matrix(robot) if motor_side else None,
    )


def filter_recording(recording: Recording, terms: Sequence[str], using: Filter) -> list[FilteredSamples]:
    """Filtered, differentiated and decimated samples of each motion of a recording, without empty motions.

    They have the bases of ``terms``, names in :data:`.regressor.TERMS`. Raises IdentificationError for too few samples.
    """
    motions = (_filter_motion(motion, terms, using) for motion in recording.cleaned().motions())
    return [samples for samples in motions if len(samples)]


def differentiated(t: Array, values: Array, count: int = 2) -> tuple[Array, ...]:
    """The first time derivatives, at most four, each (N, n), of filtered values (N, n) at uniform times.

    By a spline of degree five. Central differences have an error of (w h)²/6 for a frequency w and a step h, 7 % at a
    tenth of the sampling rate; the spline has less than 0.1 %.
    """
    spline = make_interp_spline(t, values, k=5)
    return tuple(spline(t, k) for k in range(1, count + 1))


def uniform(recording: Recording) -> tuple[Recording, NDArray[np.bool_], int]:
    """Samples at uniform times, whether (N,) each was measured rather than interpolated, and how many were repeated."""
    repeats = _repeated(recording.q) & _repeated(np.nan_to_num(recording.tau))
    kept = recording[~repeats]
    period = recording.period
    count = round((kept.t[-1] - kept.t[0]) / period) + 1
    if count == len(kept) and np.all(np.abs(np.diff(kept.t) - period) <= _JITTER * period):
        return kept, np.ones(count, dtype=bool), int(repeats.sum())
    t = kept.t[0] + period * np.arange(count)
    t = t[t <= kept.t[-1]]

    def between(values: Array) -> Array:
        return np.asarray(PchipInterpolator(kept.t, np.nan_to_num(values), axis=0)(t))

    right = np.searchsorted(kept.t, t).clip(1, len(kept) - 1)
    before, after = t - kept.t[right - 1], kept.t[right] - t
    absent = np.isnan(kept.tau)[np.where(before < after, right - 1, right)]
    tau, near = np.where(absent, np.nan, between(_filled(kept.tau))), np.minimum(before, after) <= period
    qd = None if kept.qd is None else between(kept.qd)
    return Recording(kept.joint_names, t, between(kept.q), tau, qd, kept.name, kept.notes), near, int(repeats.sum())


@dataclass(frozen=True, eq=False)
class FilteredMotion:
    """One motion at uniform times: filtered states q, qd, qdd …, each (N, n), and efforts as recorded.

    Filter transients are included; ``near`` (N,) are samples that were measured rather than interpolated, ``repeats``
    is the number of repeated samples.
    """

    recorded: Recording
    states: tuple[Array, ...]
    low_pass: LowPass
    near: NDArray[np.bool_]
    repeats: int

    @property
    def inner(self) -> slice:
        """Samples without filter transients."""
        return self.low_pass.inner(len(self.recorded))

    @cached_property
    def absent(self) -> NDArray[np.bool_]:
        """True for unknown filtered efforts (N, n): in gaps too long to bridge, spread by the filter."""
        missing = np.isnan(self.recorded.tau)
        most = min(max(1, int(_GAP / (self.low_pass.cutoff * self.low_pass.period))), len(missing))
        long = binary_opening(np.pad(missing, ((most + 1,) * 2, (0, 0)), "edge"), np.ones((most + 1, 1)))
        long = long[most + 1 : len(long) - most - 1]
        return np.asarray(maximum_filter1d(long, 2 * self.low_pass.reach + 1, axis=0))

    def smooth(self, efforts: Array) -> Array:
        """Filtered efforts (N, n) of the motion; NaN if :attr:`absent`."""
        return np.where(self.absent, np.nan, self.bridged(efforts))

    def bridged(self, values: Array) -> Array:
        """Filtered values (N, n), with gaps for efforts that were not recorded.

        Within gaps, the filtered signal replaces values. This is linear, so that all terms with the same gaps add up
        to the efforts.
        """
        missing = np.isnan(self.recorded.tau)
        values = _filled(np.where(missing, np.nan, values))
        for _ in range(_BRIDGES if missing.any() else 0):
            values = np.where(missing, self.low_pass.whole(values), values)
        return self.low_pass.whole(values)


def filtered_motion(motion: Recording, using: Filter, derivatives: int = 2) -> FilteredMotion:
    """Filter a motion and differentiate it; ``derivatives`` of positions, at most four."""
    samples, near, repeats = uniform(motion)
    low_pass = LowPass(motion.period, min(using.cutoff, HIGHEST / (2 * motion.period)))
    q = low_pass.whole(samples.q)
    if using.measured_velocity and samples.qd is not None:
        qd = low_pass.whole(samples.qd)
        rates = (qd, *differentiated(samples.t, qd, derivatives - 1))
    else:
        rates = differentiated(samples.t, q, derivatives)
    return FilteredMotion(samples, (q, *rates), low_pass, near, repeats)


def _filter_motion(motion: Recording, terms: Sequence[str], using: Filter) -> FilteredSamples:
    filtered = filtered_motion(motion, using)
    samples, low_pass = filtered.recorded, filtered.low_pass
    q, tau = filtered.states[0], filtered.smooth(samples.tau)
    state = using.motion(filtered.states)
    # Filtered or constant bases need no filter.
    done = ("viscous", "rotor_inertia", LINE, "offset")
    bases = {name: TERMS[name].basis(state) for name in terms}
    bases = {name: basis if name in done else filtered.bridged(basis) for name, basis in bases.items()}

    # Velocities below these are rest or reversals.
    reversal = np.maximum(_SMOOTHING * using.smoothing_velocity, _REVERSAL)
    least = np.minimum(reversal, _SLOW * root_mean_square(state.qd))
    slow = np.abs(state.qd) < np.maximum(least, _NOISE * using.velocity_noise)
    saturated = _saturated(_filled(samples.tau), using.effort_limits)
    # The filter spreads absent or saturated efforts.
    spread, shape = 2 * low_pass.reach + 1, tau.shape
    ends = np.ones(len(tau), dtype=bool)
    ends[filtered.inner] = False
    reasons = {
        "at the ends of the filter": np.broadcast_to(ends[:, np.newaxis], shape),
        "near a long gap": filtered.absent,
        "interpolated": np.broadcast_to(~filtered.near[:, np.newaxis], shape),
        "saturated or near it": maximum_filter1d(saturated, spread, axis=0),
        "at rest or near reversal": slow | (np.ptp(q, axis=0) < REST),
    }
    inner = slice(filtered.inner.start, filtered.inner.stop, low_pass.decimation if using.decimate else 1)
    used, counts = np.ones(shape, dtype=bool), {}
    # Recorded samples are counted, by the even times next to them.
    kept = motion[~(_repeated(motion.q) & _repeated(np.nan_to_num(motion.tau)))]
    nearest = np.round((kept.t - samples.t[0]) / low_pass.period).astype(int).clip(0, len(used) - 1)
    known = np.isfinite(kept.tau)
    for reason, bad in reasons.items():
        counts[reason] = np.sum((used & bad)[nearest] & known, axis=0)
        used &= ~bad
    counts |= {"repeated": np.full(shape[1], len(motion) - len(kept)), "without effort": np.sum(~known, axis=0)}
    counts[USED] = np.sum(used[nearest] & known, axis=0)
    used = used[inner]
    t, q, qd, qdd, tau, measured = (x[inner] for x in (samples.t, *filtered.states, tau, samples.tau))
    bases = {name: basis[inner] for name, basis in bases.items()}
    return FilteredSamples(t, q, qd, qdd, tau, measured, bases, used, counts)


def _filled(values: Array) -> Array:
    """Values (N, n) with interpolated NaN; zero if all are NaN."""
    absent = np.isnan(values)
    if not absent.any():
        return values
    result, rows = values.copy(), np.arange(len(values))
    for column, bad in zip(result.T, absent.T, strict=True):
        column[bad] = 0.0 if bad.all() else np.interp(rows[bad], rows[~bad], column[~bad])
    return result


def _repeated(values: Array) -> NDArray[np.bool_]:
    """True for rows (N,) that equal the previous row to the last bit, between rows that differ."""
    same = np.zeros(len(values), dtype=bool)
    same[1:] = np.all(values[1:] == values[:-1], axis=1)
    # At rest all rows may be equal, and nothing is wrong with that.
    moving = np.ptp(values, axis=0).max(initial=0.0) > 0
    runs = np.convolve(same, np.ones(10), "same") < 10
    return same & runs & moving


def _saturated(tau: Array, limits: Array) -> NDArray[np.bool_]:
    """True for efforts (N, n) at their limits, or at their extremes for several samples in a row."""
    with np.errstate(invalid="ignore"):
        bad = np.abs(tau) >= AT_LIMIT * limits
        bad &= np.mean(bad, axis=0) <= MOSTLY_BEYOND
    for extreme in (np.min(tau, axis=0), np.max(tau, axis=0)):
        equal = (tau == extreme) & (extreme != 0) & (np.ptp(tau, axis=0) > 0)
        bad |= binary_opening(equal, np.ones((_EQUAL, 1)))  # runs of at least that many
    return np.asarray(bad)


def power(recording: Recording, values: Array) -> tuple[Array, Array]:
    """Frequencies (F,), Hz, and power spectral density (F, n) of uniform values (N, n), per Hz."""
    return welch(values, fs=1 / recording.period, nperseg=min(_SEGMENT, len(values)), axis=0, detrend="linear")


def velocity_noise(recordings: Sequence[Recording], using: Filter) -> Array:
    """Standard deviations (n,) of the noise of filtered velocities, by the spectrum of the data.

    With the power spectral density S of the noise of positions far above the cut-off, the variance of their rates is
    the integral of (2 pi f)² S from 0 to the cut-off; for measured velocities it is the integral of their S.
    """
    variances, cutoff = [], using.cutoff
    for recording in recordings:
        qd = recording.qd if using.measured_velocity else None
        f, density = power(recording, recording.q if qd is None else qd)
        S = np.median(density[f > max(_NOISE_FROM * f[-1], min(1.5 * cutoff, 0.8 * f[-1]))], axis=0)
        variances.append(S * cutoff * ((2 * np.pi * cutoff) ** 2 / 3 if qd is None else 1.0))
    return np.sqrt(np.mean(variances, axis=0))
