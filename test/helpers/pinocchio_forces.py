# SPDX-License-Identifier: Apache-2.0
"""Tool wrenches as Pinocchio's external forces."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from eom_dynamics import Robot


def tool_forces(model: pin.Model, robot: Robot, wrench: np.ndarray) -> pin.StdVec_Force:
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
