# SPDX-License-Identifier: Apache-2.0
"""Motor shafts, drive commands and drive states."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from chains import fixed_case, packaged_parameters
from differences import polynomial_motion
from own_drives import CIA_402, CURRENT, ODRIVE, with_drives
from scipy.integrate import solve_ivp
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics import ElasticArm, load_robot, robot_from_parameters
from eom_dynamics.actuators import Friction, Transmission
from eom_dynamics.actuators.drive_units import SI_UNITS, DriveUnits, FeedbackDelay
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import COMPENSATIONS
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import paper_motion

MOTION = fixed_case("planar_2r", 4).motion

ACTUATOR = {
    "friction": {"viscous": 0.4, "coulomb": 1.0, "static": 1.5, "stribeck_velocity": 0.2, "smoothing_velocity": 0.02},
    "efficiency": 0.8,
    "smoothing_power": 0.05,
    "torque_constant": 0.1,
    "resistance": 0.5,
    "back_emf_constant": 0.09,
    "limits": {"torque": 0.5, "speed": 30.0, "current": 4.0, "voltage": 6.0},
}


def driven(**changes: Any) -> ElasticArm:
    second = {"actuator": ACTUATOR | changes, "gear_ratio": 50.0}
    return ElasticArm(robot_from_parameters(packaged_parameters("planar_2r", joint_2=second)))


@pytest.mark.parametrize("first", ["linear", "antagonistic_quadratic"])
def test_motor_of_an_arm_with_friction_and_gear(first: str) -> None:
    """At the second joint, behind one motor or two."""
    robots = [
        replace(robot, joints=(replace(robot.joints[0], spring=EVERY_KIND[first]), robot.joints[1]))
        for robot in (driven().robot, load_robot("planar_2r"))
    ]
    arm = ElasticArm(robots[0])
    command, bare = (ElasticArm(robot).feedforward(*(0.1 * MOTION)) for robot in robots)
    np.testing.assert_array_equal(np.concatenate(command[:6]), np.concatenate(bare[:6]))
    np.testing.assert_array_equal(command.motor_effort[:-1], bare.motor_effort[:-1])
    v, tau = command.motor_velocity[-1], command.tau[1]
    friction = 0.4 * v + (1.0 + 0.5 * np.exp(-((v / 0.2) ** 2))) * np.tanh(v / 0.02)
    load = tau * 0.8 ** -np.tanh(tau * v / 0.05)
    expected = arm.rotor_inertia[1] * command.motor_acceleration[-1] + load + friction
    assert command.motor_effort[-1] == pytest.approx(expected, rel=1e-13)


def test_shaft_of_an_arm_and_violations_of_its_limits() -> None:
    arm = driven()
    batch = np.stack([0.1 * MOTION, MOTION, 0.0 * MOTION], axis=1)
    command = arm.feedforward(*batch)
    drive = arm.drive(command)
    np.testing.assert_allclose(drive.position, command.motor_position * [1, 50], rtol=1e-15)
    np.testing.assert_allclose(drive.torque * drive.velocity, command.motor_effort * command.motor_velocity, rtol=1e-13)
    np.testing.assert_allclose(drive.current[:, 1], drive.torque[:, 1] / 0.1)
    assert np.all(np.isnan(drive.voltage[:, 0]))
    values = {"torque": drive.torque, "speed": drive.velocity, "current": drive.current, "voltage": drive.voltage}
    expected = {}
    for quantity, limit in ACTUATOR["limits"].items():
        sizes = np.abs(values[quantity][:, 1])
        if sizes.max() > limit:
            expected[quantity] = ("joint_2", sizes.max(), limit, sizes.argmax())
    assert {x.quantity: (x.name, abs(x.value), abs(x.limit), x.sample) for x in drive.exceeded} == expected != {}


def test_clipped_command_violates_only_the_speed_limit() -> None:
    arm = driven(limits=ACTUATOR["limits"] | {"voltage": 500.0})
    command = arm.feedforward(*(3 * MOTION))
    clipped = arm.drive(command, clip=True)
    assert abs(clipped.torque[1]) <= 0.4 + 1e-12 and abs(clipped.current[1]) <= 4.0 + 1e-9
    assert clipped.exceeded == arm.drive(command).exceeded
    assert clipped.torque[0] == command.motor_effort[0]


def test_deflections_over_time_are_those_of_the_filter() -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["damped"], EVERY_KIND["cubic"]))
    motion = polynomial_motion(MOTION)
    time = np.linspace(0, 0.4, 81)
    efforts = arm.feedforward(*np.stack([motion(t) for t in time], axis=1))[:3]
    found = arm.deflections_over_time(time, efforts, start=[0.02, 0.0])
    solution = solve_ivp(
        lambda t, x: (arm.feedforward(*motion(t)).tau[:1] - 500 * x) / 15, (0, 0.4), [0.02], rtol=1e-11, atol=1e-13
    )
    assert found[-1, 0] == pytest.approx(solution.y[0, -1], rel=1e-9)
    assert not np.any(found[:, 1])
    undamped = ElasticArm(load_robot("planar_2r")).deflections_over_time(time, efforts)
    np.testing.assert_array_equal(undamped, np.zeros((81, 2)))


SI = (SI_UNITS,)
PAYLOAD = eom.Payload(2.0, [0.02, 0.0, 0.1], [0.02, 0.001, 0.002, 0.03, 0.001, 0.04])


def states(n: int, t: float | Array = 0.3) -> list[Array]:
    return list(paper_motion(n).derivatives(t, 4))


def section_of(robot: eom.Robot) -> dict[str, Any]:
    section: dict[str, Any] = yaml.safe_load(robot_as_yaml(robot).text)["/**"]["ros__parameters"]["robot"]
    return section


@pytest.mark.parametrize("own", [("gravity",), ("coriolis", "friction"), COMPENSATIONS[:3]])
def test_what_the_robot_adds_is_taken_out(own: tuple[str, ...]) -> None:
    """By gravity and Coriolis efforts of Dynamics, and friction by its law; deflections and model values stay."""
    plain = with_drives(eom.load_robot("iiwa"), units=SI)
    arm, reference = ElasticArm(replace(plain, compensated_by_robot=own)), ElasticArm(plain)
    x = states(7)
    q, qd, qdd = x[:3]
    command, dynamics = arm.feedforward(*x), eom.Dynamics(plain, friction=False)
    for a, b in zip(command, reference.feedforward(*x), strict=True):
        np.testing.assert_array_equal(a, b)
    gravity, at_joints, at_motors = dynamics.gravity(q), np.zeros(7), np.zeros(7)
    if "gravity" in own:
        at_joints = at_joints + gravity
    if "coriolis" in own:
        at_joints = at_joints + dynamics.bias(q, qd) - gravity
    if "friction" in own:
        at_joints = at_joints + 0.4 * qd + 0.7 * np.tanh(qd / 0.01)
        law = Friction(0.8, 0.3, 0.5, 0.3, 0.2)
        at_motors = law.effort(command.motor_velocity)
    sent = arm.drive_command(command, q, qd, qdd)
    np.testing.assert_allclose(sent.joint_effort, command.tau - at_joints, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sent.effort, command.motor_effort - at_joints - at_motors, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(sent.position, command.motor_position)
    np.testing.assert_array_equal(sent.velocity, command.motor_velocity)


@pytest.mark.parametrize("payload", [None, PAYLOAD])
def test_the_rate_is_that_of_the_sent_effort(payload: eom.Payload | None) -> None:
    arm = ElasticArm(with_drives(eom.load_robot("iiwa"), *COMPENSATIONS))

    def sent(t: float) -> eom.elastic.DriveCommand:
        x = states(7, t)
        return arm.drive_command(arm.feedforward(*x, payload=payload), *x[:3], payload=payload)

    h = 1e-4
    rate = (8 * (sent(0.3 + h)[3] - sent(0.3 - h)[3]) - sent(0.3 + 2 * h)[3] + sent(0.3 - 2 * h)[3]) / (12 * h)
    # Differences of order 4; friction turns within 0.01 rad/s.
    np.testing.assert_allclose(sent(0.3).joint_effort_rate, rate, rtol=0, atol=1e-5)


def test_a_payload_is_taken_out_only_where_the_robot_knows_it() -> None:
    iiwa, x = eom.load_robot("iiwa"), states(7)
    knows, does_not = (
        ElasticArm(replace(iiwa, compensated_by_robot=own)) for own in (("gravity", "payload"), ("gravity",))
    )
    q, qd, qdd = x[:3]
    command = knows.feedforward(*x, payload=PAYLOAD)
    bare, loaded = (knows.dynamics.gravity(q, **given) for given in ({}, {"payload": PAYLOAD}))
    for arm, gravity in ((knows, loaded), (does_not, bare)):
        sent = arm.drive_command(command, q, qd, qdd, payload=PAYLOAD)
        np.testing.assert_allclose(sent.effort, command.motor_effort - gravity, rtol=0, atol=1e-12)
    # A payload that changes has a rate of its gravity: with all of its parameters at the rate of 1/s.
    parameters = PAYLOAD.parameters
    sent = knows.drive_command(command, q, 0 * qd, 0 * qdd, payload=(parameters, parameters))
    np.testing.assert_allclose(command.taud - sent.joint_effort_rate, loaded - bare, rtol=0, atol=1e-11)


def test_drives_in_their_units_by_a_table() -> None:
    """Hand-computed: gear ratio 50, k_t 0.07 N m/A."""
    behind = DriveUnits("joint", units_per_turn=1.0, effort="current")  # moteus with its rotor_to_output_ratio set
    arm = ElasticArm(with_drives(eom.load_robot("iiwa"), units=(ODRIVE, CIA_402, CURRENT, SI_UNITS, behind)))
    x = states(7)
    motor = arm.feedforward(*x)._replace(
        motor_position=np.full(7, 0.1), motor_velocity=np.full(7, -2.0), motor_effort=np.full(7, 35.0)
    )
    sent = arm.drive_command(motor, *x[:3])
    # 0.1 rad behind the gear are 5 rad or 0.795774715 turns before it, 2 rad/s are 100 rad/s or 15.9154943 turns/s.
    np.testing.assert_allclose(
        sent.position[:5], [-0.545774715459, 3159.493234522, 5.0, 0.1, 0.1 / (2 * np.pi)], rtol=1e-12
    )
    np.testing.assert_allclose(sent.velocity[:4], [15.915494309190, -954.929658551, -100.0, -2.0], rtol=1e-12)
    # 35 N m behind are 0.7 N m before it, 538.461538 per mille of 1.3 N m, 10 A.
    np.testing.assert_allclose(sent.effort[:5], [-0.7, 538.461538461538, 10.0, 35.0, 10.0], rtol=1e-12)
    assert sent.effort[3] == 35.0 and sent.position[3] == 0.1


@pytest.mark.parametrize("kind", ["linear", "antagonistic_exponential"])
def test_the_state_of_drives_is_the_inverse(kind: str) -> None:
    robot = with_drives(with_springs(eom.load_robot("iiwa"), EVERY_KIND[kind], rotor_inertia=0.3), *COMPENSATIONS[:3])
    arm, x = ElasticArm(robot), states(7)
    command = arm.feedforward(*[0.05 * each for each in x])
    q, qd, qdd = (0.05 * each for each in x[:3])
    sent = arm.drive_command(command, q, qd, qdd)
    motors = command.motor_position, command.motor_velocity, command.motor_effort
    for a, b in zip(arm.drive_state(*sent[:3], sent_at=(q, qd)), motors, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)
    for a, b in zip(arm.drive_state(*arm.drive_report(eom.elastic.DriveState(*motors))), motors, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["iiwa", "vsa_planar_2r"])
def test_references_are_those_of_the_age_of_the_feedback(name: str) -> None:
    """Efforts are for the time of the command, also for a file that was written and read; drive reports have no age."""
    plain, ages, t = eom.load_robot(name), (1e-3, 2e-3), np.linspace(0.2, 0.4, 5)
    arm = ElasticArm(robot_from_parameters(section_of(replace(plain, drive_feedback_delay=FeedbackDelay(*ages)))))
    assert arm.robot.drive_feedback_delay == ages and arm.converts
    command, *earlier = (arm.feedforward(*(0.1 * x for x in states(plain.n, t - age))) for age in (0.0, *ages))
    sent = arm.drive_command(command, *(0.1 * x for x in states(plain.n, t)[:3]))
    # The next terms of the Taylor polynomials, a³/6 and a²/2 times the largest third derivative of the motors.
    third = np.max(np.abs(np.gradient(command.motor_acceleration, t, axis=0)))
    np.testing.assert_allclose(sent.position, earlier[0].motor_position, rtol=0, atol=ages[0] ** 3 / 4 * third)
    np.testing.assert_allclose(sent.velocity, earlier[1].motor_velocity, rtol=0, atol=ages[1] ** 2 * third)
    np.testing.assert_array_equal(sent.effort, command.motor_effort)
    motors = eom.elastic.DriveState(command.motor_position, command.motor_velocity, command.motor_effort)
    for a, b in zip(arm.drive_report(motors), motors, strict=True):
        np.testing.assert_array_equal(a, b)


def test_two_motors_share_and_transmissions_map_what_the_robot_adds() -> None:
    x = states(2)
    pair = ElasticArm(replace(eom.load_robot("vsa_planar_2r"), compensated_by_robot=("gravity",)))
    small = [0.05 * each for each in x]
    taken = pair.feedforward(*small).motor_effort - pair.drive_command(pair.feedforward(*small), *small[:3]).effort
    half = pair.dynamics.gravity(small[0])[pair.motor_joint] / np.bincount(pair.motor_joint)[pair.motor_joint]
    np.testing.assert_allclose(taken, half, rtol=0, atol=1e-12)
    matrix = np.array([[0.5, 0.5], [0.5, -0.5]])
    robot = replace(
        eom.load_robot("planar_2r"), transmission=((0, 1), Transmission(matrix)), compensated_by_robot=("gravity",)
    )
    arm = ElasticArm(robot)
    taken = arm.feedforward(*x).motor_effort - arm.drive_command(arm.feedforward(*x), *x[:3]).effort
    np.testing.assert_allclose(taken, matrix.T @ arm.dynamics.gravity(x[0]), rtol=0, atol=1e-12)
