# SPDX-License-Identifier: Apache-2.0
"""Recursions in O(n) with time derivatives of any order: inverse and forward dynamics, derivatives, kinematics."""

from .effort_partials import PARAMETERS, carrying, regressor
from .forward_dynamics import forward_dynamics
from .links import Link, LinkTree, link_tree
from .newton_euler import inverse_dynamics

__all__ = [
    "PARAMETERS",
    "Link",
    "LinkTree",
    "carrying",
    "forward_dynamics",
    "inverse_dynamics",
    "link_tree",
    "regressor",
]
