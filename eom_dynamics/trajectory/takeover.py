# SPDX-License-Identifier: Apache-2.0
"""Replacement of a trajectory within the limits of an arm."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from ..elastic import ElasticArm
from .first_within_limits import DURATIONS, first_within_limits
from .handover import START_TOLERANCE, Handover
from .limits import Verdict
from .spline import Spline
from .trajectory import Trajectory


def take_over(
    arm: ElasticArm, old: Trajectory, new: Spline, begin: float, at: float, period: float = 0.0
) -> tuple[Handover, Verdict]:
    """Replace a trajectory by another one, with a transition that meets the limits of joints and motors.

    The transition ends at the next knot. If that exceeds a limit, and the new trajectory starts within
    :data:`.START_TOLERANCE`, it takes the shortest of some longer durations that meets the limits, or else the one that
    exceeds them least: a new trajectory that arrives late makes no step.

    Args:
        arm: the arm.
        old, new, begin, at, period: as for :class:`.Handover`.

    Returns:
        The trajectories in sequence, and the check of the transition.

    Raises:
        TrajectoryError: as :class:`.Handover`.
        StateError: the motors cannot realise the transition.
    """
    names = arm.robot.joint_names

    def handovers() -> Iterator[Handover]:
        shortest = Handover(old, new, begin, at, names, period)
        yield shortest
        if shortest.distance <= START_TOLERANCE:
            for duration in DURATIONS[shortest.transition.end - at < DURATIONS]:
                yield Handover(old, new, begin, at, names, period, duration)

    return first_within_limits(arm, handovers(), attrgetter("transition"))
