# SPDX-License-Identifier: Apache-2.0
"""Stored values of exported code, which agree with the closed form, and functions of drives with units of their own."""

from dataclasses import replace

import numpy as np
import pytest
from closed_forms import check_closed_form
from exported import robot, with_values

from eom_dynamics import load_robot
from eom_dynamics.codegen.program import OutputEntry
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export import FEEDFORWARD, capabilities, project, stored_values
from eom_dynamics.export.functions import OF_DRIVES


def test_states() -> None:
    """Always the same for a robot; at rest, and with large angles, among others."""
    exported = project(robot("iiwa"), ["effort"])
    first, second = stored_values(exported), stored_values(exported)
    assert all(np.array_equal(first.inputs[name], second.inputs[name]) for name in first.inputs)
    assert np.array_equal(first.outputs["effort"]["tau"], second.outputs["effort"]["tau"])
    assert not any(values[0].any() for values in first.inputs.values())
    assert np.abs(first.inputs["q"][-1]).max() > 2**20


def test_large_angles_do_not_widen_the_tolerance_of_other_states() -> None:
    stored = stored_values(project(robot("planar_2r"), ["mass_matrix"]))
    stored = replace(stored, outputs={"f": {"x": stored.inputs["q"]}})
    expected = 1e-11 * (1 + np.abs(stored.inputs["q"]).max(axis=1))
    np.testing.assert_array_equal(stored.tolerance("f", "x"), expected)
    assert expected[-1] > 1e-5 > 1e-10 > expected[:-1].max()


def test_program_that_differs_from_the_closed_form() -> None:
    exported = project(robot("planar_2r"), ["forward_kinematics"])
    program = exported.programs["forward_kinematics"]
    results = (OutputEntry(None, 0.0), *program.results[1:])
    exported.functions["forward_kinematics"] = replace(program, results=results)
    with pytest.raises(AssertionError, match="forward_kinematics: C differs from the closed form"):
        check_closed_form(exported, stored_values(exported))


@pytest.mark.parametrize("name", ["ur5e", "dual_arm"])
def test_axes_that_are_off_their_origins(name: str) -> None:
    """Large angles of such joints would have rounding errors in the closed form."""
    subject = robot(name)
    _, stored = with_values(subject, ("effort",))
    off = [k for k, joint in enumerate(subject.independent_joints) if np.any(joint.screw[3:])]
    assert np.abs(stored.inputs["q"][-1][off]).max(initial=0.0) < 4


def test_they_come_with_the_feedforward_of_robots_that_need_them() -> None:
    plain = load_robot("sea_planar_2r")
    assert not set(OF_DRIVES) & set(project(plain, [FEEDFORWARD]).functions)
    assert {"drive_command", "drive_state"} <= set(project(robot("drives"), [FEEDFORWARD]).functions)
    reason = "sea_planar_2r: drives are sent the command: it has no drive section and no compensated_by_robot"
    assert capabilities(plain)["c"].missing["drive_command"] == reason
    with pytest.raises(RobotDescriptionError, match="drives are sent the command"):
        project(plain, ["drive_state"])
