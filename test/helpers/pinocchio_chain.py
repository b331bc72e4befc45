# SPDX-License-Identifier: Apache-2.0
"""A described chain as a Pinocchio model, built from its parameters alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

Array = NDArray[np.float64]


class PinocchioChain:
    """The model, and the place of each body's frame in Pinocchio's joint frame.

    Pinocchio's axes run through the origin of the joint's frame, so that this is put on the axis.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.model = pin.Model()
        self.model.gravity = pin.Motion(np.array(parameters["gravity"], dtype=float), np.zeros(3))
        self.body_in_joint = [pin.SE3.Identity()]
        for index, name in enumerate(parameters["joint_names"]):
            self._append(index, name, parameters["joints"][name])
        self.data = self.model.createData()

    def _append(self, parent: int, name: str, joint: Mapping[str, Any]) -> None:
        angular, linear = np.array(joint["screw"][:3]), np.array(joint["screw"][3:])
        on_axis = pin.SE3(np.eye(3), np.cross(angular, linear))
        if joint["type"] == "revolute":
            model = pin.JointModelRevoluteUnaligned(angular)
        elif joint["type"] == "prismatic":
            model = pin.JointModelPrismaticUnaligned(linear)
        else:
            model = pin.JointModelHelicalUnaligned(angular, float(angular @ linear))
        origin = pin.SE3(pin.rpy.rpyToMatrix(*joint["origin"]["rpy"]), np.array(joint["origin"]["xyz"]))
        index = self.model.addJoint(parent, model, self.body_in_joint[parent] * origin * on_axis, name)
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        body = pin.Inertia(joint["mass"], np.array(joint["center_of_mass"]), inertia)
        self.body_in_joint.append(on_axis.inverse())
        self.model.appendBodyToJoint(index, body, on_axis.inverse())

    def on_tool(self, wrench: Array) -> pin.StdVec_Force:
        """Forces on all joints, for a wrench (moment; force) that acts on the last body, in its frame."""
        forces = pin.StdVec_Force([pin.Force.Zero() for _ in range(self.model.njoints)])
        forces[self.model.njoints - 1] = self.body_in_joint[-1].act(pin.Force(wrench[3:], wrench[:3]))
        return forces
