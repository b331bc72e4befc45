# SPDX-License-Identifier: Apache-2.0
"""Centre of mass, with time derivatives of any order.

The first moment of a link and of the links that it carries is that of its own mass, and those of its children brought
into its frame: from the tips to the base, as jets. Scalars may be of any type, as in :mod:`.newton_euler`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..arrays import Array
from ..jet import Jet
from .links import LinkTree
from .scalars import Scalar
from .vectors import Angle, Vector, add, rotated, shifted_sincos


def center_of_mass(tree: LinkTree, states: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Centre of mass of all links in the base frame, and its time derivatives.

    Args:
        tree: links of the robot, with their own inertias: not regrouped.
        states: q, qd, …, at least the first.

    Returns:
        c, cd, …, one for each state.
    """
    mass, moments = first_moment(tree, states)
    return [[(1.0 / mass) * x for x in moment] for moment in moments]


def first_moment(
    tree: LinkTree, states: Sequence[Sequence[Scalar]], *, with_base: bool = False
) -> tuple[float, list[list[Scalar]]]:
    """Mass of all links, and first moment of mass in the base frame with time derivatives.

    Args:
        tree, states: as above.
        with_base: whether to add the base.
    """
    orders = len(states)
    # Of each link with those that it carries; the base is the last.
    masses = [*(link.mass for link in tree.links), tree.base.mass if with_base else 0.0]
    moments = [_constant(link.first_moment, orders) for link in tree.links]
    moments.append(_constant(tree.base.first_moment if with_base else [0.0] * 3, orders))
    for i in reversed(range(len(tree.links))):
        link, (x, y, z) = tree.links[i], moments[i]
        q = link.displacement(states)
        moment = [x, y, z + masses[i] * (link.pitch * q + Jet.constant(link.offset, orders))]
        if link.turns:
            moment = Angle(*shifted_sincos(q[0], link.angle), q.rate).back().turned(moment)
        moment = add(rotated(link.rotation.tolist(), moment), _constant(masses[i] * link.translation, orders))
        masses[link.parent] += masses[i]
        moments[link.parent] = add(moments[link.parent], moment)
    return masses[-1], [[x[k] for x in moments[-1]] for k in range(orders)]


def _constant(vector: Sequence[float] | Array, orders: int) -> Vector:
    return [Jet.constant(float(x), orders) for x in vector]
