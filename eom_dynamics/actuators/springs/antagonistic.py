# SPDX-License-Identifier: Apache-2.0
"""Two motors at one joint with opposed tension-only springs: effort and stiffness at will."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from ...arrays import Array
from ...exceptions import StiffnessError
from ...jet import Jet
from ...jet_functions import composed
from ..checks import refuse
from .base import Deflections, Spring


class AntagonisticPair(Spring):
    """Two tension-only springs, tau = f(s1) - f(s2), stretched by s1 = theta1 - q and s2 = q - theta2.

    The stiffness is sigma = f'(s1) + f'(s2). With the link's motion it is a flat output of the joint: G. Palli,
    C. Melchiorri, A. De Luca, "On the feedback linearization of robots with variable joint stiffness", IEEE Int.
    Conf. Robotics and Automation (2008).

    Motor vectors (…, 2) have the agonist first, with positive effort, then the antagonist, with negative effort.

    Attributes:
        nominal: sigma where no command says otherwise, N m/rad (N/m).
    """

    motors = ("_agonist", "_antagonist")
    is_variable = True

    nominal: float | Array

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if the springs are slack at nominal stiffness without load."""
        super().__post_init__()
        least = self.least_stiffness(np.zeros(()))
        if np.any(np.less(self.nominal, least)):
            refuse("nominal", f"must be at least {least:g}, twice the stiffness of one spring, is {self.nominal:g}")

    @abstractmethod
    def tension(self, stretch: Array, order: int) -> list[Array]:
        """f, f', … to the ``order``-th derivative at a stretch of 0 or more, N m (N), N m/rad (N/m), …"""

    @abstractmethod
    def tension_energy(self, stretch: Array) -> Array:
        """Integral of f from 0, J."""

    @abstractmethod
    def least_stiffness(self, tau: Array) -> Array:
        """Least sigma at which neither spring is slack under an effort."""

    @abstractmethod
    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """s1 and s2 from effort and stiffness, all with time derivatives."""

    @property
    def rest_stiffness(self) -> float | Array:
        """Nominal stiffness."""
        return self.nominal

    def deflection_jet(self, tau: Jet, stiffness: Jet | None = None, state: Array | None = None) -> tuple[Jet, Jet]:
        """Deflections s1 and -s2, efforts f(s1) and -f(s2).

        Raises:
            StiffnessError: a spring would be slack.
        """
        commanded = Jet.constant(self.nominal, len(tau)) if stiffness is None else stiffness
        self._refuse_slack(tau[0], commanded[0])
        stretches = self.stretches(tau, commanded)
        tensions = [composed(self.tension(s[0], len(s) - 1), s) for s in stretches]
        return _opposed(*stretches), _opposed(*tensions)

    def deflections(
        self, efforts: tuple[Array, Array, Array], stiffness: Sequence[Array] = (), state: Array | None = None
    ) -> Deflections:
        """Deflections s1 and -s2; errors of :meth:`deflection_jet`."""
        tau = Jet(efforts)
        commanded = Jet(stiffness) if len(stiffness) else Jet.constant(self.nominal, len(tau))
        self._refuse_slack(tau[0], commanded[0])
        delta = _opposed(*self.stretches(tau, commanded))
        return Deflections(delta[0], delta[1], delta[2], self.load(delta[0], delta[1]))

    def effort_jet(self, delta: Jet, stiffness: Jet | None = None) -> tuple[Jet, Jet | None]:
        """f(s1) - f(s2), and f'(s1) + f'(s2)."""
        first, second = (Jet(side) for side in zip(*map(_stretches, delta), strict=True))
        (f1, *slopes1), (f2, *slopes2) = (self.tension(s[0], len(s)) for s in (first, second))
        effort = composed([f1, *slopes1[:-1]], first) - composed([f2, *slopes2[:-1]], second)
        return effort, composed(slopes1, first) + composed(slopes2, second)

    def load(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """f(s1) and -f(s2), which the deflections alone determine."""
        first, second = self.tension(_stretches(delta), 0)[0]
        return _motor_vector(first, -second)

    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """f'(s1) and f'(s2), no damping."""
        return _motor_vector(*self.tension(_stretches(delta), 1)[1]), 0.0

    def energy(self, delta: Array) -> Array:
        """Energy of both springs."""
        first, second = self.tension_energy(_stretches(delta))
        return first + second

    def stretch(self, delta: Array) -> Array | float:
        """s1 and s2."""
        return _motor_vector(delta[..., 0], -delta[..., 1])

    def _refuse_slack(self, tau: Array, k: Array) -> None:
        least = self.least_stiffness(tau)
        slack = ~(k >= least)
        if np.any(slack):
            at = f"{np.asarray(k)[slack][0]:g} is below {np.broadcast_to(least, np.shape(slack))[slack][0]:g}"
            raise StiffnessError(f"stiffness {at}, the least at which neither spring is slack at this effort")


def _stretches(delta: Array) -> Array:
    """s1 and s2 (2, …) of deflections (…, 2)."""
    return np.array([delta[..., 0], -delta[..., 1]])


def _motor_vector(agonist: Array, antagonist: Array) -> Array:
    """Motor vector (…, 2)."""
    both = np.empty((*np.shape(agonist), 2))
    both[..., 0], both[..., 1] = agonist, antagonist
    return both


def _opposed(agonist: Jet, antagonist: Jet) -> Jet:
    """Both as motor vectors (…, 2), the antagonist's negative."""
    return Jet([_motor_vector(x, -y) for x, y in zip(agonist, antagonist, strict=True)])
