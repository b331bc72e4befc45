# SPDX-License-Identifier: Apache-2.0
"""Efforts that fade to zero."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..exceptions import StateError
from ..messages.setpoint_to_command import EvaluatedSetpoint
from ..trajectory.smooth_step import falling


class Fade(NamedTuple):
    """Factor of efforts and its first two time derivatives, 1/s and 1/s²."""

    w: float
    wd: float
    wdd: float

    def of(self, solution: EvaluatedSetpoint) -> EvaluatedSetpoint:
        """A command with faded efforts; motor motion remains. Leibniz' rule up to the second derivative.

        Raises:
            StateError: a derivative of the efforts is not finite, since the command's numbers are too large.
        """
        w, wd, wdd = self
        tau, taud, taudd = solution.efforts
        efforts, motors = solution.efforts.copy(), solution.motors.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            efforts[0] = w * tau
            efforts[1] = w * taud + wd * tau
            efforts[2] = w * taudd + 2 * wd * taud + wdd * tau
        if not np.isfinite(efforts).all():
            raise StateError("numbers too large: derivatives of fading efforts would be infinite")
        motors[-1] *= w
        return solution._replace(efforts=efforts, motors=motors)


def fade(s: float, duration: float) -> Fade:
    """Factor 1 - 10 u³ + 15 u⁴ - 6 u⁵ with u = s/duration, twice continuously differentiable, in [0, 1].

    Args:
        s: time since the start, s.
        duration: s; afterwards the factor is zero.
    """
    return Fade(*falling(s, duration))
