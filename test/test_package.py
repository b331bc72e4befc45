# SPDX-License-Identifier: Apache-2.0
"""Public surface of the package."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT

import eom_dynamics as eom


def test_each_public_name_is_there() -> None:
    for name in eom.__all__:
        assert getattr(eom, name) is not None
        assert name in dir(eom)
    with pytest.raises(AttributeError, match="module 'eom_dynamics' has no attribute 'trajectories'"):
        _ = eom.trajectories


def test_what_few_programs_need_is_imported_at_first_use() -> None:
    """Subpackages with SciPy or SymPy, which take longer than the rest; readers of YAML, and writers."""
    code = (
        "import sys, eom_dynamics as eom\n"
        "lazy = ('trajectory', 'simulation', 'loops', 'lagrange')\n"
        "assert not any(f'eom_dynamics.{name}' in sys.modules for name in lazy)\n"
        "assert not {'scipy', 'sympy', 'yaml', 'difflib', 'xml.etree'} & set(sys.modules)\n"
        "eom.trajectory.through, eom.simulation.simulate, eom.loops.ClosedLoopArm, eom.kinematics.body_poses\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_source_file_names_its_license() -> None:
    folders = ("action", "bench", "config", "eom_dynamics", "examples", "launch", "msg", "scripts", "srv", "test")
    kinds = {".py", ".msg", ".srv", ".action", ".yaml"}
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in kinds]
    assert {file.suffix for file in files} == kinds
    for file in (*files, *(ROOT / name for name in ("CMakeLists.txt", "Makefile", "package.xml", "setup.py"))):
        assert "SPDX-License-Identifier: Apache-2.0" in file.read_text(encoding="utf-8")[:400], file


@pytest.mark.parametrize("states", [(), (4,)])
def test_omitted_jerk_and_snap_are_zero(states: tuple[int, ...]) -> None:
    robot = eom.load_robot("sea_planar_2r")
    q, qd, qdd, qddd = np.random.default_rng(1).normal(size=(4, *states, 2))
    zero = np.zeros_like(q)
    for function in (eom.Dynamics(robot).inverse_dynamics, eom.ElasticArm(robot).feedforward):
        for given in ((q, qd, qdd), (q, qd, qdd, qddd)):
            complete = (*given, *[zero] * (5 - len(given)))
            for x, y in zip(function(*given), function(*complete), strict=True):
                np.testing.assert_array_equal(x, y)
