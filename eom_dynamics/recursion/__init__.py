# SPDX-License-Identifier: Apache-2.0
"""Recursive inverse dynamics with time derivatives of any order, in O(n)."""

from .links import Link, LinkTree, link_tree
from .newton_euler import inverse_dynamics

__all__ = ["Link", "LinkTree", "inverse_dynamics", "link_tree"]
