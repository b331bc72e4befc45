# SPDX-License-Identifier: Apache-2.0
"""Identification regressor: base inertial parameters, friction, rotors and sensor offsets.

    tau = Y_b(q, qd, qdd) beta + sum over the terms of (basis of the joint) x

with the compiled :meth:`eom_dynamics.Dynamics.regressor`, see :mod:`.base_parameters` and :mod:`.joint_terms`.

Where efforts of motors were recorded, and a transmission theta = T phi is between them and the joints, each equation is
that of a motor: its inertial columns are those of T' tau, and the bases of friction and rotor have the rates of phi.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..dynamics import Dynamics
from ..robot import Robot
from .base_parameters import BaseParameters, base_parameters
from .joint_terms import TERMS, Motion, check_terms, coupled


def transmission_matrix(robot: Robot) -> Array | None:
    """Transmission matrix T (n, n), identity at joints without a transmission; None if there is none at all."""
    if robot.transmission is None:
        return None
    joints, transmission = robot.transmission
    T = np.eye(robot.n)
    T[np.ix_(joints, joints)] = transmission.matrix
    return T


class Regressor:
    """Regressor of a robot's joint efforts, compiled and for batches.

    Attributes:
        robot: the robot.
        dynamics: compiled dynamics of the robot.
        base: its base parameters.
        terms: names of the terms of joints, in their order.
        names: (P,) of the parameters, such as ``Izz1 + Iyy2`` and ``viscous elbow``.
        inertial: number of inertial columns, which come first.
        transmission: T (n, n) where efforts are those of motors behind a transmission, else None.
    """

    def __init__(
        self,
        robot: Robot,
        terms: Sequence[str] = (),
        *,
        motor_side: bool = False,
        backend: str | None = None,
    ) -> None:
        """Compile the regressor, or load it from the cache.

        Args:
            robot: the robot.
            terms: names in :data:`TERMS`.
            motor_side: whether efforts are those of motors, behind the robot's transmission.
            backend: as for :class:`eom_dynamics.Dynamics`.

        Raises:
            StateError: there is no such term.
        """
        self.robot = robot
        self.transmission = transmission_matrix(robot) if motor_side else None
        self.dynamics = Dynamics(robot, order=0, backend=backend)
        self.base: BaseParameters = base_parameters(robot, dynamics=self.dynamics)
        self.terms = check_terms(terms)
        self.inertial = len(self.base)
        self.names = (*self.base.words, *(f"{term} {joint}" for term in self.terms for joint in robot.joint_names))

    def __call__(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **others: Any) -> Array:
        """Regressor (n, P), or (N, n, P) of a batch.

        Args:
            q, qd, qdd: joint variables, velocities and accelerations, each (n,) or (N, n).
            others: what else terms depend on, see :class:`.joint_terms.Motion`.

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        Y = self.inertial_columns(q, qd, qdd)
        if not self.terms:
            return Y
        n = self.robot.n
        positions, rates, accelerations = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
        springs = [joint.parallel_spring for joint in self.robot.independent_joints]
        if self.transmission is not None:
            rates, accelerations = (x @ np.linalg.inv(self.transmission).T for x in (rates, accelerations))
            others |= {"coupled": coupled(self.transmission)}
        bases = self.bases(Motion(rates, accelerations, q=positions, springs=springs, **others))
        # Column j of each term is felt by joint j alone.
        columns = (basis[..., np.newaxis] * np.eye(n) for basis in bases)
        return np.concatenate([Y, *columns], axis=-1)

    def inertial_columns(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Columns of the base parameters alone, (n, inertial) or (N, n, inertial)."""
        Y = self.dynamics.regressor(q, qd, qdd)[..., self.base.independent]
        return Y if self.transmission is None else self.transmission.T @ Y

    def inertial_efforts(self, q: Array, qd: Array, qdd: Array, x: Array) -> Array:
        """Efforts (N, n) due to the inertial part of x (P,); or (N, n, k) for x (P, k)."""
        # Zeros cost less than a copy of the columns that count.
        pi = np.zeros((len(self.dynamics.inertial_parameters), *x.shape[1:]))
        pi[self.base.independent] = x[: self.inertial]
        Y = self.dynamics.regressor(q, qd, qdd)
        # One product of two matrices, rather than one for each sample.
        return self.at_motors((Y.reshape(-1, len(pi)) @ pi).reshape(*Y.shape[:-1], *pi.shape[1:]))

    def at_motors(self, efforts: Array) -> Array:
        """Efforts (N, n) or (N, n, k) at the motors, from those of the joints: T' tau behind a transmission."""
        if self.transmission is None:
            return efforts
        return np.asarray(np.einsum("ij,ni...->nj...", self.transmission, efforts))

    def bases(self, motion: Motion) -> list[Array]:
        """Bases of the terms, each (n,) or (N, n)."""
        return [TERMS[term].basis(motion) for term in self.terms]

    def column(self, term: str, joint: int) -> int:
        """Index of the column of a term of a joint."""
        return self.inertial + self.terms.index(term) * self.robot.n + joint

    @property
    def parameters_of_file(self) -> Array:
        """Base parameters beta (inertial,) of the robot as described."""
        return self.base(self.dynamics.inertial_parameters)
