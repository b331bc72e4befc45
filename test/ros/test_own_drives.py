# SPDX-License-Identifier: Apache-2.0
"""A robot that adds efforts itself, and whose drives have units of their own, through the nodes."""

import numpy as np
import pytest
from own_drives import with_drives
from robot_client import RobotClient

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS, MOTOR_SETPOINT_FIELDS, STATE_FIELDS
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import Cosine

ROBOT = with_drives(eom.load_robot("sea_planar_2r"), "gravity", "coriolis", "friction", "payload")
ARM = eom.ElasticArm(ROBOT)
MOTION = Cosine([0.3, 0.2], [2.0, 1.7])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(robot_as_yaml(ROBOT).text, encoding="utf-8")
    return path


def send(client, k, state=None):
    client.publish(
        at=k, **dict(zip(STATE_FIELDS, MOTION.derivatives(1e-3 * k) if state is None else state, strict=True))
    )


def of_library(k, lead=0.0):
    x = MOTION.derivatives(1e-3 * k)
    later = ARM.ahead(lead, *x)[0] if lead else x
    command = ARM.feedforward(*x, lead=lead)
    return command, ARM.drive_command(command, *later[:3])


@pytest.mark.parametrize("lead", [0.0, 2e-3])
def test_what_the_node_sends_has_the_bits_of_the_library(start, file, lead):
    """In the compiled stream and field by field; held commands repeat it, and the model's values stay."""
    client = start("--params-file", file, "-p", f"command_lead:={lead}", "-p", "hold_last_command:=always")
    for k in range(1, 31):
        send(client, k)
        client.spin(1e-3)
    for k in range(1, 31):
        command, sent = of_library(k, lead)
        feedforward, setpoint, effort = client.answers_to(k)
        for field, values in zip(COMMAND_FIELDS, command, strict=True):
            assert getattr(feedforward, field).tobytes() == values.tobytes()
        for field in MOTOR_SETPOINT_FIELDS:
            assert getattr(setpoint, field).tobytes() == getattr(sent, field).tobytes(), (k, field)
        assert effort.data.tobytes() == sent.effort.tobytes()
    send(client, 31, np.full((5, 2), np.nan))
    feedforward, setpoint, effort = client.answers_to(31)
    assert feedforward.held and setpoint.effort.tobytes() == effort.data.tobytes() == sent.effort.tobytes()
    assert setpoint.position.tobytes() == sent.position.tobytes()


def test_joint_efforts_are_sent_without_what_the_robot_adds(start, file):
    client = start("--params-file", file, "-p", "effort_command:=joint", "-p", "command_lead:=0.0")
    for k in (1, 2, 3):
        send(client, k)
        _, _, effort = client.answers_to(k)
        assert effort.data.tobytes() == of_library(k)[1].joint_effort.tobytes()


def test_the_simulated_robot_adds_them_and_counts_in_units(start, file):
    """It comes to rest where sent efforts lack gravity: without what its drives add it would sag by 0.02 rad."""
    robot = start("--params-file", file, module="simulated_robot_node", client=RobotClient)
    robot.wait(lambda: robot.joints and robot.motors, "states")
    zero, q = np.zeros(2), np.array([0.3, -0.2])
    state, rest = robot.motors[-1], ARM.feedforward(zero, zero, zero)
    motors = ARM.drive_state(state.position, state.velocity, state.effort)
    np.testing.assert_allclose(motors.motor_position, rest.motor_position, rtol=0, atol=1e-6)
    np.testing.assert_allclose(motors.motor_effort, rest.motor_effort, rtol=0, atol=1e-3)
    sent = ARM.drive_command(ARM.feedforward(q, zero, zero), q, zero, zero)
    values = {name: getattr(sent, name).tolist() for name in MOTOR_SETPOINT_FIELDS}
    robot.repeat(
        lambda: robot.send("motor_setpoint", **values),
        lambda: np.max(np.abs(np.array(robot.joints[-1].position) - q)) < 1e-4,
        "the links at rest",
    )
