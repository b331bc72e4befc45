# SPDX-License-Identifier: Apache-2.0
"""Benchmarks in MuJoCo: errors of the links over errors of the model, and timing of drives with Coulomb friction."""

import numpy as np
import pytest

pytest.importorskip("rich", reason="rich is not installed")
pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")
import benefit
from benefit import ModelError
from drive_timing import ENCODERS, PERIOD, RecordedDrive, judged, recording

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.simulation import ElasticPlant, outer_loop
from eom_dynamics.trajectory import paper_motion


def test_order_of_the_ways_and_of_the_delay() -> None:
    """With an exact model each derivative gains; a delay that is named too large is as bad as one that is not named."""
    errors = (ModelError(), ModelError(delay=5e-4), ModelError(delay=-5e-4))
    found = benefit.sweep("planar_2r", errors, 0.2)
    exact = found[ModelError()]
    assert np.all(np.diff(exact) < 0) and exact[0] > 1e3 * exact[3]
    late, early = (found[error][3] for error in errors[1:])
    assert late == pytest.approx(early, rel=0.1) and late > 100 * exact[3]


def test_errors_of_a_wrong_model_fall_with_feedback_of_the_links() -> None:
    wrong = [ModelError(stiffness=s, mass=m) for s, m in ((-0.05, 0.05), (0.05, -0.05))]
    plant, q = ElasticPlant(ElasticArm(load_robot("sea_planar_2r"))), paper_motion(2).derivatives(0.0, 0)[0]
    F = outer_loop(plant, q, benefit.NATURAL_FREQUENCY, 0.5e-3).F
    without, fed = (benefit.sweep("sea_planar_2r", wrong, 0.3, outer=x) for x in (None, F))
    # 4.8 times at least, measured; over longer motions it is more.
    assert all(fed[error][-1] < without[error][-1] / 4 for error in wrong)


def test_timing_with_coulomb_friction() -> None:
    """Within 0.1 ms if it is known when efforts act."""
    drive = RecordedDrive(2.5e-4, 1e-3, noise=ENCODERS)
    record = recording("sea_planar_2r", 5, friction=0.3, delay=1e-3, drive=drive, seconds=4.0)
    found = judged(record, -PERIOD / 2)
    assert found is not None and all(found.used) and np.max(np.abs(found.error)) < 1e-4
    assert np.max(np.abs(found.error / found.deviation)) < 4
