# SPDX-License-Identifier: Apache-2.0
"""Motions of the joints in time, with all derivatives that the dynamics ask for, and whether an arm can do them."""

from .cosine import Cosine, paper_motion, paper_wrench
from .fit import Fit, fit
from .fourier import Fourier
from .limits import Peak, Verdict, check
from .quantities import UNITS
from .rest import rest_to_rest, shortest_duration
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
