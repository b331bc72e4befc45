# SPDX-License-Identifier: Apache-2.0
"""Robots, their tool wrenches and their states on a floating base in Pinocchio, for benchmarks and tests.

Twists and wrenches have their linear part first in Pinocchio.
"""

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from eom_dynamics.arrays import Array
from eom_dynamics.robot import Joint, Robot
from eom_dynamics.robot.inertia import steiner

# Pinocchio's joints about and along coordinate axes are faster than joints with any axis.
_TURNS = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
_SHIFTS = (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ)


def pinocchio_model(robot: Robot, *, floating: bool = False) -> pin.Model:
    """Pinocchio model with the bodies and joints in the robot's order, and its tools as body frames.

    Joints are independent: mimic joints are not coupled. A floating base is the first of them.
    """
    model = pin.Model()
    model.gravity = pin.Motion(np.array(robot.gravity, dtype=float), np.zeros(3))
    # Pinocchio's joint axes pass through the origin of the joint frame, which is therefore moved to the axis.
    body_in_joint = [pin.SE3.Identity()]
    if floating:
        base = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
        body_in_joint.append(pin.SE3.Identity())
        body = robot.base
        inertia = pin.Inertia(body.mass, np.array(body.center_of_mass), body.about_center_of_mass)
        model.appendBodyToJoint(base, inertia, pin.SE3.Identity())
    first = len(body_in_joint)
    for joint in robot.joints:
        parent = joint.parent + first
        on_axis = pin.SE3(np.eye(3), np.cross(joint.screw[:3], joint.screw[3:]))
        placement = body_in_joint[parent] * pin.SE3(joint.reference_pose) * on_axis
        index = model.addJoint(parent, _joint_model(joint), placement, joint.name)
        body_in_joint.append(on_axis.inverse())
        about_center = joint.inertia_about_origin - steiner(joint.mass, joint.center_of_mass)
        inertia = pin.Inertia(joint.mass, np.array(joint.center_of_mass), about_center)
        model.appendBodyToJoint(index, inertia, on_axis.inverse())
    for tool in robot.tools:
        placement = body_in_joint[tool.joint + first] * pin.SE3(tool.pose)
        model.addFrame(pin.Frame(tool.name, tool.joint + first, 0, placement, pin.BODY))
    return model


def _joint_model(joint: Joint) -> pin.JointModel:
    angular, linear = joint.screw[:3], joint.screw[3:]
    axis = angular if np.any(angular) else linear
    for k, along in enumerate(np.eye(3)):
        if np.array_equal(axis, along) and not angular @ linear:
            return (_TURNS if np.any(angular) else _SHIFTS)[k]()
    if not np.any(angular):
        return pin.JointModelPrismaticUnaligned(linear)
    if angular @ linear:
        return pin.JointModelHelicalUnaligned(angular, float(angular @ linear))
    return pin.JointModelRevoluteUnaligned(angular)


def tool_forces(model: pin.Model, robot: Robot, wrench: Array) -> pin.StdVec_Force:
    """Forces on the joints of a model that has the robot's tools as frames.

    Args:
        model: the model.
        robot: the robot.
        wrench: (tools, 6), moment first, that the robot exerts at its tools: the surroundings exert the opposite.
    """
    forces = [pin.Force.Zero() for _ in range(model.njoints)]
    for tool, W in zip(robot.tools, wrench, strict=True):
        frame = model.frames[model.getFrameId(tool.name, pin.BODY)]
        forces[frame.parentJoint] -= frame.placement.act(pin.Force(W[3:], W[:3]))
    return pin.StdVec_Force(forces)


class PinocchioFloating:
    """Model with a free flyer as the first joint, and the robot's joints with one variable each, by name."""

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
        found = np.zeros_like(tau)
        found[self._order] = tau
        return found

    def both(self, matrix: Array) -> Array:
        """Symmetric matrix from its upper half."""
        return self.square(np.triu(matrix) + np.triu(matrix, 1).T)

    def square(self, matrix: Array) -> Array:
        return self.back(self.back(matrix).T).T

    def effort(self, pose: Array, q: Array, nu: Array, nud: Array, wrench: Array | None = None) -> Array:
        """tau (6 + n,) by the recursive Newton-Euler algorithm, for wrenches (tools, 6) exerted at the tools."""
        given = np.zeros((len(self._robot.tools), 6)) if wrench is None else wrench.reshape(-1, 6)
        forces = tool_forces(self.model, self._robot, given)
        x = self.configuration(pose, q)
        return self.back(pin.rnea(self.model, self.data, x, self.rates(nu), self.rates(nud), forces))
