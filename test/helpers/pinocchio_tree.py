# SPDX-License-Identifier: Apache-2.0
"""Pinocchio's model of a URDF, in the joint variables of a robot read from the same URDF.

Pinocchio's velocities of planar and floating joints are twists in the frame of the child, and its mimic joints are
independent; here they are mapped to the joint variables of the robot, and efforts back.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from pinocchio_model import tool_forces
from scipy.spatial.transform import Rotation
from textbook import turning

from eom_dynamics import Robot
from eom_dynamics.arrays import Array


class Motion(NamedTuple):
    """Configuration, velocity and acceleration of the model; v = P dz/dt for the variables z of all joints."""

    q: Array
    v: Array
    a: Array
    P: Array


class PinocchioTree:
    """Model of a URDF, and the map from the joint variables of a robot read from it.

    ``locked`` has the positions of joints that are fixed in the robot but move in Pinocchio's model.
    """

    def __init__(self, urdf: str, robot: Robot, locked: Mapping[str, float] | None = None) -> None:
        self.model = pin.buildModelFromXML(urdf)
        self.model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
        self.data = self.model.createData()
        self._robot = robot
        self._coupling = robot.coupling
        self._index = {joint.name: i for i, joint in enumerate(robot.joints)}
        self._locked = locked or {}

    @property
    def single(self) -> bool:
        """True if all joints have one variable with a rate equal to the velocity."""
        return all(joint.nv == 1 for joint in self.model.joints.tolist()[1:])

    def motion(self, q: Array, qd: Array, qdd: Array) -> Motion:
        E, e = self._coupling
        z, zd, zdd = E @ q + e, E @ qd, E @ qdd
        configuration, P = pin.neutral(self.model), np.zeros((self.model.nv, len(z)))
        rest = np.zeros(self.model.nv)  # dP/dt z'
        for j in range(1, self.model.njoints):
            joint, name = self.model.joints[j], self.model.names[j]
            rows, at = slice(joint.idx_v, joint.idx_v + joint.nv), slice(joint.idx_q, joint.idx_q + joint.nq)
            if name in self._locked:
                configuration[at] = self._locked[name]
                continue
            if joint.nv == 1:
                i = self._index[name]
                P[rows, i] = 1
                configuration[at] = z[i] if joint.nq == 1 else [np.cos(z[i]), np.sin(z[i])]
                continue
            parts = "x y yaw" if joint.nv == 3 else "x y z yaw pitch roll"
            columns = [self._index[f"{name}_{part}"] for part in parts.split()]
            place = _planar if joint.nv == 3 else _floating
            configuration[at], P[rows, columns], rest[rows] = place(z[columns], zd[columns])
        return Motion(configuration, P @ zd, P @ zdd + rest, P)

    def effort(self, q: Array, qd: Array, qdd: Array, wrench: Array | None = None) -> Array:
        """tau (n,) by the recursive Newton-Euler algorithm, for wrenches (tools, 6) exerted at the tools."""
        motion = self.motion(q, qd, qdd)
        tau = pin.rnea(self.model, self.data, motion.q, motion.v, motion.a, self.forces(wrench))
        return self._back(motion.P, tau)

    def effort_rate(self, q: Array, qd: Array, qdd: Array, qddd: Array, W: Array, Wd: Array) -> Array:
        """taud (n,) by the partial derivatives of this algorithm, for joints with one variable each."""
        motion = self.motion(q, qd, qdd)
        jerk = motion.P @ self._coupling[0] @ qddd
        pin.computeRNEADerivatives(self.model, self.data, motion.q, motion.v, motion.a, self.forces(W))
        M = np.triu(self.data.M) + np.triu(self.data.M, 1).T
        rate = self.data.dtau_dq @ motion.v + self.data.dtau_dv @ motion.a + M @ jerk
        return self._back(motion.P, rate) + self.effort(q, 0 * q, 0 * q, Wd) - self.effort(q, 0 * q, 0 * q)

    def forces(self, wrench: Array | None) -> pin.StdVec_Force:
        """External forces on the joints; none without a wrench."""
        if wrench is None:
            wrench = np.zeros((len(self._robot.tools), 6))
        return tool_forces(self.model, self._robot, wrench)

    def _back(self, P: Array, tau: Array) -> Array:
        return self._coupling[0].T @ P.T @ tau


def _planar(z: Array, zd: Array) -> tuple[Sequence[float], Array, Array]:
    s, c = np.sin(z[2]), np.cos(z[2])
    P = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    v = P @ zd
    return [z[0], z[1], c, s], P, np.array([zd[2] * v[1], -zd[2] * v[0], 0])


def _floating(z: Array, zd: Array) -> tuple[Array, Array, Array]:
    """Rz(yaw) Ry(pitch) Rx(roll); velocity: linear, then angular, both in the child's frame."""
    rotation = Rotation.from_euler("ZYX", z[3:])
    turn, turn_rate = turning(z[3:], zd[3:])
    P = np.zeros((6, 6))
    P[:3, :3], P[3:, 3:] = rotation.as_matrix().T, turn
    v = P @ zd
    return np.concatenate([z[:3], rotation.as_quat()]), P, np.concatenate([-np.cross(v[3:], v[:3]), turn_rate @ zd[3:]])
