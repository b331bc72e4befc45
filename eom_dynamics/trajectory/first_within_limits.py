# SPDX-License-Identifier: Apache-2.0
"""Choice among motions by the limits of an arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from ..elastic import ElasticArm
from ..exceptions import StateError
from .limits import Verdict, check
from .spline import Spline

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
