# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives from composite bodies against complex steps through the recursion of Newton and Euler."""

from __future__ import annotations

import numpy as np
from differences import deviation
from hypothesis import given
from trees import MovingTree, moving_trees

from eom_dynamics.arrays import Array
from eom_dynamics.recursion import LinkTree, inverse_dynamics, link_tree
from eom_dynamics.recursion.effort_partials import effort_by_position

_STEP = 1e-100


def by_complex_steps(tree: LinkTree, states: Array, wrench: Array) -> Array:
    """Im tau(q + i h e_j) / h: exact, since h² is lost in rounding."""
    columns = []
    for j in range(tree.n):
        stepped = states.astype(complex)
        stepped[0, j] += _STEP * 1j
        (tau,) = inverse_dynamics(tree, stepped.tolist(), [wrench.tolist()])
        columns.append(np.imag(tau) / _STEP)
    return np.array(columns).T


def partials(tree: LinkTree, states: Array, wrench: Array) -> Array:
    return np.array(effort_by_position(tree, *states.tolist(), wrench.tolist()))


@given(case=moving_trees(1))
def test_random_trees(case: MovingTree) -> None:
    """1e-12: both round terms that cancel, up to 100 times as large as the largest entry."""
    tree = link_tree(case.robot)
    expected = by_complex_steps(tree, case.states, case.wrench[0])
    assert deviation(partials(tree, case.states, case.wrench[0]), expected, floor=1.0) < 1e-12
