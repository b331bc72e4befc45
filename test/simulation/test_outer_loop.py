# SPDX-License-Identifier: Apache-2.0
"""Feedback of the links around the PD of the motors: optimality and margins."""

from __future__ import annotations

import numpy as np
import pytest

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.simulation import ElasticPlant, outer_loop
from eom_dynamics.simulation.margins import LEAST_DAMPING

W = 70.0


def plant(name: str) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot(name)))


@pytest.mark.parametrize("name", ["sea_planar_2r", "vsa_planar_2r"])
def test_recommended_loops_leave_margins(name: str) -> None:
    arm = plant(name)
    q = np.full(arm.arm.robot.n, 0.3)
    found = outer_loop(arm, q, W, 0.5e-3)
    assert found.margins.gain >= 2 and found.margins.delay >= 1e-3
    poles = np.linalg.eigvals(found.loop.A - found.loop.B @ found.F)
    # Each resonance is damped at least as assumed, but for rounding.
    assert np.all(-poles.real >= 0.999 * LEAST_DAMPING * np.abs(poles))
    # A regulator at the motors has a phase margin of 60 degrees without delay.
    assert found.loop.margins().phase >= 59.9


def test_delays_that_are_too_long_are_refused() -> None:
    with pytest.raises(StateError, match=r"delay of 1e\+06 ms is too long"):
        outer_loop(plant("pendulum"), [0.0], W, 1e3)
    with pytest.raises(StateError, match="delay"):
        outer_loop(plant("pendulum"), [0.0], W, -1.0)
