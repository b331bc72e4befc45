# SPDX-License-Identifier: Apache-2.0
"""Conversion of robots to Pinocchio models, for benchmarks and tests."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from eom_dynamics.robot import Joint, Robot
from eom_dynamics.robot.inertia import steiner

# Pinocchio's joints about and along coordinate axes are faster than those with any axis.
_TURNS = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
_SHIFTS = (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ)


def pinocchio_model(robot: Robot, *, floating: bool = False) -> pin.Model:
    """Pinocchio model with the bodies and joints in the robot's order, and its tools as body frames.

    Joints are independent: those of mimic joints are not coupled. A floating base is the first of them.
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
