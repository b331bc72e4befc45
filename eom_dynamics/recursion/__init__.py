# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with time derivatives of any order at a cost proportional to the number of joints."""

from .links import Link, LinkTree, link_tree
from .newton_euler import inverse_dynamics

__all__ = ["Link", "LinkTree", "inverse_dynamics", "link_tree"]
