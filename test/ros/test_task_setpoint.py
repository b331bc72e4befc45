# SPDX-License-Identifier: Apache-2.0
"""Setpoints of a tool: the commands move the joints such that the tool does what was asked, or they are refused."""

import numpy as np
import pytest
from differences import deviation
from node_client import stamp_of
from paths import CONFIG
from scipy.interpolate import CubicSpline

import eom_dynamics as eom
from eom_dynamics.kinematics import body_poses
from eom_dynamics.simulation import ElasticPlant, simulate
from eom_dynamics.trajectory import through_poses

IIWA = eom.ElasticArm(eom.load_robot("iiwa"))
Q = np.array([0.1, 0.5, 0.2, -1.2, 0.3, 0.8, 0.1])
UR5E = eom.Kinematics(eom.load_robot("ur5e"), backend="numpy")
BENT = np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])
START = 1_700_000_000 * 10**9


def begin(node, q):
    """Stand at q, by a setpoint of the joints."""
    node.answers_to(node.publish([q, *np.zeros((4, len(q)))]))


def stream(node, path, t, frame=""):
    """Publish the path at times; the answers by the number of their setpoint."""
    count = len(node.feedforward)
    C, *twists = path.derivatives(t)
    node.repeat(
        lambda: node.publish_task(C[0], np.array(twists)[:, 0], at=START, frame=frame),
        lambda: len(node.feedforward) > count,
        "the kinematics",
    )
    refused = int(node.next_diagnostics()[2]["refused"])
    node.feedforward.clear()
    for k in range(len(t)):
        node.publish_task(C[k], np.array(twists)[:, k], at=START + round(t[k] * 1e9), frame=frame)
        if k % 100 == 99:  # less than what its queue holds
            node.wait(lambda k=k: answered(node) + refusals(node) - refused > k, "answers")
    node.wait(lambda: answered(node) + refusals(node) - refused >= len(t), "all answers")
    stamps = [stamp_of(m) - START for m in node.feedforward]
    return {round(stamp * 1e-9 / (t[1] - t[0])): m for stamp, m in zip(stamps, node.feedforward, strict=True)}


def answered(node):
    return len(node.feedforward)


def refusals(node):
    return int(node.values["refused"])


def joint_motion(arm, commands):
    """q, qd, qdd (N, n) of commands of an arm with linear springs."""
    fields = ("motor_position", "motor_velocity", "motor_acceleration")
    efforts = ("effort", "effort_rate", "effort_acceleration")
    return [
        np.array([getattr(m, x) - np.array(getattr(m, tau)) / arm.stiffness for m in commands])
        for x, tau in zip(fields, efforts, strict=True)
    ]


@pytest.fixture(scope="module")
def iiwa(start_shared):
    return start_shared("--params-file", CONFIG / "iiwa.yaml")


def test_the_first_tool_is_prepared_as_soon_as_somebody_publishes_setpoints(iiwa):
    from eom_dynamics.msg import TaskSetpoint

    begin(iiwa, Q)
    assert "task setpoints" not in iiwa.process.log
    iiwa.publisher(TaskSetpoint, "task_setpoint")
    tool = IIWA.robot.tools[0].name
    iiwa.wait(lambda: f"task setpoints of {tool} are taken from now on" in iiwa.process.log, "the kinematics")
    iiwa.publish_task(eom.Kinematics(IIWA.robot, backend="numpy").pose(Q), at=START)
    iiwa.wait(lambda: len(iiwa.feedforward) == 2, "the first setpoint's command")
    assert refusals(iiwa) == 0


def test_commands_move_the_tool_along_a_path(iiwa):
    robot = IIWA.robot
    kinematics = eom.Kinematics(robot, backend="numpy")
    poses = [kinematics.pose(Q)]
    for x in np.random.default_rng(0).uniform(-1, 1, (2, 6)) * [0.3, 0.3, 0.3, 0.1, 0.1, 0.1]:
        poses.append(poses[-1] @ eom.lie.exp(x))
    path, t = through_poses([0.0, 1.5, 3.2], poses), np.arange(201) * 5e-3
    begin(iiwa, Q)
    answers = stream(iiwa, path, t)
    assert list(answers) == list(range(201))
    q, qd, qdd = joint_motion(IIWA, answers.values())
    C, *twists = path.derivatives(t)
    # By the product of exponentials.
    tool = robot.tools[0]
    assert deviation(np.array(body_poses(robot, q)[tool.joint]) @ tool.pose, C, floor=1.0) < 1e-9
    _, V, Vd = kinematics.motion(q, qd, qdd)
    assert deviation(V, twists[0], floor=1.0) < 1e-9
    assert deviation(Vd, twists[1], floor=1.0) < 1e-9
    # The simulated arm follows a tenth of a second of it by motor efforts alone, which depend on jerk and snap.
    part = list(answers.values())[100:121]
    plant, effort = ElasticPlant(IIWA), CubicSpline(t[100:121], [m.motor_effort for m in part])
    first = np.concatenate([q[100], part[0].motor_position, qd[100], part[0].motor_velocity])
    found = simulate(plant, lambda t, state: effort(t), t[100:121:4], first)
    np.testing.assert_allclose(plant.parts(found.states).q, q[100:121:4], rtol=0, atol=1e-8)


TENTHS = np.arange(11) / 10


REFUSED = {
    "frame": ({"frame": "flang"}, "iiwa has no frame 'flang'"),
    "pose": ({"C": eom.lie.pose(np.eye(3), [3.0, 0.0, 0.5])}, "the tool cannot reach its pose within the ranges"),
    "number": ({"twists": np.full((4, 6), np.nan)}, "twist.angular.x is nan"),
}


@pytest.mark.parametrize(("given", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_solved_is_refused_and_the_stream_goes_on(iiwa, given, reason):
    """The stream is that of the body of a joint."""
    name = IIWA.robot.joint_names[-1]
    begin(iiwa, Q)
    C = eom.Kinematics(IIWA.robot, backend="numpy").pose(Q, frame=name)
    there = C @ eom.lie.exp([0, 0.1, 0, 0.02, 0, 0])
    answers = stream(iiwa, through_poses([0.0, 1.0], [C, there]), TENTHS, name)
    q, _, _ = joint_motion(IIWA, answers.values())
    assert deviation(body_poses(IIWA.robot, q[-1])[-1], there, floor=1.0) < 1e-9
    iiwa.publish_task(**{"C": C, "at": START, "frame": name, **given})
    iiwa.wait_for_diagnostics(lambda *s: reason in s[2]["last refusal"], "the refusal")
    begin(iiwa, Q)


def test_without_a_command_the_joints_are_where_joint_states_say(iiwa):
    from sensor_msgs.msg import JointState

    node = iiwa
    assert node.transition("deactivate") and node.transition("activate")  # nothing is commanded from which to start
    node.until_silent()
    node.feedforward.clear()
    kinematics = eom.Kinematics(IIWA.robot, backend="numpy")
    C = kinematics.pose(Q)
    # By a motion of the arm that leaves the tool where it is, but for the square of its length.
    there = Q + 0.1 * np.linalg.svd(kinematics.jacobian(Q))[2][-1]
    node.repeat(
        lambda: node.publish_task(C, at=START),
        lambda: "the position of 'iiwa_joint_1', " in node.values["last refusal"],
        "the refusal",
    )
    states = node.publisher(JointState, "joint_states")
    names = list(IIWA.robot.joint_names)
    # Of several publishers, each with some of the joints, and with others.
    parts = [
        JointState(name=["gripper", *names[:2:-1]], position=[0.5, *there[:2:-1]]),
        JointState(name=names[:3], position=[*there[:3]]),
        JointState(name=["finger"], position=[0.1]),
    ]

    def both():
        for state in parts:
            states.publish(state)
        node.publish_task(C, at=START)

    node.repeat(both, lambda: node.feedforward, "a command")
    q, _, _ = joint_motion(IIWA, node.feedforward[:1])
    # The nearest solution: the redundant arm does not go back to Q.
    assert np.max(np.abs(q[0] - there)) < 0.01 < 0.05 < np.max(np.abs(q[0] - Q))
    assert deviation(body_poses(IIWA.robot, q[0])[-1] @ IIWA.robot.tools[0].pose, C, floor=1.0) < 1e-9
    # Seconds later, the joints are where they are measured again.
    refused, count = refusals(node), len(node.feedforward)
    node.publish_task(C, at=START + 2 * 10**9)
    node.wait(lambda: refusals(node) > refused, "a refusal")
    assert "it takes a message on joint_states" in node.values["last refusal"]
    node.repeat(both, lambda: len(node.feedforward) > count, "a command")


# --- Singularities, and the end of the workspace -----------------------------------------------


@pytest.fixture(scope="module")
def ur5e(start_shared):
    return start_shared("--params-file", CONFIG / "ur5e.yaml", "-p", "warning_period:=0.0")


def wrist(q5):
    q = BENT.copy()
    q[4] = q5
    return q


def test_beyond_what_the_arm_can_do_setpoints_are_refused_with_bounded_rates(ur5e):
    """Through the singularity of the wrist."""
    begin(ur5e, wrist(0.4))
    poses = [UR5E.pose(wrist(q5)) for q5 in (0.4, -0.4)]
    t = np.arange(401) / 200
    answers = stream(ur5e, through_poses([0.0, 2.0], poses), t)
    assert 20 < len(answers) < len(t)
    arm = eom.ElasticArm(UR5E.robot)
    q, qd, _ = joint_motion(arm, answers.values())
    assert np.max(np.abs(qd)) < 3.1416
    # Over the time between them, too, where some were refused.
    assert np.max(np.abs(np.diff(q, axis=0)) / np.diff(t[list(answers)])[:, np.newaxis]) < 3.1416
    said = ur5e.process.log
    assert any(
        reason in said
        for reason in (
            "the tool cannot reach its pose within the ranges of the joints: it stays",
            "the tool comes too close to a singularity of the arm",
            " rad or m, more than 0.1: the tool passes a singularity of the arm, or comes from elsewhere",
            "exceeds limits: ",
        )
    )
    begin(ur5e, q[-1])


def test_limits_are_those_of_the_parameter_task_limits(ur5e):
    """Whatever those of the joints are, in numbers and in the log."""
    assert ur5e.transition("deactivate") and not ur5e.set_parameter("limits", "clip") and ur5e.transition("activate")
    C = UR5E.pose(BENT)
    begin(ur5e, BENT)
    stream(ur5e, through_poses([0.0, 1.0], [C, C]), TENTHS[:2])
    fast = np.zeros((4, 6))
    fast[0, 3] = 5.0  # m/s
    ur5e.publish_task(C, fast, at=START)
    ur5e.wait_for_diagnostics(lambda *s: "exceeds limits: " in s[2]["last refusal"], "the refusal")
    assert ur5e.set_parameter("task_limits", "warn") == ""
    count = len(ur5e.feedforward)
    ur5e.publish_task(C, fast, at=START)
    ur5e.wait(lambda: len(ur5e.feedforward) > count, "the command")
    ur5e.wait(lambda: "command exceeds limits: " in ur5e.process.log, "the warning")
    assert "efforts clipped" not in ur5e.process.log
    assert ur5e.set_parameter("task_limits", "refuse") == ""
    assert ur5e.transition("deactivate") and not ur5e.set_parameter("limits", "warn") and ur5e.transition("activate")
