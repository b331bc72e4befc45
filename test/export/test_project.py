# SPDX-License-Identifier: Apache-2.0
"""Exported projects: names for any robot and its joints, and stored values, which agree with the closed form."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import export, renamed, robot, with_values
from linkages import four_bar

import eom_dynamics as eom
from eom_dynamics import load_robot
from eom_dynamics.codegen.native import NativeKernel
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export import FEEDFORWARD, PLANT, capabilities, project, stored_values
from eom_dynamics.export.compiled_loop import robot_table
from eom_dynamics.export.functions import OF_DRIVES, loop_functions
from eom_dynamics.export.project import identifier, in_ascii


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("iiwa", "iiwa"), ("my arm", "my_arm"), ("7-dof arm", "robot_7_dof_arm"), ("__x__", "x"), ("Ärm/β", "rm")),
        *(("日本", "robot"), ("a\n*/ b", "a_b")),
    ],
)
def test_identifiers(name: str, expected: str) -> None:
    assert identifier(name, "robot") == expected


def test_names_of_joints_are_unique() -> None:
    assert project(renamed("r", "a b", "A-b"), ["effort"]).joints == ("A_B", "A_B_2")


def test_no_kernels_are_compiled_for_the_numbers_of_a_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativeKernel, "__init__", lambda *_: pytest.fail("is compiled"))
    of_iiwa = load_robot("iiwa")
    assert "largest_effort" in robot_table(project(of_iiwa, loop_functions(of_iiwa)))


def test_names_are_not_too_long_for_matlab() -> None:
    exported = project(renamed("x" * 100, "a", "b"), ["forward_kinematics"])
    names = f"{exported.programs['forward_kinematics'].name}_batch", f"test_{exported.library}"
    assert max(map(len, names)) <= 63


@pytest.mark.parametrize(
    "name", ["a */ b", "a /* b", "what??/", "line\nend", "Gelenk \N{LATIN SMALL LETTER A WITH DIAERESIS}"]
)
def test_names_in_comments(name: str) -> None:
    text = in_ascii(name)
    assert text.isascii() and text.isprintable()
    assert not any(mark in text for mark in ("*/", "/*", "??"))


def test_header_of_each_file(tmp_path: Path) -> None:
    for language in ("c", "matlab", "cuda"):
        export(robot("mixed_chain"), language, tmp_path, ["effort"])
    files = list(tmp_path.iterdir())
    assert len(files) == 11
    for file in files:
        text = file.read_text(encoding="ascii")
        for wanted in (
            eom.__version__,
            "This file is yours",
            "1  prismatic  m          N       joint_2",
            "[1 -3 -9] m/s^2",
        ):
            assert wanted in text, (file.name, wanted)


@pytest.mark.parametrize("other", [four_bar(), eom.FloatingBase(robot("planar_2r")), "planar_2r"])
def test_what_is_no_robot_is_refused(other: object) -> None:
    with pytest.raises(TypeError, match=r"returned.*load_robot"):
        project(other, [PLANT])  # type: ignore[arg-type]


def test_states() -> None:
    """Equal for each call with a robot; at rest, and with large angles, among others."""
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


@pytest.mark.parametrize("name", ["ur5e", "dual_arm"])
def test_axes_that_are_off_their_origins(name: str) -> None:
    """Large angles of such joints would have rounding errors in the closed form."""
    subject = robot(name)
    _, stored = with_values(subject, ("effort", "tool_kinematics"))
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
