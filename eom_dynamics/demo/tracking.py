# SPDX-License-Identifier: Apache-2.0
"""What the feedforward is worth: the demo's robot on its motion, simulated under each kind of feedforward."""

from __future__ import annotations

import numpy as np

from ..exceptions import EomDynamicsError
from ..robot import Robot
from ..simulate import Comparison, compare_feedforward
from ..trajectory import paper_motion

# Of the motion, s: a second of it takes a few seconds to simulate.
_LONGEST = 1.0
_RATE = 500.0

# Motors that are held stiffly, rad/s, and a model that is wrong by as much as one in use: of all signs of these errors
# those under which each feedforward does worst.
_NATURAL_FREQUENCY = 70.0
_STIFFNESS_ERROR, _MASS_ERROR = -0.10, 0.05

# Thousands of times below the smallest error that is drawn.
_TOLERANCE = 1e-6


def compare(robot: Robot, duration: float = _LONGEST) -> Comparison | str:
    """The beginning of the paper's motion, ``duration`` s or one second of it, under each feedforward.

    Returns:
        The comparison, or in words why there is none.
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
