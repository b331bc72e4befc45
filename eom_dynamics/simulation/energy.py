# SPDX-License-Identifier: Apache-2.0
"""Energy of links, motors and springs, and energy audit: dE/dt = qd'(u - friction)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import count
from ..arrays import Array
from ..exceptions import StateError
from ..spelling import shown
from .elastic_plant import ElasticPlant, require_plant
from .integration import Simulation


class Energy(NamedTuple):
    """Energy of an arm by part, J; arrays have the leading shape of the states.

    Attributes:
        kinetic: kinetic energy of links and rotors.
        gravity: potential energy of the links, 0 with all centers of mass at the base frame's origin, and of constant
            loads and parallel springs.
        spring: energy of the springs, 0 without deflection.
    """

    kinetic: Array
    gravity: Array
    spring: Array

    @property
    def total(self) -> Array:
        """Total energy, J."""
        return self.kinetic + self.gravity + self.spring


class EnergyAudit(NamedTuple):
    """Energy audit of a simulated plant, printed as a table: energy over time, against work and heat.

    Attributes:
        t: (T,) s.
        kinetic, gravity, spring: (T,) or (T, N) for N arms, J, see :class:`Energy`.
        work, heat: of the motors, and dissipated, since the start, J.
        imbalance: energy less energy at the start, work and heat, J: the error of the integration.
    """

    t: Array
    kinetic: Array
    gravity: Array
    spring: Array
    work: Array
    heat: Array
    imbalance: Array

    @property
    def relative_imbalance(self) -> Array:
        """Largest imbalance, relative to the largest other entry: a number, or (N,) for N arms.

        Times after an early end do not count.
        """
        largest = np.max(np.abs(np.nan_to_num(self[1:-1])), axis=(0, 1))
        imbalance = np.max(np.abs(np.nan_to_num(self.imbalance)), axis=0)
        return imbalance / np.where(largest > 0, largest, 1.0)

    def of_arm(self, arm: int) -> EnergyAudit:
        """Audit of one of N arms, counted from 0.

        Raises:
            StateError: there is no such arm, or the audit is of one arm.
        """
        if self.kinetic.ndim == 1:
            raise StateError("of_arm takes an arm out of an audit of N; this audit is of one arm")
        if count(arm, "arm") >= (arms := self.kinetic.shape[1]):
            raise StateError(f"arm must be below {arms}, the number of arms, is {arm}")
        return EnergyAudit(self.t, *(column[:, arm] for column in self[1:]))

    def thinned(self, rows: int = 11) -> EnergyAudit:
        """Audit thinned to this many evenly spread times, first and last included.

        Raises:
            StateError: ``rows`` is no integer from 2.
        """
        kept = np.unique(np.linspace(0, len(self.t) - 1, count(rows, "rows", 2)).round().astype(int))
        return EnergyAudit(*(column[kept] for column in self))

    def table(self) -> str:
        """Table of one arm, a line for each time.

        Raises:
            StateError: the audit is of N arms; use :meth:`of_arm`.
        """
        if self.kinetic.ndim != 1:
            raise StateError(f"a table is of one arm; take one of the {self.kinetic.shape[1]} by of_arm")
        titles = ("t [s]", "kinetic [J]", "gravity [J]", "spring [J]", "work [J]", "heat [J]", "imbalance [J]")
        lines = ["".join(f"{title:>15}" for title in titles)]
        for *values, imbalance in zip(*self, strict=True):
            lines.append("".join(f"{value:15.7g}" for value in values) + f"{imbalance:15.1e}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """Table of one arm at up to 11 times, or a line for N arms."""
        if self.kinetic.ndim == 1:
            return self.thinned().table()
        return f"energy of {self.kinetic.shape[1]} arms, relative imbalance {np.max(self.relative_imbalance):.1e}"


def energy(plant: ElasticPlant, state: ArrayLike) -> Energy:
    """Energy of a plant in one state or many (…, 2n + 2m), at nominal stiffness.

    The kinetic energy of rotors is that of the arm's rotor model.

    Raises:
        StateError: the state is not finite, or not of this plant.
        TypeError: ``plant`` is not an ElasticPlant.
    """
    require_plant(plant)
    q, theta, qd, thetad = plant.parts(plant.checked(state))
    rows = [x.reshape(-1, x.shape[-1]) for x in (q, qd, thetad)]
    kinetic = plant.inertia.kinetic_energy(*rows).reshape(q.shape[:-1])
    gravity = plant.arm.dynamics.potential_energy(rows[0]).reshape(q.shape[:-1])
    return Energy(kinetic, gravity, plant.springs.energy(plant.deflection(theta, q)))


def energy_audit(plant: ElasticPlant, simulation: Simulation) -> EnergyAudit:
    """Energy of a simulated plant at all times of the simulation; NaN after an early end.

    Raises:
        StateError: the simulation is of another plant, with states of other length.
        TypeError: ``plant`` is not an ElasticPlant, or ``simulation`` not a Simulation.
    """
    if not isinstance(simulation, Simulation):
        raise TypeError(f"simulation must be the result of simulate, is {shown(simulation)}")
    known = np.isfinite(simulation.work)
    held = energy(plant, np.where(known[..., np.newaxis], simulation.states, 0.0))
    kinetic, gravity, spring = (np.where(known, part, np.nan) for part in held)
    total = kinetic + gravity + spring
    imbalance = total - total[0] - (simulation.work - simulation.heat)
    return EnergyAudit(simulation.t, kinetic, gravity, spring, simulation.work, simulation.heat, imbalance)
