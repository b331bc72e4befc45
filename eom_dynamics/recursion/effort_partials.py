# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives of inverse dynamics with respect to q, qd and qdd, in O(n d) for a tree of depth d.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..jet import Jet
from .composite import Step, along, axis_of, composites
from .links import Link, LinkTree
from .newton_euler import LinkMotion, fixed_base, outward_and_inward_pass
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
