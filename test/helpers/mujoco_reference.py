# SPDX-License-Identifier: Apache-2.0
"""Dynamics by MuJoCo in the joint variables of a robot that was read from its model."""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation
from textbook import turning

from eom_dynamics import Robot
from eom_dynamics.arrays import Array

_FREE, _BALL = 0, 1


def mujoco_dynamics(model: Any, robot: Robot, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
    """Effort (n,), mass matrix (n, n) and gravity with parallel springs (n,), by ``mj_rne`` and ``qfrc_spring``.

    The robot has all joints of the model, in its order; free and ball joints are three angles.
    """
    import mujoco

    data = mujoco.MjData(model)
    E, e = robot.coupling
    positions, velocity, acceleration, T = _in_model(model, E @ q + e, E @ qd, E @ qdd)
    data.qpos[:], data.qvel[:] = positions, velocity
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    spring = data.qfrc_spring.copy()

    def effort(velocity: Array, acceleration: Array) -> Array:
        data.qvel[:] = velocity
        mujoco.mj_fwdVelocity(model, data)
        data.qacc[:] = acceleration
        found = np.zeros(model.nv)
        mujoco.mj_rne(model, data, 1, found)
        return found

    J, rest = T @ E, np.zeros(model.nv)
    weight = effort(rest, rest)
    M = np.stack([J.T @ (effort(rest, column) - weight) for column in J.T], axis=1)
    return J.T @ (effort(velocity, acceleration) - spring), M, J.T @ (weight - spring)


def _in_model(model: Any, x: Array, xd: Array, xdd: Array) -> tuple[Array, Array, Array, Array]:
    """Positions, velocities and accelerations of the model, and the matrix from our rates to its velocities."""
    positions, T, rest, k = np.array(model.qpos0), np.zeros((model.nv, len(x))), np.zeros(model.nv), 0
    for kind, at, dof in zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True):
        if kind not in (_FREE, _BALL):
            positions[at], T[dof, k], k = x[k], 1.0, k + 1
            continue
        start = np.eye(3)
        if kind == _FREE:
            start = Rotation.from_quat(np.roll(positions[at + 3 : at + 7], -1)).as_matrix()
            positions[at : at + 3] += start @ x[k : k + 3]
            T[dof : dof + 3, k : k + 3] = start
            at, dof, k = at + 3, dof + 3, k + 3
        turned = start @ Rotation.from_euler("ZYX", x[k : k + 3]).as_matrix()
        positions[at : at + 4] = np.roll(Rotation.from_matrix(turned).as_quat(), 1)
        T[dof : dof + 3, k : k + 3], Td = turning(x[k : k + 3], xd[k : k + 3])
        rest[dof : dof + 3] = Td @ xd[k : k + 3]
        k += 3
    assert k == len(x)
    return positions, T @ xd, T @ xdd + rest, T
