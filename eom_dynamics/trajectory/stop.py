# SPDX-License-Identifier: Apache-2.0
"""Stop of a motion within limits."""

from __future__ import annotations

import numpy as np

from ..elastic import ElasticArm
from .first_within_limits import DURATIONS, first_within_limits
from .spline import ORDERS, Spline
from .stop_polynomial import StopPolynomial
from .trajectory import Trajectory


def stop(arm: ElasticArm, trajectory: Trajectory, t: float) -> Spline:
    """Motion from a state of a trajectory to rest, continuous from position to snap, as :class:`.StopPolynomial`.

    Of some durations, the shortest that meets the limits of joints and motors, or else the one that exceeds them least.

    Args:
        arm: the arm.
        trajectory: of all its joints.
        t: time of that state, s.

    Returns:
        The motion; its time 0 is that of the state.

    Raises:
        StateError: the motors can realise none of these motions.
    """
    start = np.stack(trajectory.derivatives(t, ORDERS - 1))

    def within(duration: float) -> Spline:
        end = np.zeros_like(start)
        end[0] = StopPolynomial(start, duration).end
        return Spline([0.0, duration], np.stack([start, end], axis=1))

    return within(first_within_limits(arm, DURATIONS, within)[0])
