# SPDX-License-Identifier: Apache-2.0
"""Sentences on a sweep over model errors are true for errors of both signs."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from paths import ROOT

sys.path.append(str(ROOT / "bench"))

pytest.importorskip("rich", reason="rich is not installed")
pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")
import benefit
from benefit import ModelError, Sweep

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, outer_loop
from eom_dynamics.trajectory import paper_motion

ROBOT = load_robot("planar_2r")
PERIOD = 1e-3
PAYS = "at least 20 % of stiffness, at least 20 % of mass, at least 20 % of rotor"
NO_FRICTION = "Without friction in the model there is no error of it."


def invented(rms: Array) -> Sweep:
    errors = benefit.model_errors(ROBOT, PERIOD)
    return Sweep(ROBOT, errors, np.broadcast_to(rms, (len(errors), 4)).copy(), PERIOD, 70.0, 3.0, 15.0)


def test_every_error_comes_with_both_signs() -> None:
    *errors, without_lead = benefit.model_errors(load_robot("sea_planar_2r"), PERIOD)
    assert without_lead == ModelError(delay=PERIOD / 2)
    assert len(set(errors)) == len(errors) and errors[0] == type(errors[0])()
    for error in errors:
        assert any(np.allclose(error, -np.array(other), rtol=0, atol=1e-12) for other in errors)
    assert {name for error in errors for name, value in error._asdict().items() if value} == set(errors[0]._fields)
    # An arm without friction has no error of it.
    assert not any(error.friction for error in benefit.model_errors(ROBOT, PERIOD))


@pytest.mark.parametrize(
    ("rms", "texts"),
    [
        ([1.0, 2.0, 2.0, 2.0], ["2.00 × larger to 2.00 × larger; worse with {0} of {0}", "τ̈ does not pay"]),
        ([8.0, 4.0, 2.0, 1.0], ["8.00 × smaller; worse with 0 of {0}", PAYS, NO_FRICTION]),
    ],
)
def test_ratios_are_told_as_larger_or_smaller(rms: list[float], texts: list[str]) -> None:
    sweep = invented(np.array(rms))
    found = "\n".join(benefit.verdicts(sweep))
    for text in texts:
        assert text.format(len(sweep.errors)) in found


def test_the_worst_sign_of_an_error_counts() -> None:
    sweep = invented(np.array([8.0, 4.0, 2.0, 1.0]))
    for k, error in enumerate(sweep.errors):
        if error.mass == 0.05:
            sweep.rms[k] = [8.0, 2.0, 2.0, 2.0]
    assert "20 % of stiffness, 2 % of mass" in benefit.verdicts(sweep)[4]
    sweep = invented(np.array([9.0, 4.0, 2.0, 1.0]))
    for k, error in enumerate(sweep.errors):
        if 0.05 in np.abs(error[:2]) and not all(error[:2]):
            sweep.rms[k] = [9.0, 1.3, 1.0, 1.1] if error.mass > 0 else [9.0, 1.0, 1.1, 1.1]
    headline = (
        "For an arm whose stiffness and masses are known to 5 %, use τ/K: τ̇ and τ̈ change the error by at most 16 %."
    )
    assert benefit.verdicts(sweep)[0] == headline


def test_timing_of_the_drives_and_gain_of_the_lead() -> None:
    robot = replace(ROBOT, drive_delay=2e-3)
    errors = benefit.model_errors(robot, PERIOD)
    rms = np.array([[8.0, 4.0, 2.0, 6.0 if error.delay == 2.5e-3 else 1.0] for error in errors])
    sweep = Sweep(robot, errors, rms, PERIOD, 70.0, 3.0, 15.0)
    assert "commands held for 1 ms, acting 2 ms later; lead 2.5 ms; a PD" in benefit.verdicts(sweep)[1]
    assert "Without the lead the error with flatness is 6.00 × larger." in benefit.verdicts(sweep)


def test_order_of_the_ways_and_of_the_delay() -> None:
    """With an exact model each derivative gains; a delay that is named too large is as bad as one that is not named."""
    errors = (ModelError(), ModelError(delay=5e-4), ModelError(delay=-5e-4))
    found = benefit.sweep("planar_2r", errors, 0.2)
    exact = found.of(ModelError())
    assert np.all(np.diff(exact) < 0) and exact[0] > 1e3 * exact[3]
    late, early = (found.of(error)[3] for error in errors[1:])
    assert late == pytest.approx(early, rel=0.1) and late > 100 * exact[3]


def test_errors_of_a_wrong_model_fall_with_feedback_of_the_links() -> None:
    wrong = [ModelError(stiffness=s, mass=m) for s, m in ((-0.05, 0.05), (0.05, -0.05))]
    plant, q = ElasticPlant(ElasticArm(load_robot("sea_planar_2r"))), paper_motion(2).derivatives(0.0, 0)[0]
    F = outer_loop(plant, q, benefit.NATURAL_FREQUENCY, 0.5e-3).F
    without, fed = (benefit.sweep("sea_planar_2r", wrong, 0.3, outer=x).rms for x in (None, F))
    # 4.8 times at least, measured; over longer motions it is more.
    assert np.all(fed[:, -1] < without[:, -1] / 4)
