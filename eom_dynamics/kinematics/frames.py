# SPDX-License-Identifier: Apache-2.0
"""Poses of the bodies, and look-up of frames by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import joint_vectors, number_of_states
from ..arrays import AnyArray, derivative_names
from ..codegen.backends import require_robot
from ..codegen.functions import Signature, Vector, derivatives
from ..exceptions import StateError
from ..robot import Frame, Robot
from ..spelling import hint, shown


def body_poses(robot: Robot, q: ArrayLike) -> list[AnyArray]:
    """Poses (4, 4) or (N, 4, 4) of all bodies in the base frame in the order of ``robot.joints``, equation (5).

    The joint variables are (n,) or (N, n), rad or m. StateError if they have the wrong shape or are not finite,
    TypeError if ``robot`` is not a Robot.
    """
    require_robot(robot)
    if number_of_states(q) is not None:
        return [np.stack(poses) for poses in zip(*(body_poses(robot, state) for state in np.asarray(q)), strict=True)]
    E, e = robot.coupling
    poses: list[AnyArray] = []
    for joint, x in zip(robot.joints, E @ joint_vectors(robot.n, q)[0] + e, strict=True):
        step = joint.reference_pose @ lie.exp(joint.screw, x)
        poses.append(step if joint.parent < 0 else poses[joint.parent] @ step)
    return poses


def named_frame(robot: Robot, frames: Mapping[str, Frame], name: str | None) -> Frame:
    """Frame with this name, or for None the first tool of the robot; StateError if there is no such frame."""
    if name is None:
        return robot.tools[0]
    if not isinstance(name, str) or name not in frames:
        raise StateError(f"{robot.name} has no frame {shown(name)}; {hint(str(name), frames)}")
    return frames[name]


def signature_of(method: str, states: tuple[Vector, ...], orders: int, columns: int) -> Signature:
    """Signature of a pose, motion, Jacobian or center of mass, also with ``_derivatives``.

    Arguments are the configuration ``states`` and ``orders`` rates with ``columns`` entries.
    """
    pose = Vector("C", (4, 4), "pose of the frame, m")
    quantity = method.removesuffix("_derivatives")
    name, shape, about = {
        "pose": ("V", (6,), ""),
        "motion": ("V", (6,), "body twist of the frame, rad/s and m/s"),
        "jacobian": ("J", (6, columns), "maps rates to the twist of the frame"),
        "center_of_mass": ("c", (3,), "center of mass, m"),
        "center_of_mass_jacobian": ("J", (3, columns), "maps rates to the velocity of the center of mass"),
    }[quantity]
    first = (pose,) if quantity in ("pose", "motion") else ()
    names = derivative_names(name, orders + 1 - len(first))
    results = (*first, *(derivatives(names, len(names), shape, about) if names else ()))
    return Signature(states, results, result_type=tuple if len(results) > 1 else None)
