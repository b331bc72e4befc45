# SPDX-License-Identifier: Apache-2.0
"""Trajectories of joints and tools with four continuous time derivatives: interpolation, fitting, checks of limits."""

from importlib import import_module
from typing import Any

from ..elastic.limits import UNITS
from .analytical import Cosine, Fourier, paper_motion, paper_wrench, rest_to_rest, shortest_duration
from .fastest.motion import ActiveLimit, FastestMotion
from .fastest.search import minimum_time
from .fit import TrajectoryFit, fit_trajectory
from .limits import Peak, Verdict, check
from .poses import PoseSpline, ToolMotion, follow, straight_lines, through_poses
from .trajectory import Samples, Scaled, Spline, Trajectory, sample, sample_times
from .waypoints import through

__all__ = [
    "UNITS",
    "ActiveLimit",
    "Cosine",
    "FastestMotion",
    "Fourier",
    "PathTime",
    "Peak",
    "PoseSpline",
    "Samples",
    "Scaled",
    "Spline",
    "ToolMotion",
    "Trajectory",
    "TrajectoryFit",
    "Verdict",
    "check",
    "fit_trajectory",
    "follow",
    "minimum_time",
    "paper_motion",
    "paper_wrench",
    "rest_to_rest",
    "sample",
    "sample_times",
    "shortest_duration",
    "straight_lines",
    "through",
    "through_poses",
]


def __getattr__(name: str) -> Any:
    # It runs the control loop, which has motions of this room.
    if name == "PathTime":
        return import_module("..control.path_time", __name__).PathTime
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
