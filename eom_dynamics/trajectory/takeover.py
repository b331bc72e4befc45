# SPDX-License-Identifier: Apache-2.0
"""Replacement and stop of a trajectory within the limits of an arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TypeVar

import numpy as np

from ..elastic import ElasticArm
from ..exceptions import StateError
from .handover import START_TOLERANCE, Handover
from .limits import Verdict, check
from .spline import ORDERS, Spline
from .stop_polynomial import StopPolynomial
from .trajectory import Trajectory

DURATIONS = 0.05 * 1.5 ** np.arange(14)
"""Durations of short motions to try, s: each half as long again as the one before."""

# Samples of each motion at which limits are checked.
_SAMPLES = 100

T = TypeVar("T")


def first_within_limits(arm: ElasticArm, plans: Iterable[T], motion_of: Callable[[T], Spline]) -> tuple[T, Verdict]:
    """Return the first plan that meets the limits of joints and motors, or else the one that exceeds them least.

    Args:
        arm: the arm.
        plans: in order of preference.
        motion_of: returns the motion of a plan that is to be checked; it has a duration.

    Returns:
        The plan and the check of its motion.

    Raises:
        StateError: the motors can realise none of the motions, for example because a spring would be slack.
    """
    best: tuple[T, Verdict] | None = None
    least, reason = np.inf, StateError("there is no motion to choose from")
    with np.errstate(all="ignore"):
        for plan in plans:
            motion = motion_of(plan)
            try:
                verdict = check(arm, motion, rate=_SAMPLES / (motion.end - motion.start))
            except StateError as error:
                reason = error
                continue
            worst = max((peak.ratio for peak in verdict.exceeded), default=0.0)
            if best is None or worst < least:
                best, least = (plan, verdict), worst
            if verdict.ok:
                break
    if best is None:
        raise reason
    return best


def take_over(
    arm: ElasticArm,
    old: Trajectory,
    new: Spline,
    begin: float,
    at: float,
    period: float = 0.0,
    tolerance: float = START_TOLERANCE,
    latency: float = 0.0,
) -> tuple[Handover, Verdict]:
    """Replace a trajectory by another one, with a transition that meets the limits of joints and motors.

    The transition ends at the next knot. If that exceeds a limit, and the new trajectory starts within
    the tolerance, it takes the shortest of some longer durations that meets the limits, or else the one that
    exceeds them least: a new trajectory that arrives late makes no step.

    Args:
        arm: the arm.
        old, new, begin, at, period, tolerance, latency: as for :class:`.Handover`.

    Returns:
        The trajectories in sequence, and the check of the transition.

    Raises:
        TrajectoryError: as :class:`.Handover`.
        StateError: the motors cannot realise the transition.
    """
    names = arm.robot.joint_names

    def handovers() -> Iterator[Handover]:
        shortest = Handover(old, new, begin, at, names, period, tolerance=tolerance, latency=latency)
        yield shortest
        if shortest.is_near:
            for duration in DURATIONS[shortest.transition.end - at < DURATIONS]:
                yield Handover(old, new, begin, at, names, period, duration, tolerance, latency)

    return first_within_limits(arm, handovers(), attrgetter("transition"))


def stop(arm: ElasticArm, trajectory: Trajectory, t: float) -> Spline:
    """Stop a trajectory: motion from a state to rest, continuous up to the snap, as :class:`.StopPolynomial`.

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
