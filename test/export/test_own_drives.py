# SPDX-License-Identifier: Apache-2.0
"""Functions of drives that are not sent the command itself, in exported code."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from compilation import COMPILERS
from exported import compiled, robot, succeed

from eom_dynamics import load_robot
from eom_dynamics.actuators.drive_units import DriveUnits
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export import FEEDFORWARD, capabilities, project
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


@pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")
def test_what_is_sent_is_finite(tmp_path: Path) -> None:
    joints = (replace(joint, drive=DriveUnits(units_per_turn=1e6)) for joint in robot("planar_2r").joints)
    arm = replace(robot("planar_2r"), name="arm", joints=tuple(joints))
    compiled(arm, [FEEDFORWARD], UNSENDABLE.replace("\\\\n", "\\n"), tmp_path)
    assert succeed([tmp_path / "built"], tmp_path).splitlines() == 4 * ["0 1"]


def test_they_come_with_the_feedforward_of_robots_that_need_them() -> None:
    plain = load_robot("sea_planar_2r")
    assert not set(OF_DRIVES) & set(project(plain, [FEEDFORWARD]).functions)
    assert {"drive_command", "drive_state"} <= set(project(robot("drives"), [FEEDFORWARD]).functions)
    reason = "sea_planar_2r: drives are sent the command: it has no drive section and no compensated_by_robot"
    assert capabilities(plain)["c"].missing["drive_command"] == reason
    with pytest.raises(RobotDescriptionError, match="drives are sent the command"):
        project(plain, ["drive_state"])
