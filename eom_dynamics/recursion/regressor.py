# SPDX-License-Identifier: Apache-2.0
"""Regressor of the joint efforts, which are linear in the inertial parameters of the bodies: tau = Y pi.

The parameters of a body are its mass m, its first moment m c, and its inertia about the origin of the body frame,

    pi = (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz),

and the column of each is the efforts of a robot that has this one alone, as one. Time derivatives of tau have those of
Y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..robot import Joint, Robot
from .links import Link, link_frames, tree_in_frames
from .newton_euler import inverse_dynamics
from .scalars import Scalar

PARAMETERS = 10
"""Inertial parameters of a body."""


def regressor(robot: Robot, states: Sequence[Sequence[Scalar]]) -> list[list[list[Scalar]]]:
    """Regressor and its time derivatives.

    Args:
        robot: the robot; its inertias do not matter.
        states: q, qd, qdd, …, at least these three; one scalar for each joint variable.

    Returns:
        Y, Yd, …, one for each state from qdd on: for each joint variable a row with ten entries for each body.
    """
    frames = link_frames(robot)
    tree = tree_in_frames(robot, frames, regrouped=False)
    empty = tuple(_with_inertia(link, 0.0, np.zeros(3), np.zeros((3, 3))) for link in tree.links)
    orders = len(states) - 2
    columns: list[list[list[Scalar]]] = []
    for i, frame in enumerate(frames):
        for parameters in np.eye(PARAMETERS):
            links = (*empty[:i], _with_inertia(empty[i], *_in_frame(parameters, frame)), *empty[i + 1 :])
            columns.append(inverse_dynamics(replace(tree, links=links, friction=(), passive=()), states))
    return [[[column[k][row] for column in columns] for row in range(tree.n)] for k in range(orders)]


def inertial_parameters(joint: Joint) -> Array:
    """Parameters pi (10,) of a body, kg, kg m, kg m²."""
    inertia = joint.inertia_about_origin
    moments = inertia[np.triu_indices(3)]
    parameters: Array = np.concatenate([[joint.mass], joint.mass * np.asarray(joint.center_of_mass), moments])
    return parameters


def _in_frame(parameters: Array, frame: Array) -> tuple[float, Array, Array]:
    """Mass, first and second moment about the origin of a frame (4, 4) in the body frame, and along its axes."""
    m, h = float(parameters[0]), parameters[1:4]
    inertia: Array = np.zeros((3, 3))
    inertia[np.triu_indices(3)] = parameters[4:]
    inertia = inertia + np.triu(inertia, 1).T
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    R, r = frame[:3, :3], frame[:3, 3]
    moved = second - np.outer(h, r) - np.outer(r, h) + m * np.outer(r, r)
    return m, R.T @ (h - m * r), R.T @ moved @ R


def _with_inertia(link: Link, mass: float, first_moment: Array, second_moment: Array) -> Link:
    return replace(link, mass=mass, first_moment=first_moment, second_moment=second_moment)
