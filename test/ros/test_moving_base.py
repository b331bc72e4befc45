# SPDX-License-Identifier: Apache-2.0
"""Setpoints of an arm whose base moves: numbers, refusals, and what the service says."""

import numpy as np
import pytest
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.messages.fields import ANGULAR_FIELDS, COMMAND_FIELDS, FORCE_FIELDS

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
N = ROBOT.n
REST = eom.BaseMotion(np.zeros((4, 3)), np.array([-ROBOT.gravity, np.zeros(3), np.zeros(3)]))
MOVING = ("--params-file", CONFIG / "iiwa.yaml", "-p", "moving_base:=true")


@pytest.fixture(scope="module")
def node(start_shared):
    return start_shared(*MOVING)


def message(base):
    from eom_dynamics.msg import BaseMotion
    from geometry_msgs.msg import Vector3

    rows = zip(ANGULAR_FIELDS + FORCE_FIELDS, np.concatenate(base), strict=True)
    return BaseMotion(**{field: Vector3(**dict(zip("xyz", map(float, row), strict=True))) for field, row in rows})


def test_commands_are_those_for_the_motion_of_the_base(node, rng):
    """Against the equations of motion of the floating base, of which the joints' part is that of the arm."""
    q, *rates = rng.uniform(-2, 2, (5, N))
    twists = rng.uniform(-1, 1, (4, 6))
    pose = eom.lie.exp(rng.uniform(-1, 1, 6))
    base = eom.base_motion(ROBOT, pose, *twists)
    nu = [np.concatenate([V, rate]) for V, rate in zip(twists, rates, strict=True)]
    equations = eom.equations.floating_equations_of_motion(ROBOT, pose, q, *nu[:3])
    efforts = [tau[6:] for tau in equations.efforts(nu[3])]
    deflections = [tau / ROBOT.stiffness for tau in efforts]
    theta = [x + y for x, y in zip((q, *rates[:2]), deflections, strict=True)]
    wanted = (*efforts, *theta, ROBOT.rotor_inertia * theta[2] + efforts[0])
    command, *_ = node.answers_to(node.publish((q, *rates), base=[message(base)]))
    for field, values in zip(COMMAND_FIELDS, wanted, strict=True):
        # The closed form sums in another order.
        atol = 1e-11 * np.max(np.abs(values))
        np.testing.assert_allclose(getattr(command, field), values, rtol=0, atol=atol, err_msg=field)
    answer = node.inverse_dynamics((q, *rates), base=[message(base)])
    assert answer.success, answer.message
    assert all(getattr(answer, field) == getattr(command, field) for field in COMMAND_FIELDS)


def test_a_number_that_is_not_finite_is_refused_by_name(node):
    base = np.zeros((7, 3))
    base[5, 1] = np.nan
    node.publish(np.zeros((5, N)), base=[message([base])])
    refused = "base[0].specific_force_rate.y is nan"
    _, _, values = node.wait_for_diagnostics(lambda *status: status[2].get("last refusal") == refused, "the refusal")
    assert int(values["refused"]) >= 1
    node.answers_to(node.publish(np.zeros((5, N))))


def test_what_the_service_cannot_compute_is_refused(node):
    state = np.zeros((5, N))
    falling = node.inverse_dynamics(state, base=[message(np.zeros((1, 7, 3)))])
    matrices = node.inverse_dynamics(state, base=[message(REST)], include_matrices=True)
    assert not falling.success and falling.message.startswith("base[0].specific_force is zero, as if the base fell")
    assert not matrices.success and matrices.message.startswith("include_matrices: the matrices are those of a base at")


def test_without_the_parameter_a_moving_base_is_refused(iiwa):
    number = iiwa.publish(np.zeros((5, N)), base=[message(REST)])
    reason = "base is not empty: set the parameter moving_base to true before the robot is loaded"
    iiwa.wait_for_diagnostics(lambda *status: status[2].get("last refusal") == reason, "the refusal")
    iiwa.answers_to(iiwa.publish(np.zeros((5, N))))
    assert number not in [sent.header.stamp.nanosec for sent in iiwa.feedforward if not sent.held]
