# SPDX-License-Identifier: Apache-2.0
"""Shares of the tracking error of repeated runs: noise, parameters of the model, and disturbances that repeat.

The deviation e of the links from the commanded motion is zero for an exact model without disturbance. Of R runs, each
with p coefficients of e on splines up to the bandwidth, s² is the variance between runs and M the mean square of their
mean, so that M - s²/R repeats. Since drives with a PD equate the command h = tau_m + kp theta + kd thetad of the model
for the commanded motion with that of the real arm for the measured one,

    r = h(measured) - h(commanded) = X b,

linear in the errors b of the model's inertial parameters, compliances, rotors, friction, and delay, to first order.
What the regression of r on X leaves beyond the noise is a disturbance that repeats. The test is that of a regression,
G. A. F. Seber, A. J. Lee, "Linear Regression Analysis" (2003), section 4.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import f as f_distribution

from ..arguments import not_negative, positive
from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.elastic_arm import require_arm
from ..exceptions import StateError
from ..states import real_array
from .iteration import Correction, spline_basis, spline_fit

_LEVEL = 0.01  # significance of both tests

# Directions of parameters that are weaker than this, of columns of norm 1, are not told apart by the motion.
_WEAK = 1e-2

_LEAST_NOISE = 1e-40  # variance of coefficients that stands for none, in all units
_SIGN = 0.02  # velocity over which dry friction changes its sign, of the largest


class ErrorShares(NamedTuple):
    """Shares of the mean square error of a joint, up to the bandwidth of learning.

    Attributes:
        joint: name.
        rms: of the deviation from the commanded motion, over all runs, rad or m.
        repeating: share that repeats from run to run, 0 to 1.
        deviation: standard deviation of this share.
        repeats: whether it is more than chance.
        explained: share of what repeats that errors of model parameters explain, as a change of the motor's command, 0
            to 1; NaN where this cannot be told.
        F: of the regression on model parameters.
    """

    joint: str
    rms: float
    repeating: float
    deviation: float
    repeats: bool
    explained: float
    F: float


def error_shares(
    arm: ElasticArm, last: Correction, measured: ArrayLike, bandwidth: float, *, natural_frequency: float = 70.0
) -> tuple[ErrorShares, ...]:
    """Split the error of repeated runs of a motion, joint by joint.

    Args:
        arm: the arm; that model parameters explain an error can be told with one motor at each joint.
        last: commanded motion.
        measured: (R, N, n) positions of the links in at least two runs, rad or m.
        bandwidth: Hz.
        natural_frequency: of the motors' PD, rad/s.

    Raises:
        StateError: there are fewer than two runs, or an argument has the wrong shape, is not finite or out of range.
    """
    require_arm(arm)
    runs = real_array(measured, "measured")
    if runs.ndim != 3 or len(runs) < 2 or runs.shape[1:] != last.motion.shape[1:] or not np.isfinite(runs).all():
        raise StateError(f"measured must be finite and of two or more runs (R, {len(last.t)}, {arm.robot.n})")
    w0, t = not_negative(natural_frequency, "natural_frequency"), last.t
    # Higher derivatives of a spline are weakly determined near its ends.
    margin = min(1 / positive(bandwidth, "bandwidth"), 0.1 * (t[-1] - t[0]))
    inside = slice(*np.searchsorted(t, [t[0] + margin, t[-1] - margin]))
    basis = np.linalg.qr(spline_basis(t[inside], bandwidth))[0]
    deviations = runs - last.motion[0]
    noise, repeating = _variances(basis, deviations[:, inside])
    count, p = len(runs), basis.shape[1]
    mean = repeating + noise / count
    total = repeating + noise
    tests = f_distribution.sf(count * mean / noise, p, (count - 1) * p)
    spread = noise**2 * (4 * repeating * noise / count + 2 * noise**2 / count**2) / p
    spread += mean**2 * 2 * noise**2 / ((count - 1) * p)
    explained, F = _explained(arm, last, deviations, bandwidth, w0, inside, basis)
    rms = np.sqrt(np.mean(deviations**2, axis=(0, 1)))
    columns = (rms, repeating / total, np.sqrt(spread) / total**2, tests < _LEVEL, explained, F)
    rows = zip(last.joint_names, *(x.tolist() for x in columns), strict=True)
    return tuple(ErrorShares(*row) for row in rows)


def _variances(basis: Array, runs: Array) -> tuple[Array, Array]:
    """Mean squares (n,) of coefficients of runs (R, N, n): between the runs, and of what repeats."""
    coefficients = basis.T @ runs
    count, p = len(runs), basis.shape[1]
    noise = np.sum((coefficients - coefficients.mean(axis=0)) ** 2, axis=(0, 1)) / ((count - 1) * p)
    # Noise-free runs, of a simulation, repeat exactly.
    noise = np.maximum(noise, _LEAST_NOISE)
    return noise, np.maximum(np.mean(coefficients.mean(axis=0) ** 2, axis=0) - noise / count, 0.0)


def _explained(
    arm: ElasticArm, last: Correction, deviations: Array, bandwidth: float, w0: float, inside: slice, basis: Array
) -> tuple[Array, Array]:
    """Shares (n,) of what repeats that model parameters explain, and F (n,)."""
    n, count, p = arm.robot.n, len(deviations), basis.shape[1]
    unknown = np.full(n, np.nan), np.full(n, np.nan)
    if arm.paired.any() or arm.coupled is not None or arm.transmission is not None or arm.rotors is not None:
        return unknown
    inertia = arm.motor_inertia + np.where(arm.rigid, np.diagonal(arm.dynamics.mass_matrix(last.motion[0, 0])), 0.0)
    kp, kd = w0**2 * inertia, 2 * w0 * inertia

    def command(motion: Array) -> Array:
        y = arm.feedforward(*motion)
        return (y.motor_effort + kp * y.motor_position + kd * y.motor_velocity)[inside]

    known = command(last.motion)
    smoothed = [spline_fit(last.t, run, bandwidth, at_rest=False) for run in deviations]
    residuals = np.stack([command(last.motion + x) for x in smoothed]) - known
    noise, repeating = _variances(basis, residuals)
    r = basis.T @ residuals.mean(axis=0)
    scale = np.sqrt(np.mean(r**2, axis=0) + _LEAST_NOISE)
    # At the commanded motion: the measured one has the disturbance in its derivatives, which would explain itself.
    X = (_columns(arm, last.motion, kp, kd, last.t[1] - last.t[0])[..., inside] @ basis) / scale[:, np.newaxis]
    X = X.reshape(len(X), n * p)
    X = X[np.linalg.norm(X, axis=1) > 0]
    X /= np.linalg.norm(X, axis=1)[:, np.newaxis]
    _, sizes, directions = np.linalg.svd(X, full_matrices=False)
    directions = directions[sizes > _WEAK * sizes[0]]
    size = len(directions) / n
    if size >= p:
        return unknown
    goal = (r / scale).T.ravel()
    left = ((goal - directions.T @ (directions @ goal)).reshape(n, p).T * scale) ** 2
    rest = left.sum(axis=0) / (p - size)
    F = (np.sum(r**2, axis=0) - left.sum(axis=0)) / size / np.maximum(rest, _LEAST_NOISE)
    share = 1 - np.maximum(rest - noise / count, 0.0) / np.maximum(repeating, _LEAST_NOISE)
    significant = f_distribution.sf(F, size, p - size) < _LEVEL
    return np.where(significant, np.clip(share, 0.0, 1.0), 0.0), F


def _columns(arm: ElasticArm, motion: Array, kp: Array, kd: Array, step: float) -> Array:
    """Changes (parameters, n, N) of the motors' commands with parameters of the model, at a motion (5, N, n)."""
    y, B, c = arm.feedforward(*motion), arm.motor_inertia, 1 / arm.stiffness
    joints = np.eye(arm.robot.n)[:, np.newaxis]

    def on_motors(Y: Array, Yd: Array, Ydd: Array) -> Array:
        """From joint efforts (..., n) and their derivatives."""
        return Y + c * (B * Ydd + kp * Y + kd * Yd)

    bodies = on_motors(*(np.moveaxis(Y, -1, 0) for Y in arm.dynamics.regressor_derivatives(*motion)))
    speed = y.motor_velocity
    turn = np.tanh(speed / (_SIGN * np.abs(speed).max(axis=0) + np.finfo(float).tiny))
    springs = np.where(arm.rigid, 0.0, B * y.taudd + kp * y.tau + kd * y.taud)
    whole = y.motor_effort + kp * y.motor_position + kd * speed
    late = np.gradient(whole, step, axis=0)[np.newaxis]
    alone = [joints * x for x in (springs, y.motor_acceleration, speed, turn)]
    return np.concatenate([bodies, *alone, late]).transpose(0, 2, 1)
