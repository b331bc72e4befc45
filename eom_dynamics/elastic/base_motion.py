# SPDX-License-Identifier: Apache-2.0
"""Motion of the base of an arm that is carried, as an inertial measurement unit tells it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..jet import Jet
from ..recursion.newton_euler import specific_force
from ..robot import Robot
from ..states import state_arrays


class BaseMotion(NamedTuple):
    """Motion of the base in its own frame; pose and velocity do not matter for the efforts.

    Attributes:
        angular_velocity: w, wd, wdd, wddd (4, 3), of N states (4, N, 3), rad/s and time derivatives of the components.
        specific_force: f, fd, fdd (3, 3) or (3, N, 3), acceleration of the origin of the base less gravity, as an
            accelerometer there measures it, m/s² and time derivatives of the components.
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
        robot: has the gravity in the inertial frame.
        pose: (4, 4) of the base in the inertial frame.
        V0, V0d, V0dd, V0ddd: body-fixed twist of the base (angular; linear) and its time derivatives, each (6,). The
            last two may be omitted, which means zero.

    Raises:
        StateError: an argument has the wrong shape or is not finite.
    """
    twists = [V0, V0d, *(np.zeros(6) if V is None else V for V in (V0dd, V0ddd))]
    (C0, *V), _ = state_arrays((pose, *twists), ("pose", "V0", "V0d", "V0dd", "V0ddd"), [(4, 4)] + [(6,)] * 4)
    columns = [Jet(column) for column in np.transpose(V)]
    f = specific_force(columns[:3], columns[3:], C0[:3, :3].T @ robot.gravity)
    return BaseMotion(np.array(V)[:, :3], np.transpose([list(x) for x in f]))
