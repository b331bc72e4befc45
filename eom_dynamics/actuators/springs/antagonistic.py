# SPDX-License-Identifier: Apache-2.0
"""Antagonistic pair: two motors at one joint with opposed tension-only springs set effort and stiffness."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from ...arrays import Array
from ...jet import Jet
from ..checks import refuse
from .base import EffortJets, Scalar, Spring


class AntagonisticPair(Spring):
    """Two tension-only springs, tau = f(s1) - f(s2), stretched by s1 = theta1 - q and s2 = q - theta2.

    The stiffness is sigma = f'(s1) + f'(s2). With the link's motion it is a flat output of the joint: G. Palli,
    C. Melchiorri, A. De Luca, "On the feedback linearization of robots with variable joint stiffness", IEEE Int.
    Conf. Robotics and Automation (2008).

    The agonist, with positive effort, is the first motor, the antagonist, with negative effort, the second.

    Attributes:
        nominal: sigma where no command says otherwise, N m/rad (N/m).
    """

    motors = ("_agonist", "_antagonist")
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
        """Least stiffness sigma at which neither spring is slack under an effort."""

    @abstractmethod
    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """Stretches s1 and s2 from effort and stiffness, all with time derivatives."""

    def tensions(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """Tensions f(s1) and f(s2) from effort and stiffness; kinds may override it with a closed form."""
        first, second = self.stretches(tau, stiffness)
        return self.tension(first)[0], self.tension(second)[0]

    @property
    def rest_stiffness(self) -> float | Array:
        """Nominal stiffness."""
        return self.nominal

    def stiffness_range(self, tau: Scalar) -> tuple[Scalar, Scalar]:
        """Stiffness range, from the stiffness at which one spring becomes slack."""
        return self.least_stiffness(tau), np.inf

    def deflections(
        self, tau: Sequence[Jet], stiffness: Jet | None = None, state: Scalar | None = None
    ) -> tuple[Sequence[Jet], Sequence[Jet]]:
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
