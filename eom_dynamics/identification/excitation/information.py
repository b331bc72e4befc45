# SPDX-License-Identifier: Apache-2.0
"""Information of a motion on the parameters to identify, and its gradient.

With efforts W beta + noise, W (K n, P) the regressor at K samples, rows divided by the standard deviations of the
noise, the information matrix is W^T W, and its inverse the covariance of the least-squares estimate. D-optimal motions
have the largest determinant: the smallest volume of the confidence ellipsoid, in any units of the parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from ...arrays import Array
from ..links.regressor import Regressor, random_states
from ..sampling import column_lengths

_STATES = 4  # random states that decide on independent columns, per column

_INDEPENDENT = 1e-7

# Step of central differences, as a share of 1 rad or m, or of the largest rate: errors of truncation and of rounding
# are at 1e-10. Without friction, the regressor is quadratic in qd and linear in qdd, and only rounding is left.
_STEP = 1e-5

_NORM = 8  # exponent of the norms that replace the largest and the smallest singular value


class Information(NamedTuple):
    """Information of a motion.

    Attributes:
        log_det: of the information matrix W^T W/K of a sample, rows of W in units of the noise of the efforts,
            parameters in SI units. It is comparable among motions of a robot only.
        condition: condition number of W, columns in SI units.
        scaled_condition: condition number of W with columns of unit length, which no units influence.
        smallest: smallest singular value of W/sqrt(K).
    """

    log_det: float
    condition: float
    scaled_condition: float
    smallest: float

    @classmethod
    def of(cls, W: Array, samples: int) -> Information:
        """Information of a regressor (K n, P) at K samples."""
        values = np.linalg.svd(W / np.sqrt(samples), compute_uv=False)
        scaled = float(np.linalg.cond(W / column_lengths(W)))
        with np.errstate(divide="ignore"):
            return cls(float(2 * np.sum(np.log(values))), float(values[0] / values[-1]), scaled, float(values[-1]))


class InformationModel:
    """Model of the information on a robot's base parameters and further joint terms.

    The noise (n,) of efforts, N m or N, is known up to a common factor. ``columns`` are the independent
    ones of the regressor: the rotor inertia of a joint, for example, often adds to the inertia of its body.
    """

    def __init__(self, regressor: Regressor, noise: Array) -> None:
        """Find the independent columns by QR with pivoting, in random states."""
        self.regressor, self.noise = regressor, noise
        count = len(regressor.names)
        W = regressor(*random_states(regressor.robot.n, _STATES * count, seed=1997)).reshape(-1, count)
        R, order = qr(W / column_lengths(W), mode="r", pivoting=True)
        self.columns: NDArray[np.intp] = np.sort(order[: np.sum(np.abs(np.diag(R)) > _INDEPENDENT)])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.regressor.names[k] for k in self.columns)

    def matrix(self, states: Array) -> Array:
        """W (K n, P) of q, qd, qdd (3, K, n)."""
        Y = self.regressor(*states)[..., self.columns] / self.noise[:, np.newaxis]
        return Y.reshape(-1, len(self.columns))

    def information(self, states: Array) -> Information:
        """Information of samples q, qd, qdd (3, K, n)."""
        return Information.of(self.matrix(states), states.shape[1])

    def cost(self, states: Array, condition_weight: float) -> tuple[float, Array]:
        """-log det(W^T W/K)/P + condition_weight log(condition number of W), and its gradient (3, K, n) by the states.

        Both are functions f of the singular values s of W = U S V^T, and the differential is <U f'(S) V^T, dW>. For
        the condition number, largest and smallest value are norms of s and 1/s that are differentiable where values
        coincide.
        """
        _, samples, n = states.shape
        W = self.matrix(states) / np.sqrt(samples)
        Q, R = np.linalg.qr(W)
        U, s, Vt = np.linalg.svd(R)
        if not s[-1] > np.finfo(float).tiny:
            return np.inf, np.zeros_like(states)
        parameters = len(s)
        high, low = (s / s[0]) ** _NORM, (s[-1] / s) ** _NORM
        condition = np.log(s[0] / s[-1]) + (np.log(np.sum(high)) + np.log(np.sum(low))) / _NORM
        value = float(-2 * np.sum(np.log(s)) / parameters + condition_weight * condition)
        slope = -2 / (parameters * s) + condition_weight * (high / np.sum(high) - low / np.sum(low)) / s
        of_W = ((Q @ (U * slope)) @ Vt).reshape(samples, n, -1) / (self.noise[:, np.newaxis] * np.sqrt(samples))
        gradient = np.empty_like(states)
        for k in range(3):
            step = _STEP * max(1.0, float(np.max(np.abs(states[k]))) if k else 1.0)
            for j in range(n):
                shifted = np.repeat(states[:, np.newaxis], 2, axis=1)
                shifted[k, 0, :, j] += step
                shifted[k, 1, :, j] -= step
                Y = self.regressor(*shifted.reshape(3, -1, n))[..., self.columns].reshape(2, samples, n, -1)
                gradient[k, :, j] = np.einsum("kip,kip->k", of_W, Y[0] - Y[1]) / (2 * step)
        return value, gradient
