# SPDX-License-Identifier: Apache-2.0
"""Hints at recordings whose times or efforts are in another unit than those of the robot."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ..robot import Robot
from .exceptions import IdentificationError
from .filtering import AT_LIMIT, MOSTLY_BEYOND
from .recording import Recording

# Hz; the drives of no robot report at a lower or higher rate.
_LOWEST_RATE, _HIGHEST_RATE = 2.0, 1e6

# Share of the limits of velocity below which the whole motion of an arm is too slow to be one for identification.
_SLOW = 0.002

# Steps of a recording over which velocities are means: shorter ones are of noise.
_STEPS = 1000

# Ratio to the limit of effort beyond which a unit is the cause.
_FAR = 5.0

_MILLI = "if they are in mN m, --effort-scale 0.001 converts them"


def unit_hints(robot: Robot, recordings: Iterable[Recording]) -> list[str]:
    """Lines on times that do not look like seconds, and on efforts that are mostly beyond their limits."""
    found = [hint for each in recordings for hint in (_on_times(robot, each), _on_efforts(robot, each)) if hint]
    return list(dict.fromkeys(found))


def _on_times(robot: Robot, recording: Recording) -> str:
    try:
        rate = 1 / recording.period
    except IdentificationError:
        return ""
    if not _LOWEST_RATE <= rate <= _HIGHEST_RATE:
        return f"{recording.name}: are times in seconds? The rate is {rate:.3g} Hz"
    limits = np.array([joint.limits.velocity for joint in robot.independent_joints])
    fastest = np.zeros(robot.n)
    for motion in recording.motions():
        step = max(1, len(motion) // _STEPS)
        steps = np.abs(np.diff(motion.q[::step], axis=0)) / np.diff(motion.t[::step])[:, np.newaxis]
        fastest = np.maximum(fastest, np.max(steps, axis=0, initial=0.0))
    known = np.isfinite(limits) & (fastest > 0)
    if not known.any() or np.any(fastest[known] > _SLOW * limits[known]):
        return ""
    share = float(np.max(fastest[known] / limits[known]))
    return f"{recording.name}: are times in seconds? Velocities stay below {100 * share:.2g} % of their limits"


def _on_efforts(robot: Robot, recording: Recording) -> str:
    limits = np.array([joint.limits.effort for joint in robot.independent_joints])
    with np.errstate(invalid="ignore"):
        beyond: NDArray[np.intp] = np.sum(np.abs(recording.tau) >= AT_LIMIT * limits, axis=0)
    bad = np.asarray(beyond > MOSTLY_BEYOND * max(1, len(recording)))
    if not bad.any():
        return ""
    far = np.nanquantile(np.abs(recording.tau[:, bad]), 0.99, axis=0) > _FAR * limits[bad]
    return (
        f"{recording.name}: {int(beyond[bad].sum()):,} of {int(bad.sum()) * len(recording):,} efforts of "
        f"{', '.join(compress(robot.joint_names, bad))} are at or beyond the limits of effort in the robot's file, and "
        f"do not count as saturated; {_MILLI if far.all() else 'check their unit, and the names of joints'}"
    )
