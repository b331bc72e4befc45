# SPDX-License-Identifier: Apache-2.0
"""Arms with two motors a joint, commanded stiffness and a moving base in the node: numbers, refusals, held commands."""

import numpy as np
import pytest
from node_client import frame_of
from paths import CONFIG
from tool_messages import base_message

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, MOTOR_FIELDS

ARM = eom.ElasticArm(eom.load_robot("vsa_planar_2r"))
STATE = np.full((5, 2), 0.1)
GOOD = {"stiffness": np.array([300.0, 150.0])}


@pytest.fixture(scope="module")
def vsa(start_shared):
    return start_shared("--params-file", CONFIG / "vsa_planar_2r.yaml", "-p", "robot.moving_base:=true")


def test_motors_of_a_joint_take_its_place_in_the_order_of_a_message(vsa, rng):
    """Bit by bit as the library has them; the effort command is in the robot's order."""
    motors = [2, 3, 0, 1]
    assert vsa.next_diagnostics()[2]["motors"] == ", ".join(ARM.motor_names)
    state, stiffness = rng.uniform(-0.5, 0.5, (5, 2)), np.array([300.0, 150.0])
    given = {"joint_names": list(ARM.robot.joint_names)[::-1], "stiffness": stiffness[::-1].copy()}
    command = ARM.feedforward(*state, commanded_stiffness=(stiffness,))
    feedforward, motor_setpoint, effort_command = vsa.answers_to(vsa.publish(state[:, ::-1], **given))
    answer = vsa.inverse_dynamics(state[:, ::-1], **given)
    assert answer.success, answer.message
    for name, values in zip(COMMAND_FIELDS, command, strict=True):
        for message in (feedforward, answer):
            np.testing.assert_array_equal(getattr(message, name), values[motors if name in MOTOR_FIELDS else [1, 0]])
    names = [ARM.motor_names[i] for i in motors]
    assert feedforward.motor_names == motor_setpoint.name == answer.motor_names == names
    for name in ("position", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(motor_setpoint, name), getattr(feedforward, f"motor_{name}"))
    np.testing.assert_array_equal(effort_command.data, command.motor_effort)


def test_stream_and_service_take_the_motion_of_the_base(vsa, rng):
    """Bit by bit as the library has it; a base in free fall, and matrices of a moving base, are refused by name."""
    base = eom.BaseMotion(rng.uniform(-1, 1, (4, 3)), rng.uniform(-1, 1, (3, 3)) - [[0, 9.81, 0], [0] * 3, [0] * 3])
    state = rng.uniform(-0.5, 0.5, (5, 2))
    command, *_ = vsa.answers_to(vsa.publish(state, base=[base_message(base)]))
    answer = vsa.inverse_dynamics(state, base=[base_message(base)])
    for name, values in zip(COMMAND_FIELDS, ARM.feedforward(*state, base=base), strict=True):
        np.testing.assert_array_equal(getattr(command, name), values)
        np.testing.assert_array_equal(getattr(answer, name), values)
    falling = vsa.inverse_dynamics(state, base=[base_message(np.zeros((1, 7, 3)))])
    matrices = vsa.inverse_dynamics(state, base=[base_message(base)], outputs=8)
    assert not falling.success and falling.message.startswith("base[0].specific_force is zero, as if the base fell")
    assert not matrices.success and matrices.message.startswith("base is not empty: MATRICES need a base at rest")


# One of each kind; test/control has them all.
BAD_STIFFNESS = [
    ({"stiffness": np.array([99.0, 150.0])}, "joint_1: stiffness 99 is below "),
    ({"stiffness": np.array([300.0, np.nan])}, "stiffness[1] (joint 'joint_2') is nan"),
]


@pytest.mark.parametrize(("fields", "reason"), BAD_STIFFNESS)
def test_a_stiffness_that_cannot_be_used_holds_the_last_good_command(vsa, fields, reason):
    good = vsa.answers_to(vsa.publish(STATE, **GOOD))
    number = vsa.publish(STATE + 0.1, **fields)
    held = vsa.answers_to(number)
    assert held[0].held and not good[0].held
    assert held[0].header.frame_id == held[1].header.frame_id == frame_of(number)
    for name in (*COMMAND_FIELDS, "joint_names", "motor_names"):
        assert getattr(held[0], name) == getattr(good[0], name)
    for name in ("name", "position", "velocity", "effort"):
        assert getattr(held[1], name) == getattr(good[1], name)
    assert held[2].data == good[2].data
    again = vsa.answers_to(vsa.publish(STATE, **GOOD))
    assert again[0].motor_effort == good[0].motor_effort and not again[0].held
    answer = vsa.inverse_dynamics(STATE, **fields)
    assert not answer.success and answer.message.startswith(reason), answer.message
    assert vsa.next_diagnostics()[2]["last refusal"].startswith(reason)
