# SPDX-License-Identifier: Apache-2.0
"""Mechanisms with closed loops: a tree and the joints that close it."""

from .closed_loop import ClosedLoopArm
from .cut_joint import CutJoint

__all__ = ["ClosedLoopArm", "CutJoint"]
