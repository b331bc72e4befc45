# SPDX-License-Identifier: Apache-2.0
"""Pinocchio's model with a free flyer, in the state of a robot on a floating base.

Twists and wrenches have their linear part first in Pinocchio.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from pinocchio_forces import tool_forces
from scipy.spatial.transform import Rotation

from eom_dynamics import Robot
from eom_dynamics.arrays import Array


class PinocchioFloating:
    """A model whose first joint is a free flyer, and whose others have one variable each, by name those of a robot."""

    def __init__(self, model: pin.Model, robot: Robot) -> None:
        self.model, self.data, self._robot = model, model.createData(), robot
        names = list(robot.joint_names)
        rows = {model.joints[j].idx_v: names.index(model.names[j]) for j in range(2, model.njoints)}
        self._order = np.array([3, 4, 5, 0, 1, 2, *(6 + rows[row] for row in sorted(rows))])

    def configuration(self, pose: Array, q: Array) -> Array:
        found = pin.neutral(self.model)
        found[:7] = *pose[:3, 3], *Rotation.from_matrix(pose[:3, :3]).as_quat()
        for j in range(2, self.model.njoints):
            joint, x = self.model.joints[j], q[self._robot.joint_names.index(self.model.names[j])]
            found[joint.idx_q : joint.idx_q + joint.nq] = x if joint.nq == 1 else [np.cos(x), np.sin(x)]
        return found

    def rates(self, nu: Array) -> Array:
        return nu[self._order]

    def back(self, tau: Array) -> Array:
        """Rows of Pinocchio in our order."""
        found = np.zeros_like(tau)
        found[self._order] = tau
        return found

    def both(self, matrix: Array) -> Array:
        """A symmetric matrix of which the upper half is given."""
        return self.square(np.triu(matrix) + np.triu(matrix, 1).T)

    def square(self, matrix: Array) -> Array:
        return self.back(self.back(matrix).T).T

    def effort(self, pose: Array, q: Array, nu: Array, nud: Array, wrench: Array | None = None) -> Array:
        """tau (6 + n,) by the recursive Newton-Euler algorithm, for wrenches (tools, 6) exerted at the tools."""
        given = np.zeros((len(self._robot.tools), 6)) if wrench is None else wrench.reshape(-1, 6)
        forces = tool_forces(self.model, self._robot, given)
        x = self.configuration(pose, q)
        return self.back(pin.rnea(self.model, self.data, x, self.rates(nu), self.rates(nud), forces))
