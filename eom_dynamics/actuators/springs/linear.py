# SPDX-License-Identifier: Apache-2.0
"""Linear springs: rigid, of one joint, coupled, and with commanded stiffness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ...arrays import Array, Scalar
from ...jet import Jet
from ...jet_functions import quotient
from ..parameters import positive, refuse, square
from .base import EffortJets, Jets, MemorylessSpring, Parameter, Spring


@dataclass(frozen=True, eq=False)
class RigidSpring(Spring, kind="rigid"):
    """Rigid joint: delta = 0 under any effort."""

    is_rigid = True

    @property
    def rest_stiffness(self) -> float | Array:
        """Infinite."""
        return np.inf

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Zero."""
        return [Jet.constant(0.0, len(tau[0]))], tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """Effort NaN on the link, since no deflection determines it; zero at the motor."""
        length = len(delta[0])
        return EffortJets([Jet([np.nan] * length)], [Jet([0.0] * length)])

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """Zero."""
        return 0.0


RIGID = RigidSpring()
"""Spring of joints without elasticity."""


@dataclass(frozen=True, eq=False)
class LinearSpring(MemorylessSpring, kind="linear"):
    """tau = K delta.

    Attributes:
        constant: K > 0, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]

    def law(self, delta: Jet) -> Jet:
        """K delta."""
        return delta * self.constant

    def energy_law(self, delta: Scalar) -> Scalar:
        """K delta²/2."""
        return 0.5 * self.constant * (delta * delta)

    def inverse_law(self, tau: Scalar) -> Scalar:
        """tau/K."""
        return tau / self.constant


def spring_of_stiffness(stiffness: float) -> Spring:
    """Linear spring of this stiffness; rigid spring if it is infinite."""
    return RIGID if stiffness == np.inf else LinearSpring(stiffness)


# Largest difference from symmetry, relative to the largest entry.
_SYMMETRY = 1e-9

# Smallest eigenvalue with a finite compliance.
_SOFTEST = 1e-300


def _symmetric_positive_definite(name: str, value: Any) -> Array:
    K = square(name, value)
    if np.max(np.abs(K - K.T)) > _SYMMETRY * np.max(np.abs(K)):
        refuse(name, "must be symmetric: a spring stores energy and gives it back")
    least = float(np.linalg.eigvalsh(K)[0])
    if least <= _SOFTEST:
        refuse(name, f"must be positive definite; its least eigenvalue is {least:g}")
    return 0.5 * (K + K.T)


@dataclass(frozen=True, eq=False)
class CoupledSpring(Spring):
    """tau = K delta of a group of g joints, all joint and motor vectors (…, g).

    Attributes:
        matrix: K (g, g), symmetric and positive definite, N m/rad (N/m).
    """

    kind = "coupled"

    matrix: Annotated[Array, Parameter("matrix", _symmetric_positive_definite, scales=True)]

    @cached_property
    def compliance(self) -> Array:
        """Inverse of K (g, g)."""
        return np.asarray(np.linalg.inv(self.matrix), dtype=float)

    @property
    def rest_stiffness(self) -> float | Array:
        """Diagonal of K (g,)."""
        return np.diag(self.matrix).copy()

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Deflections: compliance times efforts."""
        return _product(self.compliance, tau), tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """K delta."""
        efforts = _product(self.matrix, delta)
        return EffortJets(efforts, efforts)

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """delta' K delta/2."""
        return 0.5 * sum(x * y for x, y in zip(delta, _product(self.matrix, delta), strict=True))


def _product(matrix: Array, vector: Sequence[Any]) -> list[Any]:
    """Matrix times a vector of jets or scalars."""
    return [sum((a * x for a, x in zip(row, vector, strict=True)), 0.0) for row in matrix.tolist()]


@dataclass(frozen=True, eq=False)
class VariableSpring(Spring, kind="variable"):
    """tau = k(t) delta, with the stiffness k commanded between two limits.

    Attributes:
        lower, upper: limits of k, 0 < lower <= upper, N m/rad (N/m).
        nominal: k without a command.
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
        """k delta²/2. A change of k also changes the energy, by the work of the mechanism that sets the stiffness."""
        return 0.5 * self.nominal * (delta[0] * delta[0])
