# SPDX-License-Identifier: Apache-2.0
"""The values that exported code is tested by: they come from the closed form, and wrong code is not exported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chains import Case, cases
from exported import ROBOTS, robot
from hypothesis import given, settings

import eom_dynamics as eom
from eom_dynamics.kernel.export import ExportError, project, stored_values
from eom_dynamics.kernel.program import Result
from eom_dynamics.kernel.programs import PROGRAMS


@settings(max_examples=10)
@given(cases(derivatives=1))
def test_recursion_and_closed_form_agree_for_random_chains(case: Case) -> None:
    stored = stored_values(project(case.robot, PROGRAMS))
    assert set(stored.outputs) == {"tau", "taud", "taudd", "M", "dtau_dq", "dtau_dqd", "dtau_dqdd"}


@pytest.mark.parametrize("name", ROBOTS)
def test_partials_are_the_differences_of_the_efforts(name: str) -> None:
    subject = robot(name)
    stored = stored_values(project(subject, ["effort_partials"]))
    state = 3
    point = [stored.inputs[key][state] for key in ("q", "qd", "qdd")]
    for k, output in enumerate(("dtau_dq", "dtau_dqd", "dtau_dqdd")):
        expected = stored.outputs[output][state].reshape(subject.n, subject.n)
        for j, e in enumerate(np.eye(subject.n)):

            def tau(h: float, k: int = k, e: np.ndarray = e) -> np.ndarray:
                q, qd, qdd = (x + h * e if i == k else x for i, x in enumerate(point))
                return eom.equations_of_motion(
                    subject, q, qd, wrench=[stored.inputs["W"][state].reshape(subject.wrench_shape)]
                ).efforts(qdd)[0]

            np.testing.assert_allclose((tau(1e-5) - tau(-1e-5)) / 2e-5, expected[:, j], atol=1e-6)


def test_states_are_always_the_same_with_rest_and_far_turns_among_them() -> None:
    exported = project(robot("iiwa"), ["effort"])
    first, second = stored_values(exported), stored_values(exported)
    assert all(np.array_equal(first.inputs[name], second.inputs[name]) for name in first.inputs)
    assert np.array_equal(first.outputs["tau"], second.outputs["tau"])
    assert not any(values[0].any() for values in first.inputs.values())
    assert np.abs(first.inputs["q"][-1]).max() > 2**20


def test_code_that_differs_from_the_closed_form_is_not_exported() -> None:
    exported = project(robot("planar_2r"), ["effort"])
    program = exported.programs["effort"]
    exported.programs["effort"] = replace(program, results=(program.results[0], Result(None, 0.0)))
    with pytest.raises(ExportError, match=r"planar_2r_effort: tau differs from the closed form"):
        stored_values(exported)
