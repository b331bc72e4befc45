# SPDX-License-Identifier: Apache-2.0
"""Observer of external efforts by the matrices of the paper, step by step, as De Luca and Mattone (2005) write it."""

from collections.abc import Iterable

import numpy as np

import eom_dynamics as eom
from eom_dynamics.arrays import Array


def momentum_observer(
    robot: eom.Robot, bandwidth: float, samples: Iterable[tuple[float, Array, Array, Array]], steps: int = 1
) -> list[Array]:
    """Residuals r = L (p - integral of tau + C' qd - g + r) of samples t, q, qd, tau, integrated between them.

    Between samples tau + C' qd - g is linear in time, and dr/dt = L (tau_ext - r) is integrated in ``steps``.
    """
    last, r, found = None, np.zeros(robot.n), []
    for t, q, qd, tau in samples:
        terms = eom.equations_of_motion(robot, q, qd)
        M, C, gravity = terms.M[0], terms.C[0], terms.gravity[0]
        p, drive = M @ qd, tau + C.T @ qd - gravity
        if last is not None:
            h = (t - last[0]) / steps
            acting = (p - last[1]) / (t - last[0]) - (drive + last[2]) / 2
            for _ in range(steps):
                r = r + h * bandwidth * (acting - r)
        last = t, p, drive
        found.append(r)
    return found
