# SPDX-License-Identifier: Apache-2.0
"""Functions of drives that are not sent the command itself, in exported code."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compilation import COMPILERS
from exported import compiled, export, robot, succeed

from eom_dynamics import load_robot
from eom_dynamics.actuators.drive_units import DriveUnits
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export import FEEDFORWARD, PRECISIONS, capabilities, project
from eom_dynamics.export.functions import OF_DRIVES

# A position that drives with counts cannot be sent, under each policy of limits.
UNSENDABLE = """
#include <cstdio>
#include <eom/control_loop.hpp>
#include <eom/robots/arm.hpp>

using Robot = eom::robots::Arm;

int main()
{
    for (int policy = 0; policy < 4; ++policy) {
        static eom::ControlLoop<Robot> loop;
        eom::LoopParameters<Robot> parameters;
        parameters.limits = static_cast<eom::LimitPolicy>(policy);
        if (loop.configure(parameters))
            return 1;
        loop.restart({});
        eom::Setpoint<Robot> x;
        x.q[0] = 1e305;
        loop.refer(x, 0);
        const auto &y = loop.update(0, 1e-3, {});
        std::printf("%d %d\\n", y.valid, static_cast<int>(loop.counts().refused));
    }
}
"""

STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


@pytest.mark.skipif(not COMPILERS, reason="no C compiler is installed")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_c_passes_its_test(precision: str, tmp_path: Path) -> None:
    """Against the closed form, which has gravity and Coriolis efforts as matrices, and units by their definition."""
    exported, _ = export(robot("drives"), "c", tmp_path, OF_DRIVES, precision)
    succeed(["cc", *STRICT, *sorted(tmp_path.glob("*.c")), "-o", "built", "-lm"], tmp_path)
    lines = succeed([tmp_path / "built"], tmp_path).splitlines()
    assert len(lines) == 2 * sum(len(function.outputs) for function in exported.functions.values())
    assert all(line.startswith("ok") for line in lines)


@pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")
def test_what_is_sent_is_finite(tmp_path: Path) -> None:
    joints = (replace(joint, drive=DriveUnits(units_per_turn=1e6)) for joint in robot("planar_2r").joints)
    arm = replace(robot("planar_2r"), name="arm", joints=tuple(joints))
    compiled(arm, [FEEDFORWARD], UNSENDABLE.replace("\\\\n", "\\n"), tmp_path)
    assert succeed([tmp_path / "probe"], tmp_path).splitlines() == 4 * ["0 1"]


def test_casadi_functions(tmp_path: Path) -> None:
    casadi = pytest.importorskip("casadi")
    exported, stored = export(robot("drives"), "casadi", tmp_path, OF_DRIVES)
    for key, function in exported.functions.items():
        loaded = casadi.Function.load(str(tmp_path / f"{function.name}.casadi"))
        results = loaded(**{vector: stored.inputs[vector].T for vector in function.inputs})
        for output in function.outputs:
            errors = np.abs(np.array(results[output]) - stored.outputs[key][output].T)
            assert np.all(errors <= stored.tolerance(key, output)), (key, output)


@pytest.mark.skipif(not shutil.which("octave-cli"), reason="GNU Octave is not installed")
def test_octave_passes_its_test(tmp_path: Path) -> None:
    exported, _ = export(robot("drives"), "matlab", tmp_path, OF_DRIVES)
    program = ["octave-cli", "--no-gui", "--eval", f"test_{exported.library}"]
    assert "BAD" not in succeed(program, tmp_path)


def test_they_come_with_the_feedforward_of_robots_that_need_them() -> None:
    plain = load_robot("sea_planar_2r")
    assert not set(OF_DRIVES) & set(project(plain, [FEEDFORWARD]).functions)
    assert {"drive_command", "drive_state"} <= set(project(robot("drives"), [FEEDFORWARD]).functions)
    reason = "sea_planar_2r: drives are sent the command: it has no drive section and no compensated_by_robot"
    assert capabilities(plain)["c"].missing["drive_command"] == reason
    with pytest.raises(RobotDescriptionError, match="drives are sent the command"):
        project(plain, ["drive_state"])
