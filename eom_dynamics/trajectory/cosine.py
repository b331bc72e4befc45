# SPDX-License-Identifier: Apache-2.0
"""Cosine trajectories, and the iiwa example of the paper.

In A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid body systems", Multibody
System Dynamics 53 (2021), the joint variables are q_i = A_i cos(w_i t), and all components of the tool wrench are
10 sin(pi t).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array

_PAPER_AMPLITUDES = (
    -1.2943753211777664,
    0.7175341454355011,
    -0.5691380764966176,
    0.5848944158627155,
    1.6216297151633214,
    -0.9187855709752027,
    0.4217605991935227,
)
_PAPER_FREQUENCIES = (
    1.7073873117335832,
    3.079992797637052,
    2.1084514453622774,
    3.5903916041026207,
    1.4183262544423447,
    2.285625793808507,
    5.927533308659986,
)


class Cosine:
    """Cosine motion x_i = A_i cos(w_i t + phi_i) with n components, without start and end."""

    def __init__(self, amplitude: ArrayLike, frequency: ArrayLike, phase: ArrayLike = 0.0) -> None:
        """Set amplitude A, angular frequency w in rad/s and phase phi in rad, each a number or (n,)."""
        self.amplitude, self.frequency, self.phase = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(value, dtype=float)) for value in (amplitude, frequency, phase))
        )
        self.n, self.start, self.end = len(self.amplitude), -np.inf, np.inf

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """x and its time derivatives up to ``order``: the k-th is A_i w_i^k cos(w_i t + phi_i + k pi/2).

        Args:
            t: a time or times (N,), s.
            order: of the highest derivative.

        Returns:
            ``order`` + 1 arrays, each (n,) for a time or (N, n) for N times.
        """
        angle = np.asarray(t, dtype=float)[..., np.newaxis] * self.frequency + self.phase
        cos, sin = np.cos(angle), np.sin(angle)
        # Each derivative shifts the phase by pi/2, here without rounding.
        turned = (cos, -sin, -cos, sin)
        return tuple(self.amplitude * self.frequency**k * turned[k % 4] for k in range(order + 1))


def paper_motion(n: int = 7) -> Cosine:
    """Joint motion of the paper's iiwa example, rad; for n joints, the seven components are truncated or repeated."""
    return Cosine(np.resize(_PAPER_AMPLITUDES, n), np.resize(_PAPER_FREQUENCIES, n))


def paper_wrench(tools: int = 1) -> Cosine:
    """Tool wrench of the paper's iiwa example, 10 sin(pi t) in all six components, N m and N; the same at all tools.

    Its figures of efforts take this wrench, and inertias about the link frames: ``inertia_reference="link"``.
    """
    return Cosine(np.full(6 * tools, 10.0), np.pi, -np.pi / 2)
