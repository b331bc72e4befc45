# SPDX-License-Identifier: Apache-2.0
"""The loss of a gear."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..jet import Jet
from .checks import positive, refuse
from .series import exponential, hyperbolic_tangent

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gear:
    """A gear that loses a share of the power it passes on, each parameter one number or one a motor.

    A motor that drives its load gives tau/eta for an effort tau behind the gear; one that brakes gives tau eta, for
    the gear's loss brakes with it. Smoothing: the exponent is -tanh(P/P_0) instead of the sign of the power P =
    tau v, so that the effort is smooth as the power changes sign; above 3 P_0 it is within 0.5 % of the exponent 1.

    Attributes:
        efficiency: eta, 0 < eta <= 1.
        smoothing_power: P_0 > 0, W.
    """

    efficiency: float | Array = 1.0
    smoothing_power: float | Array = 0.1

    def __post_init__(self) -> None:
        """Raises RobotDescriptionError where the efficiency is not above 0 and up to 1, or P_0 not positive."""
        positive("efficiency", self.efficiency)
        if np.any(np.greater(self.efficiency, 1)):
            refuse("efficiency", f"must not exceed 1, is {self.efficiency}")
        positive("smoothing_power", self.smoothing_power)

    @property
    def is_lossless(self) -> bool:
        """Whether all power passes."""
        return bool(np.all(np.equal(self.efficiency, 1)))

    def load(self, tau: Array, velocity: Array) -> Array:
        """What the motor gives before the gear for an effort behind it, N m (N), both on the link side.

        Args:
            tau: effort behind the gear.
            velocity: of the gear, rad/s (m/s).
        """
        return tau * np.power(self.efficiency, -np.tanh(tau * velocity / self.smoothing_power))

    def load_series(self, tau: Jet, velocity: Jet) -> Jet:
        """The same with as many time derivatives as both have."""
        power = hyperbolic_tangent((tau * velocity) * (1 / self.smoothing_power))
        return tau * exponential(power * -np.log(self.efficiency))


LOSSLESS = Gear()
"""No loss."""
