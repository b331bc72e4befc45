# SPDX-License-Identifier: Apache-2.0
"""Spring beside the motor: its law over the position of the joint, or over the distance of two anchors.

A law is that of a memoryless spring between motor and link, or one of this folder, of the effort over the deflection.
The joint effort that holds against the spring is the derivative of its energy: for a deflection x(q), f(x) dx/dq.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from ...jet import Jet
from ...jet_functions import quotient, sine_cosine, square_root
from ..checks import finite, not_negative, positive, refuse
from ..declared import Parameter
from ..springs import CubicSpring, DeadZoneSpring, ExponentialSpring, LinearSpring, PolynomialSpring
from ..springs.base import Scalar
from ..springs.memoryless import EffortLaw
from .gas import GasLaw
from .table import TableLaw


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
        for law in (
            SignedLinearLaw,
            TableLaw,
            GasLaw,
            CubicSpring,
            PolynomialSpring,
            ExponentialSpring,
            DeadZoneSpring,
        )
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
        aligned_position: q_a, rad, where the anchors lie in the same direction from the axis and are nearest.
        rest_length: l_0 >= 0, m, where the deflection is zero: free length of a coil, length of an extended gas spring.
    """

    parent: float
    link: float
    aligned_position: float
    rest_length: float

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if one is impossible."""
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
    """A spring between a link and its parent, beside the motor.

    Attributes:
        law: effort over the deflection, one of :data:`PARALLEL_LAWS`; N m over a joint position in rad, N over one in m
            and over a length.
        rest_position: q_0 of the deflection q - q_0, rad or m; 0 if there are anchors.
        anchors: where the spring is fixed, if its deflection is not that of the joint.
    """

    law: EffortLaw
    rest_position: float = 0.0
    anchors: Anchors | None = None

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

    def entries(self) -> dict[str, Any]:
        """All parameters, by their names in robot files."""
        values = {declared.name: getattr(self.law, name) for name, declared in self.law.parameters().items()}
        entries: dict[str, Any] = {"type": self.law.kind}
        entries |= {name: np.asarray(value, dtype=float).tolist() for name, value in values.items()}
        if self.anchors is None:
            return entries | {"rest_position": float(self.rest_position)}
        return entries | {"anchors": {name: float(value) for name, value in vars(self.anchors).items()}}
