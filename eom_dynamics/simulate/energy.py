# SPDX-License-Identifier: Apache-2.0
"""Energy of links, motors and springs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kinematics import body_poses
from ..robot import Robot
from .elastic_plant import ElasticPlant
from .integration import Simulation

Array = NDArray[np.float64]


class Energy(NamedTuple):
    """Energy of an arm by its kind, each a number, or of the leading shape of the states, J.

    Attributes:
        kinetic: of links and rotors.
        gravity: of the links' height, 0 where all centres of mass are at the base frame's origin.
        spring: of the springs, 0 where they are not deflected.
    """

    kinetic: Array
    gravity: Array
    spring: Array

    @property
    def total(self) -> Array:
        """The sum, J."""
        return self.kinetic + self.gravity + self.spring


def energy(plant: ElasticPlant, state: Array) -> Energy:
    """Energy in a state of a plant or in many (…, 2n + 2m); variable springs at their nominal stiffness.

    Rotors count as the arm's model has them: by their spin alone, or with the links that carry them.
    """
    q, theta, qd, thetad = plant.parts(np.asarray(state, dtype=float))
    rows = [x.reshape(-1, x.shape[-1]) for x in (q, qd, thetad)]
    kinetic = plant.inertia.kinetic_energy(*rows).reshape(q.shape[:-1])
    gravity = np.apply_along_axis(lambda row: _gravity(plant.arm.robot, row), -1, q)
    return Energy(kinetic, gravity, plant.springs.energy(plant.deflection(theta, q)))


def energy_imbalance(plant: ElasticPlant, simulation: Simulation, samples: int) -> Array:
    """By how much energy and work of a simulation differ at most, relative to the largest of both.

    Args:
        plant: what was simulated.
        simulation: its motion.
        samples: number of times to look at, evenly spread, first and last among them.

    Returns:
        A number, or (N,) for N arms.
    """
    rows = np.unique(np.linspace(0, len(simulation.t) - 1, samples).round().astype(int))
    states, work = simulation.states[rows], simulation.work[rows] - simulation.heat[rows]
    # Of an arm that has ended there is nothing to hold against the start.
    known = np.isfinite(work)
    held = energy(plant, np.where(known[..., np.newaxis], states, states[0])).total
    work = np.where(known, work, 0.0)
    largest = np.maximum(np.abs(held).max(axis=0), np.abs(work).max(axis=0))
    imbalance: Array = np.abs(held - held[0] - work).max(axis=0) / largest
    return imbalance


def _gravity(robot: Robot, q: Array) -> float:
    poses = body_poses(robot, q)
    return -float(
        sum(
            joint.mass * robot.gravity @ (pose[:3, :3] @ joint.center_of_mass + pose[:3, 3])
            for joint, pose in zip(robot.joints, poses, strict=True)
        )
    )
