# SPDX-License-Identifier: Apache-2.0
"""Gas spring: a sealed volume of gas that its rod compresses."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign
from typing import Annotated

from ...elementary import expm1, log1p
from ...jet import Jet
from ...jet_functions import exponential, logarithm_of_one_plus
from ..checks import finite, positive, refuse
from ..declared import Parameter
from ..springs.base import Scalar
from ..springs.memoryless import EffortLaw


@dataclass(frozen=True, eq=False)
class GasLaw(EffortLaw):
    """Polytropic compression of an ideal gas, -F (1 + delta/v)^-n, with the deflection 0 where the spring is extended.

    The gas, of the length v at extension, pushes with the force F there and with rho F after the stroke s. This
    determines v = s/(1 - rho^(-1/n)). Boyle's law is n = 1, for motion so slow that heat leaves the gas; fast motion is
    adiabatic, with n = 1.4 for nitrogen. A gas traction spring, F < 0, pulls, and is compressed by delta > 0.

    Attributes:
        force: F, data sheet P1 or F1, N (N m for a rotary one); > 0 pushes to larger deflections, < 0 to smaller ones.
        stroke: s > 0, m (rad).
        force_ratio: rho > 1, force after the stroke over F; the K factor or progression of data sheets.
        exponent: n > 0.
    """

    kind = "gas"

    force: Annotated[float, Parameter("force", finite, scales=True)]
    stroke: Annotated[float, Parameter("stroke", positive)]
    force_ratio: Annotated[float, Parameter("force_ratio", positive)]
    exponent: Annotated[float, Parameter("exponent", positive)] = 1.0

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if the force does not rise with the stroke."""
        super().__post_init__()
        if self.force_ratio <= 1:
            refuse("force_ratio", f"must be greater than 1, is {self.force_ratio:g}; a constant_effort has no stroke")
        if self.force_ratio ** (-1.0 / self.exponent) == 1:
            refuse("exponent", f"must be smaller for the force_ratio {self.force_ratio:g}, is {self.exponent:g}")

    @property
    def gas_length(self) -> float:
        """v with the sign of the deflections that expand the gas, m (rad)."""
        length = self.stroke / (1.0 - self.force_ratio ** (-1.0 / self.exponent))
        return copysign(length, self.force)

    def law(self, delta: Jet) -> Jet:
        """-F exp(-n log(1 + delta/v)); NaN where the gas would have no volume."""
        return exponential(logarithm_of_one_plus(delta * (1 / self.gas_length)) * -self.exponent) * -self.force

    def energy_law(self, delta: Scalar) -> Scalar:
        """-F v ((1 + delta/v)^(1-n) - 1)/(1 - n), or its limit -F v log(1 + delta/v) for n = 1."""
        growth, power = log1p(delta * (1 / self.gas_length)), 1.0 - self.exponent
        return (-self.force * self.gas_length) * (expm1(growth * power) * (1 / power) if power else growth)
