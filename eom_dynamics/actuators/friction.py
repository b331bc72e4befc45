# SPDX-License-Identifier: Apache-2.0
"""Friction of motor and gear: viscous, Coulomb and Stribeck, smooth in the velocity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..jet import Jet
from ..jet_functions import exponential, hyperbolic_tangent, plus
from .checks import not_negative, positive, refuse


@dataclass(frozen=True, eq=False)
class Friction:
    """D v + (c + (s - c) exp(-(v/v_s)²)) tanh(v/v_0), each parameter one number or (m,) for m motors.

    B. Armstrong-Hélouvry, P. Dupont, C. Canudas de Wit, "A survey of models … for machines with friction", Automatica
    30 (1994), with the sign of the velocity replaced by tanh(v/v_0), so that all derivatives exist. Above 3 v_0 the
    effort is within 0.5 % of the law with the sign. Below, a loaded joint creeps where a real one sticks.

    Attributes:
        viscous: D, N m s/rad (N s/m), like all parameters on the link side of the gear.
        coulomb: c, N m (N).
        static: s >= c, breakaway effort, N m (N).
        stribeck_velocity: v_s > 0, at which s has fallen most of the way to c, rad/s (m/s).
        smoothing_velocity: v_0 > 0, rad/s (m/s).
    """

    viscous: float | Array = 0.0
    coulomb: float | Array = 0.0
    static: float | Array = 0.0
    stribeck_velocity: float | Array = 0.1
    smoothing_velocity: float | Array = 0.01

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if one is negative, or s is below c."""
        for name in ("viscous", "coulomb", "static"):
            not_negative(name, getattr(self, name))
        for name in ("stribeck_velocity", "smoothing_velocity"):
            positive(name, getattr(self, name))
        if np.any(np.less(self.static, self.coulomb)):
            refuse("static", f"must be at least coulomb, {self.coulomb}, is {self.static}")

    @property
    def is_none(self) -> bool:
        """Whether there is no friction at any velocity."""
        return not (np.any(self.viscous) or np.any(self.static))

    def effort(self, velocity: Array) -> Array:
        """Effort that the motor spends against friction, N m (N)."""
        stribeck = self.static - self.coulomb
        dry = self.coulomb + stribeck * np.exp(-np.square(velocity / self.stribeck_velocity))
        return self.viscous * velocity + dry * np.tanh(velocity / self.smoothing_velocity)

    def effort_jet(self, velocity: Jet) -> Jet:
        """Effort with as many time derivatives as the velocity has.

        Without the Stribeck term (s = c) entries may be symbols, too, anything with + - * and a hyperbolic tangent.
        """
        sign = hyperbolic_tangent(velocity * (1 / self.smoothing_velocity))
        if not np.any(np.asarray(self.static) - self.coulomb):
            return velocity * self.viscous + sign * self.coulomb
        square = velocity * velocity
        stribeck = exponential(square * (-1 / np.square(self.stribeck_velocity))) * (self.static - self.coulomb)
        return velocity * self.viscous + plus(stribeck, self.coulomb) * sign

    def slope(self, velocity: Array) -> Array:
        """Derivative of the effort with respect to the velocity."""
        bell = (self.static - self.coulomb) * np.exp(-np.square(velocity / self.stribeck_velocity))
        tanh = np.tanh(velocity / self.smoothing_velocity)
        belld = -2 * velocity / np.square(self.stribeck_velocity) * bell
        return self.viscous + belld * tanh + (self.coulomb + bell) * (1 - tanh**2) / self.smoothing_velocity


FRICTIONLESS = Friction()
"""No friction."""
