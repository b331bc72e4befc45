# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives of inverse dynamics, in O(n d) for a tree of depth d: q, qd, qdd and inertial parameters.

Let link k, with all links beyond it, move by a unit of its joint. In the frame of link k only the motion of the link
changes, and with it the accelerations of the points r of its composite body:

    dp + b x r + 2 w x (dw x r) + 2 dw x dr/dt.

Here w is the angular velocity of the link, p the acceleration of its origin, dr/dt the velocity of a point in its
frame, and U as in :mod:`.newton_euler`. Translation along the axis z by a pitch h adds h U z to p. Rotation about z
rotates the parent's motion in the frame of the link, so that, with b = d(dw/dt) + dw x w,

    dw = w x z,    dp = p x z + h U z,    b = -U' z.

The wrench of these accelerations gives the change of all joint efforts. For joints before k there is a second term: the
wrench F of link k and beyond rotates with the link, by the joint screw times F. The derivative with respect to qd is 2
C with the Coriolis matrix of Christoffel symbols; with respect to qdd it is M. The composite bodies, and the two
vectors carried inward, are as in :mod:`.composite`.

The derivation follows S. Singh, R. P. Russell and P. M. Wensing, "Efficient analytical derivatives of rigid-body
dynamics using spatial vector algebra", IEEE Robot. Autom. Lett. 7 (2022), with points instead of spatial vectors, so
that the velocity of the origin does not occur.

Joint efforts are linear in the inertial parameters of the bodies, tau = Y pi, with the regressor Y. The parameters of a
body are its mass m, its first moment m c, and its inertia about the origin of the body frame,

    pi = (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz),

and the column of a parameter is the effort of a robot with this parameter equal to one and all others zero. Time
derivatives of tau follow from time derivatives of Y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import lie
from ..arrays import Array
from ..jet import Jet
from ..robot import Robot
from .composite import Step, along, axis_of, composites
from .links import Link, LinkTree, Moments, link_frames, tree_in_frames, with_moments
from .newton_euler import LinkMotion, fixed_base, inverse_dynamics, outward_and_inward_pass
from .passive_efforts import passive_stiffness
from .scalars import Matrix, Numbers, Scalar, dot, plus

_NO_VELOCITY = [0.0, 0.0, 0.0]


def effort_by_position(
    tree: LinkTree, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar], wrench: Sequence[Scalar] = ()
) -> Matrix:
    """Partial derivatives of the joint efforts with respect to q: row i is the gradient of effort i.

    Args:
        wrench: wrenches that the robot exerts at its tools, as in :func:`.newton_euler.inverse_dynamics`.
    """
    done = outward_and_inward_pass(tree, [q, qd, qdd], [wrench] if len(wrench) else (), fixed_base(tree, 1))
    steps = [Step.of(link, q, qd) for link in tree.links]
    bodies = composites(tree, steps, rates=True)
    changes = [_Change.of(link, motion) for link, motion in zip(tree.links, done.motions, strict=True)]
    slopes = passive_stiffness(tree.passive, q)
    by_q: Matrix = [[slopes[i] if i == k else 0.0 for k in range(tree.n)] for i in range(tree.n)]
    for k, link in enumerate(tree.links):
        axis, row, body, change = axis_of(link), link.coordinate, bodies[k], changes[k]
        w = _values(done.motions[k].w)
        wrench_of_link = [*_values(done.moments[k]), *_values(done.forces[k])]
        force = body.force(change.b, change.dp)
        force = plus(force, [2.0 * x for x in body.force_of_rates(change.dw, _NO_VELOCITY, w)])
        force = plus(force, _turned_with(link, wrench_of_link))
        momentum, transposed = body.force(*axis), body.transposed_rates(*axis, w)
        i = k
        while i >= 0:
            other = tree.links[i]
            column, factor = other.coordinate, link.ratio * other.ratio
            by_q[column][row] = by_q[column][row] + factor * along(other, force)
            if i != k:
                by_q[row][column] = by_q[row][column] + factor * changes[i].effort(momentum, transposed)
            transposed = steps[i].force_out(steps[i].moving(transposed, momentum))
            momentum, force = steps[i].force_out(momentum), steps[i].force_out(force)
            i = other.parent
    return by_q


@dataclass(frozen=True)
class _Change:
    """Change of the motion of a link by a unit of its joint: dw, dp and b, see above."""

    dw: Numbers
    dp: Numbers
    b: Numbers

    @classmethod
    def of(cls, link: Link, motion: LinkMotion) -> _Change:
        U = motion.U
        xx, yy, _ = (square[0] for square in U.squares)
        along_axis = [U.xz[0], U.yz[0], -(xx + yy)]
        dp = [link.pitch * x for x in along_axis]
        if not link.turns:
            return cls([0.0] * 3, dp, [0.0] * 3)
        (wx, wy, _), (px, py, _) = _values(motion.w), _values(motion.p)
        return cls([wy, -wx, 0.0], plus(dp, [py, -px, 0.0]), [-U.zx[0], -U.zy[0], xx + yy])

    def effort(self, momentum: Numbers, transposed: Numbers) -> Scalar:
        """Change of the effort of a joint further out, from its two vectors carried to this link."""
        return dot(momentum, [*self.b, *self.dp]) + 2.0 * dot(transposed[:3], self.dw)


def _turned_with(link: Link, wrench: Numbers) -> Numbers:
    """Change of a wrench (moment; force) that moves with a unit of the joint."""
    nx, ny, _, fx, fy, _ = wrench
    h = link.pitch
    moment = [-(h * fy), h * fx, 0.0]
    if not link.turns:
        return [*moment, 0.0, 0.0, 0.0]
    return [*plus(moment, [-ny, nx, 0.0]), -fy, fx, 0.0]


def _values(vector: Sequence[Jet]) -> Numbers:
    return [x[0] for x in vector]


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
