# SPDX-License-Identifier: Apache-2.0
"""A spring whose stiffness is commanded over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...exceptions import StiffnessError
from ...jet import Jet
from ..checks import positive, refuse
from ..series import quotient
from .base import Array, Deflection


class VariableSpring:
    """tau = k(t) delta, k a command between two limits.

    Attributes:
        lower, upper: limits of k, 0 < lower <= upper, N m/rad (N/m).
        nominal: k where a command does not say it.
    """

    kind = "variable"
    parameters = ("lower", "upper", "nominal")

    def __init__(self, lower: ArrayLike, upper: ArrayLike, nominal: ArrayLike) -> None:
        """Raises RobotDescriptionError where a limit is not positive, or nominal is outside of them."""
        self.lower, self.upper = positive("lower", lower), positive("upper", upper)
        self.nominal = positive("nominal", nominal)
        if np.any(self.lower > self.upper):
            refuse("lower", f"must not exceed upper, {self.upper}, is {self.lower}")
        if np.any((self.nominal < self.lower) | (self.nominal > self.upper)):
            refuse("nominal", f"must lie within {self.lower} … {self.upper}, is {self.nominal}")

    def effort(self, delta: Array, k: Array) -> Array:
        """The effort k delta at the stiffness k."""
        return k * delta

    def energy(self, delta: Array, k: Array) -> Array:
        """k delta²/2; it also changes with k, by the work of what sets the stiffness."""
        return 0.5 * k * np.square(delta)

    def deflection(self, tau: Array, taud: Array, taudd: Array, k: Array, kd: Array, kdd: Array) -> Deflection:
        """tau = k delta and its time derivatives, solved for the deflection and its rates.

        delta = tau/k, deltad = (taud - kd delta)/k, deltadd = (taudd - kdd delta - 2 kd deltad)/k.

        Args:
            tau, taud, taudd: effort and its time derivatives.
            k, kd, kdd: stiffness and its time derivatives.

        Raises:
            StiffnessError: k is outside its limits.
        """
        delta, deltad, deltadd = self.deflection_series(Jet([tau, taud, taudd]), Jet([k, kd, kdd]))
        return delta, deltad, deltadd

    def deflection_series(self, tau: Jet, stiffness: Jet) -> Jet:
        """tau/k with as many time derivatives as both have; errors of :meth:`deflection`."""
        k = stiffness[0]
        outside = ~((k >= self.lower) & (k <= self.upper))
        if np.any(outside):
            limits = [f"{x:g}" for x in (np.broadcast_to(y, np.shape(k))[outside][0] for y in (self.lower, self.upper))]
            raise StiffnessError(
                f"stiffness {np.asarray(k)[outside][0]:g} is outside the actuator's range {' … '.join(limits)}"
            )
        return quotient(tau, stiffness)

    @property
    def rest_stiffness(self) -> float | Array:
        """That where a command does not say it."""
        return self.nominal

    @classmethod
    def stacked(cls, springs: Sequence[Any]) -> VariableSpring:
        """One spring of many, for deflections (…, number of springs)."""
        return cls(*(np.stack([getattr(spring, name) for spring in springs]) for name in cls.parameters))
