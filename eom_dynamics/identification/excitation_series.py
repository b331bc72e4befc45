# SPDX-License-Identifier: Apache-2.0
"""Finite Fourier series, linear in their parameters, at rest at the ends of each period."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..exceptions import TrajectoryError
from ..trajectory import Fourier

FEWEST_HARMONICS = 3
"""Two conditions of rest act on the sines, and two on the cosines: with fewer harmonics nothing moves."""

MOST_HARMONICS = 50


class RestSeries:
    """Fourier series of L harmonics whose qd, qdd, qddd and qdddd are zero at the ends of each period.

    In the series of :class:`.Fourier`,

        q(t) = q0 + sum over l of a_l/(w l) sin(w l t) - b_l/(w l) cos(w l t),

    velocity and jerk at t = 0 are sums of a_l and l² a_l, acceleration and snap sums of l b_l and l³ b_l. Orthonormal
    bases of the vectors that these four conditions leave, L - 2 sines and L - 2 cosines, take the place of a and b:

        a = scale A p,    b = scale B r,    with the parameters z = (q0, p, r), (n, 2 L - 3).

    Every z is a motion at rest at its ends, continuous up to the snap when it is repeated, and no ramps are required.

    Attributes:
        frequency: f = w/(2 pi), Hz.
        harmonics: L.
        scale: (n,) rad/s or m/s.
    """

    def __init__(self, frequency: float, harmonics: int, scale: Array) -> None:
        """Set the attributes of the class.

        Raises:
            TrajectoryError: there are too few or too many harmonics.
        """
        if harmonics != int(harmonics) or not FEWEST_HARMONICS <= harmonics <= MOST_HARMONICS:
            raise TrajectoryError(
                f"harmonics must be an integer from {FEWEST_HARMONICS} to {MOST_HARMONICS}, is {harmonics}"
            )
        self.frequency, self.harmonics, self.scale = float(frequency), int(harmonics), scale
        each = np.arange(1, self.harmonics + 1, dtype=float)
        self._sine, self._cosine = _complement(each**0, each**2), _complement(each, each**3)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameters z."""
        return len(self.scale), 2 * self.harmonics - 3

    def trajectory(self, z: Array, periods: int = 1) -> Fourier:
        """Trajectory of the series with parameters z."""
        half = self._sine.shape[1]
        scale = self.scale[:, np.newaxis]
        sine, cosine = scale * z[:, 1 : 1 + half] @ self._sine.T, scale * z[:, 1 + half :] @ self._cosine.T
        return Fourier(self.frequency, sine, cosine, z[:, 0], periods=periods)

    def matrices(self, t: Array, order: int) -> Array:
        """Matrices (order + 1, K, 2 L - 3) such that the k-th derivative of q - q0 at times t is scale (F_k zᵀ)ᵀ.

        The first column, of q0, is zero.
        """
        w = 2 * np.pi * self.frequency * np.arange(1, self.harmonics + 1)
        angle = t[:, np.newaxis] * w
        result = np.zeros((order + 1, len(t), self.shape[1]))
        half = self._sine.shape[1]
        for k in range(order + 1):
            # sin(x + k pi/2) is the k-th derivative of sin(x).
            result[k, :, 1 : 1 + half] = (w ** (k - 1) * np.sin(angle + k * np.pi / 2)) @ self._sine
            result[k, :, 1 + half :] = -(w ** (k - 1) * np.cos(angle + k * np.pi / 2)) @ self._cosine
        return result

    def states(self, z: Array, matrices: Array) -> Array:
        """q and its derivatives (order + 1, K, n) from :meth:`matrices`."""
        states: Array = np.einsum("okm,nm->okn", matrices, z * self.scale[:, np.newaxis])
        states[0] += z[:, 0]
        return states

    def parameter_gradient(self, of_states: Array, matrices: Array) -> Array:
        """Gradients (…, n, 2 L - 3) with respect to z, from those (…, order + 1, K, n) with respect to the states."""
        gradient: Array = np.einsum("...okn,okm->...nm", of_states, matrices) * self.scale[:, np.newaxis]
        gradient[..., 0] = np.sum(of_states[..., 0, :, :], axis=-2)
        return gradient


def _complement(*conditions: Array) -> Array:
    """Orthonormal basis (L, L - number of conditions) of the vectors that are orthogonal to all conditions (L,)."""
    rows = np.stack([row / np.linalg.norm(row) for row in conditions])
    complete = np.linalg.qr(rows.T, mode="complete")[0]
    return complete[:, len(rows) :]
