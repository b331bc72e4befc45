# SPDX-License-Identifier: Apache-2.0
"""Iterative learning control of a repeated motion: each run corrects the tracking error of the last.

The correction c is one of the reference of the links: the next run commands the feedforward for q_d + c. With an exact
model, feedforward and drives are the plant's inverse, and links follow q_d + c; the flatness map is thereby the
learning operator. From the error e = q - q_d of a run,

    c+ = S (forgetting c - gain e),

the minimum of |e + c+ - c|² + s |c+ - c|² + r |c+|² over splines, with gain = 1/(1 + s + r) and forgetting =
(1 + s)/(1 + s + r): norm-optimal iterative learning, N. Amann, D. H. Owens, E. Rogers, "Iterative learning control
for discrete-time systems with exponential rate of convergence", IEE Proc. D 143 (1996). S is the least-squares fit of a
spline whose knots set the bandwidth, a low-pass without phase; its derivatives up to the fourth vanish at both ends,
so that a motion at rest there still is.

With the transfer function P(i w) from c to the links, 1 for an exact model, errors shrink from run to run by

    rho = max over w of |S(w) (forgetting - gain P(i w))|,

which :func:`contraction` bounds for errors of the model; from 1 on, learning diverges and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline

from ..arguments import check_options, not_negative, option
from ..arrays import Array
from ..elastic import ElasticArm, LimitCheck
from ..elastic.bounds import TOLERANCE
from ..elastic.elastic_arm import require_arm
from ..exceptions import EomDynamicsError, StateError
from ..recordings.number_files import read_arrays
from ..spelling import listed
from ..states import STATE_NAMES, real_array

_DEGREE = 7  # degree of the spline, of which four derivatives are smooth
_FREQUENCIES, _POSES = 40, 6  # frequencies and poses of the bound
_WORSE = 1.1  # a run may be worse than the one before by this ratio, from noise


class LearningError(EomDynamicsError):
    """Learning is refused because it would diverge, or has diverged."""


@dataclass(frozen=True)
class LearningSettings:
    """Parameters of iterative learning.

    Attributes:
        bandwidth: frequency up to which errors are learned, Hz; below the first resonance.
        gain: part of an error that is corrected in the next run.
        forgetting: part of the correction that is kept; below 1, errors that do not repeat fade, others remain in part.
    """

    bandwidth: float = option(10.0, rule="positive", metavar="HZ")
    gain: float = option(0.8, rule="(0, 1]", metavar="X")
    forgetting: float = option(1.0, rule="(0, 1]", metavar="X")

    def __post_init__(self) -> None:
        """Raise StateError if a setting is out of range."""
        check_options(self, StateError)


@dataclass(frozen=True)
class Uncertainty:
    """Errors of the model, of both signs, for which learning must converge.

    Attributes:
        stiffness, mass, rotor_inertia: largest relative error.
        delay: largest error of the delay, s.
    """

    stiffness: float = option(0.1, flag="--stiffness-error", rule="[0, 1)", metavar="X")
    mass: float = option(0.1, flag="--mass-error", rule="[0, 1)", metavar="X")
    rotor_inertia: float = option(0.1, flag="--rotor-inertia-error", rule="[0, 1)", metavar="X")
    delay: float = option(0.0, flag="--delay-error", rule="not negative", metavar="S")


DEFAULT, USUAL = LearningSettings(), Uncertainty()
"""LearningSettings, and errors of a model, where none are given."""


class Contraction(NamedTuple):
    """Contraction of the errors from run to run.

    Attributes:
        ratio: of the errors of two runs, at most; learning diverges from 1 on.
        frequency: at which it is largest, Hz.
    """

    ratio: float
    frequency: float


@dataclass(frozen=True)
class Correction:
    """A motion and its learned correction.

    Attributes:
        joint_names: n names.
        t: (N,) s, in equal steps.
        reference: q_d and its time derivatives (5, N, n), rad or m and per s … s⁴.
        correction: c and its time derivatives (5, N, n).
        errors: root mean square error of each run so far, rad or m.
    """

    joint_names: tuple[str, ...]
    t: Array
    reference: Array
    correction: Array
    errors: tuple[float, ...] = ()

    @property
    def motion(self) -> Array:
        """The motion to command (5, N, n)."""
        return self.reference + self.correction

    def write(self, path: Path) -> None:
        """Write a .npz file: a motion for player and simulation, with reference, correction and errors."""
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                t=self.t,
                joint_names=np.array(self.joint_names),
                **dict(zip(STATE_NAMES, self.motion, strict=True)),
                reference=self.reference,
                errors=np.array(self.errors),
            )


def uncorrected(joint_names: Sequence[str], t: ArrayLike, reference: ArrayLike) -> Correction:
    """A motion (5, N, n) at times (N,), s, without correction, for the first run.

    Raises:
        StateError: times are not in equal steps, or shapes differ.
    """
    times = real_array(t, "t")
    steps = np.diff(times) if times.ndim == 1 else np.zeros(0)
    if not len(steps) or not np.allclose(steps, steps.mean(), rtol=1e-6, atol=0) or steps[0] <= 0:
        raise StateError("t must increase in equal steps")
    states = real_array(reference, "reference", (len(STATE_NAMES), len(times), len(joint_names)))
    return Correction(tuple(joint_names), times, states, np.zeros_like(states))


def read_correction(path: Path) -> Correction:
    """Read a file of :meth:`Correction.write`, or a motion without correction.

    Raises:
        StateError: the file cannot be read, or an array is missing or has the wrong shape.
        OSError: the file cannot be read.
    """
    try:
        data = read_arrays(path)
        if missing := [name for name in ("t", "joint_names", *STATE_NAMES) if name not in data]:
            raise ValueError(f"has no {', '.join(missing)}; name a motion or a correction, see docs/learning.md")
        motion = np.stack([data[name] for name in STATE_NAMES])
        names = [str(name) for name in data["joint_names"].ravel()]
        whole = uncorrected(names, data["t"], data.get("reference", motion))
        errors = tuple(map(float, data.get("errors", ())))
    except ValueError as error:
        raise StateError(f"{path}: {error}") from None
    return Correction(whole.joint_names, whole.t, whole.reference, motion - whole.reference, errors)


def learn(
    arm: ElasticArm,
    last: Correction,
    measured: ArrayLike,
    settings: LearningSettings = DEFAULT,
    uncertainty: Uncertainty = USUAL,
    *,
    natural_frequency: float = 70.0,
) -> Correction:
    """Learn the correction for the next run.

    Args:
        arm: the arm.
        last: commanded motion of the last run.
        measured: (N, n) positions of the links in it, rad or m; or (R, N, n) of R runs, whose mean counts.
        settings, uncertainty, natural_frequency: as for :func:`contraction`.

    Raises:
        LearningError: the bound of :func:`contraction` is not below 1, or the last run was worse than the one before.
        LimitError: the corrected motion exceeds a limit that the reference meets.
        StateError: an argument has the wrong shape, is not finite or out of range, or the motion is not longer than a
            period of the bandwidth.
    """
    require_arm(arm)
    shape = last.reference.shape[1:]
    runs = real_array(measured, "measured")
    if runs.shape[-2:] != shape or runs.ndim not in (2, 3) or not np.isfinite(runs).all():
        raise StateError(f"measured must be finite and have shape {shape} or (R, {shape[0]}, {shape[1]})")
    duration = last.t[-1] - last.t[0]
    if settings.bandwidth * duration <= 1:
        raise StateError(
            f"bandwidth must be above {1 / duration:.3g} Hz for a motion of {duration:.3g} s, is {settings.bandwidth:g}"
        )
    error = runs.reshape(-1, *shape).mean(axis=0) - last.reference[0]
    rms = float(np.sqrt(np.mean(error**2)))
    if last.errors and rms > _WORSE * last.errors[-1]:
        raise LearningError(
            f"the error has grown from {last.errors[-1]:.3g} to {rms:.3g} rad or m since the last run: learning "
            "diverges; lower bandwidth or gain, or identify the model"
        )
    bound = contraction(arm, last.reference[0], settings, uncertainty, natural_frequency=natural_frequency)
    if not bound.ratio < 1:
        remedy = _largest_bandwidth(arm, last, settings, uncertainty, natural_frequency)
        raise LearningError(
            f"learning may diverge: with the assumed model errors ({_in_words(uncertainty)}), tracking errors may grow "
            f"by a factor of {bound.ratio:.3g} at {bound.frequency:.3g} Hz from run to run; {remedy}; or identify the "
            "model, and assume smaller errors"
        )
    target = settings.forgetting * last.correction[0] - settings.gain * error
    correction = Correction(
        last.joint_names, last.t, last.reference, spline_fit(last.t, target, settings.bandwidth), (*last.errors, rms)
    )
    _keep_limits(arm, last.reference, correction.motion)
    return correction


def contraction(
    arm: ElasticArm,
    positions: ArrayLike,
    settings: LearningSettings = DEFAULT,
    uncertainty: Uncertainty = USUAL,
    *,
    natural_frequency: float = 70.0,
) -> Contraction:
    """Bound of the ratio of errors from run to run, over all signs of the errors of the model.

    The arm is linear around each pose, with its inertia, gravity and springs, at rest; friction and Coriolis efforts
    are not part of it.

    Args:
        arm: the arm, in the reduced rotor model.
        positions: (N, n), rad or m, of the motion.
        settings: bandwidth, gain and forgetting.
        uncertainty: of the model.
        natural_frequency: of the motors' PD, rad/s.

    Raises:
        LearningError: a motor has no rotor inertia.
    """
    require_arm(arm)
    w0 = not_negative(natural_frequency, "natural_frequency")
    q = real_array(positions, "positions")
    if not arm.motor_inertia.all():
        massless = dict.fromkeys(arm.robot.joint_names[joint] for joint in arm.motor_joint[arm.motor_inertia == 0])
        raise LearningError(
            f"{listed(massless)}: rotor inertia is 0, but learning takes the gains of the motor's PD from it; write "
            "rotor_inertia of the joint into the robot's parameter file (eom_dynamics inspect my_arm.urdf --template)"
        )
    poses = q[:: max(1, len(q) // _POSES)]
    n, joint_of = arm.robot.n, arm.motor_joint
    K = arm.spring_set.tangents(np.zeros(len(joint_of)))[0]
    B = np.diag(arm.motor_inertia)
    E = np.eye(n)[joint_of]
    if arm.rigid.any():
        # Stiff for the bound: a hundred times the stiffest spring, or a frequency far above the bandwidth.
        stiff = 100 * max(float(np.max(K, initial=0.0)), float(np.max(arm.motor_inertia)) * 1e6)
        K = K + np.diag(np.where(arm.rigid[joint_of], stiff, 0.0))
    masses = np.atleast_3d(arm.dynamics.mass_matrix(poses))
    steps = 1e-6 * np.eye(n)
    gravity = np.stack([(arm.dynamics.gravity(poses + h) - arm.dynamics.gravity(poses - h)) / 2e-6 for h in steps], -1)
    omega = np.geomspace(0.02, 2.0, _FREQUENCIES) * 2 * np.pi * settings.bandwidth
    low_pass = _low_pass(omega / (2 * np.pi * settings.bandwidth))
    # (frequencies, poses, ., .); from c to joint efforts, motor positions and motor efforts of the model.
    s = 1j * omega[:, np.newaxis, np.newaxis, np.newaxis]
    tau = s**2 * masses + gravity
    theta = E + np.linalg.solve(K, E @ tau)
    command = (s**2 + w0**2 + 2 * w0 * s) * B @ theta + E @ tau
    zero, worst = np.zeros((*command.shape[:2], n, n)), Contraction(0.0, 0.0)
    for stiffness, mass, rotor, delay in product(*((-x, x) if x else (0.0,) for x in vars(uncertainty).values())):
        Kr = (1 + stiffness) * K
        links = (1 + mass) * tau + E.T @ Kr @ E
        motors = s**2 * (1 + rotor) * B + (w0**2 + 2 * w0 * s) * B + Kr
        across = np.broadcast_to(-Kr @ E, command.shape)
        motors = np.broadcast_to(motors, (*command.shape[:-1], len(joint_of)))
        left = np.block([[links, np.swapaxes(across, -1, -2)], [across, motors]])
        P = np.linalg.solve(left, np.concatenate([zero, np.exp(-s * delay) * command], axis=-2))[..., :n, :]
        change = np.linalg.norm(settings.forgetting * np.eye(n) - settings.gain * P, 2, axis=(-2, -1))
        ratios = low_pass * np.max(change, axis=1)
        k = int(np.argmax(np.nan_to_num(ratios, nan=np.inf)))
        if not ratios[k] <= worst.ratio:
            worst = Contraction(float(ratios[k]), float(omega[k]) / (2 * np.pi))
    return worst


def _largest_bandwidth(
    arm: ElasticArm, last: Correction, settings: LearningSettings, uncertainty: Uncertainty, natural_frequency: float
) -> str:
    """Say which bandwidth converges, to 2 %."""
    least = 1 / (last.t[-1] - last.t[0])
    low, high = least, settings.bandwidth
    while high > 1.02 * low:
        middle = float(f"{np.sqrt(low * high):.3g}")
        tried = replace(settings, bandwidth=middle)
        bound = contraction(arm, last.reference[0], tried, uncertainty, natural_frequency=natural_frequency)
        low, high = (middle, high) if bound.ratio < 1 else (low, middle)
    if low == least:
        return f"no bandwidth above {least:.3g} Hz converges with gain {settings.gain:g}"
    return f"lower the bandwidth: with gain {settings.gain:g}, up to {low:.3g} Hz converge"


def _in_words(uncertainty: Uncertainty) -> str:
    """Errors of the model that are not zero."""
    units = {"delay": (1e3, "ms")}
    return ", ".join(
        f"{name.replace('_', ' ')} ± {x * scale:.3g} {unit}"
        for name, x in vars(uncertainty).items()
        for scale, unit in [units.get(name, (100.0, "%"))]
        if x
    )


def _low_pass(x: Array) -> Array:
    """Response of the least-squares spline at frequencies in units of the bandwidth.

    Approximation of M. Unser, A. Aldroubi, M. Eden, "Polynomial spline signal approximations: filter design and
    asymptotic equivalence with Shannon's sampling theorem", IEEE Trans. Inf. Theory 38 (1992), of the first alias.
    """
    other = np.maximum(2.0 - x, 1e-9)
    return 1.0 / (1.0 + (x / other) ** (2 * (_DEGREE + 1)))


def spline_basis(t: Array, bandwidth: float) -> Array:
    """Splines (N, p) at times (N,) with knots at half the period of the bandwidth."""
    knots = _knots(t, bandwidth)
    return BSpline.design_matrix(t, knots, _DEGREE).toarray()


def spline_fit(t: Array, values: Array, bandwidth: float, *, at_rest: bool = True) -> Array:
    """Spline (5, N, n) nearest to values (N, n), with the knots of :func:`spline_basis`.

    ``at_rest``, it begins at zero, where the arm is on the reference, and its derivatives vanish at both ends: drives
    hold the last command.
    """
    basis = spline_basis(t, bandwidth)
    fixed = len(STATE_NAMES)
    if at_rest:
        # The first coefficients are zero, the last ones are equal.
        basis = np.hstack([basis[:, fixed:-fixed], basis[:, -fixed:].sum(axis=1, keepdims=True)])
    coefficients = np.linalg.lstsq(basis, values, rcond=None)[0]
    if at_rest:
        coefficients = np.pad(np.pad(coefficients, ((fixed, 0), (0, 0))), ((0, fixed - 1), (0, 0)), mode="edge")
    spline = BSpline(_knots(t, bandwidth), coefficients, _DEGREE)
    return np.stack([spline(t, nu=k) for k in range(len(STATE_NAMES))])


def _knots(t: Array, bandwidth: float) -> Array:
    pieces = max(1, int(np.ceil(2 * bandwidth * (t[-1] - t[0]))))
    return np.concatenate([[t[0]] * _DEGREE, np.linspace(t[0], t[-1], pieces + 1), [t[-1]] * _DEGREE])


def _keep_limits(arm: ElasticArm, reference: Array, motion: Array) -> None:
    """Raise LimitError where a corrected motion exceeds limits that the reference meets."""
    check = LimitCheck(arm)
    if not check.limited:
        return
    before = {(x.name, x.quantity): x.ratio for x in check.violations(reference, arm.feedforward(*reference))}
    for worst in check.violations(motion, arm.feedforward(*motion)):
        if worst.ratio > before.get((worst.name, worst.quantity), 1.0) * (1 + TOLERANCE):
            raise worst.error(f"the corrected motion exceeds limits: {worst}; lower the gain, or slow the motion down")
