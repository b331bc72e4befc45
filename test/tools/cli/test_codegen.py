# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics codegen`` and ``convert``: files, output, warnings and errors."""

import re
from pathlib import Path

import pytest
from paths import contents
from urdf_arms import MASSLESS_TIP

from eom_dynamics import load_robot
from eom_dynamics.export import LANGUAGES, STRAIGHT_LINE
from eom_dynamics.robot import formats
from eom_dynamics.tools.cli.main import main

HEADINGS = {"ros2_control": "ROS 2 control"}


def test_writes_every_language_and_lists_it(tmp_path: Path, run) -> None:
    pytest.importorskip("casadi")
    output = run("codegen", "planar_2r", "-o", str(tmp_path / "code"))
    assert not output.err
    written = contents(tmp_path / "code")
    assert {name.partition("/")[0] for name in written} == {"README.md", *LANGUAGES}
    for function, program in STRAIGHT_LINE.items():
        assert {f"c/planar_2r_{function}.c", f"matlab/planar_2r_{function}.m"} <= set(written)
        assert {f"casadi/planar_2r_{function}.casadi", f"cuda/planar_2r_{function}.cu"} <= set(written)
        (line,) = [line for line in output.out.splitlines() if line.startswith(f"planar_2r_{function} ")]
        # A missing operation of this program has a column of another operation.
        counts = [int(x) for x in line.split()[1:] if int(x)]
        assert counts == [x for x in program(load_robot("planar_2r")).costs().values() if x]
    feedforward = {name for name in written if "feedforward" in name}
    assert {name.partition("/")[0] for name in feedforward} == set(LANGUAGES)
    assert "ros2_control/config/planar_2r.yaml" in written
    assert not [name for name in written if "on_base" in name]
    for language in LANGUAGES:
        (line,) = [line for line in output.out.splitlines() if line.startswith(f"{tmp_path / 'code' / language} ")]
        assert int(line.split()[1]) == sum(name.startswith(f"{language}/") for name in written)
        assert f"## {HEADINGS.get(language, language)}".lower() in written["README.md"].decode().lower()


def test_only_the_requested_languages_and_functions(tmp_path: Path, refused) -> None:
    command = ["codegen", "planar_2r", "-o", str(tmp_path), "--language", "c", "--functions", "effort,mass_matrix"]
    assert main(command) == 0
    written = contents(tmp_path)
    assert {name.partition("/")[0] for name in written} == {"README.md", "c"}
    assert "c/planar_2r_effort.c" in written and "c/planar_2r_inverse_dynamics.c" not in written
    assert b"inverse_dynamics" not in b"".join(written.values())
    for language in ("ros2_control", "inverse_dynamics_solver"):
        other = ["--functions=effort", f"--language={language}", "-o", tmp_path / "none"]
        assert "needs the function feedforward; export" in refused("codegen", "planar_2r", *other)


@pytest.mark.parametrize("requested", [False, True])
def test_without_casadi_the_rest_is_written_unless_it_is_requested(requested: bool, tmp_path: Path, monkeypatch, run):
    monkeypatch.setattr("eom_dynamics.export.languages.missing", lambda extra: f"{extra} is not installed")
    command = ["codegen", "planar_2r", "-o", str(tmp_path / "code"), "--functions", "effort"]
    error = run(*command, *["--language=c", "--language=casadi"] * requested, code=2 if requested else 0).err
    assert "casadi is not installed" in error and error.count("\n") == 1
    written = {path.name for path in tmp_path.glob("code/*")}
    assert written == (set() if requested else {"README.md", "c", "matlab", "cuda"})


def test_for_a_singular_mass_matrix_the_other_functions_are_named(tmp_path: Path, run) -> None:
    (tmp_path / "arm.urdf").write_text(MASSLESS_TIP)
    arguments = ["codegen", str(tmp_path / "arm.urdf"), "--language=c", "-o", str(tmp_path / "code")]
    error = run(*arguments, "--functions=plant", code=2).err
    assert "not positive definite" in error and "functions that can be exported: inverse_dynamics, effort, " in error
    output = run(*arguments)
    assert "no plant: massless: the mass matrix is not positive definite" in output.err
    assert "massless_inverse_dynamics" in output.out and "plant" not in output.out


def test_a_robot_becomes_a_urdf_and_a_parameter_file(tmp_path: Path, run) -> None:
    urdf, again = tmp_path / "arm.urdf", tmp_path / "arm.yaml"
    lines = run("convert", "iiwa", "-o", str(urdf)).err.splitlines()
    assert lines[0].startswith("eom_dynamics convert: warning: springs (elasticity) are omitted: iiwa_joint_1, ")
    assert run("convert", urdf, "--tip", "iiwa_joint_4", "-o", again) == ("", "")
    assert load_robot(again).joint_names == load_robot("iiwa").joint_names[:4]


def test_a_parameter_file_too_large_to_be_read_is_refused(tmp_path: Path, monkeypatch, refused) -> None:
    small = formats.PARAMETER_FILE._replace(largest=1000)
    monkeypatch.setattr(formats, "FORMATS", (small, *formats.FORMATS[1:]))
    reason = (
        r"\S+/arm.yaml: not written: it would have \d+ bytes, and at most 1000 can be read; leave out a part of the "
        r"robot by --tip, or write a .xml, or write a .urdf"
    )
    assert re.search(reason, refused("convert", "iiwa", "-o", tmp_path / "arm.yaml"))
    assert main(["convert", "iiwa", "-o", str(tmp_path / "arm.urdf")]) == 0
