# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics."""

from .forward import body_poses

__all__ = ["body_poses"]
