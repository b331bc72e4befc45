# SPDX-License-Identifier: Apache-2.0
"""Feedback of the links around the PD of the motors: optimality, margins, and errors of wrong models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.simulation import ElasticPlant, outer_loop
from eom_dynamics.simulation.margins import LEAST_DAMPING
from eom_dynamics.simulation.model_errors import ModelError, sweep
from eom_dynamics.trajectory import paper_motion

W = 70.0
# Both signs of each, and the pair that adds.
WRONG = [ModelError(stiffness=s, mass=m) for s in (-0.05, 0.05) for m in (-0.05, 0.05)]


def plant(name: str) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot(name)))


def test_errors_of_a_wrong_model_fall() -> None:
    robot, motion = load_robot("sea_planar_2r"), paper_motion(2)
    F = outer_loop(plant(robot.name), motion.derivatives(0.0, 0)[0], W, 0.5e-3).F
    without, fed = (sweep(robot, motion, 0.0, 0.3, WRONG, natural_frequency=W, outer=x).rms for x in (None, F))
    # 4.8 times at least, measured; over longer motions it is more.
    assert np.all(fed[:, -1] < without[:, -1] / 4)


def test_delay_of_the_drives_counts_in_the_simulation() -> None:
    """Gains of twice their margin under the delay are unstable with it, and stable without."""
    robot, motion = replace(load_robot("planar_2r"), drive_delay=4e-3), paper_motion(2)
    found = outer_loop(plant("planar_2r"), motion.derivatives(0.0, 0)[0], W, 4.5e-3)
    errors = [ModelError(stiffness=0.05)]

    def rms(factor: float, delay: float) -> float:
        arm = replace(robot, drive_delay=delay)
        return float(sweep(arm, motion, 0.0, 0.25, errors, natural_frequency=W, outer=factor * found.F).rms[0, -1])

    beyond = 2.0 * found.margins.gain
    assert not rms(beyond, 4e-3) < 2e-2 and rms(beyond, 0.0) < 2e-3


@pytest.mark.parametrize("name", ["sea_planar_2r", "vsa_planar_2r", "iiwa"])
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
