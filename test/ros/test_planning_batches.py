# SPDX-License-Identifier: Apache-2.0
"""Services for many states and for the terms of the equations of motion: numbers and refusals."""

import itertools

import numpy as np
import pytest
from differences import gradient
from iiwa import NAMES, ROBOT, ROTOR_INERTIA, N, command, without_limits
from iiwa import assert_close as assert_equal
from node_client import joint_trajectory, message_fields
from paths import CONFIG
from tool_messages import orientation, payload_message, vector

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS, WRENCH_FIELDS
from eom_dynamics.robot.payload import payload_parameters, with_parameters

RATES = ("", "_rate", "_acceleration")

SERVICES = {
    "ComputeInverseDynamicsBatch": "inverse_dynamics_batch",
    "ComputeForwardDynamics": "forward_dynamics",
    "ComputeInverseKinematics": "inverse_kinematics",
    "GetEquationsOfMotion": "equations_of_motion",
}


@pytest.fixture(scope="module")
def node(start_shared):
    return start_shared.planning("--params-file", CONFIG / "iiwa.yaml")


def ask(client, kind, **fields):
    from eom_dynamics import srv

    kind_ = getattr(srv, kind)
    return client.call(kind_, SERVICES[kind], kind_.Request(**message_fields(fields)))


def assert_close(actual, wanted):
    assert_equal(np.reshape(actual, np.shape(wanted)), wanted)


@pytest.mark.parametrize("wrenches", [0, 12])
def test_a_batch_is_the_closed_form_of_each_state_and_has_the_parts_that_are_asked_for(node, rng, wrenches):
    count, order = 12, rng.permutation(N)
    state, wrench = rng.uniform(-2, 2, (5, count, N)), rng.uniform(-20, 20, (3, wrenches, 6))
    state[1] *= 0.6  # within limits
    fields = dict(zip(STATE_FIELDS, state[..., order], strict=True))
    if wrenches:
        fields |= dict(zip(WRENCH_FIELDS, wrench, strict=True))
    fields |= {"joint_names": [NAMES[i] for i in order]}
    answer = ask(node, "ComputeInverseDynamicsBatch", **fields)
    assert (answer.success, answer.message) == (True, "")
    assert answer.joint_names == answer.motor_names == [NAMES[i] for i in order]
    wanted = [command(state[:, k], wrench[:, k] if wrenches else ())[0] for k in range(count)]
    for i, field in enumerate(COMMAND_FIELDS):
        assert_close(getattr(answer, field), [row[i][order] for row in wanted])
    efforts, motors = (ask(node, "ComputeInverseDynamicsBatch", outputs=x, **fields) for x in (2, 4))
    assert (efforts.effort_acceleration, len(efforts.motor_effort)) == (answer.effort_acceleration, 0)
    assert (len(motors.effort), motors.motor_position) == (0, answer.motor_position)


def test_forward_dynamics_and_its_partials_are_those_of_the_library(node, rng):
    order, wrench, dynamics = rng.permutation(N), rng.uniform(-20, 20, (20, 6)), eom.Dynamics(ROBOT, backend="numpy")
    given = {name: rng.uniform(-2, 2, (20, N)) for name in ("position", "velocity", "effort")}
    for rotors in (False, True):
        answer = ask(
            node,
            "ComputeForwardDynamics",
            joint_names=[NAMES[i] for i in order],
            wrench=wrench,
            include_rotor_inertia=rotors,
            include_partials=True,
            **{name: x[:, order] for name, x in given.items()},
        )
        assert answer.success, answer.message
        assert answer.joint_names == [NAMES[i] for i in order]
        added = ROTOR_INERTIA if rotors else np.zeros(N)
        wanted = dynamics.forward_dynamics(*given.values(), wrench=(wrench,), added_inertia=added)
        # Mass matrices of an arm have condition numbers of some hundred.
        np.testing.assert_allclose(np.reshape(answer.acceleration, (20, N)), wanted[:, order], rtol=1e-9, atol=1e-9)
    for name, x in given.items():

        def accelerations(moved, name=name):
            state = ({key: values[3] for key, values in given.items()} | {name: moved}).values()
            return dynamics.forward_dynamics(*state, wrench=(wrench[3],), added_inertia=ROTOR_INERTIA)

        wanted = gradient(accelerations, x[3])[np.ix_(order, order)]
        found = np.reshape(getattr(answer, f"acceleration_by_{name}"), (20, N, N))[3]
        # Of differences of accelerations of up to 1e4.
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize(("coriolis", "given"), [("", 4), ("christoffel", 2)])
def test_the_terms_are_those_of_the_library(node, rng, coriolis, given):
    state, wrench, order = rng.uniform(-2, 2, (given, N)), rng.uniform(-20, 20, (3, 6)), rng.permutation(N)
    answer = ask(
        node,
        "GetEquationsOfMotion",
        joint_names=[NAMES[i] for i in order],
        coriolis=coriolis,
        include_coriolis_tensor=coriolis == "christoffel",
        **dict(zip(STATE_FIELDS, state[:, order], strict=False)),
        **dict(zip(WRENCH_FIELDS, wrench, strict=True)),
    )
    assert answer.success, answer.message
    wanted = eom.equations_of_motion(ROBOT, *state, wrench=tuple(wrench), coriolis=coriolis or "christoffel")
    q, qd = state[:2]
    assert_close(answer.momentum, (wanted.M[0] @ qd)[order])
    assert answer.kinetic_energy == pytest.approx(0.5 * qd @ wanted.M[0] @ qd, rel=1e-12)
    potential = eom.Dynamics(ROBOT, backend="numpy").potential_energy(q)
    assert answer.potential_energy == pytest.approx(potential, rel=1e-12)
    if coriolis == "christoffel":
        c = np.reshape(answer.coriolis_tensor, (N, N, N))
        assert_close(c @ qd[order], wanted.C[0][np.ix_(order, order)])
    else:
        assert not len(answer.coriolis_tensor)
    terms = {"mass_matrix": wanted.M, "coriolis_matrix": wanted.C}
    terms |= {"gravity_effort": wanted.gravity, "external_effort": wanted.external}
    for (name, values), (k, rate) in itertools.product(terms.items(), enumerate(RATES)):
        got = getattr(answer, name + rate)
        if k < given - 1:
            assert_close(got, values[k][np.ix_(*[order] * values[k].ndim)])
        else:
            assert not len(got)


def test_a_commanded_stiffness_is_used(start, rng):
    arm = eom.ElasticArm(eom.load_robot("vsa_planar_2r"))
    client = start.planning("--params-file", CONFIG / "vsa_planar_2r.yaml")
    states, k = rng.uniform(-1, 1, (5, 4, 2)), rng.uniform(200, 300, (4, 2))
    fields = dict(zip(STATE_FIELDS, states[..., ::-1], strict=True))
    names = list(arm.robot.joint_names)[::-1]
    answer = ask(client, "ComputeInverseDynamicsBatch", joint_names=names, stiffness=k[:, ::-1], **fields)
    assert answer.success, answer.message
    wanted = arm.feedforward(*states, commanded_stiffness=(k,))
    assert_close(answer.motor_position, wanted.motor_position[:, [2, 3, 0, 1]])
    refused = ask(client, "ComputeInverseDynamicsBatch", joint_names=names, stiffness=np.ones((4, 2)), **fields)
    assert not refused.success and "stiffness" in refused.message


ZEROS = np.zeros(2 * N)


BATCH = dict.fromkeys(STATE_FIELDS, ZEROS)
TERMS = {"position": ZEROS[:N], "velocity": ZEROS[:N]}
STATES = {"position": ZEROS, "velocity": ZEROS, "effort": ZEROS}
# One of each kind; test/control has them all.
MANY = dict.fromkeys(STATE_FIELDS, np.zeros(100_001 * N))
NAMED = {"joint_names": [*NAMES[:-1], "elbow"]}
FAST = {"velocity": np.full(N, 1e200), "acceleration": np.zeros(N)}
CORIOLIS = "coriolis must be one of christoffel, skew, paper, wieber, is 'centrifugal'"
BAD_REQUESTS = [
    ("ComputeInverseDynamicsBatch", BATCH, NAMED, "joint_names[6]: the robot has no joint 'elbow'"),
    ("ComputeInverseDynamicsBatch", BATCH, {"velocity": np.full(2 * N, 1e200)}, "numbers too large"),
    ("ComputeInverseDynamicsBatch", BATCH, {"outputs": 1}, "outputs must be EFFORT, MOTOR"),
    ("ComputeInverseDynamicsBatch", BATCH, MANY, "position has 100001 samples, must have at most 100000"),
    ("ComputeForwardDynamics", STATES, {"velocity": np.full(2 * N, 1e200)}, "numbers too large: qdd would not be"),
    ("GetEquationsOfMotion", TERMS, {"position": ZEROS}, "position has 14 entries, must have 7, one for each joint"),
    ("GetEquationsOfMotion", TERMS, {"jerk": ZEROS[:N]}, "acceleration is empty, but jerk is not"),
    ("GetEquationsOfMotion", TERMS, {"coriolis": "centrifugal"}, CORIOLIS),
    ("GetEquationsOfMotion", TERMS, FAST, "numbers too large"),
]


def test_bad_requests_are_refused(node):
    for kind, good, changes, message in BAD_REQUESTS:
        answer = ask(node, kind, **good | changes)
        assert not answer.success and message in answer.message
        assert not len(getattr(answer, "effort", ()))
        assert ask(node, kind, **good).success


def poses_of(positions):
    from geometry_msgs.msg import Point, Pose, Quaternion

    C = eom.Kinematics(ROBOT).pose(positions)
    return [Pose(position=vector(x[:3, 3], Point), orientation=orientation(x, Quaternion)) for x in C], C


def test_inverse_kinematics_of_many_poses(node):
    """In the joint order of the request, near the starts; one that is out of reach is said, and the others solved."""
    q = np.random.default_rng(8).uniform(-0.5, 0.5, (20, N))
    poses, C = poses_of(q)
    poses[3].position.z = 9.0
    answer = ask(
        node, "ComputeInverseKinematics", pose=poses, joint_names=NAMES[::-1], start=np.ravel(q[:, ::-1] + 0.01)
    )
    assert answer.success and list(answer.joint_names) == NAMES[::-1]
    assert list(answer.solved) == [k != 3 for k in range(20)]
    assert [reason for reason in answer.reason if reason] == [answer.reason[3]] == ["out of reach"]
    found = np.reshape(answer.position, (20, N))[:, ::-1]
    solved = np.array(answer.solved)
    np.testing.assert_allclose(eom.Kinematics(ROBOT).pose(found)[solved], C[solved], atol=1e-9)
    assert np.max(np.abs(found - q)[solved]) < 0.2 and answer.distance[3] > 7
    # From the middle of the ranges, with a free orientation; no pose is none.
    answer = ask(node, "ComputeInverseKinematics", pose=poses[:1], task=1)
    assert answer.success and list(answer.solved) == [True] and answer.angle[0] == 0
    assert ask(node, "ComputeInverseKinematics").success


BAD_POSES = [
    ({"task": 3}, "task must be POSE, POSITION or POINTING, is 3"),
    ({"frame": "elsewhere"}, "elsewhere"),
    ({"start": np.zeros(2 * N)}, "start has 2 configurations for 1 poses"),
]


def test_invalid_requests_of_inverse_kinematics_are_refused(node):
    for fields, reason in BAD_POSES:
        answer = ask(node, "ComputeInverseKinematics", pose=poses_of(np.zeros((1, N)))[0], **fields)
        assert not answer.success and reason in answer.message


PAYLOAD = eom.Payload(2.0, [0.02, 0.0, 0.1], [0.02, 0.001, 0.002, 0.03, 0.001, 0.04])
LOADED = with_parameters(ROBOT, payload_parameters(ROBOT, [PAYLOAD]))


def assert_carried(node, rng, robot, **given):
    """Answers of all services are those for a robot, in whose file the payload is."""
    state, dynamics = rng.uniform(-1, 1, (5, 3, N)), eom.Dynamics(robot, backend="numpy")
    answer = ask(node, "ComputeInverseDynamicsBatch", **dict(zip(STATE_FIELDS, state, strict=True)), **given)
    assert answer.success, answer.message
    assert_close(answer.motor_effort, eom.ElasticArm(robot, backend="numpy").feedforward(*state).motor_effort)
    of_efforts = {"position": state[0], "velocity": state[1], "effort": 10 * state[2]}
    answer = ask(node, "ComputeForwardDynamics", **of_efforts, **given)
    # As M is conditioned.
    np.testing.assert_allclose(answer.acceleration, dynamics.forward_dynamics(*of_efforts.values()).ravel(), rtol=1e-9)
    answer = ask(node, "GetEquationsOfMotion", position=state[0, 0], velocity=state[1, 0], **given)
    assert_close(answer.mass_matrix, dynamics.mass_matrix(state[0, 0]))
    assert_close(answer.momentum, dynamics.momentum(*state[:2, 0]))


def test_payloads_of_requests_and_of_the_topic(node, rng):
    from eom_dynamics.msg import Payload

    assert_carried(node, rng, LOADED, payload=[payload_message(PAYLOAD)])
    assert_carried(node, rng, ROBOT)
    publisher = node.publisher(Payload, "payload")
    publisher.publish(payload_message(PAYLOAD, 0.5))
    tool = ROBOT.tools[0].name
    node.wait_for_diagnostics(lambda *status: status[2].get("payload") == f"2 kg at {tool}", "the payload")
    assert_carried(node, rng, LOADED)
    # What a request says comes before the topic.
    assert_carried(node, rng, ROBOT, payload=[payload_message(eom.Payload(0.0))])
    wrong = payload_message(PAYLOAD, tool="hand")
    answer = ask(node, "GetEquationsOfMotion", position=np.zeros(N), velocity=np.zeros(N), payload=[wrong])
    assert (answer.success, answer.message[:34]) == (False, "payload: iiwa has no frame 'hand';")
    many = ask(node, "GetEquationsOfMotion", position=np.zeros(N), velocity=np.zeros(N), payload=[wrong] * 101)
    assert many.message == "payload has 101 entries, may have 100"
    publisher.publish(wrong)
    node.wait_for_diagnostics(lambda *status: "last refused payload" in status[2], "the refusal")
    publisher.publish(payload_message(eom.Payload(0.0)))
    node.wait_for_diagnostics(lambda *status: "payload" not in status[2], "the end")
    assert_carried(node, rng, ROBOT)


def test_a_robot_without_limits_has_no_fastest_motion(start, tmp_path):
    from eom_dynamics.msg import TrajectoryStatus
    from trajectory_msgs.msg import JointTrajectory

    path = joint_trajectory(NAMES, [0.0, 1.0], [[0.0] * N, [0.3] * N])
    node = start.planning("--params-file", without_limits(tmp_path))
    answer = node.trajectory_feedforward(trajectory=path, timing="fastest")
    reason = "there are no limits, hence no shortest duration; give limits of velocity and effort"
    assert (answer.success, answer.message) == (False, reason)
    assert node.set_parameter("trajectory_limits", "fastest") == ""
    publisher = node.publisher(JointTrajectory, "joint_trajectory")
    publisher.publish(path)
    node.wait(lambda: f"trajectory refused: {reason}" in node.process.log, "the refusal")
    assert node.trajectory_feedforward(trajectory=path).success
    # At the pace that it has, it is refused, too, where there is no dynamics node.
    statuses = node.collect(TrajectoryStatus, "trajectory_status")
    assert node.set_parameter("trajectory_limits", "refuse") == ""
    path.header.frame_id = "alone"
    node.repeat(lambda: publisher.publish(path), lambda: statuses, "the refusal")
    assert statuses[-1].header.frame_id == "alone" and "nobody subscribes to" in statuses[-1].message


def test_a_trajectory_soon_after_the_start_waits_for_the_node_that_plays_it(start):
    from eom_dynamics.msg import SplineTrajectory, TrajectoryStatus
    from trajectory_msgs.msg import JointTrajectory

    node = start.planning("--params-file", CONFIG / "iiwa.yaml", {"planning_node.DISCOVERY": 60.0})
    statuses = node.collect(TrajectoryStatus, "trajectory_status")
    path = joint_trajectory(NAMES, [0.0, 1.0], [[0.0] * N, [0.3] * N])
    node.publisher(JointTrajectory, "joint_trajectory").publish(path)
    node.spin(1.0)
    motions = node.collect(SplineTrajectory, "spline_trajectory")
    node.wait(lambda: motions, "the motion")
    assert not statuses
