# SPDX-License-Identifier: Apache-2.0
"""Constant efforts and parallel springs of the joints of a link tree, with time derivatives of any order."""

from __future__ import annotations

from collections.abc import Sequence

from ..jet import Jet
from .links import LinkTree
from .scalars import Scalar


def passive_efforts(tree: LinkTree, positions: Sequence[Sequence[Scalar]]) -> list[Jet]:
    """Efforts c + K q that hold the joints against constant loads and parallel springs, with their time derivatives.

    A mimic joint with the position r q adds r times its efforts to that of its leader.

    Args:
        tree: links of the robot.
        positions: q, qd, …, one scalar for each joint variable.

    Returns:
        A jet for each joint variable, with as many entries as there are positions and rates.
    """
    efforts = [Jet.constant(0.0, len(positions)) for _ in range(tree.n)]
    for link, (constant, stiffness) in zip(tree.links, tree.passive, strict=False):
        i, r = link.coordinate, link.ratio
        own = [r * constant + efforts[i][0], *efforts[i][1:]]
        if stiffness:
            own = [x + (r * r * stiffness) * q[i] for x, q in zip(own, positions, strict=True)]
        efforts[i] = Jet(own)
    return efforts


def passive_stiffness(tree: LinkTree) -> list[float]:
    """Derivative of the passive effort of each joint variable for its position, N m/rad or N/m."""
    slopes = [0.0] * tree.n
    for link, (_, stiffness) in zip(tree.links, tree.passive, strict=False):
        slopes[link.coordinate] += link.ratio * link.ratio * stiffness
    return slopes


def passive_energy(tree: LinkTree, q: Sequence[Scalar]) -> Scalar:
    """Potential energy c q + K q²/2 of all passive efforts, zero at q = 0, J."""
    energy: Scalar = 0.0
    for link, (constant, stiffness) in zip(tree.links, tree.passive, strict=False):
        x = link.ratio * q[link.coordinate]
        energy = energy + x * (constant + 0.5 * stiffness * x)
    return energy
