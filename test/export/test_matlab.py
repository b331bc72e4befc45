# SPDX-License-Identifier: Apache-2.0
"""Exported MATLAB code, run by GNU Octave."""

import shutil
from pathlib import Path

import pytest
from compilation import run
from exported import export, replace_in, robot, succeed

OCTAVE = shutil.which("octave-cli")

pytestmark = pytest.mark.skipif(OCTAVE is None, reason="GNU Octave is not installed (Debian: apt install octave)")


def octave(code: str) -> list[str | Path]:
    assert OCTAVE
    return [OCTAVE, "--no-gui", "--norc", "--eval", code]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tau(2, :) = ", "tau(2, :) = 1e-6 + "),
        ("tau(2, :) = ", "tau(2, :) = NaN + "),
        ("tau = zeros(2, N)", "tau = zeros(3, N)"),
    ],
)
def test_its_test_finds_errors(old: str, new: str, tmp_path: Path) -> None:
    export(robot("planar_2r"), "matlab", tmp_path, ["effort"])
    replace_in(tmp_path / "planar_2r_effort.m", old, new)
    done = run(octave("test_planar_2r_dynamics"), tmp_path)
    assert done.returncode != 0
    assert "BAD" in done.stdout


def test_omitted_and_constant_wrenches(tmp_path: Path) -> None:
    _, stored = export(robot("planar_2r"), "matlab", tmp_path, ["effort"])
    arrays = {name: stored.inputs[name].T for name in ("q", "qd", "qdd")}
    code = "".join(
        f"{name} = [{'; '.join(' '.join(map(repr, row)) for row in x.tolist())}];" for name, x in arrays.items()
    )
    code += (
        "none = planar_2r_effort(q, qd, qdd); zero = planar_2r_effort(q, qd, qdd, zeros(6, 10));"
        "one = planar_2r_effort(q, qd, qdd, [1:6]'); all = planar_2r_effort(q, qd, qdd, repmat([1:6]', 1, 10));"
        "assert(isequal(none, zero) && isequal(one, all) && ~isequal(one, none))"
    )
    succeed(octave(code), tmp_path)


def test_vector_of_the_wrong_length(tmp_path: Path) -> None:
    export(robot("planar_2r"), "matlab", tmp_path, ["mass_matrix"])
    done = run(octave("planar_2r_mass_matrix([1 2 3]')"), tmp_path)
    assert done.returncode != 0
    assert "q must have 2 rows" in done.stderr
