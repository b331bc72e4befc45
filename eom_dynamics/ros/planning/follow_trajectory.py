# SPDX-License-Identifier: Apache-2.0
"""Action ``follow_joint_trajectory``, by which MoveIt and others use the nodes as a trajectory controller.

A goal is fitted like a message on ``joint_trajectory``, played by the dynamics node, and observed by its status and by
measured joint states.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...arrays import Array
from ...exceptions import StateError
from ...messages.joint_order import places
from ...messages.refusals import refusal_reason
from ...messages.samples import doubles
from ...messages.tolerances import JointTolerances
from ...terminal import printable
from ...trajectory import Spline
from ..interfaces import TrajectoryStatus
from ..robot_node import RobotNode
from ..worker import Worker

_SECOND = 10**9

# Period of feedback and of the check of tolerances, s.
_PERIOD = 0.05

# Time within which the dynamics node must answer, and a joint state arrive if there are tolerances, s.
_PATIENCE = 1.0


class GoalMotion(NamedTuple):
    """Motion of a goal.

    Attributes:
        names: the robot's joints.
        motion: joints in the robot's order; its time 0 is at ``begin``.
        begin: ns.
        path, goal: tolerances during the motion and at its end.
        goal_time: time after the end within which the goal must be reached, s.
    """

    names: Sequence[str]
    motion: Spline
    begin: int
    path: JointTolerances
    goal: JointTolerances
    goal_time: float


class FollowTrajectory:
    """Server of the action. One goal is executed at a time; a new one replaces it."""

    def __init__(
        self,
        node: RobotNode,
        name: str,
        fit: Callable[[JointTrajectory], tuple[Sequence[str], Spline]],
        publish: Callable[[Spline, int, str], None],
        stop: Callable[[], None],
    ) -> None:
        """Create the action; logs that control_msgs is missing if it is.

        Args:
            node: the node.
            name: name of the action.
            fit: returns the robot's joint names, and the motion of a trajectory, checked; runs in a thread.
            publish: sends a motion to the dynamics node, with the time of its start, ns, and its frame.
            stop: has the dynamics node bring the motion under way to rest.
        """
        self._node, self._fit, self._publish, self._stop = node, fit, publish, stop
        self._current: _Execution | None = None
        self._action: ActionServer | None = None
        try:
            from control_msgs.action import FollowJointTrajectory
        except ImportError:
            node.get_logger().info(f"no action {name}: control_msgs is not installed (ros-jazzy-control-msgs)")
            return
        self.kind = FollowJointTrajectory
        self._worker = Worker(node, "goals")
        node.create_subscription(TrajectoryStatus, "trajectory_status", self._on_status, 10)
        self._action = ActionServer(
            node,
            FollowJointTrajectory,
            name,
            self._execute,
            callback_group=ReentrantCallbackGroup(),
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def close(self) -> None:
        """Destroy the action server; destroying the node does not."""
        if self._action is not None:
            self._action.destroy()

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        codes = self.kind.Result
        found = await self._worker.compute(lambda: self._planned(goal.request))
        if isinstance(found, _RefusedError):
            return self._ended(goal, found.code, str(found))
        replaced = self._current
        if replaced:
            replaced.end(codes.INVALID_GOAL, "replaced by a new goal")
        execution = self._current = _Execution(self._node, goal, found, self.kind)
        self._node.get_logger().info(f"goal accepted: {found.motion.end - found.motion.start:.3g} s")
        self._publish(found.motion, found.begin, goal.request.trajectory.header.frame_id)
        code, text = await execution.done
        if self._current is execution:
            self._current = None
            # If the motion is refused, that of the goal before is still under way.
            if not execution.has_ended_itself or (execution.is_refused and replaced):
                self._stop()
        execution.close()
        return self._ended(goal, code, text, cancelled=execution.is_cancelled)

    def _planned(self, request: Any) -> GoalMotion | _RefusedError:
        """Check a goal and fit its motion; runs in the worker's thread."""
        codes = self.kind.Result
        try:
            if request.multi_dof_trajectory.points:
                raise StateError("multi_dof_trajectory is not supported; send joint trajectories")
            names, motion = self._fit(request.trajectory)
            path = JointTolerances.read("path_tolerance", request.path_tolerance, names)
            goal = JointTolerances.read("goal_tolerance", request.goal_tolerance, names)
        except Exception as error:
            code = codes.INVALID_JOINTS if "joint_names" in str(error) else codes.INVALID_GOAL
            return _RefusedError(code, refusal_reason(error))
        now = self._node.get_clock().now().nanoseconds
        stamp = request.trajectory.header.stamp
        begin = stamp.sec * _SECOND + stamp.nanosec or now
        # In whole nanoseconds, since a float cannot resolve the time of day.
        if (late := (now - begin - round(motion.end * _SECOND)) / _SECOND) > 0:
            return _RefusedError(codes.OLD_HEADER_TIMESTAMP, f"the trajectory ended {late:.3g} s ago")
        tolerance = request.goal_time_tolerance
        goal_time = tolerance.sec + tolerance.nanosec / _SECOND
        if not goal_time:
            goal_time = self._node.get_parameter("goal_time_tolerance").value
        return GoalMotion(tuple(names), motion, begin, path, goal, goal_time)

    def _ended(self, goal: ServerGoalHandle, code: int, text: str, *, cancelled: bool = False) -> Any:
        if cancelled:
            goal.canceled()
        elif code == self.kind.Result.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
            self._node.get_logger().warning(f"goal aborted: {printable(text)}")
        return self.kind.Result(error_code=code, error_string=text)

    def _on_status(self, status: TrajectoryStatus) -> None:
        if self._current is not None:
            self._current.on_status(status)


class _Execution:
    """A goal under way.

    Attributes:
        plan: its motion.
        done: completes with error code and text.
        is_cancelled: whether the client has cancelled it.
        has_ended_itself: whether the dynamics node has ended or refused the motion.
        is_refused: whether it has refused it.
    """

    def __init__(self, node: RobotNode, goal: ServerGoalHandle, plan: GoalMotion, kind: Any) -> None:
        self._node, self._goal, self.plan, self._kind = node, goal, plan, kind
        self.done: Future = Future()
        self.is_cancelled = self.has_ended_itself = self.is_refused = self._accepted = self._finished = False
        self._since = self._state_since = time.monotonic()
        self._state: JointState | None = None
        self._states = node.create_subscription(JointState, "joint_states", self._on_state, 1)
        self._timer = node.create_timer(_PERIOD, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    @property
    def elapsed(self) -> float:
        """Time of the motion, s."""
        return float(self._node.get_clock().now().nanoseconds - self.plan.begin) / _SECOND

    def close(self) -> None:
        """Destroy timer and subscription."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_subscription(self._states)

    def end(self, code: int, text: str) -> None:
        """Complete, once."""
        if not self.done.done():
            self.done.set_result((code, text))

    def on_status(self, status: TrajectoryStatus) -> None:
        """Take a status of the dynamics node."""
        stamp = status.header.stamp
        if stamp.sec * _SECOND + stamp.nanosec != self.plan.begin:
            return
        self._accepted = True
        if status.status == status.FINISHED:
            self._finished = self.has_ended_itself = True
            self._tick()
        elif status.status in (status.REFUSED, status.STOPPED):
            self.has_ended_itself = True
            self.is_refused = status.status == status.REFUSED
            self.end(self._kind.Result.INVALID_GOAL, status.message)

    def _on_state(self, state: JointState) -> None:
        self._state, self._state_since = state, time.monotonic()

    def _tick(self) -> None:
        if self.done.done():
            return
        if self._goal.is_cancel_requested:
            self.is_cancelled = True
            self.end(self._kind.Result.SUCCESSFUL, "cancelled")
        elif not self._accepted and time.monotonic() > self._since + _PATIENCE:
            self.end(
                self._kind.Result.INVALID_GOAL,
                "no node has answered on trajectory_status: is dynamics_node running and active?",
            )
        else:
            try:
                self._observe()
            except Exception as error:
                # A goal that is not observed must not go on.
                self._node.get_logger().error(f"goal ended by an exception:\n{traceback.format_exc()}")
                self.end(self._kind.Result.INVALID_GOAL, refusal_reason(error))

    def _observe(self) -> None:
        """Send feedback, and check tolerances."""
        plan, codes = self.plan, self._kind.Result
        t = self.elapsed
        desired = plan.motion.derivatives(float(np.clip(t, plan.motion.start, plan.motion.end)), 2)
        try:
            actual = self._measured()
        except StateError as error:
            self.end(codes.INVALID_GOAL, f"joint_states: {error}")
            return
        if self._accepted and t >= plan.motion.start:
            self._send_feedback(t, desired, actual)
        if not (plan.path.any or plan.goal.any):
            if self._finished:
                self.end(codes.SUCCESSFUL, "")
            return
        if time.monotonic() > self._state_since + _PATIENCE:
            self.end(codes.INVALID_GOAL, f"tolerances need joint states on {self._states.topic_name}; none arrives")
            return
        if not actual:
            return
        deviation = [x - y for x, y in zip(desired, actual, strict=False)]
        if self._finished:
            violation = plan.goal.violation(deviation)
            if not violation:
                self.end(codes.SUCCESSFUL, "")
            elif t > plan.motion.end + plan.goal_time:
                self.end(codes.GOAL_TOLERANCE_VIOLATED, f"{violation}, {t - plan.motion.end:.3g} s after the end")
        elif plan.motion.start <= t <= plan.motion.end and (violation := plan.path.violation(deviation)):
            self.end(codes.PATH_TOLERANCE_VIOLATED, f"{violation}, at {t:.3g} s")

    def _measured(self) -> list[Array]:
        """Position and velocity (n,) of the latest joint state, NaN where it has none; empty without a state."""
        state, names = self._state, self.plan.names
        if state is None:
            return []
        index = places(names, state.name, field="name", kind="joint", others=True)
        return [
            np.array(values)[index] if len(values) == len(state.name) else np.full(len(names), np.nan)
            for values in (state.position, state.velocity)
        ]

    def _send_feedback(self, t: float, desired: Sequence[Array], actual: Sequence[Array]) -> None:
        feedback = self._kind.Feedback(joint_names=list(self.plan.names))
        feedback.header.stamp = self._node.get_clock().now().to_msg()
        error = [x - y for x, y in zip(desired, actual, strict=False)]
        feedback.desired, feedback.actual, feedback.error = (_point(t, x) for x in (desired, actual, error))
        if hasattr(feedback, "index"):  # since control_msgs 6; not in Jazzy
            feedback.index = int(np.searchsorted(self.plan.motion.t, t, side="right")) - 1
        self._goal.publish_feedback(feedback)


class _RefusedError(Exception):
    """A goal that is not executed, with its error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _point(t: float, rows: Sequence[Array]) -> JointTrajectoryPoint:
    point = JointTrajectoryPoint()
    for field, values in zip(("positions", "velocities", "accelerations"), rows, strict=False):
        setattr(point, field, doubles(np.ascontiguousarray(values)))
    point.time_from_start.sec, point.time_from_start.nanosec = divmod(max(round(t * _SECOND), 0), _SECOND)
    return point
