# SPDX-License-Identifier: Apache-2.0
"""An arm that follows goals of ``follow_joint_trajectory``, and a client of the action."""

import time
from array import array
from contextlib import contextmanager

import numpy as np
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint, TrajectoryStatus
from node_client import FEW_WARNINGS, NOT_NICED, StreamClient, joint_trajectory, stamp_of
from paths import CONFIG
from rclpy.action import ActionClient
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

import eom_dynamics as eom

ROBOT = eom.load_robot(CONFIG / "panda.yaml")
NAMES = list(ROBOT.joint_names)
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
TARGET = HOME + 0.3
CODES = FollowJointTrajectory.Result
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6


class ActingClient(StreamClient):
    """Client with an executor for action clients, which processes single messages: few topics."""

    takes_events = False

    def _connect(self):
        self.feedforward = self.collect(FeedforwardCommand, "feedforward")
        self._setpoints = self.node.create_publisher(JointTrajectorySetpoint, "setpoint", self._qos)

    def catch_up(self):
        """Receive the commands that were sent until now, which wait on a busy machine."""
        now, count = time.time_ns(), -1
        while count < len(self.feedforward) and not (count > 0 and stamp_of(self.feedforward[-1]) > now):
            count = len(self.feedforward)
            self.spin(0.1)


class FollowingArm:
    """The node of an arm, a client of its action, and joint states that follow the commands."""

    def __init__(self, start, robot="panda", names=NAMES, home=HOME):
        self._arguments = ("--params-file", CONFIG / f"{robot}.yaml", FEW_WARNINGS, "-p", "limits:=refuse")
        self.follows, self.feedback, self.position, self.statuses, self.names = True, [], home, [], list(names)
        self.publishes = True
        self.start_node(start)

    def start_node(self, start, **options):
        """Start a node with its client."""
        self.node = start(NOT_NICED, *self._arguments, client=ActingClient, **options)
        self._states = self.node.node.create_publisher(JointState, "joint_states", 10)
        self.node.node.create_subscription(TrajectoryStatus, "trajectory_status", self.statuses.append, 10)
        self.node.node.create_timer(0.01, self._publish_state)
        name = f"{self.node.process.name}/follow_joint_trajectory"
        queues = (f"{service}_service_qos_profile" for service in ("goal", "result", "cancel"))
        quality = dict.fromkeys(queues, QoSProfile(depth=100))
        self._action = ActionClient(self.node.node, FollowJointTrajectory, name, **quality)
        self.send_async = self._action.send_goal_async
        self.node.wait(self._action.server_is_ready, "the action")
        self.node.spin(0.5)  # until both have discovered all topics, which a client cannot query

    def _publish_state(self):
        if not self.publishes:
            return
        if self.follows and self.node.feedforward:
            self.position = np.array(self.node.feedforward[-1].motor_position)
        self._states.publish(JointState(name=self.names[::-1], position=array("d", self.position[::-1])))
        self._states.publish(JointState(name=["gripper"], position=array("d", [0.1])))

    def forget(self):
        """Stay at home, without commands, although some may still arrive."""
        while self.node.feedforward:
            self.node.feedforward.clear()
            self.node.spin(0.2)
        self.position = HOME
        self.node.spin(0.1)  # until the nodes know it

    @contextmanager
    def setting(self, name, value):
        """A value of a parameter of the node until the end of the context."""
        before = self.node.get_parameter(name)
        assert self.node.set_parameter(name, value) == ""
        try:
            yield
        finally:
            assert self.node.set_parameter(name, before) == ""

    def send(self, times, positions, *, path=0.0, goal=0.0, goal_time=0, velocity=None):
        """Send a goal; returns its handle. ``velocity`` is the velocity of all joints at the last point."""
        request = FollowJointTrajectory.Goal()
        request.trajectory = joint_trajectory(self.names, times, positions)
        request.goal_time_tolerance.sec = goal_time
        if velocity is not None:
            request.trajectory.points[-1].velocities = array("d", [velocity] * len(self.names))
        for field, value in (("path_tolerance", path), ("goal_tolerance", goal)):
            if value:
                setattr(request, field, [JointTolerance(name=name, position=value) for name in self.names])
        for _ in range(10):  # the middleware may lose an answer while two nodes discover each other
            future = self._action.send_goal_async(request, feedback_callback=lambda m: self.feedback.append(m.feedback))
            until = time.monotonic() + 6.0
            while not future.done() and time.monotonic() < until:
                self.node.spin(0.01)
            if future.done():
                return future.result()
        raise AssertionError(f"no answer to a goal: {self.node.process.log}")

    def result(self, handle):
        assert handle.accepted
        future = handle.get_result_async()
        self.node.wait(future.done, "the result")
        answer = future.result()
        return answer.status, answer.result.error_code, answer.result.error_string

    def ask(self, *given, **options):
        return self.result(self.send(*given, **options))

    def refusal(self, *given, **options):
        del self.statuses[:]
        handle = self.send(*given, **options)
        status, code, reason = self.result(handle)
        assert (status, code) == (ABORTED, CODES.INVALID_GOAL)
        name = bytes(handle.goal_id.uuid).hex()
        self.node.wait(lambda: [x for x in self.statuses if x.goal_id == name], "its status")
        (status,) = (x for x in self.statuses if x.goal_id == name)
        assert status.status == status.REFUSED and reason.startswith(status.message)
        self.node.wait(lambda: f"refused: {status.message}" in self.node.process.log, "the reason in the log")
        return reason
