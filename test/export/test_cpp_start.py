# SPDX-License-Identifier: Apache-2.0
"""Start of the exported C++ loop from motors alone, with soft and stiff springs, against integration of the links."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compilation import COMPILERS
from exported import compiled, robot, succeed
from scipy.integrate import solve_ivp
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators.springs import CubicSpring, LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.export import FEEDFORWARD

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <eom/control_loop.hpp>
#include <eom/robots/arm.hpp>

using Robot = eom::robots::Arm;

int main(int, char **arguments)
{
    static eom::ControlLoop<Robot> loop;
    eom::LoopParameters<Robot> parameters;
    parameters.limits = eom::LimitPolicy::ignore;
    parameters.command_lead = 0;
    if (loop.configure(parameters))
        return 1;
    eom::Measurement<Robot> measured;
    measured.motors = true;
    for (double &x : measured.motor_position)
        x = std::atof(*++arguments);
    for (double &x : measured.motor_velocity)
        x = std::atof(*++arguments);
    const char *reason = loop.restart(measured);
    const auto &y = loop.update(0, 1e-3, measured);
    std::printf("%d %d %s\\n", y.valid, static_cast<int>(y.status), reason ? reason : "");
    for (const auto *row : {&y.setpoint.q, &y.setpoint.qd, &y.command.motor_position, &y.motor_effort})
        for (const double x : *row)
            std::printf("%.17g ", x);
}
"""


def relaxed(arm: eom.ElasticArm, theta: Array) -> Array:
    """Positions of the links to which they go, overdamped, from springs without deflection."""

    def away(_: float, q: Array) -> Array:
        at_rest = np.zeros((5, arm.robot.n))
        at_rest[0] = q
        return theta - arm.feedforward(*at_rest).motor_position

    found: Array = solve_ivp(away, (0, 1e4), theta, method="LSODA", rtol=1e-10, atol=1e-12).y[:, -1]
    return found


@pytest.mark.parametrize(
    ("arm", "motors"),
    [
        *((with_springs(robot("pendulum"), LinearSpring(k)), ([0.3], [-0.3], [2.0], [4.5])) for k in (400.0, 3.0, 0.5)),
        (with_springs(robot("planar_2r"), LinearSpring(8.0), LinearSpring(3.0)), ([0.3, 0.2], [-1.8, 0.4], [1.5, 1.0])),
        (with_springs(robot("planar_2r"), CubicSpring(5.0, 9.0), LinearSpring(900.0)), ([0.3, 0.2], [1.2, -0.7])),
    ],
    ids=["400", "3", "0.5", "two soft ones", "hardening"],
)
def test_links_from_motors(arm: eom.Robot, motors: tuple[list[float], ...], tmp_path: Path) -> None:
    """Motors are commanded to stay where they are, at the effort of gravity there."""
    arm = replace(arm, name="arm")
    elastic = eom.ElasticArm(arm)
    compiled(arm, [FEEDFORWARD], PROGRAM, tmp_path)
    for theta in np.array(motors):
        for rate in (0.0, 0.5):
            numbers = start(tmp_path, theta, np.full(arm.n, rate))
            q, qd, position, effort = numbers.reshape(4, arm.n)
            np.testing.assert_allclose(q, relaxed(elastic, theta), atol=1e-6)
            motion = np.zeros((5, arm.n))
            motion[0] = q
            # Links that move load the springs by centrifugal forces, too, which are left out.
            np.testing.assert_allclose(position, theta, atol=0.02 if rate and arm.n > 1 else 1e-7)
            assert rate or np.all(np.abs(effort - elastic.feedforward(*motion).tau) < 1e-7)
            motion[1] = qd
            np.testing.assert_allclose(elastic.feedforward(*motion).motor_velocity, rate, atol=0.02 * rate)


def start(folder: Path, theta: Array, rate: Array) -> Array:
    """Numbers of the first command."""
    first, numbers = succeed([folder / "built", *map(str, [*theta, *rate])], folder).splitlines()
    assert first == f"1 {2 if rate.any() else 4} "
    return np.array(numbers.split(), float)


def test_no_equilibrium(tmp_path: Path) -> None:
    """Refused in words."""
    arm = replace(with_springs(robot("pendulum"), LinearSpring(3.0)), name="arm")
    compiled(arm, [FEEDFORWARD], PROGRAM, tmp_path)
    first, _ = succeed([tmp_path / "built", "inf", "0"], tmp_path).splitlines()
    reason = "gravity and springs have no equilibrium at the measured position of the motors: measure links, too"
    assert first == f"0 4 {reason}"
