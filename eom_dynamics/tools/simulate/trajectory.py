# SPDX-License-Identifier: Apache-2.0
"""The trajectory of a simulation: the paper's example motion, or a file of samples."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ...arrays import Array
from ...exceptions import StateError
from ...robot import Robot
from ...simulation.feedforward_comparison import SupportsDerivatives
from ...simulation.reference import read_motion
from ...trajectory import paper_motion
from . import LONGEST

_COSINE = "cosine"  # name of the paper's example motion
_COSINE_DURATION = 5.0
_RATE = 500.0


def read_trajectory(
    name: str, robot: Robot, duration: float | None = None, rate: float | None = None
) -> tuple[SupportsDerivatives, Array]:
    """Read a trajectory.

    Args:
        name: :data:`_COSINE`, or path of a file as for :func:`eom_dynamics.simulation.reference.read_motion`.
        duration: s, at most LONGEST; None for all of a file, or 5 s of the example motion.
        rate: Hz, of the samples of a .npz file without times.

    Returns:
        The motion, and times (T,) at 500 Hz, s.
    """
    if name == _COSINE:
        motion: SupportsDerivatives = paper_motion(robot.n)
        start, end = 0.0, duration or _COSINE_DURATION
    else:
        motion = samples = read_motion(Path(name), robot, rate)
        start = float(samples.t[0])
        end = min(float(samples.t[-1]), start + (duration or math.inf))
    if end - start > LONGEST:
        raise StateError(f"{name}: takes {end - start:.6g} s; select at most {LONGEST:g} of them, --duration S")
    return motion, np.linspace(start, end, max(2, round(_RATE * (end - start)) + 1), dtype=np.float64)
