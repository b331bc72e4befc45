# SPDX-License-Identifier: Apache-2.0
"""Energy of links, motors and springs, and the audit of its balance with work and heat."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..spelling import shown
from .elastic_plant import ElasticPlant, require_plant
from .integration import Simulation


class Energy(NamedTuple):
    """Energy of an arm by part, J; arrays have the leading shape of the states.

    Attributes:
        kinetic: kinetic energy of links and rotors.
        gravity: potential energy of constant loads, parallel springs and links; the link energy is 0 with all centers
            of mass at the base frame's origin.
        spring: energy of the springs, 0 without deflection.
    """

    kinetic: Array
    gravity: Array
    spring: Array

    @property
    def total(self) -> Array:
        """Total energy, J."""
        return self.kinetic + self.gravity + self.spring


def energy(plant: ElasticPlant, state: ArrayLike) -> Energy:
    """Energy of a plant in one or many states (…, 2n + 2m), at nominal stiffness.

    The arm's rotor model determines the kinetic energy of rotors.

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


def energy_audit(plant: ElasticPlant, simulation: Simulation) -> float:
    """Largest imbalance E - E(0) - work + heat of a simulated plant, relative to the largest energy, work or heat.

    The imbalance is the integration error: the change of energy is the work of the motors minus friction, dE/dt = qd'(u
    - friction).

    Raises:
        StateError: the simulation is of another plant, with states of another length.
        TypeError: ``plant`` is not an ElasticPlant, or ``simulation`` not a Simulation.
    """
    if not isinstance(simulation, Simulation):
        raise TypeError(f"simulation must be the result of simulate, is {shown(simulation)}")
    held = energy(plant, simulation.states)
    imbalance = held.total - held.total[0] - simulation.work + simulation.heat
    largest = float(np.max(np.abs([*held, simulation.work, simulation.heat])))
    return float(np.max(np.abs(imbalance))) / (largest or 1.0)
