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
from typing import Any

import numpy as np

from ..arrays import Array
from ..robot import Joint, Robot
from .links import Link, LinkTree, Moments, link_frames, tree_in_frames, with_moments
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
    return joint.inertial.parameters


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


def carrying(tree: LinkTree, payload: Sequence[Scalar]) -> LinkTree:
    """The tree with a rigid body fixed to each tool.

    Efforts are linear in its parameters; jets of these carry their rates into the time derivatives of the efforts.

    Args:
        payload: for each tool mass, first moment (x, y, z) and inertia (xx, xy, xz, yy, yz, zz) of the body about the
            origin of the tool's frame and along its axes; kg, kg m, kg m².
    """
    links, base = list(tree.links), tree.base
    for k, (i, pose) in enumerate(tree.tools):
        load = _at_link(pose, payload[PARAMETERS * k : PARAMETERS * (k + 1)])
        if i >= 0:
            links[i] = with_moments(links[i], load)
        else:
            base = with_moments(base, load)
    return replace(tree, links=tuple(links), base=base)


def _at_link(pose: Any, parameters: Sequence[Scalar]) -> Moments:
    """Moments in the frame of the link and about its origin.

    By the pseudo-inertia [[Z, h], [h', m]] of P. M. Wensing, S. Kim and J.-J. E. Slotine, "Linear matrix inequalities
    for physically consistent inertial parameter identification", IEEE Robot. Autom. Lett. 3 (2018), which a pose T
    moves as T P T'.
    """
    m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
    a, b, c = 0.5 * (yy + zz - xx), 0.5 * (xx + zz - yy), 0.5 * (xx + yy - zz)
    pseudo_inertia = np.empty((4, 4), dtype=object)
    for i, row in enumerate(((a, -xy, -xz, x), (-xy, b, -yz, y), (-xz, -yz, c, z), (x, y, z, m))):
        for j, entry in enumerate(row):
            pseudo_inertia[i, j] = entry
    moved = pose @ pseudo_inertia @ pose.T
    # The same expressions on both sides of the diagonal.
    for i in range(4):
        for j in range(i):
            moved[i, j] = moved[j, i]
    return Moments(moved[3, 3], moved[:3, 3], moved[:3, :3])
