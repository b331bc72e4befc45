# SPDX-License-Identifier: Apache-2.0
"""Tracking error of the demo's robot, simulated on the demo's motion under each kind of feedforward."""

from __future__ import annotations

import numpy as np

from ...exceptions import EomDynamicsError
from ...robot import Robot
from ...simulation import Comparison, compare_feedforward
from ...trajectory import paper_motion

# Simulated time, s; a second takes a few seconds to compute.
_LONGEST = 1.0
_RATE = 500.0

# Stiff motor feedback, rad/s, and realistic model errors, with the signs that are worst for every feedforward.
_NATURAL_FREQUENCY = 70.0
_STIFFNESS_ERROR, _MASS_ERROR = -0.10, 0.05

# A thousandth of the smallest error that is drawn.
_TOLERANCE = 1e-6


def compare(robot: Robot, duration: float = _LONGEST) -> Comparison | str:
    """Simulate the first second of the paper's motion, or less if ``duration`` is shorter, under each feedforward.

    Returns:
        The comparison, or the reason why the robot cannot be simulated.
    """
    end = min(duration, _LONGEST)
    try:
        return compare_feedforward(
            robot,
            paper_motion(robot.n),
            np.linspace(0.0, end, round(_RATE * end) + 1),
            [_NATURAL_FREQUENCY],
            stiffness_error=_STIFFNESS_ERROR,
            mass_error=_MASS_ERROR,
            tolerance=_TOLERANCE,
        )
    except EomDynamicsError as error:
        return str(error)
