# SPDX-License-Identifier: Apache-2.0
"""Gear loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..elementary import exp_times
from ..jet import Jet
from ..jet_functions import exponential, hyperbolic_tangent
from .checks import positive, refuse


@dataclass(frozen=True, eq=False)
class Gear:
    """Gear with an efficiency, each parameter one number or (m,) for m motors.

    For an effort tau behind the gear, a driving motor gives tau/eta; a braking one gives tau eta, since the loss brakes
    too. The exponent is -tanh(P/P_0) instead of the sign of the power P = tau v, so that the effort is smooth where the
    power changes sign; above 3 P_0 the exponent is within 0.5 % of 1.

    Attributes:
        efficiency: eta, 0 < eta <= 1.
        smoothing_power: P_0 > 0, W.
    """

    efficiency: float | Array = 1.0
    smoothing_power: float | Array = 0.1

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError unless 0 < eta <= 1 and P_0 > 0."""
        positive("efficiency", self.efficiency)
        if np.any(np.greater(self.efficiency, 1)):
            refuse("efficiency", f"must not exceed 1, is {self.efficiency}")
        positive("smoothing_power", self.smoothing_power)

    @property
    def is_lossless(self) -> bool:
        """Whether the efficiency is 1."""
        return bool(np.all(np.equal(self.efficiency, 1)))

    def load_jet(self, tau: Jet, velocity: Jet) -> Jet:
        """Effort before the gear for an effort behind it, N m (N), both on the link side, with time derivatives.

        Args:
            tau: effort behind the gear.
            velocity: velocity of the gear, rad/s (m/s).
        """
        power = hyperbolic_tangent((tau * velocity) * (1 / self.smoothing_power))
        rate = -np.log(self.efficiency)
        return tau * exponential(power * rate, exp_times(power[0], rate))

    def load(self, tau: Array, velocity: Array) -> Array:
        """:meth:`load_jet` for efforts and velocities (…,), or (…, m) for m motors."""
        return np.asarray(self.load_jet(Jet([tau]), Jet([velocity]))[0])


LOSSLESS = Gear()
"""Gear without loss."""
