# SPDX-License-Identifier: Apache-2.0
"""Spring with commanded stiffness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ...exceptions import StiffnessError
from ...jet import Jet
from ...jet_functions import quotient
from ..checks import positive, refuse
from .base import Parameter, Spring


@dataclass(frozen=True, eq=False)
class VariableSpring(Spring, kind="variable"):
    """tau = k(t) delta, with the stiffness k commanded between two limits.

    Attributes:
        lower, upper: limits of k, 0 < lower <= upper, N m/rad (N/m).
        nominal: k where no command says otherwise.
    """

    is_variable = True
    is_linear = True

    lower: Annotated[float | Array, Parameter("lower", positive, scales=True)]
    upper: Annotated[float | Array, Parameter("upper", positive, scales=True)]
    nominal: Annotated[float | Array, Parameter("nominal", positive, scales=True)]

    def __post_init__(self) -> None:
        """Check limits; raises ParameterError if ``nominal`` is not between them."""
        super().__post_init__()
        if np.any(np.greater(self.lower, self.upper)):
            refuse("lower", f"must not exceed upper, {self.upper}, is {self.lower}")
        if np.any(np.less(self.nominal, self.lower) | np.greater(self.nominal, self.upper)):
            refuse("nominal", f"must lie within {self.lower} … {self.upper}, is {self.nominal}")

    @property
    def rest_stiffness(self) -> float | Array:
        """Nominal stiffness."""
        return self.nominal

    def deflection_jet(self, tau: Jet, stiffness: Jet | None = None, state: Array | None = None) -> tuple[Jet, Jet]:
        """delta = tau/k, deltad = (taud - kd delta)/k, deltadd = (taudd - kdd delta - 2 kd deltad)/k, …

        Raises:
            StiffnessError: k is outside its limits.
        """
        commanded = Jet.constant(self.nominal, len(tau)) if stiffness is None else stiffness
        k = commanded[0]
        outside = ~((k >= self.lower) & (k <= self.upper))
        if np.any(outside):
            limits = [f"{x:g}" for x in (np.broadcast_to(y, np.shape(k))[outside][0] for y in (self.lower, self.upper))]
            raise StiffnessError(
                f"stiffness {np.asarray(k)[outside][0]:g} is outside the actuator's range {' … '.join(limits)}"
            )
        return quotient(tau, commanded), tau

    def effort_jet(self, delta: Jet, stiffness: Jet | None = None) -> tuple[Jet, Jet | None]:
        """k delta."""
        commanded = Jet.constant(self.nominal, len(delta)) if stiffness is None else stiffness
        return commanded * delta, commanded

    def load(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """k delta."""
        return (self.nominal if stiffness is None else stiffness) * delta

    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """k, no damping."""
        return self.nominal, 0.0

    def energy(self, delta: Array) -> Array:
        """k delta²/2. A change of k changes it too, by the work of the mechanism that sets the stiffness."""
        return 0.5 * self.nominal * np.square(delta)
