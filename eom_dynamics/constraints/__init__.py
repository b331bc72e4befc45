# SPDX-License-Identifier: Apache-2.0
"""Rigid constraints between frames, which contacts and closed loops share: Jacobians and dynamics."""

from .frame_motion import FrameMotion, at_rest, body_motion
from .rigid import ConstrainedSolution, solve

__all__ = ["ConstrainedSolution", "FrameMotion", "at_rest", "body_motion", "solve"]
