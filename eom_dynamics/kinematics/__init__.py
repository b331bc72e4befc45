# SPDX-License-Identifier: Apache-2.0
"""Kinematics: poses, twists, Jacobians and statics."""

from .compiled import Kinematics
from .forward import body_poses

__all__ = ["Kinematics", "body_poses"]
