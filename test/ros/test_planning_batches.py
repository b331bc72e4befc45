# SPDX-License-Identifier: Apache-2.0
"""Services for many states: numbers and refusals, of both nodes."""

import itertools

import numpy as np
import pytest
from iiwa import NAMES, ROBOT, N, command, without_limits
from iiwa import assert_close as assert_equal
from node_client import joint_trajectory, message_fields
from paths import CONFIG
from tool_messages import base_message, orientation, payload_message, vector

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS, WRENCH_FIELDS
from eom_dynamics.robot.payload import payload_parameters, with_parameters

EFFORT, MOTOR, MATRICES = 2, 4, 8
RATES = ("", "_rate", "_acceleration")
TERMS = {"mass_matrix": "M", "coriolis_matrix": "C", "gravity_effort": "gravity", "external_effort": "external"}
"""Fields of the answer, and attributes of the library's terms."""


@pytest.fixture(scope="module")
def node(start_shared):
    return start_shared.planning("--params-file", CONFIG / "iiwa.yaml")


@pytest.fixture(scope="module")
def stream(start_shared):
    return start_shared("--params-file", CONFIG / "iiwa.yaml")


def kinematics(client, **fields):
    from eom_dynamics.srv import ComputeInverseKinematics

    request = ComputeInverseKinematics.Request(**message_fields(fields))
    return client.call(ComputeInverseKinematics, "inverse_kinematics", request)


def assert_close(actual, wanted):
    assert_equal(np.reshape(actual, np.shape(wanted)), wanted)


@pytest.mark.parametrize("served", ["node", "stream"])
@pytest.mark.parametrize("wrenches", [0, 1, 12])
def test_answers_are_the_closed_form_of_each_state_and_have_the_requested_outputs(request, rng, served, wrenches):
    client, count, order = request.getfixturevalue(served), 12, rng.permutation(N)
    state, wrench = rng.uniform(-2, 2, (5, count, N)), rng.uniform(-20, 20, (3, wrenches, 6))
    state[1] *= 0.6  # within limits
    fields = dict(zip(STATE_FIELDS, state[..., order], strict=True))
    if wrenches:
        fields |= dict(zip(WRENCH_FIELDS, wrench, strict=True))
    fields |= {"joint_names": [NAMES[i] for i in order]}
    answer = client.inverse_dynamics(outputs=EFFORT | MOTOR | MATRICES, **fields)
    assert (answer.success, answer.message) == (True, "")
    assert answer.joint_names == answer.motor_names == [NAMES[i] for i in order]
    wanted = [command(state[:, k], wrench[:, min(k, wrenches - 1)] if wrenches else ()) for k in range(count)]
    for i, field in enumerate(COMMAND_FIELDS):
        assert_close(getattr(answer, field), [row[i][order] for row, _ in wanted])
    for (k, rate), name in itertools.product(enumerate(RATES), TERMS):
        terms = [getattr(equations, TERMS[name])[k] for _, equations in wanted]
        assert_close(getattr(answer, name + rate), [x[np.ix_(*[order] * x.ndim)] for x in terms])
    groups = {
        EFFORT: COMMAND_FIELDS[:3],
        MOTOR: COMMAND_FIELDS[3:],
        MATRICES: [name + rate for name in TERMS for rate in RATES],
    }
    for outputs in (0, *groups):
        part = client.inverse_dynamics(outputs=outputs, **fields)
        for group, field in ((group, field) for group, given in groups.items() for field in given):
            has = group & (outputs or EFFORT | MOTOR)
            assert getattr(part, field) == (getattr(answer, field) if has else type(part.effort)("d")), field


def test_each_state_has_the_stiffness_and_base_of_its_entry_and_one_entry_holds_for_all(start, rng):
    arm = eom.ElasticArm(eom.load_robot("vsa_planar_2r"))
    client = start.planning("--params-file", CONFIG / "vsa_planar_2r.yaml")
    states, k = rng.uniform(-1, 1, (5, 4, 2)), rng.uniform(260, 300, (4, 2))
    bases = [
        eom.BaseMotion(rng.uniform(-1, 1, (4, 3)), rng.uniform(-1, 1, (3, 3)) - [[0, 9.81, 0], [0] * 3, [0] * 3])
        for _ in range(4)
    ]
    names = list(arm.robot.joint_names)[::-1]
    fields = {"joint_names": names} | dict(zip(STATE_FIELDS, states[..., ::-1], strict=True))
    for given in ([], bases[:1], bases):
        message = [base_message(base) for base in given]
        answer = client.inverse_dynamics(stiffness=k[:, ::-1], base=message, **fields)
        assert answer.success, answer.message
        for i in range(4):
            base = given[min(i, len(given) - 1)] if given else None
            wanted = arm.feedforward(*states[:, i], commanded_stiffness=(k[i],), base=base)
            assert_close(np.reshape(answer.motor_position, (4, 4))[i], wanted.motor_position[[2, 3, 0, 1]])
            assert_close(np.reshape(answer.effort_rate, (4, 2))[i], wanted.taud[::-1])
    refused = client.inverse_dynamics(base=[base_message(base) for base in bases[:3]], **fields)
    assert refused.message == "base has 3 entries, must have one, 4 (one for each sample) or none"
    refused = client.inverse_dynamics(stiffness=np.ones((4, 2)), **fields)
    assert not refused.success and "stiffness" in refused.message


def test_the_dynamics_node_refuses_more_than_100_states_and_names_the_node_that_takes_them(node, stream):
    for count, accepted in ((100, True), (101, False)):
        states = dict.fromkeys(STATE_FIELDS, np.full(count * N, 0.1))
        assert node.inverse_dynamics(**states).success
        answer = stream.inverse_dynamics(**states)
        assert answer.success == accepted
    assert answer.message == "position has 101 samples, must have at most 100: ask planning_node"


ZEROS = np.zeros(2 * N)
BATCH = dict.fromkeys(STATE_FIELDS, ZEROS)
# One of each kind; test/control has them all.
FAST = {"velocity": np.full(2 * N, 1e200)}
BAD_REQUESTS = [
    ({"joint_names": [*NAMES[:-1], "elbow"]}, "joint_names[6]: the robot has no joint 'elbow'"),
    (FAST, "numbers too large"),
    (FAST | {"outputs": MATRICES}, "numbers too large"),
    ({"outputs": 1}, "outputs must be EFFORT, MOTOR, MATRICES, a sum of them, or 0, is 1"),
    (dict.fromkeys(STATE_FIELDS, np.zeros(100_001 * N)), "position has 100001 samples, must have at most 100000"),
    (
        dict.fromkeys(STATE_FIELDS, np.zeros(10_001 * N)) | {"outputs": MATRICES},
        "position has 10001 samples, must have at most 10000: split the request",
    ),
]


def test_bad_requests_are_refused(node):
    for changes, message in BAD_REQUESTS:
        answer = node.inverse_dynamics(**BATCH | changes)
        assert not answer.success and message in answer.message
        assert not len(answer.effort) + len(answer.mass_matrix)
        assert node.inverse_dynamics(**BATCH).success


def poses_of(positions):
    from geometry_msgs.msg import Point, Pose, Quaternion

    C = eom.Kinematics(ROBOT).pose(positions)
    return [Pose(position=vector(x[:3, 3], Point), orientation=orientation(x, Quaternion)) for x in C], C


def test_inverse_kinematics_of_many_poses(node):
    """In the joint order of the request, near the starts; an unreachable pose is reported, the rest is solved."""
    q = np.random.default_rng(8).uniform(-0.5, 0.5, (20, N))
    poses, C = poses_of(q)
    poses[3].position.z = 9.0
    answer = kinematics(node, pose=poses, joint_names=NAMES[::-1], start=np.ravel(q[:, ::-1] + 0.01))
    assert answer.success and list(answer.joint_names) == NAMES[::-1]
    assert list(answer.solved) == [k != 3 for k in range(20)]
    assert [reason for reason in answer.reason if reason] == [answer.reason[3]] == ["out of reach"]
    found = np.reshape(answer.position, (20, N))[:, ::-1]
    solved = np.array(answer.solved)
    np.testing.assert_allclose(eom.Kinematics(ROBOT).pose(found)[solved], C[solved], atol=1e-9)
    assert np.max(np.abs(found - q)[solved]) < 0.2 and answer.distance[3] > 7
    # From the middle of the ranges, with a free orientation; an empty request has an empty answer.
    answer = kinematics(node, pose=poses[:1], task=1)
    assert answer.success and list(answer.solved) == [True] and answer.angle[0] == 0
    assert kinematics(node).success


BAD_POSES = [
    ({"task": 3}, "task must be POSE, POSITION or POINTING, is 3"),
    ({"frame": "elsewhere"}, "elsewhere"),
    ({"start": np.zeros(2 * N)}, "start has 2 configurations for 1 poses"),
]


def test_invalid_requests_of_inverse_kinematics_are_refused(node):
    for fields, reason in BAD_POSES:
        answer = kinematics(node, pose=poses_of(np.zeros((1, N)))[0], **fields)
        assert not answer.success and reason in answer.message


PAYLOAD = eom.Payload(2.0, [0.02, 0.0, 0.1], [0.02, 0.001, 0.002, 0.03, 0.001, 0.04])
LOADED = with_parameters(ROBOT, payload_parameters(ROBOT, [PAYLOAD]))


def assert_carried(node, rng, robot, **given):
    """Answers equal those for a robot with the payload in its file."""
    state, dynamics = rng.uniform(-1, 1, (5, 3, N)), eom.Dynamics(robot, backend="numpy")
    fields = dict(zip(STATE_FIELDS, state, strict=True))
    answer = node.inverse_dynamics(outputs=MOTOR | MATRICES, **fields, **given)
    assert answer.success, answer.message
    assert_close(answer.motor_effort, eom.ElasticArm(robot, backend="numpy").feedforward(*state).motor_effort)
    assert_close(answer.mass_matrix, [dynamics.mass_matrix(q) for q in state[0]])


def test_payloads_of_requests_and_of_the_topic(node, stream, rng):
    from eom_dynamics.msg import Payload

    for client in (node, stream):
        assert_carried(client, rng, LOADED, payload=[payload_message(PAYLOAD)])
        assert_carried(client, rng, ROBOT)
    publisher = node.publisher(Payload, "payload")
    publisher.publish(payload_message(PAYLOAD, 0.5))
    tool = ROBOT.tools[0].name
    node.wait_for_diagnostics(lambda *status: status[2].get("payload") == f"2 kg at {tool}", "the payload")
    assert_carried(node, rng, LOADED)
    # The request has precedence over the topic.
    assert_carried(node, rng, ROBOT, payload=[payload_message(eom.Payload(0.0))])
    wrong = payload_message(PAYLOAD, tool="hand")
    for client in (node, stream):
        answer = client.inverse_dynamics(payload=[wrong], **BATCH)
        assert (answer.success, answer.message[:34]) == (False, "payload: iiwa has no frame 'hand';")
        many = client.inverse_dynamics(payload=[wrong] * 101, **BATCH)
        assert many.message == "payload has 101 entries, may have 100"
    publisher.publish(wrong)
    node.wait_for_diagnostics(lambda *status: "last refused payload" in status[2], "the refusal")
    publisher.publish(payload_message(eom.Payload(0.0)))
    node.wait_for_diagnostics(lambda *status: "payload" not in status[2], "the end")
    assert_carried(node, rng, ROBOT)


def test_a_robot_without_limits_has_no_fastest_motion(start, tmp_path):
    path = joint_trajectory(NAMES, [0.0, 1.0], [[0.0] * N, [0.3] * N])
    node = start.planning("--params-file", without_limits(tmp_path))
    answer = node.trajectory_feedforward(trajectory=path, timing="fastest")
    reason = "there are no limits, hence no shortest duration; give limits of velocity and effort"
    assert (answer.success, answer.message) == (False, reason)
