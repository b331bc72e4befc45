# SPDX-License-Identifier: Apache-2.0
"""Kinematics of frames: poses, twists, Jacobians, statics, and inverse kinematics from poses and twists."""

from .compiled import Kinematics
from .frames import body_poses
from .inverse import OBJECTIVES, POINTING, POSITION, InverseKinematicsResult, inverse_kinematics
from .motion import InverseMotion, differential_inverse_kinematics
from .textbook import NewtonRaphson, newton_raphson, planar_2r_inverse

__all__ = [
    "OBJECTIVES",
    "POINTING",
    "POSITION",
    "InverseKinematicsResult",
    "InverseMotion",
    "Kinematics",
    "NewtonRaphson",
    "body_poses",
    "differential_inverse_kinematics",
    "inverse_kinematics",
    "newton_raphson",
    "planar_2r_inverse",
]
