# SPDX-License-Identifier: Apache-2.0
"""Friction of the joints of a link tree, with time derivatives of any order."""

from __future__ import annotations

from collections.abc import Sequence

from ..jet import Jet
from .links import LinkTree
from .scalars import Scalar


def joint_friction(tree: LinkTree, rates: Sequence[Sequence[Scalar]]) -> list[Jet]:
    """Efforts against friction, D v + c tanh(v/v_0) of each joint rate v, with their time derivatives.

    A mimic joint with the rate r qd adds r times its friction to the effort of its leader.

    Args:
        tree: links of the robot; without friction the efforts are zero.
        rates: qd, qdd, …, one scalar for each joint variable.

    Returns:
        A jet for each joint variable, with as many entries as there are rates.
    """
    efforts = [Jet.constant(0.0, len(rates)) for _ in range(tree.n)]
    for link, law in zip(tree.links, tree.friction, strict=False):
        velocity = link.ratio * Jet([rate[link.coordinate] for rate in rates])
        efforts[link.coordinate] = efforts[link.coordinate] + link.ratio * law.effort_jet(velocity)
    return efforts
