# SPDX-License-Identifier: Apache-2.0
"""Delay from a command to the motion that it causes, and ages of the drives' feedback, from recordings.

A drive with the effort u, the references p and v and a PD applies

    tau(t) = g u(t - D) + kp (p(t - D) - theta(t - a)) + kd (v(t - D) - thetad(t - b)) + constant
           = g u(t - D) + kp e + kd ed + kp a thetad + (kd b - kp a²/2) thetadd + constant,   e = p(t - D) - theta(t),

for any friction and masses. D, a and b are relative to the recorded times of efforts. These may be early by l: half a
command period if a drive reports the effort that it starts to apply, minus half a period if it reports the mean of the
last period. D + l, a + l and b + l are relative to the motion.

A drive that holds commands for a period T adds T/2 to D: this is the command lead that compensates both.

Least squares with an unknown delay, without bias by measurement noise. Signals pass a zero-phase low-pass filter, which
keeps linear equations valid. Measured signals are part of the design J; their noise also enters the efforts by
feedback, and would bias the coefficients. They are therefore replaced by their projections on known signals Z, the
instruments (two-stage least squares),

    x = (Jhᵀ Jh)⁻¹ Jhᵀ y,   Jh = Z (Zᵀ Z)⁻¹ Zᵀ J.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d

from ...arguments import real_array
from ...arrays import Array
from ...exceptions import StateError
from ..recording import IdentificationError
from ..sampling import column_lengths, least_squares

_BANDWIDTH = 12.0  # bandwidth of motions, Hz
_RATE = 40.0  # least sample rate, over that
_DENSE, _MARGIN = 10.0, 2.0  # samples that are fitted per period of the bandwidth, and periods left out at both ends
_SEEN = 2.0  # significance of an age, in standard deviations
_NOISE = 2.0  # maximum ratio of the residual to white noise for a drive with a PD
_FINEST = 1e-4  # least noise over the effort

Design = Callable[[float], tuple[Array, Array]]
"""Function from a delay, s, to the fitted vector y (N,) and the columns (N, k)."""

LONGEST = 0.02  # longest delay, and least negative one, s
_CANDIDATES = 41  # number of candidates over the range of delays, before the best is refined

_DEPENDENT = 1e-10  # singular value of dependent columns, relative to columns of length 1
_STEP = 1e-5  # step of differences over the delay, s
_FARTHEST, _LAST = 2e-3, 1e-9  # maximum change per iteration, and change at convergence, s
_ITERATIONS = 30

# Independent samples of white noise after the low-pass, per second and Hz of its bandwidth.
_INDEPENDENT = float(np.sqrt(np.pi / np.log(2)))
LARGEST_DEVIATION = 5e-5  # maximum standard deviation of a usable delay, s


class Delay(NamedTuple):
    """Delay with its standard deviation, s."""

    value: float
    standard_deviation: float

    @property
    def uncertain(self) -> str:
        """Reason if the delay is too uncertain for use; otherwise ""."""
        if self.standard_deviation <= LARGEST_DEVIATION:
            return ""
        return f"its deviation of {1e3 * self.standard_deviation:.2g} ms exceeds {1e3 * LARGEST_DEVIATION:g} ms"

    def later(self, time: float) -> Delay:
        """Delay plus ``time``, s."""
        return Delay(self.value + time, self.standard_deviation)


class DriveDelay(NamedTuple):
    """Timing of drives.

    Attributes:
        delay: from commands to the motion that they cause.
        position_age, velocity_age: of the feedback of the PD; None if commands have no references.
        early: lead of recorded efforts over their effect, s.
        noise: largest residual of the drives' equations, relative to white noise; about 1 if drives have a PD.
    """

    delay: Delay
    position_age: Delay | None
    velocity_age: Delay | None
    early: float
    noise: float

    @property
    def uncertain(self) -> str:
        """Reason if the delay is too uncertain for use; otherwise ""."""
        return self.delay.uncertain

    @property
    def ages_unknown(self) -> str:
        """Reason if the ages are unusable; otherwise ""."""
        if self.position_age is None or self.velocity_age is None:
            return "commands have no references of position and velocity"
        if self.noise > _NOISE:
            return "efforts do not follow a PD law"
        if self.early > 0:
            return "efforts are recorded before they act, so age and delay cannot be separated"
        if self.position_age.value < _SEEN * self.position_age.standard_deviation:
            return "the position has no age that is seen"
        return self.position_age.uncertain or self.velocity_age.uncertain

    @classmethod
    def of_all(cls, several: Sequence[DriveDelay]) -> DriveDelay:
        """The timing of several recordings, at least one."""
        first, *ages, early, noise = zip(*several, strict=True)
        position, velocity = (None if None in age else combined(age) for age in ages)
        return cls(combined(first), position, velocity, max(early), max(noise))


def drive_delay(
    t: ArrayLike,
    motor_position: ArrayLike,
    motor_effort: ArrayLike,
    command: Sequence[ArrayLike],
    *,
    early: float = 0.0,
) -> DriveDelay:
    """Delay from the commands of motors to their motion, drive delay plus half the hold period, and ages of feedback.

    Gains of the PD and torque constants are fitted with it. All is measured by one clock.

    Args:
        t: (N,) s, in equal steps.
        motor_position: measured positions (N, m) of the motors on the link side of their gears, rad or m.
        motor_effort: efforts (N, m) that the motors apply, as recorded, N m or N.
        command: commanded effort, and position and velocity of drives with a PD, each (N, m).
        early: lead of recorded efforts over their effect, s: half a command period if a drive reports the effort that
            it begins to apply, minus half a period if it reports the mean of the last period.

    Raises:
        IdentificationError: there are too few samples, or the signals do not determine the delay.
        StateError: an array has the wrong shape or is not finite.
    """
    times, efforts = real_array(t, "t"), real_array(motor_effort, "motor_effort")
    positions = real_array(motor_position, "motor_position", efforts.shape)
    sent = [real_array(values, "command", efforts.shape) for values in command]
    if efforts.ndim != 2 or len(efforts) != len(times):
        raise StateError(f"motor_effort must have shape ({len(times)}, m), has {efforts.shape}")
    band = min(_BANDWIDTH, 1 / (_RATE * float(np.median(np.diff(times)))))
    drives = []
    for i in range(efforts.shape[1]):
        with suppress(IdentificationError):
            drives.append(_of_drive(times, efforts[:, i], positions[:, i], [x[:, i] for x in sent], band))
    if not drives:
        raise IdentificationError("efforts of no motor follow its commands and references; record a longer motion")
    delay, *ages = (combined(x).later(early) for x in zip(*(delays for delays, _ in drives), strict=True))
    position, velocity = ages or (None, None)
    return DriveDelay(delay, position, velocity, early, max(noise for _, noise in drives))


def _of_drive(
    t: Array, effort: Array, position: Array, sent: Sequence[Array], band: float
) -> tuple[tuple[Delay, ...], float]:
    """Delay, ages (if commands have references), and residual, from the equation of a drive."""
    # As many samples as the band needs, without the ends.
    spacing, margin = max(1, int(1 / (_DENSE * band * (t[1] - t[0])))), _MARGIN / band + LONGEST
    rows = (t >= t[0] + margin) & (t <= t[-1] - margin) & (np.arange(len(t)) % spacing == 0)
    at = t[rows]

    def design(band: float) -> Design:
        u, *references = (smooth(t, x, band) for x in sent)
        theta = smooth(t, position, band)
        motion = [theta(at, k) for k in range(4)]
        still = [*(motion[1:] if references else []), np.ones_like(at)]
        y = smooth(t, effort, band)(at)

        def columns(delay: float) -> tuple[Array, Array]:
            errors = [c(at - delay) - x for c, x in zip(references, motion, strict=False)]
            return y, np.column_stack([*errors, *still, u(at - delay)])

        return columns

    causes = _instruments(t, position, sent, band)[rows]
    fit = fit_delay(design(band), causes, len(at) * spacing * (t[1] - t[0]), band)
    # White noise has twice the power in twice the band.
    y, columns = design(2 * band)(fit.x[-1])
    wider, inner = np.sum(np.square(y - columns @ fit.x[:-1])), np.sum(np.square(fit.residual))
    noise = float(np.sqrt(inner / max(wider - inner, _FINEST**2 * np.sum(np.square(y - np.mean(y))), 1e-300)))
    return (fit.delay, *(_ages(fit) if len(sent) == 3 else ())), noise


def _instruments(t: Array, position: Array, sent: Sequence[Array], band: float) -> Array:
    """Signals of a motor without noise (N, l) that cause its motion: commands with their derivatives, and friction."""
    u, *references = (smooth(t, x, band) for x in sent)
    columns = [np.ones_like(t), *(u(t, k) for k in range(3))]
    for reference in references[:1]:
        columns += [reference(t, k) for k in range(4)]
        friction = smooth(t, np.sign(smooth(t, position, band)(t, 1)), band)
        columns += [friction(t, k) for k in range(3)]
    return np.column_stack(columns)


def _ages(fit: DelayFit) -> tuple[Delay, Delay]:
    """Ages of position and velocity from kp, kd, kp a and kd b - kp a²/2."""
    kp, kd, of_velocity, of_acceleration = fit.x[:4]
    a = of_velocity / kp
    b = (of_acceleration + kp * a**2 / 2) / kd
    gradients = np.zeros((2, len(fit.x)))
    gradients[0, [0, 2]] = -a / kp, 1 / kp
    gradients[1, :4] = -(a**2) / (2 * kd), -b / kd, a / kd, 1 / kd
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", gradients, fit.covariance, gradients))
    return Delay(float(a), float(deviations[0])), Delay(float(b), float(deviations[1]))


def combined(delays: Sequence[Delay]) -> Delay:
    """Variance-weighted mean of the delays of several joints, at least one; their scatter increases its deviation."""
    if not delays:
        raise IdentificationError("no joint has moved enough to find a delay")
    values, deviations = np.array(delays).T
    weights = 1 / np.maximum(deviations, 1e-9) ** 2
    mean = float(weights @ values / weights.sum())
    deviation = float(1 / np.sqrt(weights.sum()))
    scatter = float(np.sqrt(weights @ (values - mean) ** 2 / weights.sum() / max(len(delays) - 1, 1)))
    return Delay(mean, max(deviation, scatter))


def period_of(stamps: ArrayLike) -> Delay:
    """Command period from stamps (N,), s: the median interval and its standard deviation.

    Raises:
        IdentificationError: there are fewer than three.
    """
    intervals = np.diff(real_array(stamps, "stamps"))
    intervals = intervals[intervals > 0]
    if len(intervals) < 2:
        raise IdentificationError(f"{len(intervals)} intervals between commands are too few to find their period")
    scatter = 1.4826 * float(np.median(np.abs(intervals - np.median(intervals))))
    return Delay(float(np.median(intervals)), float(scatter * np.sqrt(np.pi / 2 / len(intervals))))


class DelayFit(NamedTuple):
    """Coefficients and delay (k + 1,) of a fit, their covariance (k + 1, k + 1), and the residual (N,)."""

    x: Array
    covariance: Array
    residual: Array

    @property
    def delay(self) -> Delay:
        """The delay with its standard deviation."""
        return Delay(float(self.x[-1]), float(np.sqrt(self.covariance[-1, -1])))


def fit_delay(design: Design, instruments: Array, seconds: float, bandwidth: float) -> DelayFit:
    """Fit a delay and coefficients to N samples.

    Instruments (N, l) are at least as many as coefficients, the constant among them; ``seconds`` is the time with
    samples, ``bandwidth`` the cut-off of their low-pass, Hz. Raises IdentificationError if the signals do not determine
    the delay.
    """
    independent = _INDEPENDENT * bandwidth * seconds
    if independent < 2 * instruments.shape[1] or len(instruments) < 2 * instruments.shape[1]:
        raise IdentificationError("the motion is too short to find a delay; record a longer one")
    basis, _ = np.linalg.qr(instruments / column_lengths(instruments))

    def squares(delay: float) -> float:
        y, columns = design(delay)
        y, columns = basis.T @ y, basis.T @ columns
        return float(np.sum((y - columns @ least_squares(columns, y, _DEPENDENT)) ** 2))

    delay = min(np.linspace(-LONGEST, LONGEST, _CANDIDATES).tolist(), key=squares)
    y, columns = design(delay)
    x = np.append(least_squares(basis.T @ columns, basis.T @ y, _DEPENDENT), 0.0)
    for _ in range(_ITERATIONS):
        y, J = _linear(design, delay, x[:-1])
        lengths = column_lengths(J)
        J = J / lengths
        explained = basis.T @ J
        scaled, _, rank, _ = np.linalg.lstsq(explained, basis.T @ y, rcond=_DEPENDENT)
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


def _linear(design: Design, delay: float, coefficients: Array) -> tuple[Array, Array]:
    """Fitted signal (N,), and the columns with the derivative by the delay (N, k + 1)."""
    y, columns = design(delay)
    (before, former), (after, latter) = design(delay - _STEP), design(delay + _STEP)
    rate = (after - before - (latter - former) @ coefficients) / (2 * _STEP)
    return y, np.column_stack([columns, -rate])


def low_passed(values: Array, step: float, bandwidth: float) -> Array:
    """Signals (N, …) after a zero-phase Gaussian low-pass of this bandwidth, Hz.

    The gain at the bandwidth is 1/sqrt(2). Ends are continued by reflection about the end points.
    """
    width = np.sqrt(np.log(2)) / (2 * np.pi * bandwidth * step)
    half = min(int(np.ceil(5 * width)), len(values) - 1)
    padded = np.pad(values, [(half, half), *[(0, 0)] * (values.ndim - 1)], mode="reflect", reflect_type="odd")
    filtered = gaussian_filter1d(padded, width, axis=0, truncate=half / width)
    return np.asarray(filtered[half : len(values) + half])


def smooth(t: Array, values: Array, bandwidth: float) -> CubicSpline:
    """Spline of signals (N, …) at even times after the low-pass."""
    return CubicSpline(t, low_passed(values, float(t[1] - t[0]), bandwidth))
