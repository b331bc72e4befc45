# SPDX-License-Identifier: Apache-2.0
"""Joint stiffness, rotor inertia and link inertia from the resonance in motor-side data alone.

Motors and links around a working point, with springs between them and gravity's stiffness G,

    B thetadd + D thetad + c sign(thetad) + d (thetad - qd) + K (theta - q) = tau_m,
    M qdd + d (qd - thetad) + K (q - theta) + G q = 0,

are linear in their spectra, so that the unmeasured q follows from theta. The motor of a single joint stands still
at the antiresonance sqrt(K/M), where link and spring absorb the effort, and both swing against each other at the
resonance sqrt(K/M + K/B). Their frequencies determine K/M and M/B, the effort determines the scale.

The spectra are of the whole record, not of windowed parts. The ends of the record add c_0 + i w c_1 to each equation,
with real factors that are fitted as well, so that no excitation causes leakage. For white noise of efforts and
positions, this is the maximum-likelihood fit with errors in both (R. Pintelon, J. Schoukens, "System
identification: a frequency domain approach", 2nd ed., 2012, sections 6.3 and 9.11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.signal import csd, savgol_filter, welch

from ...actuators.springs import DampedSpring, LinearSpring
from ...arguments import real_array
from ...arrays import AnyArray, Array
from ...elastic import ElasticArm
from ...robot import Joint, Robot
from ..recording import IdentificationError, Recording
from ..sampling import column_lengths, even_signals, least_squares, noise_level
from .arm import measured
from .curve_fit import SIGNIFICANT, CurveEstimate, curve_fit
from .options import ElasticOptions, check_resonance
from .springs import with_joints

# First values: antiresonances in the band, and resonances over antiresonances.
_ANTIRESONANCES, _RATIOS = 40, np.geomspace(1.05, 6.0, 30)

_CLEAR = 30.0  # motion over its noise, and effort over its noise, in the default band
_WINDOW, _DEGREE = 11, 3  # samples and degree of the local polynomial that gives the velocity in dry friction
_DOUBTFUL, _MISFIT = 2.0, 10.0  # misfits above which standard deviations are too small, or results are unreliable


class FrequencyResponse(NamedTuple):
    """Response of motors to efforts, of each joint by itself.

    Attributes:
        frequency: (F,), Hz.
        response: ratio of the spectra of motor position and effort, complex (F,), rad/(N m) or m/N.
        coherence: (F,), from 0 to 1: the share of the motion that the effort explains linearly.
    """

    frequency: Array
    response: AnyArray
    coherence: Array


@dataclass(frozen=True, eq=False)
class ResonanceFit:
    """Springs, rotors and links identified from small motor motions around a working point.

    Attributes:
        stiffness, damping: K and d of the springs with standard deviations, (n, 2), N m/rad and N m s/rad (N/m, N s/m).
        rotor_inertia, viscous, coulomb: B, D and c with standard deviations, (n, 2).
        link_inertia: M of a single joint with its standard deviation, kg m² (kg); None if given.
        antiresonance: frequencies (n,) of motors that stand still, Hz.
        resonance: frequencies (n,) of motors and links swinging against each other, Hz.
        band: lowest and highest frequency of the fit, Hz.
        misfit: RMS of residuals, relative to the noise alone: 1 if the model explains all but noise.
        undetermined: unidentifiable parameters, a line each.
        method: source of the numbers, in words.
    """

    stiffness: Array
    damping: Array
    rotor_inertia: Array
    viscous: Array
    coulomb: Array
    link_inertia: tuple[float, float] | None
    antiresonance: Array
    resonance: Array
    band: tuple[float, float]
    misfit: float
    undetermined: tuple[str, ...]
    method: str = "from the resonance of the motor side; link positions were not measured"

    @property
    def identifiable(self) -> NDArray[np.bool_]:
        """True for joints (n,) with identifiable stiffness: its standard deviation is below a third of it."""
        return np.asarray(self.stiffness[:, 0] > SIGNIFICANT * self.stiffness[:, 1])


def frequency_response(
    t: ArrayLike, theta: ArrayLike, effort: ArrayLike, *, segment: float | None = None
) -> FrequencyResponse:
    """Estimate the response of one motor by averaging over overlapping segments (Welch's method).

    Args:
        t: times (N,), s, in even steps.
        theta, effort: motor position, rad or m, and effort, N m or N, (N,).
        segment: length of a segment, s; by default an eighth of the record.

    Raises:
        IdentificationError: times are not even, shapes differ, or a number is not finite.
    """
    period, signals = even_signals(t, {"theta": theta, "effort": effort})
    motion, drive = signals["theta"], signals["effort"]
    length = len(motion) // 8 if segment is None else int(segment / period)
    options = {"fs": 1 / period, "nperseg": max(16, min(length, len(motion))), "detrend": "linear"}
    frequency, uu = welch(drive, **options)
    yy, uy = welch(motion, **options)[1], csd(drive, motion, **options)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return FrequencyResponse(frequency, uy / uu, np.abs(uy) ** 2 / (uu * yy))


def fit_resonance(
    t: ArrayLike,
    theta: ArrayLike,
    effort: ArrayLike,
    *,
    inertia: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    stiffness: ArrayLike | None = None,
    rotor_inertia: ArrayLike | None = None,
    coulomb: bool = False,
    smoothing_velocity: ArrayLike = 0.01,
    band: tuple[float, float] | None = None,
) -> ResonanceFit:
    """Fit the equations of the module to motor positions and efforts.

    Record a chirp or a multisine through the resonance, and all other motors, which must hold their positions.

    Args:
        t: times (N,), s, in even steps.
        theta, effort: motor positions, rad or m, and efforts, N m or N, on the link side of the gears: (N,) of an arm
            of one joint, or (N, n), n > 1, of all joints of an arm.
        inertia: M (n, n) at the working point, from the robot's file; needed for n > 1.
        gravity: G (n, n), the derivative of the gravity efforts with respect to q; by default zero.
        stiffness, rotor_inertia: first values (n,); by default from the measured response.
        coulomb: whether to fit c, with tanh(thetad/v_0) for the sign.
        smoothing_velocity: v_0, one number or (n,), rad/s or m/s.
        band: lowest and highest frequency, Hz; by default the band with effort and motion above the noise.

    Raises:
        IdentificationError: times are not even, shapes differ, a number is not finite, the mass matrix is missing or
            not positive definite, or no frequency is excited.
    """
    period, signals = even_signals(t, {"theta": theta, "effort": effort})
    motion, drive = (x.reshape(len(x), -1) for x in signals.values())
    n = motion.shape[1]
    if inertia is None and n > 1:
        raise IdentificationError(f"inertia is missing: the mass matrix ({n}, {n}) at the working point")
    M = None if inertia is None else _matrix(inertia, "inertia", n)
    G = np.zeros((n, n)) if gravity is None else _matrix(gravity, "gravity", n)
    if M is not None and not np.all(np.linalg.eigvalsh(0.5 * (M + M.T)) > 0):
        raise IdentificationError("inertia must be positive definite")
    model = _Spectra(period, motion, drive, M, G, band, smoothing_velocity if coulomb else None)
    start = model.guess(t, motion[:, 0], drive[:, 0]) if M is None else model.linear_guess(M)
    for row, first in enumerate((stiffness, rotor_inertia)):
        if first is not None:
            start[row] = np.asarray(first, dtype=float)
    return _result(model, model.fit(*start))


def _matrix(value: ArrayLike, name: str, n: int) -> Array:
    """Matrix (n, n); of one joint also as a number."""
    array = real_array(value, name, error=IdentificationError)
    return real_array(np.atleast_2d(array), name, (n, n), error=IdentificationError)


class _Spectra:
    """The equations of motion by frequency, as a residual of the parameters."""

    def __init__(
        self,
        period: float,
        motion: Array,
        drive: Array,
        M: Array | None,
        G: Array,
        band: tuple[float, float] | None,
        smoothing_velocity: ArrayLike | None,
    ) -> None:
        self.period, self.n, self.M, self.G = period, motion.shape[1], M, G
        self._count = len(motion) - 1
        spectra = [self._spectrum(x) for x in (motion, drive)]
        frequency = np.arange(len(spectra[0])) / (self._count * period)
        # Variances of the spectra of white noise.
        noise = [[max(noise_level(x), 1e-12 * float(np.ptp(x))) for x in side.T] for side in (motion, drive)]
        self._variances = [self._count * period**2 * np.square(x) for x in noise]
        kept = self._chosen(frequency, spectra, band)
        self.frequency, self._w = frequency[kept], 2 * np.pi * frequency[kept]
        self._theta, self._effort = (x[kept] for x in spectra)
        self._friction: AnyArray | None = None
        if smoothing_velocity is not None:  # dry friction, with the sign of the measured velocity
            velocity = savgol_filter(motion, _WINDOW, _DEGREE, deriv=1, delta=period, axis=0)
            self._friction = self._spectrum(np.tanh(velocity / np.asarray(smoothing_velocity)))[kept]

    def _spectrum(self, x: Array) -> AnyArray:
        """Fourier integrals (F, n) over the record T at multiples of 1/T, without the mean.

        The line between both ends contributes i (x(T) - x(0))/w. The rest has no jump, and the trapezoidal rule, which
        is the discrete transform, an error of h²/12 times the difference of its slopes.
        """
        rise = x[-1] - x[0]
        rest = x[:-1] - x[0] - rise * np.arange(self._count)[:, np.newaxis] / self._count
        spectrum = self.period * np.fft.rfft(rest - np.mean(rest, axis=0), axis=0)
        w = 2 * np.pi * np.arange(1, len(spectrum))[:, np.newaxis] / (self._count * self.period)
        spectrum[1:] += 1j * rise / w
        return np.asarray(spectrum)

    def _chosen(self, frequency: Array, spectra: list[AnyArray], band: tuple[float, float] | None) -> slice:
        """The frequencies of the fit."""
        if band is None:
            clear = np.ones(len(frequency), dtype=bool)
            for x, variance in zip(spectra, self._variances, strict=True):
                power = np.max(np.abs(x) ** 2 / np.maximum(variance, 1e-300), axis=1)
                # A running mean, since single lines may be weak by chance.
                clear &= np.convolve(power, np.full(9, 1 / 9), mode="same") > _CLEAR
            inside = np.flatnonzero(clear[1:]) + 1
            low, high = (inside[0], inside[-1]) if len(inside) else (0, 0)
        else:
            low, high = (int(np.searchsorted(frequency, f)) for f in band)
        low = max(low, 1)
        if high - low < 8 * self.n:
            raise IdentificationError(
                "too few frequencies are excited beyond noise; record a chirp or multisine through the resonance"
            )
        return slice(low, high + 1)

    def guess(self, t: ArrayLike, motion: Array, drive: Array) -> Array:
        """First values of K, B and M (3, 1) of one joint, from its response by Welch's method."""
        f, H, share = frequency_response(t, motion, drive)
        inside = (f >= self.frequency[0]) & (f <= self.frequency[-1])
        return np.array(_two_masses(2 * np.pi * f[inside], np.abs(H[inside]), share[inside]))[:, np.newaxis]

    def linear_guess(self, M: Array) -> Array:
        """First values of K, B (2, n) by linear least squares, with a known mass matrix and without spring dampers.

        With Z = G - w² M and the efforts of the springs, u - (i w D - w² B) theta, both equations of motion make
        u - Z theta = Z (-u/K + (i w D - w² B)/K theta) + (i w D - w² B) theta, linear in 1/K, D/K, B/K, D and B.
        """
        n, s = self.n, 1j * self._w[:, np.newaxis]
        Z = M * (s**2)[..., np.newaxis] + self.G
        theta, unit = self._theta, np.ones_like(s) * np.ones(n)
        motors = [_diagonal(s * theta), _diagonal(s**2 * theta)]
        ends = [_diagonal(s**k * unit) for k in range(4)]
        A = np.concatenate([-Z @ _diagonal(self._effort), *(Z @ x for x in motors), *motors, *ends], axis=2)
        right = self._effort - np.einsum("fij,fj->fi", Z, theta)
        weight = 1 / (self._w**2 + np.median(self._w) ** 2)
        A, right = A * weight[:, np.newaxis, np.newaxis], right * weight[:, np.newaxis]
        flat, target = (np.concatenate([x.real, x.imag]) for x in (A.reshape(-1, A.shape[2]), right.ravel()))
        factors = least_squares(flat, target)
        compliance, B = factors[:n], factors[4 * n : 5 * n]
        usual = np.diag(M) * np.median(self._w) ** 2
        K = np.where(compliance > 0, 1 / np.where(compliance > 0, compliance, 1.0), usual)
        return np.array([K, np.where(B > 0, B, np.diag(M))])

    def fit(self, K: Array, B: Array, *J: Array) -> CurveEstimate:
        """Maximum likelihood from first values."""
        n = self.n
        names = [f"{name}[{k}]" for name in ("stiffness", "rotor_inertia", "viscous", "damping") for k in range(n)]
        speed = 2 * np.pi * float(np.median(self.frequency))
        start = dict(zip(names, [*K, *B, *(1e-2 * B * speed), *(1e-3 * K / speed)], strict=True))
        if self._friction is not None:
            start |= {f"coulomb[{k}]": 0.0 for k in range(n)}
        if self.M is None:
            start["link_inertia[0]"] = J[0][0]
        return curve_fit(self._residual, start, dict.fromkeys(start, (0.0, np.inf)), independent=True)

    def split(self, p: Array) -> list[Array]:
        """K, B, D, d, c, each (n,), and M (n, n)."""
        n = self.n
        K, B, D, d = (p[k * n : (k + 1) * n] for k in range(4))
        c = p[4 * n : 5 * n] if self._friction is not None else np.zeros(n)
        return [K, B, D, d, c, np.array([[p[-1]]]) if self.M is None else self.M]

    def _residual(self, p: Array) -> Array:
        K, B, D, d, c, M = self.split(p)
        n, s = self.n, 1j * self._w[:, np.newaxis]
        X = K + s * d
        links = M * (s**2)[..., np.newaxis] + self.G + _diagonal(X)
        # X (K - w² M + …)⁻¹: from efforts on the links to spring efforts on the motors.
        back = np.swapaxes(np.linalg.solve(np.swapaxes(links, 1, 2), _diagonal(X)), 1, 2)
        impedance = _diagonal(s**2 * B + s * D + X) - back * X[:, np.newaxis, :]
        error = np.einsum("fij,fj->fi", impedance, self._theta) - self._effort
        if self._friction is not None:
            error = error + c * self._friction
        # Terms of the ends of the record, in the equations of motors and links.
        ends = np.concatenate([_diagonal(np.ones_like(s) * np.ones(n)), back], axis=2)
        ends = np.concatenate([ends, s[..., np.newaxis] * ends], axis=2)
        theta, effort = self._variances
        covariance = np.einsum("fij,j,fkj->fik", impedance, theta, impedance.conj()) + np.diag(effort)
        factor = np.linalg.cholesky(covariance)
        white = np.linalg.solve(factor, np.concatenate([error[..., np.newaxis], ends], axis=2))
        flat = white.reshape(-1, white.shape[2])
        real = np.sqrt(2.0) * np.concatenate([flat.real, flat.imag])
        columns = real[:, 1:] / column_lengths(real[:, 1:])
        fitted = columns @ np.linalg.lstsq(columns, real[:, 0], rcond=None)[0]
        return np.asarray(real[:, 0] - fitted)

    def frequencies(self, p: Array) -> tuple[Array, Array]:
        """Antiresonances and resonances (n,), Hz, without damping."""
        K, B, _, _, _, M = self.split(p)
        n = self.n
        locked = eigh(np.diag(K) + self.G, M, eigvals_only=True)
        stiffness = np.block([[np.diag(K) + self.G, -np.diag(K)], [-np.diag(K), np.diag(K)]])
        inertia = np.block([[M, np.zeros((n, n))], [np.zeros((n, n)), np.diag(B)]])
        # A rotor that the data do not show has no inertia, and a resonance without bound.
        inertia += 1e-12 * np.max(M) * np.eye(2 * n)
        free = eigh(stiffness, inertia, eigvals_only=True)
        return tuple(np.sqrt(np.maximum(x, 0)) / (2 * np.pi) for x in (locked, free[n:]))


def _diagonal(x: AnyArray) -> AnyArray:
    """Diagonal matrices (…, n, n) of vectors (…, n)."""
    return np.asarray(x[..., np.newaxis] * np.eye(x.shape[-1]))


def _two_masses(w: Array, gain: Array, coherence: Array) -> tuple[float, float, float]:
    """K, B and M of one joint with theta/tau_m closest to a measured gain (F,), on a logarithmic scale.

    |theta/tau_m| = |w_a² - w²| / (B w² |w_r² - w²|) with the antiresonance w_a and the resonance w_r.
    """
    usable = np.isfinite(gain) & (gain > 0) & (coherence > 0.1)
    if np.count_nonzero(usable) < 8:
        raise IdentificationError("the motion does not follow the effort in this band; check which joint was excited")
    w, level = w[usable], np.log(gain[usable])
    best: tuple[float, float, float, float] = (np.inf, 0.0, 0.0, 0.0)
    # Blunts zeros and poles, as segments of finite length do.
    blunt = (2 * float(np.min(np.diff(w)))) ** 2
    for antiresonance in np.geomspace(w[0], w[-1], _ANTIRESONANCES):
        resonance = antiresonance * _RATIOS[:, np.newaxis]
        zero = 0.5 * np.log((antiresonance**2 - w**2) ** 2 + blunt * antiresonance**2)
        pole = 0.5 * np.log((resonance**2 - w**2) ** 2 + blunt * resonance**2)
        error = level - (zero - pole - 2 * np.log(w))
        offset = np.median(error, axis=1)
        cost = np.mean(np.abs(error - offset[:, np.newaxis]), axis=1)
        k = int(np.argmin(cost))
        if cost[k] < best[0]:
            best = float(cost[k]), float(antiresonance), float(_RATIOS[k]), float(np.exp(-offset[k]))
    _, antiresonance, ratio, B = best
    J = B * (ratio**2 - 1)
    return J * antiresonance**2, B, J


def _result(model: _Spectra, estimate: CurveEstimate) -> ResonanceFit:
    both = zip(model.split(estimate.values), model.split(estimate.std), strict=True)
    K, B, D, d, c, _ = (np.stack(pair, axis=1) for pair in both)
    antiresonance, resonance = model.frequencies(estimate.values)
    lines, (low, high) = list(estimate.undetermined), model.frequency[[0, -1]].tolist()
    for name, f in (("antiresonance", antiresonance), ("resonance", resonance)):
        outside = f[(f < low) | (f > high)]
        if len(outside):
            lines.append(f"{name} {outside[0]:.3g} Hz is outside the band {low:.3g} … {high:.3g} Hz; excite it")
    link, misfit = estimate.by_name().get("link_inertia[0]"), float(np.sqrt(np.mean(estimate.residual**2)))
    return ResonanceFit(K, d, B, D, c, link, antiresonance, resonance, (low, high), misfit, tuple(lines))


def identify_resonance(
    robot: Robot, motors: Recording, options: ElasticOptions | None = None
) -> tuple[ResonanceFit, tuple[str, ...]]:
    """Identify springs and rotors of all joints from the motor side alone, by :func:`.fit_resonance`.

    The file gives the mass matrix and the stiffness of gravity at the mean position; for an arm with a single joint,
    the link is identified as well.

    Args:
        robot: as its file describes it.
        motors: positions and efforts of the motors, on the link side of the gears.
        options: Coulomb friction is identified if it is among the motor terms.

    Returns:
        The fit, and notes, a line each.

    Raises:
        RobotDescriptionError: a joint has no motor of its own.
        IdentificationError: the recording does not show the resonance.
    """
    options = options or ElasticOptions()
    check_resonance(robot, options)
    motions = sorted(motors.cleaned().motions(), key=len)
    if not motions:
        raise IdentificationError(f"{motors.name}: has too few samples")
    motion = motions[-1]
    notes = [f"{motors.name}: only the longest of {len(motions)} motions is used"] if len(motions) > 1 else []
    for k, name in enumerate(robot.joint_names):
        if not measured(motion.tau[:, k]):
            raise IdentificationError(f"{motors.name}: efforts of the motor of {name} are missing or zero throughout")
        if not np.ptp(motion.q[:, k]) > 0:
            raise IdentificationError(
                f"{motors.name}: the motor of {name} does not move; record its positions as measured, with noise"
            )
    period = motion.period
    t = motion.t[0] + period * np.arange(len(motion))
    if np.max(np.abs(motion.t - t)) > 0.5 * period:
        raise IdentificationError(f"{motors.name}: times must be even to identify a resonance; resample")
    arm, mean, zero = ElasticArm(robot), np.mean(motion.q, axis=0), np.zeros(robot.n)
    q, stiffness = mean, np.where(arm.stiffness > 0, arm.stiffness, np.inf)
    for _ in range(3):
        q = mean - arm.dynamics.effort(q, zero, zero) / stiffness
    one = robot.n == 1
    friction = [joint.actuator.friction for joint in robot.independent_joints]
    resonance = fit_resonance(
        t,
        motion.q,
        motion.tau,
        inertia=None if one else arm.dynamics.mass_matrix(q),
        gravity=arm.dynamics.inverse_dynamics_derivatives(q, zero, zero)[0],
        coulomb="coulomb" in options.terms(robot),
        smoothing_velocity=np.array([float(law.smoothing_velocity) for law in friction]),
    )
    if resonance.misfit > _MISFIT:
        raise IdentificationError(
            f"{motors.name}: the linear model of motors, springs and links does not explain it, misfit "
            f"{resonance.misfit:.3g} times the noise; record a chirp or multisine around a position that is held"
        )
    if not resonance.identifiable.any():
        raise IdentificationError(f"{motors.name}: the stiffness of no joint is identifiable; excite the resonances")
    kept = "its stiffness is not identifiable from the resonance; its spring and rotor stay as in the file"
    notes += [f"{name}: {kept}" for name in compress(robot.joint_names, ~resonance.identifiable)]
    if resonance.misfit > _DOUBTFUL:
        notes.append(f"misfit {resonance.misfit:.3g}: standard deviations are too small; the model is incomplete")
    if not one:
        notes.append("link inertias and gravity at the mean position come from the file")
    refused = [f"[{k}]" for k in np.flatnonzero(~resonance.identifiable)]
    lines = [x for x in resonance.undetermined if not any(place in x.partition(":")[0] for place in refused)]
    return resonance, (*notes, *lines)


def with_resonance(robot: Robot, fit: ResonanceFit) -> Robot:
    """The robot with linear springs, rotors and motor friction of all joints, identified from the motor side.

    Damped springs of the file get the damping. Coulomb friction that was not fitted, and joints without identifiable
    stiffness, stay unchanged.

    Raises:
        IdentificationError: the robot has another number of joints.
    """
    if len(fit.stiffness) != robot.n:
        raise IdentificationError(f"{robot.name} has {robot.n} joints, the fit has {len(fit.stiffness)}")

    def change(joint: Joint, k: int) -> Joint:
        stiffness, damping = float(fit.stiffness[k, 0]), float(fit.damping[k, 0])
        damped = isinstance(joint.spring, DampedSpring) and damping > 0
        friction = {"viscous": float(fit.viscous[k, 0])}
        if np.any(fit.coulomb):
            friction |= dict.fromkeys(("coulomb", "static"), float(fit.coulomb[k, 0]))
        return replace(
            joint,
            spring=DampedSpring(stiffness, damping) if damped else LinearSpring(stiffness),
            rotor_inertia=float(fit.rotor_inertia[k, 0]),
            actuator=replace(joint.actuator, friction=replace(joint.actuator.friction, **friction)),
        )

    return with_joints(robot, {name: k for k, name in enumerate(robot.joint_names) if fit.identifiable[k]}, change)
