# SPDX-License-Identifier: Apache-2.0
"""Springs between links and their parents, parallel to the motors: gravity springs, counterbalances, gas springs.

Such springs act over the position of the joint, or over the distance of two anchors. The law, effort over deflection,
is a law of this module, or of a memoryless spring between motor and link. The joint effort that holds against the
spring is the derivative of its energy: for a deflection x(q), f(x) dx/dq.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import copysign
from types import MappingProxyType
from typing import Annotated

import numpy as np

from ..arrays import Array, Scalar
from ..elementary import expm1, index, log1p, lookup
from ..jet import Jet
from ..jet_functions import exponential, logarithm_of_one_plus, quotient, sine_cosine, square_root
from .parameters import SMALLEST, Entry, Parameter, finite, not_negative, positive, refuse, row
from .springs import CubicSpring, DeadZoneSpring, ExponentialSpring, LinearSpring, PolynomialSpring
from .springs.base import EffortLaw
from .springs.hardening import polynomial_at
from .springs.interpolation import natural_spline


@dataclass(frozen=True, eq=False)
class GasLaw(EffortLaw):
    """Polytropic compression of an ideal gas, -F (1 + delta/v)^-n; the deflection is 0 for an extended spring.

    The gas, of the length v at extension, pushes with the force F there and with rho F after the stroke s. This
    determines v = s/(1 - rho^(-1/n)). Boyle's law is n = 1, for motion so slow that heat leaves the gas; fast motion is
    adiabatic, with n = 1.4 for nitrogen. A gas traction spring, F < 0, pulls, and is compressed by delta > 0.

    Attributes:
        force: F, data sheet P1 or F1, N (N m for rotary springs); > 0 pushes to larger, < 0 to smaller deflections.
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
        """-F exp(-n log(1 + delta/v)); NaN if the gas had no volume."""
        return exponential(logarithm_of_one_plus(delta * (1 / self.gas_length)) * -self.exponent) * -self.force

    def energy_law(self, delta: Scalar) -> Scalar:
        """-F v ((1 + delta/v)^(1-n) - 1)/(1 - n), or its limit -F v log(1 + delta/v) for n = 1."""
        growth, power = log1p(delta * (1 / self.gas_length)), 1.0 - self.exponent
        return (-self.force * self.gas_length) * (expm1(growth * power) * (1 / power) if power else growth)


@dataclass(frozen=True, eq=False)
class TableLaw(EffortLaw):
    """Natural cubic spline through a table, straight beyond its ends: C², and linear in the efforts of the table.

    Efforts and their first two time derivatives are continuous; the third derivative jumps at the points of the table.
    Unlike a spring between motor and link the curve needs neither rise nor pass through (0, 0).

    Attributes:
        delta, tau: the table, each (m,), m >= 2, rad or m and N m or N.
    """

    kind = "tabulated"

    delta: Annotated[Array, Parameter("deflections", row)]
    tau: Annotated[Array, Parameter("efforts", row, scales=True)]

    def __post_init__(self) -> None:
        """Check the table; raises ParameterError if rows differ in length, or deflections do not increase."""
        super().__post_init__()
        if self.delta.ndim != 1 or len(self.delta) < 2 or not np.all(np.diff(self.delta) > SMALLEST):
            refuse("deflections", f"must be a list of at least two increasing numbers, is {self.delta}")
        if self.tau.shape != self.delta.shape:
            refuse("efforts", f"must have as many entries as deflections, {len(self.delta)}; has {self.tau.size}")

    def law(self, delta: Jet) -> Jet:
        """Value of the curve."""
        return self._value(delta, self._pieces[0])

    def energy_law(self, delta: Scalar) -> Scalar:
        """Integral of the curve from 0."""
        return self._value(delta, self._pieces[1])

    def _value(self, delta: Scalar, coefficients: Array) -> Scalar:
        at = index(delta[0] if isinstance(delta, Jet) else delta, self.delta)
        distance = delta - lookup(at, np.append(self.delta[:1], self.delta))
        return polynomial_at([lookup(at, column) for column in coefficients.T], distance)

    @cached_property
    def _pieces(self) -> tuple[Array, Array]:
        """Coefficients of powers of the distance, of effort (m + 1, 4) and energy (m + 1, 5).

        Pieces are below the first point and from each point on, about that point.
        """
        h = np.diff(self.delta)
        slope, bend = natural_spline(h, np.diff(self.tau) / h)
        twist = np.append(np.diff(bend) / h, 0.0)
        inside = np.stack([self.tau, slope, bend / 2, twist / 6], axis=1)
        effort = np.vstack([[self.tau[0], slope[0], 0.0, 0.0], inside])
        energy = np.column_stack([np.zeros(len(effort)), effort / np.arange(1, 5)])
        rises = [polynomial_at(row.tolist(), width) for row, width in zip(energy[1:-1], h, strict=True)]
        energy[2:, 0] = np.cumsum(rises)
        at = int(np.searchsorted(self.delta, 0.0, side="right"))
        energy[:, 0] -= polynomial_at(energy[at].tolist(), -self.delta[max(at - 1, 0)])
        return effort, energy


@dataclass(frozen=True, eq=False)
class SignedLinearLaw(LinearSpring):
    """K delta, with K < 0 for a spring that pushes away from its rest position.

    Attributes:
        constant: K, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", finite, scales=True)]


PARALLEL_LAWS: Mapping[str, type[EffortLaw]] = MappingProxyType(
    {
        law.kind: law
        for law in (SignedLinearLaw, TableLaw, GasLaw, CubicSpring, PolynomialSpring, ExponentialSpring, DeadZoneSpring)
    }
)
"""Laws of parallel springs by their type in robot files."""


@dataclass(frozen=True)
class Anchors:
    """Anchors of a spring on the parent and on the link of a revolute joint, in a plane across its axis.

    With the distances a and b from the axis they are l apart, l² = a² + b² - 2 a b cos(q - q_a), which acts on the
    joint with the lever dl/dq = a b sin(q - q_a)/l: A. Klimchik et al., "Stiffness modeling of robotic manipulator with
    gravity compensator", Computational Kinematics (2014). The deflection of the spring is l - l_0.

    Attributes:
        parent, link: a and b, m, > 0 and different.
        aligned_position: q_a, rad: the anchors are nearest, in the same direction from the axis.
        rest_length: l_0 >= 0, m: length at zero deflection, the free length of a coil or an extended gas spring.
    """

    parent: Annotated[float, Entry("distance of the anchor on the parent from the axis", "m", "positive")]
    link: Annotated[float, Entry("distance of the anchor on the link from the axis", "m", "positive")]
    aligned_position: Annotated[float, Entry("joint position with the nearest anchors", "rad")]
    rest_length: Annotated[float, Entry("length of the spring without deflection", "m", "not negative")]

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError for invalid parameters."""
        positive("parent", self.parent)
        positive("link", self.link)
        finite("aligned_position", self.aligned_position)
        not_negative("rest_length", self.rest_length)
        if self.parent == self.link:
            refuse("link", f"must differ from parent, {self.parent:g}: the spring would have no length where aligned")

    def length(self, position: Jet) -> tuple[Jet, Jet]:
        """l with time derivatives, and dl/dq."""
        sine, cosine = sine_cosine(position - self.aligned_position)
        length = square_root(cosine * (-2 * self.parent * self.link) + (self.parent**2 + self.link**2))
        return length, quotient(sine * (self.parent * self.link), length)


@dataclass(frozen=True, eq=False)
class ParallelSpring:
    """A spring between a link and its parent, parallel to the motor.

    Attributes:
        law: effort over the deflection, one of :data:`PARALLEL_LAWS`; N m over a joint position in rad, N over one in m
            and over a length.
        rest_position: q_0 of the deflection q - q_0, rad or m; 0 if there are anchors.
        anchors: of a spring between two points; None for a deflection in the joint coordinate.
    """

    law: Annotated[EffortLaw, Entry(is_inline=True, example={"type": "linear", "stiffness": 20.0})]
    rest_position: Annotated[float, Entry("joint position without deflection", "rad", example=0.0)] = 0.0
    anchors: Annotated[Anchors | None, Entry("of a spring on two points of a revolute joint")] = None

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if both mounts are given."""
        if self.anchors is not None and self.rest_position:
            refuse("rest_position", "anchors have none; give their aligned_position and rest_length")

    def effort_jet(self, position: Jet) -> Jet:
        """Joint effort that holds the spring, N m or N, with as many time derivatives as the position."""
        if self.anchors is None:
            return self.law.law(position - self.rest_position)
        length, lever = self.anchors.length(position)
        return self.law.law(length - self.anchors.rest_length) * lever

    def energy(self, position: Scalar) -> Scalar:
        """Stored energy, zero without deflection, J."""
        if self.anchors is None:
            return self.law.energy_law(position - self.rest_position)
        length, _ = self.anchors.length(Jet([position]))
        return self.law.energy_law(length[0] - self.anchors.rest_length)
