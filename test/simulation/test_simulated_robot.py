# SPDX-License-Identifier: Apache-2.0
"""Simulated robot: readings, drives with their timing and units, noise, and efforts that it adds itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from own_drives import AGES, with_drives
from refusals import refusals
from springs import with_springs

from eom_dynamics import ElasticArm, RobotDescriptionError, load_robot
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import RobotDescriptionWarning, StateError
from eom_dynamics.robot import Robot
from eom_dynamics.simulation import SimulatedDrives, SimulatedRobot, SimulationError
from eom_dynamics.simulation.simulated_robot import SensorNoise
from eom_dynamics.trajectory import Cosine

IIWA = load_robot("iiwa")
ARM = ElasticArm(IIWA)
Q = np.linspace(-1, 1, 7)


def advanced(robot: SimulatedRobot, steps: int) -> SimulatedRobot:
    for _ in range(steps):
        robot.advance()
    return robot


def test_readings_of_motors_and_springs() -> None:
    simulated = SimulatedRobot(ARM, position=Q, drives=SimulatedDrives(kp=2e3, kd=50.0))
    readings = simulated.readings()
    simulated.follow(readings.theta + 0.01, readings.thetad + 0.1, np.full(7, 3.0))
    after = advanced(simulated, 1).readings()
    # The law of the PD at the mean position and velocity of the step.
    theta = (readings.theta + after.theta) / 2 - 1e-3 / 12 * (after.thetad - readings.thetad)
    behind = np.array([readings.theta + 0.01 - theta, 0.1 - (after.theta - readings.theta) / 1e-3])
    np.testing.assert_allclose(after.motor_effort, 3.0 + [2e3, 50.0] @ behind, rtol=1e-9)
    simulated.apply(np.arange(7.0))
    np.testing.assert_allclose(advanced(simulated, 1).readings().motor_effort, np.arange(7.0), rtol=1e-12)
    readings = advanced(simulated, 20).readings()
    np.testing.assert_allclose(readings.tau, simulated.arm.stiffness * (readings.theta - readings.q), rtol=1e-9)


def test_hold_keeps_the_commanded_position_or_else_the_present_one() -> None:
    simulated = SimulatedRobot(ARM, position=Q)
    goal = simulated.readings().theta + 0.05
    simulated.follow(goal, np.full(7, 0.2), simulated.readings().motor_effort)
    advanced(simulated, 20).hold()
    np.testing.assert_allclose(advanced(simulated, 1000).readings().theta, goal, rtol=0, atol=2e-3)
    simulated.apply(simulated.readings().motor_effort + 5.0)
    at = advanced(simulated, 50).readings().theta
    simulated.hold()
    np.testing.assert_allclose(advanced(simulated, 1000).readings().theta, at, rtol=0, atol=5e-3)


def test_after_a_motion_out_of_bounds_it_rests_where_it_was() -> None:
    simulated = SimulatedRobot(ARM, position=Q)
    before = advanced(simulated, 10).readings()
    simulated.apply(np.full(7, 1e12))
    with pytest.raises(SimulationError, match="leaves all bounds"):
        simulated.advance()
    readings = advanced(simulated, 300).readings()
    np.testing.assert_allclose(readings.q, before.q, rtol=0, atol=1e-6)
    assert np.max(np.abs(readings.qd)) < 1e-3


test_what_is_refused = refusals(
    (RobotDescriptionError, StateError),
    ({"position": 45.0}, "at 45 rad is 7.16 turns from zero: was that in degrees"),
    ({"drives": SimulatedDrives(kp=[-1.0])}, "kp: must not be negative, is"),
    ({"drives": SimulatedDrives(drive_delay=1.5e-3)}, "drive_delay must be a multiple of the step"),
    ({"noise": SensorNoise(position=-1.0)}, "position_noise"),
    call=lambda arguments: SimulatedRobot(ARM, **arguments),
)


def test_readings_have_the_noise_of_the_sensors() -> None:
    noise = SensorNoise(position=1e-3, velocity=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], effort=2.0)
    exact, noisy = (SimulatedRobot(ARM, position=Q, noise=x) for x in (None, noise))
    draws = np.array([[*noisy.readings()] for _ in range(1000)])
    spread = np.std(draws, axis=0)
    # With 1,000 samples, a standard deviation is known to 2.2 %: 3.6 of these.
    links = np.array([np.full(7, 1e-3), 0.1 * np.arange(1, 8), np.full(7, 2.0)])
    np.testing.assert_allclose(spread, np.vstack([links, links]), rtol=0.08)
    error = np.mean(draws, axis=0) - np.array([*exact.readings()])
    assert np.all(np.abs(error) < 5 * np.vstack([links, links]) / np.sqrt(1000))
    advanced(exact, 5), advanced(noisy, 5)
    np.testing.assert_array_equal(exact._state, noisy._state)


def test_drives_hold_commands_and_act_after_a_delay() -> None:
    """The motion after an effort step equals the motion without delay, later; commands in between are ignored."""
    arm = ElasticArm(load_robot("planar_2r"))

    def run(**drives: float) -> Array:
        robot = SimulatedRobot(arm, period=1e-3, drives=SimulatedDrives(**drives))
        positions = []
        for step in range(40):
            if step >= 10:
                robot.apply(np.full(2, 1.0 if step % 5 == 0 else -1.0))
            robot.advance()
            positions.append(robot.readings().theta)
        return np.array(positions)

    held = run(command_period=5e-3)
    delayed = run(command_period=5e-3, drive_delay=3e-3)
    np.testing.assert_allclose(delayed[:13], np.tile(delayed[0], (13, 1)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(delayed[13:] - delayed[0], held[10:-3] - held[0], rtol=0, atol=1e-12)
    # Without the hold, one command of five is positive.
    assert np.all(held[-1] > run()[-1] + 1e-3)


def test_drives_interpolate_commands_of_one_kind() -> None:
    """Over a period from one command to the next, each step with its middle; other kinds of command act immediately."""
    arm = ElasticArm(load_robot("planar_2r"))
    drives = SimulatedDrives(command_period=4e-3, drive_delay=2e-3, drive_interpolation="linear")
    robot = SimulatedRobot(arm, period=1e-3, drives=drives)
    efforts = []
    for step in range(18):
        if step % 4 == 0:
            robot.apply(np.full(2, 0.0 if step < 4 else 4.0))
        robot.advance()
        efforts.append(robot.readings().motor_effort[0])
    # A command of step 4 is reached after its period and the delay.
    np.testing.assert_allclose(efforts[2:], [0, 0, 0, 0, 0.5, 1.5, 2.5, 3.5, *[4] * 8], rtol=0, atol=1e-12)
    assert efforts[0] == efforts[1] > 1


def test_drives_have_the_timing_of_the_robot_file() -> None:
    """By their file; arguments override it. Times between steps are rounded, because measured times are."""
    robot = replace(load_robot("planar_2r"), command_period=2e-3, drive_delay=3e-3, drive_interpolation="linear")

    def timing(robot: Robot, **given: Any) -> tuple[float, float, str]:
        simulated = SimulatedRobot(ElasticArm(robot), drives=SimulatedDrives(**given))
        return simulated.command_period, simulated.drive_delay, simulated.drive_interpolation

    assert timing(robot) == (2e-3, 3e-3, "linear")
    assert timing(robot, command_period=0.0, drive_delay=0.0, drive_interpolation="none") == (1e-3, 0.0, "none")
    measured = replace(robot, command_period=4e-4, drive_delay=3.2e-3)
    with pytest.warns(RobotDescriptionWarning) as warnings:
        assert timing(measured) == (1e-3, 3e-3, "linear")
    assert [str(warning.message) for warning in warnings] == [
        "planar_2r: command_period of 0.0004 s is not a multiple of the step of 0.001 s; simulated as 0.001 s",
        "planar_2r: drive_delay of 0.0032 s is not a multiple of the step of 0.001 s; simulated as 0.003 s",
    ]


def test_a_tool_wrench_deflects_it() -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), LinearSpring(500.0), LinearSpring(300.0), rotor_inertia=0.1))
    robot = SimulatedRobot(arm, position=0.1)
    wrench = np.array([0.0, 0.0, 6.0, 0.0, 0.0, 0.0])
    for _ in range(1500):
        robot.advance(wrench)
    readings, zero = robot.readings(), np.zeros(2)
    # Links swing on by less than a fourth of the moment, about the efforts of the inverse dynamics with the wrench.
    expected = arm.dynamics.inverse_dynamics(
        readings.q, zero, zero, zero, zero, wrench=(wrench, 0 * wrench, 0 * wrench)
    )[0]
    np.testing.assert_allclose(readings.tau, expected, atol=1.5)
    with pytest.raises(StateError, match=r"wrench must have shape \(6,\)"):
        robot.advance(np.zeros(3))


def test_the_simulated_robot_tracks_as_well() -> None:
    own = ("gravity", "coriolis", "friction")
    motion, errors = Cosine([0.3, 0.2], [2.0, 1.7]), []
    for names in ((), own):
        arm = ElasticArm(with_drives(load_robot("sea_planar_2r"), *names, ages=AGES))
        robot, off = SimulatedRobot(arm, position=motion.derivatives(0.0, 0)[0]), []
        for k in range(200):
            x = motion.derivatives(1e-3 * (k + 0.5), 4)  # the middle of the period in which drives hold it
            robot.follow(*arm.drive_state(*arm.drive_command(arm.feedforward(*x), *x[:3])[:3]))
            robot.advance()
            off.append(robot.readings().q - motion.derivatives(1e-3 * (k + 1), 0)[0])
        errors.append(float(np.max(np.abs(off))))
    whole, without = errors
    assert without < 1.1 * whole + 1e-6


def test_without_a_command_the_arm_holds_with_what_its_drives_add() -> None:
    q = np.array([0.4, -0.3])
    arm = ElasticArm(replace(load_robot("sea_planar_2r"), compensated_by_robot=("gravity",)))
    robot = SimulatedRobot(arm, position=q)
    for _ in range(50):
        robot.advance()
    still = robot.readings()
    np.testing.assert_allclose(still.q, q, rtol=0, atol=1e-9)
    # Without commanded effort, drives fall, except for gravity, which they add: the whole effort opposes gravity.
    robot.apply(np.zeros(2))
    robot.advance()
    np.testing.assert_allclose(robot.readings().motor_effort, arm.dynamics.gravity(q), rtol=0, atol=1e-6)
    # A robot with complete efforts gets them unchanged.
    whole = SimulatedRobot(arm, position=q, compensates=False)
    whole.apply(np.zeros(2))
    whole.advance()
    assert np.max(np.abs(whole.readings().motor_effort)) < 1e-9
