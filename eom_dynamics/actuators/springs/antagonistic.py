# SPDX-License-Identifier: Apache-2.0
"""Antagonistic pairs: two motors at one joint with opposed tension-only springs set effort and stiffness."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array, Scalar
from ...elementary import absolute, expm1, sqrt
from ...jet import Jet
from ...jet_functions import exponential_less_one, logarithm_of_one_plus, quotient
from ..parameters import positive, refuse
from .base import EffortJets, Jets, Parameter, Spring


class AntagonisticPair(Spring):
    """Two tension-only springs, tau = f(s1) - f(s2), stretched by s1 = theta1 - q and s2 = q - theta2.

    The stiffness is sigma = f'(s1) + f'(s2). With the link's motion it is a flat output of the joint: G. Palli,
    C. Melchiorri, A. De Luca, "On the feedback linearization of robots with variable joint stiffness", IEEE Int.
    Conf. Robotics and Automation (2008).

    The agonist, with positive effort, is the first motor, the antagonist, with negative effort, the second.

    Attributes:
        nominal: sigma without a command, N m/rad (N/m).
    """

    motor_suffixes = ("_agonist", "_antagonist")
    is_variable = True

    nominal: float

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if the springs are slack at nominal stiffness without load."""
        super().__post_init__()
        least = self.least_stiffness(0.0)
        if self.nominal < least:
            refuse("nominal", f"must be at least {least:g}, twice the stiffness of one spring, is {self.nominal:g}")

    @abstractmethod
    def tension(self, stretch: Jet) -> tuple[Jet, Jet]:
        """Tension f and its slope f' at a stretch of 0 or more, N m (N) and N m/rad (N/m)."""

    @abstractmethod
    def tension_energy(self, stretch: Scalar) -> Scalar:
        """Integral of f from 0, J."""

    @abstractmethod
    def least_stiffness(self, tau: Scalar) -> Scalar:
        """Minimum stiffness sigma without a slack spring at the given effort."""

    @abstractmethod
    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """Stretches s1 and s2 from effort and stiffness, all with time derivatives."""

    def tensions(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """Tensions f(s1) and f(s2) from effort and stiffness; kinds may override this with a closed form."""
        first, second = self.stretches(tau, stiffness)
        return self.tension(first)[0], self.tension(second)[0]

    @property
    def rest_stiffness(self) -> float | Array:
        """Nominal stiffness."""
        return self.nominal

    def stiffness_range(self, tau: Scalar) -> tuple[Scalar, Scalar]:
        """Stiffness range; at its ends, one spring becomes slack."""
        return self.least_stiffness(tau), np.inf

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Deflections s1 and -s2, efforts f(s1) and -f(s2)."""
        commanded = self.commanded(tau[0], stiffness)
        (first, second), tensions = self.stretches(tau[0], commanded), self.tensions(tau[0], commanded)
        return [first, -second], [tensions[0], -tensions[1]]

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """f(s1) - f(s2), and f'(s1) + f'(s2)."""
        (first, first_slope), (second, second_slope) = self.tension(delta[0]), self.tension(-delta[1])
        return EffortJets([first - second], [first, -second], first_slope + second_slope)

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """Energy of both springs."""
        return self.tension_energy(delta[0]) + self.tension_energy(-delta[1])

    def stretch(self, delta: Sequence[Scalar]) -> Sequence[Scalar]:
        """Stretches s1 and s2."""
        return [delta[0], -delta[1]]


@dataclass(frozen=True, eq=False)
class QuadraticPair(AntagonisticPair, kind="antagonistic_quadratic"):
    """f(s) = K s + C s²/2, so that s1 + s2 = (sigma - 2 K)/C and s1 - s2 = 2 tau/sigma.

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        slope: C > 0, growth of the stiffness with the stretch, N m/rad² (N/m²).
        nominal: sigma >= 2 K without a command, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]
    slope: Annotated[float, Parameter("slope", positive, scales=True)]
    nominal: Annotated[float, Parameter("nominal", positive, scales=True)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values: half the joint stiffness at zero stretch, the other half due to the stretch."""
        return {"constant": stiffness / 4, "slope": stiffness / 4 / reach, "nominal": stiffness}

    def tension(self, stretch: Jet) -> tuple[Jet, Jet]:
        """K s + C s²/2 and K + C s."""
        return stretch * (stretch * (0.5 * self.slope) + self.constant), stretch * self.slope + self.constant

    def tension_energy(self, stretch: Scalar) -> Scalar:
        """K s²/2 + C s³/6."""
        return stretch * stretch * (stretch * (self.slope / 6) + 0.5 * self.constant)

    def least_stiffness(self, tau: Scalar) -> Scalar:
        """Root of sigma (sigma - 2 K) = 2 C |tau| with zero stretch of one spring."""
        return sqrt(absolute(tau) * (2 * self.slope) + self.constant**2) + self.constant

    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """(sigma - 2 K)/(2 C) ± tau/sigma."""
        mean = (stiffness - 2 * self.constant) * (0.5 / self.slope)
        half = quotient(tau, stiffness)
        return mean + half, mean - half


@dataclass(frozen=True, eq=False)
class ExponentialPair(AntagonisticPair, kind="antagonistic_exponential"):
    """f(s) = K/a (exp(a s) - 1), so that exp(a s) = (sigma ± a tau)/(2 K).

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
        nominal: sigma >= 2 K without a command, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]
    growth: Annotated[float, Parameter("growth", positive)]
    nominal: Annotated[float, Parameter("nominal", positive, scales=True)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values: half the joint stiffness at zero stretch, grown by a factor of e at the reach."""
        return {"constant": stiffness / 4, "growth": 1 / reach, "nominal": stiffness}

    def tension(self, stretch: Jet) -> tuple[Jet, Jet]:
        """K/a (exp(a s) - 1) and K exp(a s)."""
        grown = exponential_less_one(stretch * self.growth)
        return grown * (self.constant / self.growth), (grown + 1.0) * self.constant

    def tension_energy(self, stretch: Scalar) -> Scalar:
        """K/a² (exp(a s) - 1 - a s)."""
        x = stretch * self.growth
        return (expm1(x) - x) * (self.constant / self.growth**2)

    def least_stiffness(self, tau: Scalar) -> Scalar:
        """2 K + a |tau|."""
        return absolute(tau) * self.growth + 2 * self.constant

    def tensions(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """(sigma - 2 K)/(2 a) ± tau/2, since a f(s) = K exp(a s) - K."""
        mean, half = (stiffness - 2 * self.constant) * (0.5 / self.growth), tau * 0.5
        return mean + half, mean - half

    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """log((sigma ± a tau)/(2 K))/a; for nearly slack springs by the difference of sigma and 2 K."""
        a, scale = self.growth, 1 / (2 * self.constant)
        beyond = stiffness - 2 * self.constant
        first, second = (logarithm_of_one_plus((beyond + tau * (sign * a)) * scale) * (1 / a) for sign in (1.0, -1.0))
        return first, second
