# SPDX-License-Identifier: Apache-2.0
"""Action ``follow_joint_trajectory``, through which MoveIt and others use the nodes as a trajectory controller.

A goal is accepted as it comes, fitted like a message on ``joint_trajectory``, played by the dynamics node, and observed
by its status, by the time of its motion and by measured joint states. Its UUID is the identity of its motion.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, GoalResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import TimeReference
from std_msgs.msg import Header, String
from trajectory_msgs.msg import JointTrajectory

from ...control.measured import JointTolerances, MeasuredJoint
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import START_LATENCY
from ...exceptions import StateError, TrajectoryError
from ...terminal import printable
from ...trajectory import Spline
from ..executors import Worker, steady_timer
from ..interfaces import GOAL_ACTION, GOALS_AT_ONCE, JointTrajectorySetpoint, TrajectoryStatus, nanoseconds, status_qos
from ..parameter_tables import GOAL_TIME, joint_constraints
from ..robot_node import MeasuredJoints, RobotNode
from .goal_execution import LONGEST_GAP, CommandedMotion, GoalContext, GoalExecution, GoalMotion
from .trajectories import Start

_SECOND = 10**9

# Queues of requests and answers of the action.
_QUEUES = {
    f"{service}_service_qos_profile": QoSProfile(depth=GOALS_AT_ONCE) for service in ("goal", "result", "cancel")
}

# Period of feedback and of the check of tolerances, s.
_PERIOD = 0.05

# Joint velocities, rad/s or m/s, of an arm at rest and of a moving one; time until it rests, s.
_AT_REST, _NEAR_REST, _CALM = 0.02, 0.1, 0.1

# Longest time for which the executor waits for the plan of a goal, s; most take less.
_AT_ONCE = 0.02

# Time within which the dynamics node must answer, s, and time from the start of this node until it has discovered that
# node.
_PATIENCE, DISCOVERY = 1.0, 3.0

# Period in which a motion without an answer is sent again, s: of a dynamics node that starts, the middleware may lose
# it, and it counts a killed one for seconds.
_AGAIN = 0.2

# Longest time for which the end of the process waits until clients have been answered, s, and the periods for which it
# does so after the last goal has ended.
_LAST_ANSWERS, _ANSWERED = 1.0, 3


class FollowTrajectory:
    """Server of the action. A goal is accepted at once, and aborted with the reason where it is refused.

    Args:
        fit: returns joint names, the motion of a trajectory from a start, and its digest; runs in a thread.
        measured: measured joints.
        publish: sends a motion of joints and its digest to the dynamics node, with header and identity.
        stop: has the dynamics node bring the motion of an identity to rest; any motion, if it is empty.
        refuse: reports that the trajectory of a status is refused, and why.
        players: counts the nodes to which motions are sent.
    """

    def __init__(
        self,
        node: RobotNode,
        measured: MeasuredJoints,
        fit: Callable[[JointTrajectory, Start | None], tuple[Sequence[str], Spline, str]],
        publish: Callable[[Sequence[str], Spline, str, Header, str], None],
        stop: Callable[[str], None],
        refuse: Callable[[TrajectoryStatus, Exception], None],
        players: Callable[[], int],
    ) -> None:
        self._node, self._fit, self._publish, self._stop, self._refuse = node, fit, publish, stop, refuse
        self._measured = measured
        self._since = time.monotonic()
        # Goals by the identity of their motion, in the order of arrival.
        self._executions: dict[str, GoalExecution] = {}
        # Held while a motion is sent, or goals are ended so that theirs must not be sent any more.
        self._sending = threading.Lock()
        self._closing = False
        # Identity of the motion that was sent last, the only one that is sent again: an older one that arrived after it
        # would take its place. The middleware keeps the order of a publisher.
        self._newest = ""
        # The last state of each joint, its speed by two positions, and the last look at the clock, ns.
        self._heard: dict[str, MeasuredJoint] = {}
        self._speeds: dict[str, float] = {}
        self._looked = node.get_clock().now().nanoseconds
        # Last time of another client's motion, on the monotonic clock, s.
        self._other_played = -math.inf
        self._action: ActionServer | None = None
        try:
            from control_msgs.action import FollowJointTrajectory
        except ImportError:
            node.get_logger().info(f"no action {GOAL_ACTION}: control_msgs is not installed (ros-jazzy-control-msgs)")
            return
        self.kind = FollowJointTrajectory
        commanded = CommandedMotion()
        self._context = GoalContext(node, self.kind, measured, players, stop, commanded, self._is_playing, {})
        self._worker = Worker(node, "goals")
        self._lease = node.create_publisher(String, "trajectory_lease", 10)
        node.create_subscription(TrajectoryStatus, "trajectory_status", self._on_status, status_qos())
        node.create_subscription(TimeReference, "path_time", self._on_path_time, 10)
        node.create_subscription(JointTrajectorySetpoint, "commanded_motion", commanded.receive, 10)
        steady_timer(node, _PERIOD, self._tick)
        self._action = ActionServer(
            node,
            FollowJointTrajectory,
            f"~/{GOAL_ACTION}",
            lambda goal: None,  # replaced for each goal
            callback_group=ReentrantCallbackGroup(),
            goal_callback=self._consider,
            handle_accepted_callback=self._accepted,
            cancel_callback=self._cancel,
            **_QUEUES,
        )

    def close(self) -> None:
        """Destroy the action server; destroying the node does not."""
        if self._action is not None:
            self._action.destroy()

    def end(self, then: Callable[[], None]) -> None:
        """Abort all goals, bring their motions to rest, and call ``then`` once clients have been answered."""
        self._closing = True
        if not self._executions:
            then()
            return
        self._end_all("the planning node has ended")
        until, answered = time.monotonic() + _LAST_ANSWERS, []

        def check() -> None:
            answered.append(not self._executions)
            # Answers are sent some turns of the executor after the end of a goal, and then have a way to go.
            if sum(answered) >= _ANSWERED or time.monotonic() > until:
                timer.cancel()
                then()

        timer = steady_timer(self._node, _PERIOD, check)

    def _end_all(self, reason: str, but: GoalExecution | None = None) -> None:
        """End all goals but one, also those that are being planned; their motions are not sent any more, or stop."""
        with self._sending:
            for execution in tuple(self._executions.values()):
                if execution is not but:
                    execution.end(self.kind.Result.INVALID_GOAL, reason)

    def _consider(self, request: Any) -> GoalResponse:
        """Accept each goal, so that it can be cancelled, and its end has a reason."""
        return GoalResponse.REJECT if self._closing else GoalResponse.ACCEPT

    def _accepted(self, goal: ServerGoalHandle) -> None:
        name = f"{GOAL_ACTION}/{bytes(goal.goal_id.uuid).hex()}"
        execution = self._executions[name] = GoalExecution(self._context, goal, name)
        self._lease.publish(String(data=name))  # so that the dynamics node reads where the arm is meanwhile
        goal.execute(partial(self._execute, execution))

    def _is_playing(self) -> bool:
        return any(execution.is_playing for execution in self._executions.values())

    def _cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        with self._sending:
            for execution in self._executions.values():
                if execution.goal is goal:
                    execution.cancel()
        return CancelResponse.ACCEPT

    def _tick(self) -> None:
        self._listen()
        for execution in tuple(self._executions.values()):
            if execution.done.done():
                continue
            if execution.is_sent:
                self._lease.publish(String(data=execution.name))
            if execution.is_accepted:
                execution.observe()
            elif execution.name == self._newest and time.monotonic() > execution.again:
                with self._sending:
                    if execution.name == self._newest and execution.is_sent:
                        self._send(execution)
            elif time.monotonic() > execution.until:
                missing = "no node has answered on trajectory_status: is dynamics_node running and active?"
                self._reject(execution, TrajectoryError(missing))

    def _listen(self) -> None:
        """Read joint states, since a goal would take two milliseconds to read all that came since the last one."""
        now, unheard = self._node.get_clock().now().nanoseconds, self._context.unheard
        # While this process is held up, or the clock stands still, none can come.
        passed, self._looked = min(max(now - self._looked, 0) / _SECOND, 2 * _PERIOD), now
        for name, joint in self._measured.read().items():
            before = self._heard.get(name, joint)
            ended = name in self._heard and before.time == joint.time
            unheard[name] = unheard.get(name, 0.0) + passed if ended else 0.0
            if joint.time > before.time:
                self._speeds[name] = abs(joint.position - before.position) * _SECOND / (joint.time - before.time)
            self._heard[name] = joint

    async def _execute(self, execution: GoalExecution, goal: ServerGoalHandle) -> Any:
        trajectory = goal.request.trajectory
        if trajectory.points:
            self._plan(execution)
        else:
            self._end_all("a goal without points has stopped it", but=execution)
            self._stop("")
            if self._context.players():
                execution.end(self.kind.Result.SUCCESSFUL, "the goal has no points: the dynamics node was told to stop")
            else:
                execution.abort("the goal has no points, and there is no dynamics node to stop")
        code, text = await execution.done
        del self._executions[execution.name]
        trajectory.points.clear()  # the server keeps the goal for a quarter of an hour, for each collection of garbage
        if execution.is_cancelled:
            goal.canceled()
        elif code == self.kind.Result.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
            self._node.get_logger().warning(f"goal aborted: {printable(text)}")
        return self.kind.Result(error_code=code, error_string=text)

    def _plan(self, execution: GoalExecution) -> None:
        """Have the motion of a goal planned and sent in the worker's thread."""
        request = execution.goal.request
        under_way = self._is_playing()
        under_way |= time.monotonic() < self._other_played + LONGEST_GAP
        # Not for each of many goals at once.
        waits = all(x is execution or x.is_accepted or x.done.done() for x in self._executions.values())
        start = self._start_time(request.trajectory)

        def plan_and_send() -> None:
            if execution.done.done():
                return
            execution.plan = self._planned(request, start, under_way)
            with self._sending:
                if not execution.done.done():
                    self._lease.publish(String(data=execution.name))
                    execution.is_sent, self._newest = True, execution.name
                    self._send(execution)

        def check(planned: Future) -> None:
            if (error := planned.exception()) is not None and not execution.done.done():
                self._reject(execution, error)

        self._worker.compute(plan_and_send, _AT_ONCE if waits else 0.0).add_done_callback(check)

    def _send(self, execution: GoalExecution) -> None:
        """Send the motion of a goal to the dynamics nodes, and wait for an answer; longer for a node that is new."""
        plan, header = execution.plan, execution.goal.request.trajectory.header
        now, players = time.monotonic(), self._context.players()
        if players > execution.receivers:
            execution.until = max(now, self._since + DISCOVERY) + _PATIENCE
        execution.receivers, execution.again = players, now + _AGAIN
        self._publish(plan.names, plan.motion, plan.digest, header, execution.name)

    def _reject(self, execution: GoalExecution, error: Exception) -> None:
        """End a goal after its motion was refused, and report the fate of the active motion."""
        self._refuse(TrajectoryStatus(header=execution.goal.request.trajectory.header, request=execution.name), error)
        execution.refuse(refusal_reason(error))

    def _planned(self, request: Any, begin: float | None, under_way: bool) -> GoalMotion:
        """Check a goal and fit its motion; runs in the worker's thread.

        Args:
            begin: time from which it starts, s; None for its first point.
            under_way: True if it starts from an active motion instead of measured positions.
        """
        if request.multi_dof_trajectory.points:
            raise StateError("multi_dof_trajectory is not supported; send joint trajectories")
        _require_no_effort(request.trajectory)
        if not request.trajectory.joint_names and self._node.arm is not None:
            request.trajectory.joint_names = list(self._node.arm.robot.joint_names)
        joints, start = request.trajectory.joint_names, None
        if begin is not None:
            measured = self._state(joints, under_way)
            measured = measured if {*joints} <= measured.keys() else {}
            start = Start(begin, {x: measured[x].position for x in joints if x in measured})
        names, motion, digest = self._fit(request.trajectory, start)
        path, goal = (
            JointTolerances.read(field, getattr(request, field), names, joint_constraints(self._node, of, names))
            for field, of in (("path_tolerance", "trajectory"), ("goal_tolerance", "goal"))
        )
        # As of a tolerance of position, zero means the default, and a negative value that there is none.
        goal_time = nanoseconds(request.goal_time_tolerance) / _SECOND or self._node.get_parameter(GOAL_TIME).value
        goal_time = goal_time if goal_time > 0 else math.inf
        stamp = nanoseconds(request.trajectory.header.stamp)
        return GoalMotion(tuple(names), motion, stamp, path, goal, goal_time, digest)

    def _state(self, joints: Sequence[str], under_way: bool) -> dict[str, MeasuredJoint]:
        """Measured joints of an arm at rest, as some time after a cancel; none if it still moves after a while, if a
        motion is under way, or nobody publishes them.
        """
        if under_way or not self._measured.published:
            return {}

        calm_since, moved = math.inf, False

        def speed(name: str, joint: MeasuredJoint) -> float:
            return abs(joint.velocity) if math.isfinite(joint.velocity) else self._speeds.get(name, 0.0)

        def rests(present: Mapping[str, MeasuredJoint]) -> bool:
            nonlocal calm_since, moved
            speeds, now = [speed(name, present[name]) for name in joints if name in present], time.monotonic()
            calm_since = math.inf if any(speed > _NEAR_REST for speed in speeds) else min(calm_since, now)
            moved = moved or any(speed > _AT_REST for speed in speeds)
            return now - calm_since >= _CALM * moved

        state = self._measured.wait(joints, rests)
        return state if rests(state) else {}

    def _start_time(self, trajectory: JointTrajectory) -> float | None:
        """Start time of a goal with its first point in the future or past, s; None for the first point."""
        stamp = nanoseconds(trajectory.header.stamp)
        since = max(self._node.get_clock().now().nanoseconds - stamp, 0) / _SECOND if stamp else 0.0
        first = nanoseconds(trajectory.points[0].time_from_start) / _SECOND
        return since if abs(since - first) > START_LATENCY else None

    def _on_path_time(self, message: TimeReference) -> None:
        if (execution := self._executions.get(message.source)) is not None:
            execution.on_path_time(message)
        elif not message.source.startswith(f"{GOAL_ACTION}/"):  # nor a late report of a goal that has ended
            self._other_played = time.monotonic()

    def _on_status(self, status: TrajectoryStatus) -> None:
        names = [*self._executions]
        earlier = names[: names.index(status.request)] if status.request in names else ()
        for name, execution in tuple(self._executions.items()):
            if name == status.request:
                execution.on_status(status)
            elif status.status == status.ACCEPTED:
                execution.on_another(newer=name in earlier)


def _require_no_effort(trajectory: JointTrajectory) -> None:
    """Refuse effort, as a trajectory controller of positions does: it would be ignored."""
    for k, point in enumerate(trajectory.points):
        if len(point.effort):
            raise StateError(f"points[{k}].effort must be empty: the node computes the effort of the motion")
