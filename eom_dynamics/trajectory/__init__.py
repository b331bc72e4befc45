# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories with four continuous time derivatives: interpolation, fitting, and checks of limits."""

from ..elastic.bounds import UNITS
from .cosine import Cosine, paper_motion, paper_wrench
from .fit import Fit, fit
from .fourier import Fourier
from .limits import Peak, Verdict, check
from .rest_to_rest import rest_to_rest, shortest_duration
from .spline import Spline
from .trajectory import Samples, Scaled, Trajectory, sample, sample_times
from .waypoints import through

__all__ = [
    "UNITS",
    "Cosine",
    "Fit",
    "Fourier",
    "Peak",
    "Samples",
    "Scaled",
    "Spline",
    "Trajectory",
    "Verdict",
    "check",
    "fit",
    "paper_motion",
    "paper_wrench",
    "rest_to_rest",
    "sample",
    "sample_times",
    "shortest_duration",
    "through",
]
