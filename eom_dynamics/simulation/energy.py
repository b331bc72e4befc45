# SPDX-License-Identifier: Apache-2.0
"""Energy of links, motors and springs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from .elastic_plant import ElasticPlant
from .integration import Simulation


class Energy(NamedTuple):
    """Energy of an arm, numbers or arrays of the leading shape of the states, J.

    Attributes:
        kinetic: kinetic energy of links and rotors.
        gravity: potential energy of the links, 0 with all centers of mass at the base frame's origin.
        spring: energy of the springs, 0 without deflection.
    """

    kinetic: Array
    gravity: Array
    spring: Array

    @property
    def total(self) -> Array:
        """Sum of all, J."""
        return self.kinetic + self.gravity + self.spring


def energy(plant: ElasticPlant, state: Array) -> Energy:
    """Energy of a plant in one state or many (…, 2n + 2m), at nominal stiffness.

    The kinetic energy of rotors is that of the arm's rotor model.
    """
    q, theta, qd, thetad = plant.parts(np.asarray(state, dtype=float))
    rows = [x.reshape(-1, x.shape[-1]) for x in (q, qd, thetad)]
    kinetic = plant.inertia.kinetic_energy(*rows).reshape(q.shape[:-1])
    gravity = plant.arm.dynamics.potential_energy(q.reshape(-1, q.shape[-1])).reshape(q.shape[:-1])
    return Energy(kinetic, gravity, plant.springs.energy(plant.deflection(theta, q)))


def energy_imbalance(plant: ElasticPlant, simulation: Simulation, samples: int) -> Array:
    """Largest difference of energy and work in a simulation, relative to the largest of both.

    Args:
        plant: the plant.
        simulation: its simulation.
        samples: number of times to compare, evenly spread, including the first and the last.

    Returns:
        A number, or (N,) for N arms.
    """
    rows = np.unique(np.linspace(0, len(simulation.t) - 1, samples).round().astype(int))
    states, work = simulation.states[rows], simulation.work[rows] - simulation.heat[rows]
    # An arm that has ended counts as unchanged.
    known = np.isfinite(work)
    held = energy(plant, np.where(known[..., np.newaxis], states, states[0])).total
    work = np.where(known, work, 0.0)
    largest = np.maximum(np.abs(held).max(axis=0), np.abs(work).max(axis=0))
    imbalance: Array = np.abs(held - held[0] - work).max(axis=0) / largest
    return imbalance

