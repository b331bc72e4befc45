# SPDX-License-Identifier: Apache-2.0
"""Closed kinematic loops: a spanning tree and the cut joints that close it."""

from .closed_loop import ClosedLoopArm
from .cut_joint import CutJoint

__all__ = ["ClosedLoopArm", "CutJoint"]
