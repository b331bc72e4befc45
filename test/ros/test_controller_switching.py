# SPDX-License-Identifier: Apache-2.0
"""Motor efforts of the exported controller make no step when controllers, parameters or processes change around it."""

import numpy as np
import pytest
from managed_arm import FEEDFORWARD, PERIOD, TRAJECTORY, ManagedArm, absent, columns, install, missing

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.control.trajectories import write_spline
from eom_dynamics.trajectory import Spline

interfaces = pytest.importorskip("eom_dynamics.ros.interfaces", reason="the interfaces are not built")
JointTrajectorySetpoint, SplineTrajectory = interfaces.JointTrajectorySetpoint, interfaces.SplineTrajectory
FollowJointTrajectory = pytest.importorskip("control_msgs.action", reason="no control_msgs").FollowJointTrajectory
Float64MultiArray = pytest.importorskip("std_msgs.msg").Float64MultiArray
GoalStatus = pytest.importorskip("action_msgs.msg").GoalStatus
JointTrajectoryControllerState = pytest.importorskip("control_msgs.msg").JointTrajectoryControllerState

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    # Compiles a package.
    pytest.mark.timeout(1200),
]

BOTH = (FEEDFORWARD, TRAJECTORY)


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    return install("sea_planar_2r", tmp_path_factory.mktemp("package"))


@pytest.fixture
def start(share, tmp_path):
    arms = []

    def begin(*controllers, **options):
        arm = ManagedArm(share, "sea_planar_2r", tmp_path / str(len(arms)), **options)
        arms.append(arm)
        arm.load(*controllers)
        arm.switch(controllers)
        return arm

    yield begin
    for arm in arms:
        arm.close()


def steps(arm, since=1):
    """Largest change of the effort of a motor from one cycle to the next, N m."""
    t, _, effort = columns(arm.rows[since - 1 :])
    # If states of a cycle were dropped, the change is of several cycles.
    return float((np.abs(np.diff(effort, axis=0)) / np.round(np.diff(t) / (1e-9 * PERIOD))[:, None]).max())


def moving(arm, seconds):
    """Follow a goal to 0.3 rad in a second for `seconds`; returns the number of cycles until then."""
    arm.follow([0.0, 1.0], [0.0, 0.3], [0.0, 0.0], [0.0, 0.0])
    arm.run(0.1 + seconds)
    return len(arm.rows)


# The largest speed is 15/8 of the mean one. A PD of 980 N m/rad whose reference stands still while the motor moves on
# changes by 0.55 N m a cycle, and the feedforward by less. A sudden hold of a moving arm is a step of 16 N m:
# 28 N m s/rad times its speed.
STEP = 0.6


def leaving(efforts):
    """Efforts that remain when the controller is switched off; states of each cycle; a stop by external efforts."""

    def change(parameters):
        given = parameters[FEEDFORWARD]["ros__parameters"]
        given |= {"effort_on_deactivate": efforts, "state_publish_rate": 1000.0}
        given |= {"external_effort": {"sensors": "springs", "thresholds": [1.0]}, "on_contact": "stop"}

    return change


def test_at_rest_the_controller_is_switched_off_and_on(start):
    arm = start(*BOTH, change=leaving("keep"))
    assert steps(arm) < 1e-9
    now = moving(arm, 1.5)
    assert "contact at" not in arm.log
    assert abs(np.array(arm.rows[-1][1]) - 0.3).max() < 1e-4
    arm.switch(deactivate=BOTH)
    arm.run(0.2)
    arm.switch(BOTH)
    arm.run(0.2)
    # The PD of what was left of the way, 980 N m/rad times 1e-4 rad, is gone where the arm is held as it is measured.
    assert steps(arm, now) < 0.1


@pytest.mark.parametrize(("efforts", "within_cycle"), [("zero", True), ("keep", False)])
def test_in_motion_the_controller_in_front_is_switched_off_and_on(start, efforts, within_cycle):
    """Final efforts are written between deactivation and activation, unless both are in one cycle."""
    arm = start(*BOTH, change=leaving(efforts))
    now = moving(arm, 0.5)
    arm.switch(deactivate=[TRAJECTORY], within_cycle=within_cycle)
    arm.run(0.8)
    there = arm.rows[-1][1]
    arm.switch([TRAJECTORY], within_cycle=within_cycle)
    arm.run(0.2)
    assert steps(arm, now) < STEP and 0.2 < there[0] < 0.3
    np.testing.assert_allclose(arm.rows[-1][1], there, atol=1e-4)


def test_a_trajectory_is_refused_while_the_controller_in_front_is_active(start):
    """After it, the references of that controller would be followed again, from their present state."""
    arm = start(*BOTH)
    publisher = arm.node.create_publisher(SplineTrajectory, "/feedforward_controller/spline_trajectory", 1)
    arm.wait(publisher.get_subscription_count)
    states = np.zeros((5, 2, 2))
    states[0, 1] = 0.3
    message = SplineTrajectory()
    write_spline(message, Spline([0.0, 1.0], states), arm.joints)
    publisher.publish(message)
    arm.run(1.2)
    assert steps(arm) < 1e-9 and "the controller in front writes references: send motions to it" in arm.log
    arm.switch(deactivate=[TRAJECTORY])
    publisher.publish(message)
    arm.run(1.5)
    np.testing.assert_allclose(arm.rows[-1][1], 0.3, atol=1e-3)


FORWARD = "forward_command_controller"


@pytest.mark.parametrize("front", [TRAJECTORY, pytest.param(FORWARD, marks=absent(FORWARD))])
def test_positions_of_a_controller_in_front_are_targets(start, front):
    """It steps by 0.3 rad, or moves without derivatives; the arm gets there with efforts that make no step."""

    def change(parameters):
        given = parameters[FEEDFORWARD]["ros__parameters"]
        given |= {"missing_derivatives": "target", "target_limits": {"velocity": [1.0], "acceleration": [5.0]}}
        trajectory = parameters[TRAJECTORY]["ros__parameters"]
        trajectory["command_interfaces"] = ["position"]
        parameters["controller_manager"]["ros__parameters"][FORWARD] = {"type": f"{FORWARD}/ForwardCommandController"}
        forwarded = {"joints": trajectory["command_joints"], "interface_name": "position"}
        parameters[FORWARD] = {"ros__parameters": forwarded}

    arm = start(FEEDFORWARD, front, change=change)
    now = len(arm.rows)
    publisher = arm.node.create_publisher(Float64MultiArray, f"/{FORWARD}/commands", 1)
    if front == TRAJECTORY:
        arm.follow([0.0, 1.0], [0.0, 0.3])
    arm.run(2.0, lambda: publisher.publish(Float64MultiArray(data=[0.3, 0.3])))
    assert steps(arm, now) < 0.7  # with these limits, the motion itself changes efforts by 0.66 N m a cycle
    np.testing.assert_allclose(arm.rows[-1][1], 0.3, atol=1e-3)
    assert "joint_1: velocity 1, acceleration 5, jerk 66.67, snap 6667" in arm.log


def test_switched_off_in_motion_and_on_again(start):
    """The chosen efforts remain, and the arm stops from its measured motion."""
    arm = start(*BOTH, change=leaving("gravity"))
    moving(arm, 0.5)
    arm.switch(deactivate=BOTH)
    _, q, effort = arm.run(0.25)
    at_rest = np.zeros((5, 2))
    at_rest[0] = q[0]
    gravity = ElasticArm(load_robot("sea_planar_2r")).feedforward(*at_rest).motor_effort
    np.testing.assert_allclose(effort[5:], np.broadcast_to(gravity, effort[5:].shape), atol=0.05)
    assert np.all(effort[5:] == effort[5])
    states, topic = [], "/feedforward_controller/controller_state"
    arm.node.create_subscription(JointTrajectoryControllerState, topic, states.append, 100)
    arm.switch([FEEDFORWARD])
    arm.run(0.5)
    rates = np.array([(x.reference.velocities, x.feedback.velocities) for x in states if len(x.feedback.velocities)])
    # On a busy machine more cycles pass until it is switched on, while the arm falls.
    speed = np.max(np.abs(rates[0]))
    assert speed > 0.2 and np.max(np.abs(rates[-1])) < 0.1
    assert np.max(np.abs(rates[:, 0] - rates[:, 1])) < 0.1 * max(1.0, speed)


def test_goals_that_cannot_be_followed_are_aborted(start):
    """Constraints of the package; joint_trajectory_controller holds its position, and the springs swing out."""
    arm = start(*BOTH)

    def result(seconds, position):
        _, future = arm.follow([seconds], [position])
        arm.wait(future.done)
        return future.result().result.error_code

    succeeded, path, goal = (
        getattr(FollowJointTrajectory.Result, name)
        for name in ("SUCCESSFUL", "PATH_TOLERANCE_VIOLATED", "GOAL_TOLERANCE_VIOLATED")
    )
    assert result(1.0, 0.3) == succeeded
    assert result(0.05, 1.3) in (path, goal)
    arm.run(3.5)
    assert np.ptp(arm.run(0.5)[1], axis=0).max() < 1e-2


@pytest.mark.parametrize(("value", "seconds"), [(np.nan, 1.0), (np.inf, 0.05)])
def test_goals_that_are_not_finite_do_not_succeed(start, value, seconds):
    """No constraint of joint_trajectory_controller sees them: this controller ends the chain with an error."""
    arm = start(*BOTH)
    _, future = arm.follow([seconds], [value])
    arm.wait(future.done)
    assert future.result().status == GoalStatus.STATUS_ABORTED
    assert "references of the controller in front are not finite" in arm.log
    # Both follow again once they are activated.
    arm.switch(BOTH)
    _, future = arm.follow([2.0], [arm.rows[-1][1][0]])
    arm.wait(future.done)
    assert future.result().status == GoalStatus.STATUS_SUCCEEDED


def test_in_motion_parameters_are_refused(start):
    arm = start(*BOTH)
    now = moving(arm, 0.3)
    for name, value in (("motor_kp", [1.0, 1.0]), ("limits", "ignore"), ("limits", "nonsense")):
        assert arm.set_parameter(FEEDFORWARD, name, value)
    arm.run(0.2)
    assert steps(arm, now) < STEP


def test_a_killed_manager_starts_again_where_the_arm_is(start):
    arm = start(*BOTH)
    moving(arm, 0.5)
    arm.kill()
    again = start(*BOTH, position=0.2)
    again.run(0.2)
    # The arm is at rest under the efforts that hold it.
    assert steps(again) < 1e-9
