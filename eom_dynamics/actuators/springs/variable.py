# SPDX-License-Identifier: Apache-2.0
"""Spring with commanded stiffness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ...arrays import Array, Scalar
from ...jet import Jet
from ...jet_functions import quotient
from ..parameters import positive, refuse
from .base import EffortJets, Jets, Parameter, Spring


@dataclass(frozen=True, eq=False)
class VariableSpring(Spring, kind="variable"):
    """tau = k(t) delta, with the stiffness k commanded between two limits.

    Attributes:
        lower, upper: limits of k, 0 < lower <= upper, N m/rad (N/m).
        nominal: k where no command says otherwise.
    """

    is_variable = True

    lower: Annotated[float, Parameter("lower", positive, scales=True)]
    upper: Annotated[float, Parameter("upper", positive, scales=True)]
    nominal: Annotated[float, Parameter("nominal", positive, scales=True)]

    def __post_init__(self) -> None:
        """Check limits; raises ParameterError if ``nominal`` is not between them."""
        super().__post_init__()
        if self.lower > self.upper:
            refuse("lower", f"must not exceed upper, {self.upper}, is {self.lower}")
        if not self.lower <= self.nominal <= self.upper:
            refuse("nominal", f"must lie within {self.lower} … {self.upper}, is {self.nominal}")

    @property
    def rest_stiffness(self) -> float | Array:
        """Nominal stiffness."""
        return self.nominal

    def stiffness_range(self, tau: Scalar) -> tuple[Scalar, Scalar]:
        """``lower`` and ``upper``."""
        return self.lower, self.upper

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """delta = tau/k, deltad = (taud - kd delta)/k, deltadd = (taudd - kdd delta - 2 kd deltad)/k, …"""
        return [quotient(tau[0], self.commanded(tau[0], stiffness))], tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """k delta."""
        k = Jet.constant(self.nominal, len(delta[0])) if stiffness is None else stiffness
        effort = [k * delta[0]]
        return EffortJets(effort, effort, k)

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """k delta²/2. A change of k changes it too, by the work of the mechanism that sets the stiffness."""
        return 0.5 * self.nominal * (delta[0] * delta[0])
