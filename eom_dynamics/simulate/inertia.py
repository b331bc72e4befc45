# SPDX-License-Identifier: Apache-2.0
"""What links and motors of a plant weigh: the reduced and the complete model of its rotors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from ..actuators.carried_rotors import CarriedRotors
from .forward_dynamics import accelerations, forward_dynamics

Array = NDArray[np.float64]


class PlantInertia(Protocol):
    """Inertia of n links and m motors, those of rigid joints moving with their links.

    Links and motors are (…, n + m) one after the other; entries of motors at rigid joints are zero, and there is a one
    on the diagonal of the matrix for each.
    """

    def accelerations(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """Accelerations (…, n + m) under efforts (…, n) on links and (…, m) on motors, N m or N.

        Raises:
            StateError: a state is not finite.
            RobotDescriptionError: the inertia is not positive definite.
        """
        ...

    def matrix(self, q: Array) -> Array:
        """Inertia matrix (…, n + m, n + m), kg m² or kg."""
        ...

    def free(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """Efforts (…, n + m) less those that the motion takes without acceleration."""
        ...

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        """(N,) of states (N, n), (N, n), (N, m), J."""
        ...


class ReducedInertia:
    """Links and rotors apart: M. W. Spong's reduced model."""

    def __init__(self, arm: ElasticArm, rigid: NDArray[np.bool_]) -> None:
        """Take the arm, and whether the joint of a motor is rigid (m,)."""
        self._dynamics, self._motor_joint, self._rigid = arm.dynamics, arm.motor_joint, rigid
        self._rotors = arm.motor_inertia
        self._of_joint = _of_joint(arm)
        self._added = np.where(rigid, arm.motor_inertia, 0.0) @ self._of_joint
        self._own = np.where(rigid, 1.0, arm.motor_inertia)

    def accelerations(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """As of the protocol."""
        efforts = on_links + np.where(self._rigid, on_motors, 0.0) @ self._of_joint
        qdd = forward_dynamics(self._dynamics, q, qd, efforts, added_inertia=self._added)
        return np.concatenate([qdd, np.where(self._rigid, 0.0, on_motors / self._own)], axis=-1)

    def matrix(self, q: Array) -> Array:
        """As of the protocol."""
        n, m = q.shape[-1], len(self._own)
        matrix = np.zeros((*q.shape[:-1], n + m, n + m))
        matrix[..., :n, :n] = self._dynamics.mass_matrix(q) + np.diag(self._added)
        matrix[..., n:, n:] = np.diag(self._own)
        return matrix

    def free(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """As of the protocol."""
        efforts = on_links + np.where(self._rigid, on_motors, 0.0) @ self._of_joint
        bias = self._dynamics.effort(q, qd, np.zeros_like(q))
        return np.concatenate([efforts - bias, np.where(self._rigid, 0.0, on_motors)], axis=-1)

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        """As of the protocol."""
        links = np.sum(qd * (self._dynamics.mass_matrix(q) @ qd[..., np.newaxis])[..., 0], axis=-1)
        energy: Array = 0.5 * (links + np.sum(self._rotors * thetad**2, axis=-1))
        return energy


class CompleteInertia:
    """Links and the rotors that they carry as one system."""

    def __init__(self, arm: ElasticArm, rotors: CarriedRotors, rigid: NDArray[np.bool_]) -> None:
        """Take the arm, its rotors, and whether the joint of a motor is rigid (m,)."""
        n, m = arm.robot.n, len(rigid)
        self._name, self._rotors = arm.robot.name, rotors
        # Velocities of links and motors from those of links and of motors that have one of their own.
        self._free = np.eye(n + m)
        self._free[n:, n:][rigid, rigid] = 0.0
        self._free[n:, :n][rigid] = _of_joint(arm)[rigid]
        self._ones = np.diag(np.concatenate([np.zeros(n), rigid]))

    def accelerations(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """As of the protocol."""
        return accelerations(self._name, self.matrix(q), self.free(q, qd, thetad, on_links, on_motors))

    def matrix(self, q: Array) -> Array:
        """As of the protocol."""
        matrix: Array = self._free.T @ self._rotors.mass_matrix(q) @ self._free + self._ones
        return matrix

    def free(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """As of the protocol."""
        efforts = np.concatenate([on_links, on_motors], axis=-1) - self._rotors.bias(q, qd, thetad)
        return efforts @ self._free

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        """As of the protocol."""
        velocity = np.concatenate([qd, thetad], axis=-1)[..., np.newaxis]
        energy: Array = 0.5 * np.sum(velocity * (self._rotors.mass_matrix(q) @ velocity), axis=(-2, -1))
        return energy


def plant_inertia(arm: ElasticArm, rigid: NDArray[np.bool_]) -> PlantInertia:
    """The inertia of the arm in the model of its rotors."""
    return ReducedInertia(arm, rigid) if arm.rotors is None else CompleteInertia(arm, arm.rotors, rigid)


def _of_joint(arm: ElasticArm) -> Array:
    """(m, n) ones where a motor belongs to a joint."""
    return np.equal.outer(arm.motor_joint, np.arange(arm.robot.n)).astype(float)
