# SPDX-License-Identifier: Apache-2.0
"""Whole turns of continuous joints: positions that were folded to one turn are made continuous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import Array
from ..robot import Robot

_NEAR = 0.1  # relative deviation from a turn of a range of folded positions, and of steps between others
_LARGEST = 1e9  # larger positions come from damaged messages
_DEGREES = 100.0  # range of folded positions above which they are in degrees


def without_turns(
    robot: Robot, positions: Array, names: Sequence[str], unit: str = "rad"
) -> tuple[Array, dict[str, int]]:
    """Undo steps of whole turns in positions (N, n) of continuous joints; return also the number of steps by joint.

    Args:
        robot: robot with continuous joints.
        positions: rad; NaN if missing.
        names: of the n columns.
        unit: ``rad`` or ``deg``, or ``auto``: degrees if positions range over more than 100.
    """
    result, steps = positions, dict[str, int]()
    for k, name in enumerate(names):
        known = np.flatnonzero(np.abs(positions[:, k]) < _LARGEST)
        if name not in robot.continuous_names or len(known) < 2:
            continue
        x = positions[known, k]
        turn = 360.0 if unit == "deg" or (unit == "auto" and np.ptp(x) > _DEGREES) else 2 * np.pi
        jumps = np.diff(x)[np.abs(np.diff(x)) > turn / 2] / turn
        if len(jumps) and (np.ptp(x) < (1 + _NEAR) * turn or np.all(np.abs(jumps - np.round(jumps)) < _NEAR)):
            result = result.copy() if result is positions else result
            result[known, k], steps[name] = np.unwrap(x, period=turn), len(jumps)
    return result, steps


def without_turns_between(robot: Robot, waypoints: Array, names: Sequence[str]) -> tuple[Array, dict[str, int]]:
    """As :func:`without_turns` for waypoints (K, n), which may be more than half a turn apart unless all are folded."""
    folded = np.all(np.abs(waypoints) <= np.pi * (1 + 1e-3), axis=0)
    result, steps = without_turns(robot, np.where(folded, waypoints, np.nan), names)
    return np.where(folded, result, waypoints), steps


def turns_note(steps: Mapping[str, int]) -> list[str]:
    """A note on steps that were undone, of no joint or more."""
    joints = ", ".join(f"{count:,} of {name}" for name, count in steps.items())
    return [f"positions of continuous joints were folded; steps of 2π are undone: {joints}"] if steps else []
