# SPDX-License-Identifier: Apache-2.0
"""Action ``follow_joint_trajectory``, by which MoveIt and others use the nodes as a trajectory controller.

A goal is fitted like a message on ``joint_trajectory``, played by the dynamics node, and observed by its status and by
measured joint states.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from sensor_msgs.msg import TimeReference
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...arrays import Array
from ...control.fields import doubles
from ...control.joint_order import shown_name
from ...control.measured import JointTolerances, MeasuredJoint
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import FASTEST_PACE, START_LATENCY
from ...control.trajectories import RequestNames, duration
from ...exceptions import StateError, TrajectoryError
from ...terminal import printable
from ...trajectory import Spline
from ..executors import Worker, steady_timer
from ..interfaces import TrajectoryStatus, nanoseconds, set_stamp
from ..measured_joints import MeasuredJoints
from ..robot_node import RobotNode
from .services import ACTION_QUEUES
from .trajectories import Start, whole_turns

_NAME = "follow_joint_trajectory"

_SECOND = 10**9

# Period of feedback and of the check of tolerances, s.
_PERIOD = 0.05

# Longest time for which the last pace of a motion counts, whose speed is scaled, s.
_LONGEST_GAP = 0.1

# Longest time for which the executor waits for the plan of a goal, s; most take less.
_AT_ONCE = 0.02

# Time within which the dynamics node must answer, and the client take the acceptance, s.
_PATIENCE = 1.0


class GoalMotion(NamedTuple):
    """Motion of a goal, joints in the robot's order."""

    names: Sequence[str]  # of the joints
    motion: Spline
    stamp: int  # of its time 0, ns; 0 for the time at which the dynamics node accepts it
    path: JointTolerances  # during the motion
    goal: JointTolerances  # at its end
    goal_time: float  # after the end, within which the goal must be reached, s


class FollowTrajectory:
    """Server of the action. A goal is accepted once the dynamics node plays it, in place of the goal before.

    Args:
        fit: returns the robot's joint names, and the motion of a trajectory from a start, checked; runs in a thread.
        measured: measured joints.
        publish: sends a motion to the dynamics node, with the header of its trajectory and its identity.
        stop: has the dynamics node bring the motion under way to rest.
        refuse: reports that the trajectory of a status is refused, and why.
        players: counts the nodes to which motions are sent.
    """

    def __init__(
        self,
        node: RobotNode,
        measured: MeasuredJoints,
        fit: Callable[[JointTrajectory, Start | None], tuple[Sequence[str], Spline]],
        publish: Callable[[Spline, Header, str], None],
        stop: Callable[[], None],
        refuse: Callable[[TrajectoryStatus, Exception], None],
        players: Callable[[], int],
    ) -> None:
        self._node, self._fit, self._publish, self._stop, self._refuse = node, fit, publish, stop, refuse
        self._measured, self._players = measured, players
        self._names = RequestNames(_NAME)
        # By the identity of its trajectory.
        self._executions: dict[str, _Execution] = {}
        # Number of goals without points, after which motions that were being planned are not sent any more.
        self._stops, self._sending = 0, threading.Lock()
        # The motion that was sent last, and whether one before it was rejected for want of an answer.
        self._last_sent, self._unanswered = "", False
        self._action: ActionServer | None = None
        try:
            from control_msgs.action import FollowJointTrajectory
        except ImportError:
            node.get_logger().info(f"no action {_NAME}: control_msgs is not installed (ros-jazzy-control-msgs)")
            return
        self.kind = FollowJointTrajectory
        self._worker = Worker(node, "goals")
        node.create_subscription(TrajectoryStatus, "trajectory_status", self._on_status, 10)
        node.create_subscription(TimeReference, "path_time", self._on_path_time, 10)
        steady_timer(node, _PERIOD, self._tick)
        self._action = ActionServer(
            node,
            FollowJointTrajectory,
            f"~/{_NAME}",
            lambda goal: None,  # replaced for each goal
            callback_group=ReentrantCallbackGroup(),
            goal_callback=self._consider,
            handle_accepted_callback=self._accepted,
            cancel_callback=self._cancel,
            **ACTION_QUEUES,
        )

    def close(self) -> None:
        """Destroy the action server; destroying the node does not."""
        if self._action is not None:
            self._action.destroy()

    def abort(self, reason: str) -> None:
        """Abort the goals whose motion is played; it is stopped by others."""
        for execution in tuple(self._executions.values()):
            if execution.is_playing:
                execution.abort(reason)

    async def _consider(self, request: Any) -> GoalResponse:
        """Accept a goal once the dynamics node plays its motion."""
        trajectory, name = request.trajectory, self._names.next(request.trajectory)
        status = TrajectoryStatus(header=trajectory.header, request=name)
        if not trajectory.points:
            with self._sending:
                self._stops += 1
                self._stop()
            self._begin(request, name).accepted.set_result(None)
            return GoalResponse.ACCEPT
        published, under_way = False, any(other.is_under_way for other in self._executions.values())
        # Not for each of many goals at once.
        patience = _AT_ONCE if all(other.accepted.done() for other in self._executions.values()) else 0.0
        start, execution, before = self._start_time(trajectory), self._begin(request, name), self._stops

        def plan_and_send() -> None:  # in one job: after it, rclpy does not go on with tasks in their order
            execution.plan = plan = self._planned(request, start, under_way)
            with self._sending:
                if self._stops > before:
                    raise TrajectoryError("a goal without points has stopped it")
                self._publish(plan.motion, status.header, name)
                self._last_sent = name

        try:
            await self._worker.compute(plan_and_send, patience)
            published, execution.until = True, time.monotonic() + _PATIENCE
            await execution.accepted
        except _RefusedByPlayerError as error:
            self._node.get_logger().warning(f"goal refused: {printable(str(error))}")
            stops = self._unanswered
        except Exception as error:
            self._refuse(status, error)
            self._unanswered |= published
            stops = published and name == self._last_sent
        else:
            self._unanswered = False
            return GoalResponse.ACCEPT
        if stops:  # a node that is late to answer must not play what was rejected, unless a later motion follows
            self._unanswered = False
            self._stop()
        del self._executions[name]
        return GoalResponse.REJECT

    def _begin(self, request: Any, name: str) -> _Execution:
        """Keep a goal until it is executed."""
        arguments = self._node, request, name, self.kind, self._measured, self._players, self._stop
        execution = self._executions[name] = _Execution(*arguments)
        return execution

    def _execution(self, goal: ServerGoalHandle) -> _Execution:
        # The request of an accepted goal is the very object that was considered.
        return next(x for x in self._executions.values() if x.request is goal.request)

    def _accepted(self, goal: ServerGoalHandle) -> None:
        """Execute a goal, which may be done before that."""
        execution = self._execution(goal)
        execution.goal = goal
        goal.execute(partial(self._execute, execution))

    def _cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        self._execution(goal).cancel()
        return CancelResponse.ACCEPT

    def _tick(self) -> None:
        self._measured.read()  # a goal would take two milliseconds to read all that has arrived since the last one
        for execution in tuple(self._executions.values()):
            late = time.monotonic() > execution.until
            if execution.goal is not None:
                execution.observe(execution.goal)
            elif late and not execution.accepted.done():
                missing = "no node has answered on trajectory_status: is dynamics_node running and active?"
                execution.accepted.set_exception(TrajectoryError(missing))
            elif late and not execution.accepted.exception():
                # It never hears of the acceptance, and its goal is not executed.
                execution.end(self.kind.Result.INVALID_GOAL, "the client is gone")
                del self._executions[execution.name]

    async def _execute(self, execution: _Execution, goal: ServerGoalHandle) -> Any:
        points = goal.request.trajectory.points
        if not points:
            execution.end(self.kind.Result.SUCCESSFUL, "the motion under way stops, as the goal has no points")
        else:  # not before the client knows, as a line of the log takes half a millisecond
            self._node.get_logger().info(f"goal accepted: {duration(execution.plan.motion):.3g} s")
        code, text = await execution.done
        del self._executions[execution.name]
        points.clear()  # the server keeps the goal for a quarter of an hour, and each collection of garbage visits them
        if execution.is_cancelled:
            goal.canceled()
        elif code == self.kind.Result.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
            self._node.get_logger().warning(f"goal aborted: {printable(text)}")
        return self.kind.Result(error_code=code, error_string=text)

    def _planned(self, request: Any, begin: float | None, under_way: bool) -> GoalMotion:
        """Check a goal and fit its motion; runs in the worker's thread.

        Args:
            begin: time from which it starts, s; None for its first point.
            under_way: whether a motion is played, from which it starts, in place of measured positions.
        """
        if request.multi_dof_trajectory.points:
            raise StateError("multi_dof_trajectory is not supported; send joint trajectories")
        _require_no_effort(request.trajectory)
        if not request.trajectory.joint_names and self._node.arm is not None:
            request.trajectory.joint_names = list(self._node.arm.robot.joint_names)
        joints, start = request.trajectory.joint_names, None
        if begin is not None:
            measured = self._state(joints, under_way, at_rest=True)
            measured = measured if {*joints} <= measured.keys() else {}
            start = Start(begin, {x: measured[x].position for x in joints if x in measured})
        names, motion = self._fit(request.trajectory, start)
        if begin is None:
            measured = self._state(joints, under_way, at_rest=False)
        motion = self._at_nearest_turn(names, motion, measured)
        self._require_start(names, motion, measured)
        path = JointTolerances.read("path_tolerance", request.path_tolerance, names)
        goal = JointTolerances.read("goal_tolerance", request.goal_tolerance, names)
        goal_time = nanoseconds(request.goal_time_tolerance) / _SECOND
        # As of a tolerance of position, zero means the default, and a negative value that there is none.
        goal_time = goal_time or self._node.get_parameter("goal_time_tolerance").value
        goal_time = goal_time if goal_time >= 0 else math.inf
        return GoalMotion(tuple(names), motion, nanoseconds(request.trajectory.header.stamp), path, goal, goal_time)

    def _state(self, joints: Sequence[str], under_way: bool, *, at_rest: bool) -> dict[str, MeasuredJoint]:
        """Measured joints; none if a motion is under way, or nobody publishes them.

        On request those of an arm at rest, as some time after a cancel; none if it still moves after a while.
        """
        if under_way or not self._measured.published:
            return {}
        tolerance = self._node.get_parameter("start_tolerance").value

        def rests(recent: Mapping[str, MeasuredJoint]) -> bool:
            """Whether no joint of the goal will have left its measured position when the motion starts."""
            return not any(START_LATENCY * abs(recent[name].velocity) > tolerance for name in joints if name in recent)

        state = self._measured.wait(joints, rests if at_rest else bool)
        return state if rests(state) or not at_rest else {}

    def _start_time(self, trajectory: JointTrajectory) -> float | None:
        """Time from which a goal starts whose first point comes later, or is over, s; None for the first point."""
        stamp = nanoseconds(trajectory.header.stamp)
        since = max(self._node.get_clock().now().nanoseconds - stamp, 0) / _SECOND if stamp else 0.0
        first = nanoseconds(trajectory.points[0].time_from_start) / _SECOND
        return since if abs(since - first) > START_LATENCY else None

    def _require_start(self, names: Sequence[str], motion: Spline, measured: Mapping[str, MeasuredJoint]) -> None:
        """Raise TrajectoryError for a motion that starts away from the measured positions."""
        tolerance = self._node.get_parameter("start_tolerance").value
        for name, start in zip(names, motion.states[0, 0].tolist(), strict=True):
            if (joint := measured.get(name)) is None:
                continue
            away, largest = abs(start - joint.position), tolerance + START_LATENCY * abs(np.nan_to_num(joint.velocity))
            if away > largest:
                raise TrajectoryError(
                    f"{name} is {away:.3g} rad or m from the start of the trajectory, must be at most {largest:.3g} "
                    "(parameter start_tolerance): plan from the present position"
                )

    def _at_nearest_turn(self, names: Sequence[str], motion: Spline, measured: Mapping[str, MeasuredJoint]) -> Spline:
        """A motion, moved by whole turns of continuous joints to start nearest to the measured positions."""
        start = motion.states[0, 0]
        off = start - [measured[name].position if name in measured else x for name, x in zip(names, start, strict=True)]
        turns = off - _to_nearest_turn(self._node, names, off)
        if not turns.any():
            return motion
        states = motion.states.copy()
        states[0] -= turns
        return Spline(motion.t, states)

    def _on_path_time(self, message: TimeReference) -> None:
        for execution in self._executions.values():
            execution.on_path_time(message)

    def _on_status(self, status: TrajectoryStatus) -> None:
        for name, execution in tuple(self._executions.items()):
            if name == status.request:
                execution.on_status(status)
            elif status.status == status.ACCEPTED:
                execution.on_another()


class _Execution:
    """A goal, from its arrival to its end.

    Attributes:
        request, name: the goal, and the identity of its trajectory.
        goal: its handle, once the client knows that it is accepted.
        plan: its motion, once planned.
        accepted: completes when the dynamics node accepts the motion; raises its refusal.
        done: completes with error code and text.
        is_playing: whether the dynamics node plays the motion.
        is_cancelled: whether the client has cancelled the goal.
        until: when the dynamics node must have answered, and then the client have taken the acceptance.
    """

    plan: GoalMotion

    def __init__(
        self,
        node: RobotNode,
        request: Any,
        name: str,
        kind: Any,
        measured: MeasuredJoints,
        players: Callable[[], int],
        stop: Callable[[], None],
    ) -> None:
        self._node, self.request, self.name, self._kind = node, request, name, kind
        self._measured, self._players, self._stop = measured, players, stop
        self.goal: ServerGoalHandle | None = None
        self.accepted, self.done = Future(), Future()
        self.is_playing = self.is_cancelled = self._finished = False
        self._remark = ""  # of the player, at the end
        self.until = math.inf
        self._begin, self._since = 0, time.time_ns()
        self._reference: _PathTime | None = None

    @property
    def elapsed(self) -> float:
        """Time of the motion, s: where its speed is scaled, as the dynamics node reports it."""
        now = self._node.get_clock().now().nanoseconds
        if (last := self._reference) is None:
            return float(now - self._begin) / _SECOND
        since = max(now - last.stamp, 0) / _SECOND
        return last.time + last.pace * (since if self._finished else min(since, _LONGEST_GAP))

    @property
    def is_under_way(self) -> bool:
        """Whether the motion is played, as far as is known: a node that was killed does not say that it ends."""
        return self.is_playing and self.elapsed <= self.plan.motion.end + _PATIENCE

    def cancel(self) -> None:
        """End, as the client wants."""
        self.is_cancelled = not self.done.done()
        stands = self._reference is not None and not self._reference.pace
        text = "cancelled" + ", at a standstill, in which the next goal waits" * stands
        self.end(self._kind.Result.SUCCESSFUL, text)

    def abort(self, reason: str) -> None:
        """End, since the motion is no longer played."""
        self.is_playing = False
        self.end(self._kind.Result.INVALID_GOAL, reason)

    def end(self, code: int, text: str) -> None:
        """Complete, once, and stop the motion if it is still played."""
        if not self.done.done():
            self.done.set_result((code, text))
        if self.is_playing:
            self.is_playing = False
            self._stop()

    def on_status(self, status: TrajectoryStatus) -> None:
        """Take a status of the dynamics node on the trajectory of the goal."""
        if self.accepted.done():
            self.is_playing = False
            self._finished = status.status == status.FINISHED
            self._remark = status.message
            if self._reference is not None:  # from now on, as far as the time for the goal
                self._reference = _PathTime(self._node.get_clock().now().nanoseconds, self.plan.motion.end, 1.0)
            if not self._finished:
                self.end(self._kind.Result.INVALID_GOAL, status.message)
        elif status.status == status.ACCEPTED:
            self.is_playing = True
            self.until = time.monotonic() + _PATIENCE
            self._begin = self.plan.stamp or self._node.get_clock().now().nanoseconds
            self.accepted.set_result(None)
        else:
            self.accepted.set_exception(_RefusedByPlayerError(status.message))

    def on_another(self) -> None:
        """End, as another trajectory is played: by a node that has restarted, or while this one waits for its goal."""
        if self._finished and self.goal is not None:
            self.observe(self.goal)  # it may be reached by now
        elif not self.is_playing:
            return
        self.abort("replaced by another trajectory")

    def on_path_time(self, message: TimeReference) -> None:
        """Take the time of the motion where its speed is scaled."""
        stamp, t, last = nanoseconds(message.header.stamp), nanoseconds(message.time_ref) / _SECOND, self._reference
        if not self.is_playing or stamp <= max(self._begin, last.stamp if last else 0):
            return
        pace = (t - last.time) * _SECOND / (stamp - last.stamp) if last else 1.0
        self._reference = _PathTime(stamp, t, min(max(pace, 0.0), FASTEST_PACE))

    def observe(self, goal: ServerGoalHandle) -> None:
        """Send feedback, and end where the motion, its deviation or its player does."""
        if self.done.done():
            return
        try:
            self._observe(goal)
        except Exception as error:
            # A goal that is not observed must not go on.
            self._node.get_logger().error(f"goal ended by an exception:\n{traceback.format_exc()}")
            self.end(self._kind.Result.INVALID_GOAL, refusal_reason(error))
        if (self.is_playing or self._finished) and not self._players():
            self.abort("the node that played it is gone: has dynamics_node ended?")

    def _observe(self, goal: ServerGoalHandle) -> None:
        """Send feedback, and check tolerances."""
        plan, codes = self.plan, self._kind.Result
        t = self.elapsed
        pace = self._reference.pace if self._reference else 1.0
        place = float(np.clip(t, plan.motion.start, plan.motion.end))
        desired = [x * pace**k for k, x in enumerate(plan.motion.derivatives(place, 2))]
        joints = self._measured.read()
        state = [joints[name] for name in plan.names if name in joints]
        known = len(state) == len(plan.names)
        actual = [np.array(x) for x in zip(*state, strict=True)][:2] if known else []
        if t >= plan.motion.start:
            goal.publish_feedback(self._feedback(t, desired, actual))
        if not (plan.path.any or plan.goal.any):
            if self._finished:
                self.end(codes.SUCCESSFUL, self._remark)
            return
        oldest = time.time_ns() - _PATIENCE * _SECOND
        silent = [shown_name(name) for name in plan.names if name not in joints or joints[name].time < oldest]
        if silent and self._since < oldest:
            need = f"tolerances need joint states on {self._measured.topic}"
            self.end(codes.INVALID_GOAL, f"{need}; none arrives with a position of {', '.join(silent)}")
            return
        if not actual:
            return
        deviation = [x - y for x, y in zip(desired, actual, strict=False)]
        deviation[0] = _to_nearest_turn(self._node, plan.names, deviation[0])
        if self._finished:
            violation = plan.goal.violation(deviation)
            if not violation:
                self.end(codes.SUCCESSFUL, self._remark)
            elif t > plan.motion.end + plan.goal_time:
                self.end(codes.GOAL_TOLERANCE_VIOLATED, f"{violation}, {t - plan.motion.end:.3g} s after the end")
        elif plan.motion.start <= t <= plan.motion.end and (violation := plan.path.violation(deviation)):
            self.end(codes.PATH_TOLERANCE_VIOLATED, f"{violation}, at {t:.3g} s")

    def _feedback(self, t: float, desired: Sequence[Array], actual: Sequence[Array]) -> Any:
        feedback = self._kind.Feedback(joint_names=list(self.plan.names))
        feedback.header.stamp = self._node.get_clock().now().to_msg()
        error = [x - y for x, y in zip(desired, actual, strict=False)]
        error[:1] = [_to_nearest_turn(self._node, self.plan.names, x) for x in error[:1]]
        feedback.desired, feedback.actual, feedback.error = (_point(t, x) for x in (desired, actual, error))
        if hasattr(feedback, "index"):  # since control_msgs 6; not in Jazzy
            feedback.index = int(np.searchsorted(self.plan.motion.t, t, side="right")) - 1
        return feedback


def _to_nearest_turn(node: RobotNode, names: Sequence[str], difference: Array) -> Array:
    """Differences of positions, those of continuous joints less whole turns, as the loop plays the nearest turn."""
    continuous = () if node.arm is None else node.arm.robot.continuous_names
    return np.where([name in continuous for name in names], difference - whole_turns(difference), difference)


class _PathTime(NamedTuple):
    stamp: int  # of the clock, ns
    time: float  # of the motion, s
    pace: float  # its rate


class _RefusedByPlayerError(TrajectoryError):
    """A motion that the dynamics node refuses, as it has reported on trajectory_status."""


def _require_no_effort(trajectory: JointTrajectory) -> None:
    """Refuse effort, as a trajectory controller of positions does: it would be ignored."""
    for k, point in enumerate(trajectory.points):
        if len(point.effort):
            raise StateError(f"points[{k}].effort must be empty: the node computes the effort of the motion")


def _point(t: float, rows: Sequence[Array]) -> JointTrajectoryPoint:
    point = JointTrajectoryPoint()
    for field, values in zip(("positions", "velocities", "accelerations"), rows, strict=False):
        setattr(point, field, doubles(np.ascontiguousarray(values)))
    set_stamp(point.time_from_start, max(round(t * _SECOND), 0))
    return point
