# SPDX-License-Identifier: Apache-2.0
"""Link errors on MuJoCo plants with drives that hold or interpolate commands, with and without delay and lead.

The model is exact: the remaining error is due to the hold.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import NO_FEEDBACK_DELAY
from eom_dynamics.trajectory import paper_motion

pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")

from mujoco_arms import DriveLoop, MujocoArm, commands

ROBOTS = ("sea_planar_2r", "panda")
PERIOD, DELAY, DURATION = 1e-3, 2e-3, 0.25


@functools.cache
def arm_and_plant(name: str) -> tuple[ElasticArm, MujocoArm]:
    return ElasticArm(load_robot(name)), MujocoArm(name)


@functools.cache
def error(name: str, period: float, delay: float, lead: float, *, interpolates: bool = False) -> float:
    """Root mean square error of the links, rad."""
    arm, plant = arm_and_plant(name)
    motion = paper_motion(arm.robot.n)

    def command(t: float) -> tuple[Array, Array, Array]:
        y = arm.feedforward(*motion.derivatives(t), lead=lead)
        return y.motor_effort, y.motor_position, y.motor_velocity

    t, q, _ = plant.run(command, motion, duration=DURATION, period=period, delay=delay, interpolates=interpolates)
    return float(np.sqrt(np.mean((q - motion.derivatives(t, 0)[0]) ** 2)))


@pytest.mark.parametrize("name", ROBOTS)
def test_order_is_two_in_the_period(name: str) -> None:
    periods = (4e-3, 2e-3, 1e-3)
    errors = [error(name, T, 0.0, T / 2) for T in periods]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    # The harmonic of a hold of 4 ms is near a resonance of the wrists: the step to 2 ms gains more than a quarter.
    assert orders[0] > 1.9 and orders[1] == pytest.approx(2.0, abs=0.15)
    without = [error(name, T, 0.0, 0.0) for T in periods[1:]]
    assert np.log2(without[0] / without[1]) == pytest.approx(1.0, abs=0.1)
    assert errors[2] < without[1] / 1000 > 3e-7  # measured: 1/1,500 and less


def test_drives_that_interpolate_need_a_whole_period() -> None:
    name = "panda"
    # Not 0.5 ms: two steps of the integrator are no straight line.
    periods = (4e-3, 2e-3, 1e-3)
    robot = replace(arm_and_plant(name)[0].robot, drive_interpolation="linear", drive_delay=DELAY)
    leads = [replace(robot, command_period=T).command_lead for T in periods]
    errors = [error(name, T, DELAY, lead, interpolates=True) for T, lead in zip(periods, leads, strict=True)]
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.15)
    # Linear interpolation lacks T^2/12 times the second derivative, the mean over a period T^2/24.
    assert errors[-1] == pytest.approx(2 * error(name, PERIOD, DELAY, PERIOD / 2 + DELAY), rel=0.3)
    assert error(name, PERIOD, DELAY, PERIOD / 2 + DELAY, interpolates=True) > 300 * errors[-1]


@pytest.mark.parametrize("name", ROBOTS)
def test_a_delay_that_is_named_costs_nothing(name: str) -> None:
    without_delay = error(name, PERIOD, 0.0, PERIOD / 2)
    named = error(name, PERIOD, DELAY, PERIOD / 2 + DELAY)
    # The initial state is exact at t = 0 in all runs; setpoints are continued over 2.5 ms.
    assert named < 1.5 * without_delay
    forgotten = error(name, PERIOD, DELAY, PERIOD / 2)
    assert forgotten > 1000 * named
    # All of it is lost: the delay times the velocity.
    arm, _ = arm_and_plant(name)
    t = np.linspace(0, DURATION, 400)
    qd = paper_motion(arm.robot.n).derivatives(t, 1)[1]
    assert forgotten == pytest.approx(DELAY * np.sqrt(np.mean(qd**2)), rel=0.3)


@pytest.mark.parametrize(
    ("name", "rate", "time_constant"),
    [
        *(("planar_2r", 1e3, None), ("panda", 4e3, 0.0), ("iiwa", 1e3, 0.0)),
        *(("planar_2r", 4e3, 1e-3), ("sea_planar_2r", 1e3, 1e-3)),
    ],
)
def test_references_are_of_the_age_of_the_drives_measurements(name: str, rate: float, time_constant: float | None):
    """Velocities of the drives are exact, differences, or differences after a low-pass of 1 ms.

    ``make bench`` (section ``drives``) has all rates and velocities, and more arms.
    """
    arm, plant = arm_and_plant(name)
    motion, drive, errors = paper_motion(arm.robot.n), DriveLoop(1 / rate, time_constant), []
    for ages in (NO_FEEDBACK_DELAY, drive.delay):
        aged = ElasticArm(replace(arm.robot, drive_feedback_delay=ages))
        command = commands(aged, motion, 0.15, PERIOD)
        t, q, _ = plant.run(command, motion, duration=0.15, period=PERIOD, drive=drive)
        started = t > 0.05  # the low-pass does not know the acceleration at the start
        errors.append(float(np.sqrt(np.mean((q - motion.derivatives(t, 0)[0])[started] ** 2))))
    before, after = errors
    assert after < 5e-6 and after < before / 20
