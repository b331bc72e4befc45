# SPDX-License-Identifier: Apache-2.0
"""Action server ``follow_joint_trajectory`` for MoveIt and other clients of trajectory controllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from rclpy.qos import QoSProfile, qos_profile_action_status_default
from rclpy.serialization import serialize_message

from ...arrays import Array
from ...control.measured import MeasuredJoint
from ...exceptions import TrajectoryError
from ...trajectory import Spline
from ..executors import LateAnswers, steady_timer
from ..interfaces import GOAL_ACTION, GOALS_AT_ONCE, TrajectoryStatus, nanoseconds
from ..robot_node import RobotNode
from .goals import ActionGoal, Goal, Phase, trajectory_point
from .setpoint_stream import SetpointStream

# Period of feedback and of the check of tolerances, s.
_PERIOD = 0.05

States = tuple[Sequence[Array], Sequence[Array], Sequence[Array]]
"""Desired state, actual state and deviation; each has position (n,), then velocity and acceleration if known."""


class GoalAction:
    """Services and topics of the action; the action server of rclpy needs an executor with coroutines.

    Args:
        kind: ``control_msgs/action/FollowJointTrajectory``.
        publish: publishes a status of a trajectory.
        start: starts a goal with a serialized trajectory, or refuses it.
        refuse: refuses a goal.

    Attributes:
        stream: stream that plays the goals.
        unheard: time since the last state by joint, on the clock of the node, s.
    """

    def __init__(
        self,
        node: RobotNode,
        kind: Any,
        stream: SetpointStream,
        publish: Callable[[TrajectoryStatus], None],
        start: Callable[[Goal, bytes], None],
        refuse: Callable[[Goal, Exception], None],
    ) -> None:
        self.node, self.kind, self.stream, self.publish = node, kind, stream, publish
        self._start, self._refuse = start, refuse
        # Goals by UUID in the order of arrival: active goals, and the last finished goals.
        self._goals: dict[bytes, ActionGoal] = {}
        self._waiting: list[tuple[ActionGoal, Callable[[Any], None]]] = []  # requests of results
        self.unheard: dict[str, float] = {}
        self._heard: dict[str, int] = {}
        self._looked = 0
        name = f"~/{GOAL_ACTION}/_action"
        create = partial(node.create_service, qos_profile=QoSProfile(depth=GOALS_AT_ONCE))
        self._answers = LateAnswers(create(kind.Impl.GetResultService, f"{name}/get_result", self._on_result))
        create(kind.Impl.SendGoalService, f"{name}/send_goal", self._on_goal)
        create(CancelGoal, f"{name}/cancel_goal", self._on_cancel)
        self._feedback = node.create_publisher(kind.Impl.FeedbackMessage, f"{name}/feedback", 10)
        self._status = node.create_publisher(GoalStatusArray, f"{name}/status", qos_profile_action_status_default)
        from control_msgs.msg import JointTrajectoryControllerState

        self._state = JointTrajectoryControllerState
        self._states = node.create_publisher(self._state, "~/controller_state", 10)
        steady_timer(node, _PERIOD, self._tick)

    @property
    def _active(self) -> list[ActionGoal]:
        return [goal for goal in self._goals.values() if goal.phase is not Phase.DONE]

    # --- Services -------------------------------------------------------------------------

    def _on_goal(self, request: Any, response: Any) -> Any:
        """Accept a goal, so that it can be canceled, and its end has a reason."""
        key = bytes(request.goal_id.uuid)
        if key in self._goals:
            return response
        response.accepted, response.stamp = True, self.node.get_clock().now().to_msg()
        info = GoalInfo(goal_id=request.goal_id, stamp=response.stamp)
        goal = self._goals[key] = ActionGoal(self, info)
        ended = [key for key, other in self._goals.items() if other.phase is Phase.DONE]
        for key in ended[:-GOALS_AT_ONCE]:
            del self._goals[key]
        try:
            goal.read(request.goal)
            self._start(goal, serialize_message(request.goal.trajectory))
        except Exception as error:
            self._refuse(goal, error)
        if goal.phase is not Phase.DONE:
            self._publish_status()
        return response

    def _on_cancel(self, request: Any, response: Any) -> Any:
        """Cancel one goal, all goals, or the goals before a stamp, see ``action_msgs/CancelGoal``."""
        key, stamp = bytes(request.goal_info.goal_id.uuid), nanoseconds(request.goal_info.stamp)
        one = self._goals.get(key)
        if any(key) and one is None:
            response.return_code = response.ERROR_UNKNOWN_GOAL_ID
        elif one is not None and one.phase is Phase.DONE:
            response.return_code = response.ERROR_GOAL_TERMINATED
        every = not any(key) and not stamp
        for goal in self._active:
            if goal is one or every or (stamp and nanoseconds(goal.info.stamp) <= stamp):
                response.goals_canceling.append(goal.info)
                goal.cancel()
        return response

    def _on_result(self, request: Any, response: Any) -> Any:
        """Send the result of a goal at its end; an unknown goal gets an unknown status."""
        goal = self._goals.get(bytes(request.goal_id.uuid))
        if goal is not None and goal.phase is Phase.DONE:
            response.status, response.result = goal.status, goal.result
        elif goal is not None:
            self._waiting.append((goal, self._answers.later(response)))
        return response

    def answer(self, goal: ActionGoal) -> None:
        """Send the result of a goal."""
        response = self.kind.Impl.GetResultService.Response(status=goal.status, result=goal.result)
        waiting, self._waiting = self._waiting, []
        for other, send in waiting:
            if other is goal:
                send(response)
            else:
                self._waiting.append((other, send))
        self._publish_status(goal)

    def _publish_status(self, *ended: ActionGoal) -> None:
        statuses = [GoalStatus(goal_info=goal.info, status=goal.status) for goal in (*self._active, *ended)]
        self._status.publish(GoalStatusArray(status_list=statuses))

    # --- State of the motion --------------------------------------------------------------

    @property
    def path_time(self) -> float:
        """Time of the motion that is played, s."""
        loop = self.stream.loop
        return float(loop.record.path_time) if loop is not None else 0.0

    def compare(self, names: Sequence[str], joints: Mapping[str, MeasuredJoint], ended: Spline | None) -> States:
        """Desired state, actual state and deviation of joints; desired is the command, or the end of ``ended``."""
        loop = self.stream.loop
        if loop is None:
            raise TrajectoryError("there is no robot")
        robot = loop.arm.robot
        columns = [robot.joint_names.index(name) for name in names]
        rows = loop.loop.state if ended is None else np.array(ended.derivatives(ended.end, 2))
        desired = [row[columns] for row in rows[:3]]
        known = all(name in joints for name in names)
        actual = [np.array(x) for x in zip(*(joints[name] for name in names), strict=True)][:2] if known else []
        deviation = [x - y for x, y in zip(desired, actual, strict=False)]
        if actual:  # the loop plays the nearest turn of continuous joints
            turns = 2 * np.pi * np.round(deviation[0] / (2 * np.pi))
            deviation[0] = np.where(robot.continuous[columns], deviation[0] - turns, deviation[0])
            desired[0] = actual[0] + deviation[0]
        return desired, actual, deviation

    def publish_feedback(self, goal: ActionGoal, t: float, states: States) -> None:
        """Publish the feedback of a goal; ``t`` is the time of its motion, s."""
        feedback = self.kind.Feedback(joint_names=list(goal.names))
        feedback.header.stamp = self.node.get_clock().now().to_msg()
        feedback.desired, feedback.actual, feedback.error = (trajectory_point(t, x) for x in states)
        if hasattr(feedback, "index") and goal.motion is not None:  # since control_msgs 6; not in Jazzy
            feedback.index = int(np.searchsorted(goal.motion.t, t, side="right")) - 1
        self._feedback.publish(self.kind.Impl.FeedbackMessage(goal_id=goal.info.goal_id, feedback=feedback))

    def _tick(self) -> None:
        goals, listeners = self._active, self._states.get_subscription_count()
        if not (goals or listeners):
            return
        joints = self.stream.measured.joints()
        self._listen(joints)
        if listeners and (loop := self.stream.loop) is not None and loop.record.valid:
            names = loop.arm.robot.joint_names
            states = (trajectory_point(self.path_time, x) for x in self.compare(names, joints, None))
            message = self._state(joint_names=list(names), speed_scaling_factor=loop.record.speed_scaling)
            message.header.stamp = self.node.get_clock().now().to_msg()
            message.reference, message.feedback, message.error = states
            self._states.publish(message)
        for goal in goals:
            goal.observe(joints)

    def _listen(self, joints: Mapping[str, MeasuredJoint]) -> None:
        """Count the time without new states."""
        now = self.node.get_clock().now().nanoseconds
        # A delayed process, or a clock that stands still, does not count.
        passed, self._looked = min(max(now - self._looked, 0) * 1e-9, 2 * _PERIOD), now
        for name, joint in joints.items():
            again = self._heard.get(name) == joint.time
            self.unheard[name] = self.unheard.get(name, 0.0) + passed if again else 0.0
            self._heard[name] = joint.time
