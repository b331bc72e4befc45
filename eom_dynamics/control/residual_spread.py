# SPDX-License-Identifier: Apache-2.0
"""Spread of external efforts by its causes: errors of inertia and of effort scale, noise of efforts and velocities."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..dynamics import Dynamics
from ..exceptions import StateError
from ..identification.sampling import LowPass, correlation_time
from .external_effort import ExternalEffortObserver, ObservedEfforts

_FEWEST = 1000  # samples of a motion without contact
_STATES = 2000  # of these at which causes are evaluated
_SPEEDS = 4  # parts of the samples by speed


class ResidualSpread:
    """Prediction bounds of an observer's residual, from a motion without contact.

    The residual is A d + e. Errors d of inertial parameters, and of scale and offset of efforts, have the uncertainty
    of the robot's file before the motion, and the mean and covariance of linear regression after it: uncertainty
    remains in directions that the motion does not show. Noise e has the variance
    (c_i² + sum over j of M_ij² s_j²) g_i(abs(qd_i)): of efforts, of velocities through the momentum, and by speed.

    Attributes:
        correlation: (n,) of noise in successive samples.
        freedom: (n,) degrees of freedom of its variance.
    """

    def __init__(self, observer: ExternalEffortObserver, found: ObservedEfforts) -> None:
        """Fit to what an observer found along a motion; raises StateError if it is too short."""
        used = found.settled
        if np.count_nonzero(used) < _FEWEST:
            raise StateError(f"quiet must have {_FEWEST} settled samples, has {np.count_nonzero(used)}")
        self._robot, self._dynamics, self._period = observer.arm.robot, observer.arm.dynamics, found.period
        r, q, qd = found.external[used], found.q[used], found.qd[used]
        w = float(np.mean(observer.bandwidth))
        smooth = LowPass(found.period, min(w / (2 * np.pi), 0.1 / found.period)).whole(qd)
        qdd = np.gradient(smooth, found.period, axis=0)
        self._acceleration = np.abs(qdd).max(axis=0)
        self._offset = np.sqrt(np.mean(r**2, axis=0))
        # A residual of order 1 is 1/w late.
        late = round(1 / (w * found.period)) if observer.order == 1 else 0
        every = -(-len(r) // _STATES)
        at = np.arange(late, len(r) - every, every) + every // 2
        means = np.mean([r[at - every // 2 + k] for k in range(every)], axis=0)
        A = self._columns(*(x[at - late] for x in (q, smooth, qdd)))
        noise = r
        for _ in range(3):
            weight = every / (np.mean(noise**2, axis=0) * correlation_time([noise]))
            self._covariance = np.linalg.inv(np.einsum("kip,kir,i->pr", A, A, weight) + np.eye(A.shape[-1]))
            self._mean = self._covariance @ np.einsum("kip,ki->p", A, weight * means)
            noise = r - _between(at, A @ self._mean, len(r))
        self._fit_noise(noise, np.abs(qd), self._dynamics.mass_matrix(q[at]), at)

    def _columns(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Columns A (N, n, P) of errors that have a deviation of 1 before the motion."""
        eye = np.eye(self._robot.n)
        masses = error_columns(self._dynamics, q, qd, qdd)
        effort = self._robot.uncertainty.stiffness * self._dynamics.effort(q, qd, qdd)
        offset = np.broadcast_to(self._offset * eye, (len(q), *eye.shape))
        return np.concatenate([masses, effort[..., np.newaxis] * eye, offset], axis=-1)

    def _fit_noise(self, noise: Array, speed: Array, M: Array, at: NDArray[np.intp]) -> None:
        """Fit variances to noise (K, n) by non-negative least squares, M (N, n, n) at samples ``at``; then by speed."""
        from scipy.optimize import nnls

        n, mean = noise.shape[1], np.mean(noise**2, axis=0)
        blocks = np.add.reduceat(noise**2, at)[:-1] / np.diff(at)[:, np.newaxis] / mean
        eye = np.broadcast_to(np.eye(n), M.shape)
        rows = np.concatenate([eye, M**2 / mean[:, np.newaxis]], axis=-1)[:-1]
        length = np.sqrt(np.mean(rows**2, axis=(0, 1)))
        self._noise = nnls((rows / length).reshape(-1, 2 * n), blocks.ravel())[0] / length
        self._noise[:n] *= mean
        z = noise / np.sqrt(_between(at, self._variance(M), len(noise)))
        self._by_speed = []
        for v, x in zip(speed.T, z.T, strict=True):
            parts = np.array_split(np.argsort(v, kind="stable"), _SPEEDS)
            self._by_speed.append(np.array([(np.median(v[k]), np.mean(x[k] ** 2)) for k in parts]).T)
        z /= np.sqrt(self._of_speed(speed))
        self.correlation = np.clip(np.mean(z[1:] * z[:-1], axis=0) / np.mean(z**2, axis=0), -0.99, 1 - 1e-9)
        self.freedom = len(z) / _SPEEDS / correlation_time([z**2 - np.mean(z**2, axis=0)])

    def _variance(self, M: Array) -> Array:
        n = M.shape[-1]
        return np.asarray(self._noise[:n] + M**2 @ self._noise[n:])

    def _of_speed(self, speed: Array) -> Array:
        return np.stack([np.interp(v, *rows) for v, rows in zip(speed.T, self._by_speed, strict=True)], axis=1)

    def level(self, false_alarms: float) -> Array:
        """Standard deviations (n,) that are crossed as often per hour; raises StateError if noise varies too slowly."""
        from scipy.special import owens_t, stdtrit

        share = false_alarms * self._period / 3600 / len(self.correlation)
        a = np.sqrt((1 - self.correlation) / (1 + self.correlation))
        most = float(np.arctan(a).min()) * 2 / np.pi  # 4 T(0, a)
        if share >= most:
            raise StateError(f"false_alarms must be less than {false_alarms * most / share:.3g}, is {false_alarms:g}")
        low, high = np.zeros_like(a), np.full_like(a, 30.0)
        for _ in range(50):
            x = (low + high) / 2
            more = 4 * owens_t(x, a) > share
            low, high = np.where(more, x, low), np.where(more, high, x)
        return np.asarray(-stdtrit(self.freedom, [NormalDist().cdf(-y) for y in x.tolist()]))

    def at(self, q: Array, qd: Array, qdd: Array | None = None) -> tuple[Array, Array]:
        """Size of the mean, and standard deviation (N, n) of the residual at states (N, n)."""
        zero = np.zeros_like(q)
        A = self._columns(q, qd, zero if qdd is None else qdd)
        variance = self._variance(self._dynamics.mass_matrix(q)) * self._of_speed(np.abs(qd))
        variance += np.einsum("kip,pr,kir->ki", A, self._covariance, A, optimize=True)
        for a in np.diag(self._acceleration) if qdd is None else ():
            B = self._columns(q, zero, zero + a) - self._columns(q, zero, zero)
            variance += np.square(B @ self._mean) + np.einsum("kip,pr,kir->ki", B, self._covariance, B, optimize=True)
        return np.abs(A @ self._mean), np.sqrt(variance)


def error_columns(dynamics: Dynamics, q: Array, qd: Array, qdd: Array) -> Array:
    """Efforts (N, n, P) by errors of inertia of deviation 1, as ``uncertainty.mass`` of the file bounds them.

    Of each parameter, in units of mass and radius of gyration of its link, and of all masses together.
    """
    Y, pi = dynamics.regressor(q, qd, qdd), dynamics.inertial_parameters
    rows = pi.reshape(-1, 10)
    radius = np.sqrt(np.maximum(rows[:, [4, 7, 9]].sum(axis=1), 0) / (2 * np.maximum(rows[:, 0], 1e-300)))
    powers = radius[:, np.newaxis] ** [0, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    columns = np.concatenate([Y * (rows[:, :1] * powers).ravel(), (Y @ pi)[..., np.newaxis]], axis=-1)
    return np.asarray(dynamics.robot.uncertainty.mass * columns)


def _between(at: NDArray[np.intp], rows: Array, count: int) -> Array:
    """Rows (N, n) at samples ``at``, linear for all samples (count, n) between."""
    return np.stack([np.interp(np.arange(count), at, x) for x in rows.T], axis=1)
