# SPDX-License-Identifier: Apache-2.0
"""Names in exported code, for any names of a robot and its joints."""

from pathlib import Path

import pytest
from compilation import COMPILERS
from exported import export, renamed, robot, succeed
from linkages import four_bar

import eom_dynamics as eom
from eom_dynamics.export import PLANT, project
from eom_dynamics.export.project import identifier, in_ascii


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("iiwa", "iiwa"),
        ("my arm", "my_arm"),
        ("7-dof arm", "robot_7_dof_arm"),
        ("__x__", "x"),
        ("Ärm/β", "rm"),
        ("日本", "robot"),
        ("a\n*/ b", "a_b"),
    ],
)
def test_identifiers(name: str, expected: str) -> None:
    assert identifier(name, "robot") == expected


def test_names_of_joints_are_unique() -> None:
    assert project(renamed("r", "a b", "A-b"), ["effort"]).joints == ("A_B", "A_B_2")


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


@pytest.mark.skipif(not COMPILERS, reason="no C compiler is installed")
def test_c_compiles_with_any_names(tmp_path: Path) -> None:
    named = renamed("int */ main??/", "double", "/* \\ \n %s \N{GREEK SMALL LETTER TAU}")
    exported, _ = export(named, "c", tmp_path, ["effort"])
    assert exported.joints == ("DOUBLE", "S")
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    succeed(["cc", *strict, *tmp_path.glob("*.c"), "-o", "built"], tmp_path)
    header = (tmp_path / "int_main_dynamics.h").read_text()
    assert "INT_MAIN_INDEX_DOUBLE = 0, /* double */" in header


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
    with pytest.raises(TypeError, match=r"^robot must be a Robot, as returned by load_robot, is "):
        project(other, [PLANT])  # type: ignore[arg-type]
