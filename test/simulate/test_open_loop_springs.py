# SPDX-License-Identifier: Apache-2.0
"""The iiwa on the paper's motion without feedback, with springs of every kind, in a simulation of its own.

``python bench/open_loop.py`` runs the same for 5 s; here each kind runs as long as it does in a few seconds.
"""

from __future__ import annotations

import pytest

pytest.importorskip("pinocchio", reason="Pinocchio is missing: pip install pin")

from open_loop_cases import CASES, Feedforward, link_errors

SLOW = {"damped": 0.2, "tabulated": 0.2, "antagonistic_exponential": 0.3, "antagonistic_quadratic": 0.2}
LASTS = {name: SLOW.get(name, 0.2 if "pairs" in name else 0.6) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_flatness_stays_on_the_trajectory(name: str) -> None:
    """What is left is the integrator's error, which the open-loop arm, unstable, lets grow."""
    assert max(link_errors(Feedforward(CASES[name]()), LASTS[name]).values()) < 1e-10


@pytest.mark.parametrize("name", [name for name in CASES if "pairs" not in name and "antagonistic" not in name])
def test_feedforward_for_rigid_joints_leaves_it(name: str) -> None:
    errors = link_errors(Feedforward(CASES[name](), rigid=True), 1.0, give_up=1e-3)
    assert max(errors.values()) > 1e-3
