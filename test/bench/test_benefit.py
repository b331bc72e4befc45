# SPDX-License-Identifier: Apache-2.0
"""Sentences on a sweep over model errors are true for errors of both signs."""

import numpy as np
import pytest

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
