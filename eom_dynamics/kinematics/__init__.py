# SPDX-License-Identifier: Apache-2.0
"""Kinematics: poses, twists, Jacobians and statics of frames, and their inverse from poses and twists."""

from .compiled import Kinematics
from .forward import body_poses
from .inverse import OBJECTIVES, POINTING, POSITION, InverseKinematicsResult, inverse_kinematics
from .motion import InverseMotion, inverse_motion
from .planar import planar_2r_inverse

__all__ = [
    "OBJECTIVES",
    "POINTING",
    "POSITION",
    "InverseKinematicsResult",
    "InverseMotion",
    "Kinematics",
    "body_poses",
    "inverse_kinematics",
    "inverse_motion",
    "planar_2r_inverse",
]
