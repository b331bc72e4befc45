# SPDX-License-Identifier: Apache-2.0
"""Two motors that pull at one link against each other through springs that harden: effort and stiffness at will."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...exceptions import StiffnessError
from ...jet import Jet
from ..checks import positive, refuse
from ..series import exponential, logarithm, plus, quotient

Array = NDArray[np.float64]


class Pull(NamedTuple):
    """What both springs of a pair do, each (…, 2): the agonist first.

    Attributes:
        delta, deltad, deltadd: motor minus link, rad or m, and its time derivatives.
        tau: the effort at each motor, N m or N, positive first and negative second; their sum drives the link.
    """

    delta: Array
    deltad: Array
    deltadd: Array
    tau: Array


class AntagonisticPair(ABC):
    """Two springs that only pull, tau = f(s1) - f(s2), stretched by s1 = theta1 - q and s2 = q - theta2.

    The stiffness is sigma = f'(s1) + f'(s2). With the link's motion it is a flat output of the joint: G. Palli,
    C. Melchiorri, A. De Luca, "On the feedback linearization of robots with variable joint stiffness", IEEE Int.
    Conf. Robotics and Automation (2008).

    Attributes:
        nominal: sigma where a command does not say it, N m/rad (N/m).
    """

    kind: ClassVar[str]

    parameters: ClassVar[tuple[str, ...]]

    nominal: Array

    @abstractmethod
    def pull(self, stretch: Array) -> Array:
        """f, N m (N), of a stretch from 0 on."""

    @abstractmethod
    def pull_stiffness(self, stretch: Array) -> Array:
        """f', N m/rad (N/m)."""

    @abstractmethod
    def pull_stiffness_rate(self, stretch: Array) -> Array:
        """f'', N m/rad² (N/m²)."""

    @abstractmethod
    def pull_energy(self, stretch: Array) -> Array:
        """The integral of f from 0, J."""

    @abstractmethod
    def least_stiffness(self, tau: Array) -> Array:
        """The least sigma at which both springs pull under an effort."""

    @abstractmethod
    def _stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """s1 and s2 from effort and stiffness, all with their time derivatives."""

    @abstractmethod
    def _pull_series(self, stretch: Jet) -> Jet:
        """f of a stretch with its time derivatives."""

    @classmethod
    def stacked(cls, pairs: Sequence[Any]) -> Any:
        """One pair of many of this kind, for efforts (…, number of pairs) and deflections (…, number of pairs, 2)."""
        return cls(*(np.stack([getattr(pair, name) for pair in pairs]) for name in cls.parameters))

    def _checked_nominal(self, nominal: ArrayLike) -> Array:
        array, least = positive("nominal", nominal), self.least_stiffness(np.zeros(()))
        if np.any(array < least):
            refuse("nominal", f"must be at least {least:g}, twice the stiffness of one spring, is {array:g}")
        return array

    @property
    def rest_stiffness(self) -> float | Array:
        """That where a command does not say it."""
        return self.nominal

    def effort(self, delta: Array) -> Array:
        """Effort at each motor (…, 2) of deflections motor minus link (…, 2)."""
        first, second = delta[..., 0], delta[..., 1]
        return np.stack([self.pull(first), -self.pull(-second)], axis=-1)

    def stiffness(self, delta: Array) -> Array:
        """sigma (…) of deflections motor minus link (…, 2)."""
        return self.pull_stiffness(delta[..., 0]) + self.pull_stiffness(-delta[..., 1])

    def rates(self, delta: Array, deltad: Array) -> tuple[Array, Array]:
        """Time derivatives (…) of the link's effort and of sigma, of deflections (…, 2) and their rates."""
        (s1, s2), (s1d, s2d) = (
            (delta[..., 0], -delta[..., 1]),
            (deltad[..., 0], -deltad[..., 1]),
        )
        effort_rate = self.pull_stiffness(s1) * s1d - self.pull_stiffness(s2) * s2d
        return effort_rate, self.pull_stiffness_rate(s1) * s1d + self.pull_stiffness_rate(s2) * s2d

    def energy(self, delta: Array) -> Array:
        """Energy (…) in both springs, J."""
        return self.pull_energy(delta[..., 0]) + self.pull_energy(-delta[..., 1])

    def deflection(
        self,
        tau: Array,
        taud: Array,
        taudd: Array,
        k: Array,
        kd: Array,
        kdd: Array,
    ) -> Pull:
        """Deflections of both springs for an effort of the link and a stiffness, each (…).

        Raises:
            StiffnessError: a spring would have to push.
        """
        self._require_pull(tau, k)
        first, second = self._stretches(Jet([tau, taud, taudd]), Jet([k, kd, kdd]))
        delta, deltad, deltadd = (np.stack([x, -y], axis=-1) for x, y in zip(first, second, strict=True))
        return Pull(delta, deltad, deltadd, self.effort(delta))

    def deflection_series(self, tau: Jet, stiffness: Jet) -> tuple[tuple[Jet, Jet], tuple[Jet, Jet]]:
        """Deflection and effort of the agonist, then of the antagonist, for effort and stiffness of the link.

        All have as many time derivatives as both arguments. Errors are those of :meth:`deflection`.
        """
        self._require_pull(tau[0], stiffness[0])
        first, second = self._stretches(tau, stiffness)
        return (first, self._pull_series(first)), (-second, -self._pull_series(second))

    def _require_pull(self, tau: Array, k: Array) -> None:
        least = self.least_stiffness(tau)
        slack = ~(k >= least)
        if np.any(slack):
            at = f"{np.asarray(k)[slack][0]:g} is below {np.broadcast_to(least, np.shape(slack))[slack][0]:g}"
            raise StiffnessError(f"stiffness {at}, from where on both springs pull at this effort")


class ExponentialPair(AntagonisticPair):
    """f(s) = K/a (exp(a s) - 1): then exp(a s) = (sigma ± a tau)/(2 K).

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
    """

    kind = "antagonistic_exponential"
    parameters = ("constant", "growth", "nominal")

    def __init__(self, constant: ArrayLike, growth: ArrayLike, nominal: ArrayLike) -> None:
        """Raises RobotDescriptionError where a parameter is not positive, or nominal is below 2 K."""
        self.constant, self.growth = positive("stiffness", constant), positive("growth", growth)
        self.nominal = self._checked_nominal(nominal)

    def pull(self, stretch: Array) -> Array:
        """K/a (exp(a s) - 1)."""
        return self.constant / self.growth * np.expm1(self.growth * stretch)

    def pull_stiffness(self, stretch: Array) -> Array:
        """K exp(a s)."""
        return self.constant * np.exp(self.growth * stretch)

    def pull_stiffness_rate(self, stretch: Array) -> Array:
        """K a exp(a s)."""
        return self.constant * self.growth * np.exp(self.growth * stretch)

    def pull_energy(self, stretch: Array) -> Array:
        """K/a² (exp(a s) - 1 - a s)."""
        x = self.growth * stretch
        return self.constant / self.growth**2 * (np.expm1(x) - x)

    def least_stiffness(self, tau: Array) -> Array:
        """2 K + a |tau|."""
        return 2 * self.constant + self.growth * np.abs(tau)

    def _stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        a, scale = self.growth, 1 / (2 * self.constant)
        first, second = (logarithm((stiffness + tau * (sign * a)) * scale) * (1 / a) for sign in (1.0, -1.0))
        return first, second

    def _pull_series(self, stretch: Jet) -> Jet:
        return plus(exponential(stretch * self.growth), -1.0) * (self.constant / self.growth)


class QuadraticPair(AntagonisticPair):
    """f(s) = K s + C s²/2: then s1 + s2 = (sigma - 2 K)/C and s1 - s2 = 2 tau/sigma.

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        slope: C > 0, its growth with the stretch, N m/rad² (N/m²).
    """

    kind = "antagonistic_quadratic"
    parameters = ("constant", "slope", "nominal")

    def __init__(self, constant: ArrayLike, slope: ArrayLike, nominal: ArrayLike) -> None:
        """Raises RobotDescriptionError where a parameter is not positive, or nominal is below 2 K."""
        self.constant, self.slope = positive("stiffness", constant), positive("slope", slope)
        self.nominal = self._checked_nominal(nominal)

    def pull(self, stretch: Array) -> Array:
        """K s + C s²/2."""
        return stretch * (self.constant + 0.5 * self.slope * stretch)

    def pull_stiffness(self, stretch: Array) -> Array:
        """K + C s."""
        return self.constant + self.slope * stretch

    def pull_stiffness_rate(self, stretch: Array) -> Array:
        """C."""
        return self.slope + np.zeros_like(stretch)

    def pull_energy(self, stretch: Array) -> Array:
        """K s²/2 + C s³/6."""
        return np.square(stretch) * (0.5 * self.constant + self.slope * stretch / 6)

    def least_stiffness(self, tau: Array) -> Array:
        """Where the slack side has no stretch: sigma (sigma - 2 K) = 2 C |tau|."""
        return self.constant + np.sqrt(self.constant**2 + 2 * self.slope * np.abs(tau))

    def _stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        mean = plus(stiffness, -2 * self.constant) * (0.5 / self.slope)
        half = quotient(tau, stiffness)
        return mean + half, mean - half

    def _pull_series(self, stretch: Jet) -> Jet:
        return stretch * plus(stretch * (0.5 * self.slope), self.constant)
