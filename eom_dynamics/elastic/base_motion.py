# SPDX-License-Identifier: Apache-2.0
"""Base motion, as measured by an inertial measurement unit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked_pose, real_array, sequence
from ..arrays import Array
from ..exceptions import StateError
from ..jet import Jet
from ..recursion.newton_euler import specific_force
from ..robot import Robot

# Derivatives of each part of a BaseMotion, the part itself included.
_ROWS = {"angular_velocity": 4, "specific_force": 3}


class BaseMotion(NamedTuple):
    """Angular velocity and specific force of the base, in its frame; efforts depend on these only.

    Attributes:
        angular_velocity: w, wd, wdd, wddd (4, 3), of N states (4, N, 3), rad/s and time derivatives of the components.
        specific_force: f, fd, fdd (3, 3) or (3, N, 3), acceleration of the base origin minus gravity, as measured by an
            accelerometer there; m/s² and time derivatives of the components.
    """

    angular_velocity: Array
    specific_force: Array


def base_motion(
    robot: Robot,
    pose: ArrayLike,
    V0: ArrayLike,
    V0d: ArrayLike,
    V0dd: ArrayLike | None = None,
    V0ddd: ArrayLike | None = None,
) -> BaseMotion:
    """Motion of a base with a given pose and twist.

    Args:
        robot: robot with gravity in the inertial frame.
        pose: pose (4, 4) of the base in the inertial frame.
        V0, V0d, V0dd, V0ddd: body-fixed twist of the base (angular; linear) and its time derivatives, each (6,). The
            last two may be omitted, which means zero.

    Raises:
        StateError: an argument has the wrong shape or is not finite, or the pose is invalid.
    """
    C0 = checked_pose(real_array(pose, "pose", (4, 4)), "pose")
    twists = [V0, V0d, *(np.zeros(6) if V is None else V for V in (V0dd, V0ddd))]
    V = [real_array(x, name, (6,)) for x, name in zip(twists, ("V0", "V0d", "V0dd", "V0ddd"), strict=True)]
    columns = [Jet(column) for column in np.transpose(V)]
    f = specific_force(columns[:3], columns[3:], (C0[:3, :3].T @ robot.gravity).tolist())
    return BaseMotion(np.array(V)[:, :3], np.transpose([list(x) for x in f]))


def checked_base(base: BaseMotion) -> BaseMotion:
    """Base motion as arrays with all derivatives.

    Raises:
        StateError: ``base`` is not a BaseMotion, or a part has the wrong shape or is not finite.
    """
    parts = sequence(base, "base", "angular_velocity and specific_force, see BaseMotion")
    if len(parts) != len(_ROWS):
        raise StateError(f"base must have {' and '.join(_ROWS)}, see BaseMotion; has {len(parts)} parts")
    checked = []
    for (name, rows), part in zip(_ROWS.items(), parts, strict=True):
        array = real_array(part, f"base {name}")
        if array.ndim not in (2, 3) or array.shape[0] != rows or array.shape[-1] != 3:
            raise StateError(
                f"base {name} must have shape ({rows}, 3) or ({rows}, N, 3), a row for each derivative, zero where it "
                f"is not known; has {array.shape}"
            )
        checked.append(array)
    return BaseMotion(*checked)
