# SPDX-License-Identifier: Apache-2.0
"""Motions of a tool through poses, by service."""

import numpy as np
import pytest
from differences import deviation
from geometry_msgs.msg import Quaternion, Transform, Vector3
from node_client import EACH_WARNING, joint_trajectory
from paths import CONFIG
from sensor_msgs.msg import JointState
from tool_messages import orientation, vector
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS
from eom_dynamics.kinematics import body_poses

ROBOT = eom.load_robot("ur5e")
ARM = eom.ElasticArm(ROBOT)
KINEMATICS = eom.Kinematics(ROBOT, backend="numpy")
NAMES = list(ROBOT.joint_names)
Q = np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])
POSES = [KINEMATICS.pose(Q)]
POSES += [POSES[0] @ eom.lie.exp(x) for x in ([0.3, 0.1, -0.2, 0.1, 0.0, 0.05], [0.0, 0.2, 0.1, 0.0, 0.1, 0.0])]
TIMES = (0.0, 1.0, 2.0)


@pytest.fixture(scope="module")
def node(start_shared):
    return start_shared.planning("--params-file", CONFIG / "ur5e.yaml", EACH_WARNING)


def poses(given=POSES, times=TIMES):
    trajectory = MultiDOFJointTrajectory()
    for t, C in zip(times, given, strict=True):
        point = MultiDOFJointTrajectoryPoint(
            transforms=[Transform(translation=vector(C[:3, 3], Vector3), rotation=orientation(C, Quaternion))]
        )
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(t * 1e9), 10**9)
        trajectory.points.append(point)
    return trajectory


def start_at(q, names=NAMES, count=1):
    return joint_trajectory(list(names), [0.0] * count, [[q[NAMES.index(name)] for name in names]] * count)


def tool_poses(q):
    tool = ROBOT.tools[0]
    return np.array(body_poses(ROBOT, q)[tool.joint]) @ tool.pose


def test_the_service_answers_with_joint_motion_feedforward_and_verdict(node):
    names = NAMES[::-1]
    answer = node.trajectory_feedforward(tool_trajectory=poses(), trajectory=start_at(Q, names), sample_rate=50.0)
    assert answer.success, answer.message
    assert answer.joint_names == names and answer.trajectory.joint_names == names
    points = answer.trajectory.points
    assert [p.time_from_start.sec for p in points] == [0, 1, 2]
    waypoints = np.array([p.positions for p in points])[:, ::-1]
    assert deviation(tool_poses(waypoints), POSES, floor=1.0) < 1e-9
    for point in points:
        assert len(point.velocities) == len(point.accelerations) == len(point.effort) == 6
    states = [np.reshape(getattr(answer, field), (-1, 6))[:, ::-1] for field in STATE_FIELDS]
    assert len(states[0]) == 101 and deviation(tool_poses(states[0])[50], POSES[1], floor=1.0) < 1e-9
    command = ARM.feedforward(*states)
    for field, values in zip(COMMAND_FIELDS, command, strict=True):
        assert deviation(np.reshape(getattr(answer, field), (-1, 6))[:, ::-1], values) < 1e-11
    assert answer.time_scaling == 1.0 and not answer.exceeded
    fast = node.trajectory_feedforward(tool_trajectory=poses(times=(0.0, 0.1, 0.2)), trajectory=start_at(Q))
    assert fast.success and fast.exceeded and fast.time_scaling > 1


AWAY = POSES[0].copy()
AWAY[:3, 3] *= 3.0
WRIST = [Q + np.array([0, 0, 0, 0, x - Q[4], 0]) for x in (0.4, -0.4)]

# Poses, their times, the start, and other fields of the request; and the refusal.
OPTIONS = {"trajectory": start_at(Q), "ends": "free"}
REFUSED = [
    (POSES, TIMES, {"trajectory": start_at(Q, count=2)}, "trajectory has 2 points; with a tool_"),
    (POSES, TIMES, {"trajectory": start_at(Q, names=())}, "points[0].positions is empty; it must"),
    (POSES, TIMES, OPTIONS, "ends: for waypoints of the joints only, not for a tool_trajectory"),
    (POSES, TIMES, {"trajectory": start_at(Q + 0.2)}, "the path starts 0."),
    ([POSES[0], AWAY], (0, 3), {"trajectory": start_at(Q)}, "at 1"),
    ([KINEMATICS.pose(q) for q in WRIST], (0, 3), {"trajectory": start_at(WRIST[0])}, " s the "),
    (POSES, TIMES, {}, "the position of 'shoulder_pan_joint', "),
]


def test_what_cannot_be_followed_is_refused_with_the_reason(node):
    for given, times, fields, reason in REFUSED:
        answer = node.trajectory_feedforward(tool_trajectory=poses(given, times), **fields)
        assert not answer.success and reason in answer.message


def test_joint_states_are_where_a_motion_starts(node):
    arm, gripper = JointState(name=NAMES, position=Q.tolist()), JointState(name=["finger"], position=[0.1])
    states = node.node.create_publisher(JointState, "joint_states", 10)
    node.node.create_timer(0.1, lambda: [states.publish(state) for state in (arm, gripper)])
    node.wait(states.get_subscription_count, "discovery")
    answer = node.trajectory_feedforward(tool_trajectory=poses())
    assert answer.success, answer.message
    np.testing.assert_allclose(answer.trajectory.points[0].positions, Q, rtol=0, atol=1e-12)
