# SPDX-License-Identifier: Apache-2.0
"""Hints about recordings with times or efforts in units other than the robot's."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ..robot import Robot
from .exceptions import IdentificationError
from .filtering import AT_LIMIT, MOSTLY_BEYOND
from .recording import Recording

# Hz; no drive reports at a lower or higher rate.
_LOWEST_RATE, _HIGHEST_RATE = 2.0, 1e6

# Share of the limits of velocity below which the whole motion of an arm is too slow to be one for identification.
_SLOW = 0.002

# Steps of a recording over which velocities are means: shorter ones are of noise.
_STEPS = 1000

# Ratio to the limit of effort beyond which a unit is the cause.
_FAR = 5.0

_MILLI = "if they are in mN m, --effort-scale 0.001 converts them"


def unit_hints(robot: Robot, recordings: Iterable[Recording]) -> list[str]:
    """Notes on times that do not look like seconds, and efforts that are mostly beyond their limits."""
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


def in_another_unit(robot: Robot, recordings: Iterable[Recording]) -> tuple[str, ...]:
    """Joints whose efforts are far beyond their limits while others' are not, which suggests another unit.

    Where those of all are, limits of the file may be missing rather than wrong.
    """
    bad, far = np.ones((2, robot.n), dtype=bool)
    for recording in recordings:
        counts, beyond = _beyond_limits(robot, recording)
        bad &= counts > MOSTLY_BEYOND * max(1, len(recording))
        far &= beyond
    return () if bad.all() else tuple(compress(robot.joint_names, bad & far))


def _beyond_limits(robot: Robot, recording: Recording) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Number of efforts (n,) at or beyond the limit of the joint, and whether some are far beyond."""
    limits = np.array([joint.limits.effort for joint in robot.independent_joints])
    size = np.nan_to_num(np.abs(recording.tau))
    counts = np.asarray(np.sum(size >= AT_LIMIT * limits, axis=0))
    return counts, np.asarray(np.quantile(size, 0.99, axis=0) > _FAR * limits)


def _on_efforts(robot: Robot, recording: Recording) -> str:
    beyond, far = _beyond_limits(robot, recording)
    bad = beyond > MOSTLY_BEYOND * max(1, len(recording))
    if not bad.any():
        return ""
    return (
        f"{recording.name}: {int(beyond[bad].sum()):,} of {int(bad.sum()) * len(recording):,} efforts of "
        f"{', '.join(compress(robot.joint_names, bad))} are at or beyond the limits of effort in the robot's file, and "
        f"do not count as saturated; {_MILLI if far[bad].all() else 'check their unit, and the names of joints'}"
    )
