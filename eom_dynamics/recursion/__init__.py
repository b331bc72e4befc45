# SPDX-License-Identifier: Apache-2.0
"""Recursions in O(n), with time derivatives of any order: inverse dynamics, and the kinematics of a frame."""

from .links import Link, LinkTree, link_tree
from .newton_euler import inverse_dynamics

__all__ = ["Link", "LinkTree", "inverse_dynamics", "link_tree"]
