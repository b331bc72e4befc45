# SPDX-License-Identifier: Apache-2.0
"""Regressor of joint efforts, which are linear in the inertial parameters of the bodies: tau = Y pi.

The parameters of a body are its mass m, its first moment m c, and its inertia about the origin of the body frame,

    pi = (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz),

and the column of a parameter is the effort of a robot with this parameter equal to one and all others zero. Time
derivatives of tau follow from time derivatives of Y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import lie
from ..arrays import Array
from ..robot import Robot
from .links import LinkTree, Moments, link_frames, tree_in_frames, with_moments
from .newton_euler import inverse_dynamics
from .scalars import Scalar

PARAMETERS = 10
"""Inertial parameters of a body."""


def regressor(robot: Robot, states: Sequence[Sequence[Scalar]]) -> list[list[list[Scalar]]]:
    """Regressor and its time derivatives.

    Args:
        robot: the robot; its inertias have no effect.
        states: q, qd, qdd, …, at least these three; one scalar for each joint variable.

    Returns:
        Y, Yd, …, a matrix for each state from qdd on: a row for each joint variable, with ten entries for each body.
    """
    frames = link_frames(robot)
    tree = tree_in_frames(robot, frames, regrouped=False)
    zero: Array = np.zeros((3, 3))
    empty = tuple(replace(link, mass=0.0, first_moment=zero[0], second_moment=zero) for link in tree.links)
    orders = len(states) - 2
    columns: list[list[list[Scalar]]] = []
    for i, frame in enumerate(frames):
        for parameters in np.eye(PARAMETERS).tolist():
            alone = with_moments(empty[i], _moments_at(lie.inverse(frame), parameters))
            links = (*empty[:i], alone, *empty[i + 1 :])
            columns.append(inverse_dynamics(replace(tree, links=links, friction=(), passive=()), states))
    return [[[column[k][row] for column in columns] for row in range(tree.n)] for k in range(orders)]


def carrying(tree: LinkTree, payload: Sequence[Scalar]) -> LinkTree:
    """Tree with a rigid body fixed to each tool.

    Efforts are linear in the body's parameters; jets of parameters carry their rates into the derivatives of the
    efforts.

    Args:
        payload: mass, first moment (x, y, z) and inertia (xx, xy, xz, yy, yz, zz) of each tool's body about the origin
            of the tool's frame and along its axes; kg, kg m, kg m².
    """
    links, base = list(tree.links), tree.base
    for k, (i, pose) in enumerate(tree.tools):
        load = _moments_at(pose, payload[PARAMETERS * k : PARAMETERS * (k + 1)])
        if i >= 0:
            links[i] = with_moments(links[i], load)
        else:
            base = with_moments(base, load)
    return replace(tree, links=tuple(links), base=base)


def _moments_at(pose: Any, parameters: Sequence[Scalar]) -> Moments:
    """Moments of a body in the link's frame and about its origin; ``pose`` is the body frame in the link frame.

    A pose T transforms the pseudo-inertia P = [[Z, h], [h', m]] to T P T': P. M. Wensing, S. Kim and J.-J. E. Slotine,
    "Linear matrix inequalities for physically consistent inertial parameter identification", IEEE Robot. Autom. Lett. 3
    (2018).
    """
    m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
    a, b, c = 0.5 * (yy + zz - xx), 0.5 * (xx + zz - yy), 0.5 * (xx + yy - zz)
    pseudo_inertia = np.empty((4, 4), dtype=object)
    for i, row in enumerate(((a, -xy, -xz, x), (-xy, b, -yz, y), (-xz, -yz, c, z), (x, y, z, m))):
        for j, entry in enumerate(row):
            pseudo_inertia[i, j] = entry
    moved = pose @ pseudo_inertia @ pose.T
    # Both sides of the diagonal have the same expressions.
    for i in range(4):
        for j in range(i):
            moved[i, j] = moved[j, i]
    return Moments(moved[3, 3], moved[:3, 3], moved[:3, :3])
