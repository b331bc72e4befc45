# SPDX-License-Identifier: Apache-2.0
"""Sentences and regions of a sweep over model errors are true for errors of both signs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("plotly")

from eom_dynamics import load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation.model_errors import Sweep
from eom_dynamics.tools.simulate import sweep as sweeps

ROBOT = load_robot("planar_2r")


def invented(rms: Array) -> Sweep:
    errors = sweeps.model_errors(ROBOT)
    return Sweep(ROBOT, errors, np.broadcast_to(rms, (len(errors), 4)).copy(), 1e-3, 70.0, 3.0, 15.0)


def test_every_error_comes_with_both_signs() -> None:
    errors = sweeps.model_errors(load_robot("sea_planar_2r"))
    assert len(set(errors)) == len(errors) and errors[0] == type(errors[0])()
    for error in errors:
        assert any(np.allclose(error, -np.array(other), rtol=0, atol=1e-12) for other in errors)
    assert {name for error in errors for name, value in error._asdict().items() if value} == set(errors[0]._fields)
    # An arm without friction has no error of it.
    assert not any(error.friction for error in sweeps.model_errors(ROBOT))


def test_a_ratio_below_one_is_told_as_worse() -> None:
    worse = invented(np.array([1.0, 2.0, 2.0, 2.0]))
    lines = sweeps.verdicts(worse)
    assert "2.00 × larger to 2.00 × larger" in lines[1] and "worse with" in lines[1]
    count = len(worse.errors)
    assert f"worse with {count} of {count}" in lines[1]
    assert any("τ̈ does not pay" in line for line in lines)
    better = sweeps.verdicts(invented(np.array([8.0, 4.0, 2.0, 1.0])))
    assert "8.00 × smaller" in better[1] and "worse with 0 of" in better[1]
    # The ratio is the same with all errors.
    assert "up to errors of at least 20 % of stiffness, at least 20 % of mass, at least 20 % of rotor" in better[2]
    assert "at least 1 ms of delay, each alone and of both signs" in better[2] and "friction" not in better[2]
    assert better[-1] == "Without friction in the model there is no error of it."
    assert sweeps.compared(0.5) == "2.00 × larger" and sweeps.compared(2.0) == "2.00 × smaller"


def test_a_term_pays_only_where_it_does_with_both_signs() -> None:
    sweep = invented(np.array([8.0, 4.0, 2.0, 1.0]))
    for k, error in enumerate(sweep.errors):
        if error.mass == 0.05:
            sweep.rms[k] = [8.0, 2.0, 2.0, 2.0]
    assert "20 % of stiffness, 2 % of mass" in sweeps.verdicts(sweep)[2]


def test_friction_has_a_row_of_the_chart_where_the_model_has_any() -> None:
    robot = load_robot("sea_planar_2r")
    errors = sweeps.model_errors(robot)
    rms = np.array([[8.0, 4.0, 2.0, 1.0] if error.friction < 0 else [1.0, 2.0, 3.0, 4.0] for error in errors])
    sweep = Sweep(robot, errors, rms, 1e-3, 70.0, 3.0, 15.0)
    heat = sweeps.regions_alone(sweep).data[-1]
    row = list(heat.y).index("friction")
    assert list(heat.z[row]) == [3, 3, 0, 0]
    assert tuple(heat.text[row]) == ("-50 %<br>8.00 ×", "-20 %<br>8.00 ×", "+20 %<br>0.250 ×", "+50 %<br>0.250 ×")
    assert "friction +50 %" in heat.customdata[row][3]


def test_least_way_that_is_as_good() -> None:
    assert sweeps.least_as_good(np.array([1.04, 1.0, 1.0, 1.0])) == 0
    assert sweeps.least_as_good(np.array([1.06, 1.04, 1.0, 1.0])) == 1
    assert sweeps.least_as_good(np.array([np.nan, 3.0, 2.0, 1.0])) == 3
    assert sweeps.least_as_good(np.full(4, np.nan)) is None


def test_chart_and_table_have_all_errors_and_survive_arms_that_end() -> None:
    sweep = invented(np.array([4.0, 3.0, 2.0, 1.0]))
    sweep.rms[3] = np.nan
    sweep.rms[4, 0] = np.nan
    heat = sweeps.regions(sweep).data[-1]
    assert np.shape(heat.z) == (len(sweeps.GRID), len(sweeps.GRID))
    table = sweeps.rows(sweep)
    assert len(table) == len(sweep.errors) and {len(row) for row in table} == {len(sweeps.HEADER)}
    assert table[0][0] == "exact model" and table[3][-1] == "–"
    assert list(sweeps.regions_alone(sweep).data[-1].y) == ["delay", "rotor inertia", "mass", "stiffness"]
    content = sweeps.as_json(sweep)
    assert content["rms"][3] == [None] * 4 and len(content["errors"]) == len(sweep.errors)
