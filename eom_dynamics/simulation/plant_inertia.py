# SPDX-License-Identifier: Apache-2.0
"""Inertia of links and motors in the reduced and in the complete rotor model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.carried_rotors import CarriedRotors
from ..recursion.inverse_mass_matrix import solve_mass_matrix


class PlantInertia(Protocol):
    """Inertia of n links and m motors; motors at rigid joints move with their links.

    Vectors (…, n + m) have the links, then the motors. Entries of motors at rigid joints are zero, with a one on the
    diagonal of the inertia matrix.
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
        """Efforts (…, n + m) minus the bias at zero acceleration."""
        ...

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        """Kinetic energy (N,) in states (N, n), (N, n), (N, m), J."""
        ...


class _Reduced(PlantInertia):
    """Reduced rotor model of M. W. Spong: links and rotors without inertial coupling."""

    def __init__(self, arm: ElasticArm, rigid: NDArray[np.bool_]) -> None:
        self._dynamics, self._motor_joint, self._rigid = arm.dynamics, arm.motor_joint, rigid
        self._rotors = arm.motor_inertia
        self._of_joint = np.eye(arm.robot.n)[arm.motor_joint]
        self._added = np.where(rigid, arm.motor_inertia, 0.0) @ self._of_joint
        self._own = np.where(rigid, 1.0, arm.motor_inertia)

    def accelerations(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        efforts = on_links + np.where(self._rigid, on_motors, 0.0) @ self._of_joint
        qdd = self._dynamics.forward_dynamics(q, qd, efforts, added_inertia=self._added)
        return np.concatenate([qdd, np.where(self._rigid, 0.0, on_motors / self._own)], axis=-1)

    def matrix(self, q: Array) -> Array:
        n, m = q.shape[-1], len(self._own)
        matrix = np.zeros((*q.shape[:-1], n + m, n + m))
        matrix[..., :n, :n] = self._dynamics.mass_matrix(q) + self._added * np.eye(n)
        matrix[..., n:, n:] = np.diag(self._own)
        return matrix

    def free(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        efforts = on_links + np.where(self._rigid, on_motors, 0.0) @ self._of_joint
        bias = self._dynamics.bias(q, qd)
        return np.concatenate([efforts - bias, np.where(self._rigid, 0.0, on_motors)], axis=-1)

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        energy: Array = self._dynamics.kinetic_energy(q, qd) + 0.5 * np.sum(self._rotors * thetad**2, axis=-1)
        return energy


class _Complete(PlantInertia):
    """Complete rotor model: links and the rotors that they carry as one system."""

    def __init__(self, arm: ElasticArm, rotors: CarriedRotors, rigid: NDArray[np.bool_]) -> None:
        n, m = arm.robot.n, len(rigid)
        self._name, self._rotors = arm.robot.name, rotors
        # From independent velocities to those of all links and motors.
        self._free = np.eye(n + m)
        self._free[n:, n:][rigid, rigid] = 0.0
        self._free[n:, :n][rigid] = np.eye(n)[arm.motor_joint[rigid]]
        self._ones = np.diag(np.concatenate([np.zeros(n), rigid]))

    def accelerations(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        return solve_mass_matrix(self._name, self.matrix(q), self.free(q, qd, thetad, on_links, on_motors))

    def matrix(self, q: Array) -> Array:
        matrix: Array = self._free.T @ self._rotors.mass_matrix(q) @ self._free + self._ones
        return matrix

    def free(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        efforts = np.concatenate([on_links, on_motors], axis=-1) - self._rotors.bias(q, qd, thetad)
        return efforts @ self._free

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        velocity = np.concatenate([qd, thetad], axis=-1)[..., np.newaxis]
        energy: Array = 0.5 * np.sum(velocity * (self._rotors.mass_matrix(q) @ velocity), axis=(-2, -1))
        return energy


def plant_inertia(arm: ElasticArm, rigid: NDArray[np.bool_]) -> PlantInertia:
    """Inertia of the arm in its rotor model."""
    return _Reduced(arm, rigid) if arm.rotors is None else _Complete(arm, arm.rotors, rigid)
