# SPDX-License-Identifier: Apache-2.0
"""Action ``follow_joint_trajectory``, by which MoveIt and others use the nodes as a trajectory controller.

A goal is fitted like a message on ``joint_trajectory``, played by the dynamics node, and observed by its status and by
measured joint states.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from sensor_msgs.msg import JointState, TimeReference
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...arrays import Array
from ...control.fields import doubles
from ...control.joint_order import places
from ...control.measured import JointTolerances
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import FASTEST_PACE
from ...control.trajectories import RequestNames
from ...exceptions import StateError, TrajectoryError
from ...terminal import printable
from ...trajectory import Spline
from ..executors import Worker, steady_timer
from ..interfaces import TrajectoryStatus, nanoseconds, set_stamp, subscribe_joint_states
from ..robot_node import RobotNode
from .trajectories import Start

_NAME = "follow_joint_trajectory"

_SECOND = 10**9

# Period of feedback and of the check of tolerances, s.
_PERIOD = 0.05

# Longest time for which the last pace of a motion counts, whose speed is scaled, s.
_LONGEST_GAP = 0.1

# Time within which the dynamics node must answer, a joint state arrive, and the client take the acceptance, s.
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
        publish: sends a motion to the dynamics node, with the header of its trajectory and its identity.
        stop: has the dynamics node bring the motion under way to rest.
        refuse: reports that the trajectory of a status is refused, and why.
        players: counts the nodes to which motions are sent.
    """

    def __init__(
        self,
        node: RobotNode,
        fit: Callable[[JointTrajectory, Start | None], tuple[Sequence[str], Spline]],
        publish: Callable[[Spline, Header, str], None],
        stop: Callable[[], None],
        refuse: Callable[[TrajectoryStatus, Exception], None],
        players: Callable[[], int],
    ) -> None:
        self._node, self._fit, self._publish, self._stop, self._refuse = node, fit, publish, stop, refuse
        self._players = players
        self._names = RequestNames(_NAME)
        # By the identity of its trajectory.
        self._executions: dict[str, _Execution] = {}
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
        self._action = ActionServer(
            node,
            FollowJointTrajectory,
            f"~/{_NAME}",
            self._execute,
            callback_group=ReentrantCallbackGroup(),
            goal_callback=self._consider,
            cancel_callback=self._cancel,
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
            self._stop()
            self._begin(request, name).accepted.set_result(None)
            return GoalResponse.ACCEPT
        published, under_way = False, any(other.is_under_way for other in self._executions.values())
        start = self._start_time(trajectory)
        if start is None:  # first, as it takes longest: meanwhile, a joint state arrives
            planned = self._plan(request, None)
        execution = self._begin(request, name)
        try:
            measured = {} if under_way else await execution.state(at_rest=start is not None)
            if start is not None:
                measured = measured if {*trajectory.joint_names} <= {*measured} else {}
                planned = self._plan(request, Start(start, {x: measured[x].position for x in measured}))
            execution.plan = plan = await planned
            self._require_start(plan, measured)
            self._publish(plan.motion, status.header, name)
            published = True
            missing = "no node has answered on trajectory_status: is dynamics_node running and active?"
            await execution.within_patience(execution.accepted, TrajectoryError(missing))
        except _RefusedByPlayerError as error:
            self._node.get_logger().warning(f"goal refused: {printable(str(error))}")
        except Exception as error:
            self._refuse(status, error)
            if published:
                # A node that is late to answer must not play what was rejected.
                self._stop()
        else:
            return GoalResponse.ACCEPT
        self._end(name)
        return GoalResponse.REJECT

    def _begin(self, request: Any, name: str) -> _Execution:
        """Keep a goal until it is done."""
        execution = self._executions[name] = _Execution(self._node, request, self.kind, self._players)
        execution.done.add_done_callback(lambda _: self._end(name))
        return execution

    def _cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        for execution in tuple(self._executions.values()):  # which it leaves
            if execution.request is goal.request:
                execution.cancel()
        return CancelResponse.ACCEPT

    def _end(self, name: str) -> None:
        """Forget a goal, and stop its motion if that is still played."""
        execution = self._executions.pop(name)
        execution.close()
        if execution.is_playing:
            self._stop()

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        # The request of an accepted goal is the very object that was considered.
        execution = next(x for x in self._executions.values() if x.request is goal.request)
        execution.goal = goal
        if not goal.request.trajectory.points:
            execution.end(self.kind.Result.SUCCESSFUL, "the motion under way stops, as the goal has no points")
        else:  # not before the client knows, as a line of the log takes half a millisecond
            motion = execution.plan.motion
            self._node.get_logger().info(f"goal accepted: {motion.end - motion.start:.3g} s")
        code, text = await execution.done
        if execution.is_cancelled:
            goal.canceled()
        elif code == self.kind.Result.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
            self._node.get_logger().warning(f"goal aborted: {printable(text)}")
        return self.kind.Result(error_code=code, error_string=text)

    def _plan(self, request: Any, start: Start | None) -> Future:
        return self._worker.compute(lambda: self._planned(request, start))

    def _planned(self, request: Any, start: Start | None) -> GoalMotion:
        """Check a goal and fit its motion from a start, if not its first point; runs in the worker's thread."""
        if request.multi_dof_trajectory.points:
            raise StateError("multi_dof_trajectory is not supported; send joint trajectories")
        _require_no_effort(request.trajectory)
        names, motion = self._fit(request.trajectory, start)
        path = JointTolerances.read("path_tolerance", request.path_tolerance, names)
        goal = JointTolerances.read("goal_tolerance", request.goal_tolerance, names)
        goal_time = nanoseconds(request.goal_time_tolerance) / _SECOND
        goal_time = goal_time or self._node.get_parameter("goal_time_tolerance").value
        return GoalMotion(tuple(names), motion, nanoseconds(request.trajectory.header.stamp), path, goal, goal_time)

    def _start_time(self, trajectory: JointTrajectory) -> float | None:
        """Time from which a goal starts whose first point comes later, or is over, s; None for the first point."""
        stamp = nanoseconds(trajectory.header.stamp)
        since = max(self._node.get_clock().now().nanoseconds - stamp, 0) / _SECOND if stamp else 0.0
        first = nanoseconds(trajectory.points[0].time_from_start) / _SECOND
        return since if abs(since - first) > self._node.get_parameter("start_latency").value else None

    def _require_start(self, plan: GoalMotion, measured: Mapping[str, _Measured]) -> None:
        """Raise TrajectoryError for a motion that starts away from the measured positions."""
        tolerance, latency = (self._node.get_parameter(x).value for x in ("start_tolerance", "start_latency"))
        for name, start in zip(plan.names, plan.motion.derivatives(plan.motion.start, 0)[0].tolist(), strict=True):
            state = measured.get(name, _Measured(start, 0.0))
            away, largest = abs(start - state.position), tolerance + latency * abs(state.velocity)
            if away > largest:
                raise TrajectoryError(
                    f"{name} is {away:.3g} rad or m from the start of the trajectory, must be at most {largest:.3g} "
                    "(parameters start_tolerance and start_latency): plan from the present position"
                )

    def _on_path_time(self, message: TimeReference) -> None:
        for execution in self._executions.values():
            execution.on_path_time(message)

    def _on_status(self, status: TrajectoryStatus) -> None:
        for name, execution in tuple(self._executions.items()):
            if name == status.request:
                execution.on_status(status)
            elif status.status == status.ACCEPTED and execution.is_playing:
                # Played by a node that has restarted, which does not report its end.
                execution.abort("replaced by another trajectory")


class _Execution:
    """A goal, from its arrival to its end.

    Attributes:
        request: the goal.
        goal: its handle, once the client knows that it is accepted.
        plan: its motion, once planned.
        accepted: completes when the dynamics node accepts the motion; raises its refusal.
        done: completes with error code and text.
        is_playing: whether the dynamics node plays the motion.
        is_cancelled: whether the client has cancelled the goal.
    """

    plan: GoalMotion

    def __init__(self, node: RobotNode, request: Any, kind: Any, players: Callable[[], int]) -> None:
        self._node, self.request, self._kind, self._players = node, request, kind, players
        self.goal: ServerGoalHandle | None = None
        self.accepted, self.done = Future(), Future()
        self.is_playing = self.is_cancelled = self._finished = False
        self._begin = 0
        self._accepted_since = self._state_since = time.monotonic()
        self._state: JointState | None = None
        self._known: Future = Future()
        # Until when to wait for a future, and its exception then.
        self._awaited: tuple[float, Future, Exception | None] = (math.inf, self._known, None)
        self._is_enough: Callable[[JointState], bool] = lambda state: True
        self._states = subscribe_joint_states(node, self._on_state)
        self._reference: _PathTime | None = None
        self._timer = steady_timer(node, _PERIOD, self._tick)

    @property
    def elapsed(self) -> float:
        """Time of the motion, s: where its speed is scaled, as the dynamics node reports it."""
        now = self._node.get_clock().now().nanoseconds
        if (last := self._reference) is None:
            return float(now - self._begin) / _SECOND
        since = max(now - last.stamp, 0) / _SECOND
        return last.time + last.pace * (since if self._finished else min(since, _LONGEST_GAP))

    def close(self) -> None:
        self._node.destroy_timer(self._timer)
        self._node.destroy_subscription(self._states)

    @property
    def is_under_way(self) -> bool:
        """Whether the motion is played, as far as is known: a node that was killed does not say that it ends."""
        return self.is_playing and self.elapsed <= self.plan.motion.end + self.plan.goal_time

    def cancel(self) -> None:
        """End, as the client wants."""
        self.is_cancelled = not self.done.done()
        self.end(self._kind.Result.SUCCESSFUL, "cancelled")

    async def state(self, *, at_rest: bool) -> dict[str, _Measured]:
        """Measured state by joint; empty if nobody publishes joint states.

        On request it is that of an arm at rest, as some time after a cancel; empty if it still moves after a while.
        """
        if at_rest:
            self._is_enough = lambda state: not self._moves(state)
        if self._node.count_publishers(self._states.topic_name):
            await self.within_patience(self._known, None)
        state = self._state
        if state is None or not self._is_enough(state):
            return {}
        rows = zip(state.name, state.position, _velocities(state), strict=False)
        return {name: _Measured(x, v if math.isfinite(v) else 0.0) for name, x, v in rows if math.isfinite(x)}

    def _moves(self, state: JointState) -> bool:
        """Whether a joint of the goal will have left its measured position when the motion starts."""
        tolerance, latency = (self._node.get_parameter(x).value for x in ("start_tolerance", "start_latency"))
        joints = self.request.trajectory.joint_names
        rows = zip(state.name, _velocities(state), strict=False)
        return any(latency * abs(velocity) > tolerance for name, velocity in rows if name in joints)

    async def within_patience(self, future: Future, otherwise: Exception | None) -> None:
        """Wait for a future, which after a while completes with nothing, or raises ``otherwise``."""
        self._awaited = time.monotonic() + _PATIENCE, future, otherwise
        await future

    def abort(self, reason: str) -> None:
        """End, since the motion is no longer played."""
        self.is_playing = False
        self.end(self._kind.Result.INVALID_GOAL, reason)

    def end(self, code: int, text: str) -> None:
        """Complete, once."""
        if not self.done.done():
            self.done.set_result((code, text))

    def on_status(self, status: TrajectoryStatus) -> None:
        """Take a status of the dynamics node on the trajectory of the goal."""
        if self.accepted.done():
            self.is_playing = False
            self._finished = status.status == status.FINISHED
            if self._reference is not None:  # from now on, as far as the time for the goal
                self._reference = _PathTime(self._node.get_clock().now().nanoseconds, self.plan.motion.end, 1.0)
            if not self._finished:
                self.end(self._kind.Result.INVALID_GOAL, status.message)
        elif status.status == status.ACCEPTED:
            self.is_playing = True
            self._accepted_since = time.monotonic()
            self._begin = self.plan.stamp or self._node.get_clock().now().nanoseconds
            self.accepted.set_result(None)
        else:
            self.accepted.set_exception(_RefusedByPlayerError(status.message))

    def on_path_time(self, message: TimeReference) -> None:
        """Take the time of the motion where its speed is scaled."""
        stamp, t, last = nanoseconds(message.header.stamp), nanoseconds(message.time_ref) / _SECOND, self._reference
        if not self.is_playing or stamp <= max(self._begin, last.stamp if last else 0):
            return
        pace = (t - last.time) * _SECOND / (stamp - last.stamp) if last else 1.0
        self._reference = _PathTime(stamp, t, min(max(pace, 0.0), FASTEST_PACE))

    def _on_state(self, state: JointState) -> None:
        self._state, self._state_since = state, time.monotonic()
        if not self._known.done() and self._is_enough(state):
            self._known.set_result(None)

    def _tick(self) -> None:
        until, future, otherwise = self._awaited
        if time.monotonic() > until and not future.done():
            future.set_exception(otherwise) if otherwise else future.set_result(None)
        if self.done.done() or not self.accepted.done() or self.accepted.exception():
            return
        if self.goal is None:
            # A client that is gone never hears of the acceptance, and its goal is not executed.
            if time.monotonic() > self._accepted_since + _PATIENCE:
                self.end(self._kind.Result.INVALID_GOAL, "the client is gone")
        elif self.is_playing and not self._players():
            self.abort("the node that played it is gone: has dynamics_node ended?")
        else:
            try:
                self._observe(self.goal)
            except Exception as error:
                # A goal that is not observed must not go on.
                self._node.get_logger().error(f"goal ended by an exception:\n{traceback.format_exc()}")
                self.end(self._kind.Result.INVALID_GOAL, refusal_reason(error))

    def _observe(self, goal: ServerGoalHandle) -> None:
        """Send feedback, and check tolerances."""
        plan, codes = self.plan, self._kind.Result
        t = self.elapsed
        pace = self._reference.pace if self._reference else 1.0
        place = float(np.clip(t, plan.motion.start, plan.motion.end))
        desired = [x * pace**k for k, x in enumerate(plan.motion.derivatives(place, 2))]
        try:
            actual = self._measured()
        except StateError as error:
            self.end(codes.INVALID_GOAL, f"joint_states: {error}")
            return
        if t >= plan.motion.start:
            goal.publish_feedback(self._feedback(t, desired, actual))
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

    def _feedback(self, t: float, desired: Sequence[Array], actual: Sequence[Array]) -> Any:
        feedback = self._kind.Feedback(joint_names=list(self.plan.names))
        feedback.header.stamp = self._node.get_clock().now().to_msg()
        error = [x - y for x, y in zip(desired, actual, strict=False)]
        feedback.desired, feedback.actual, feedback.error = (_point(t, x) for x in (desired, actual, error))
        if hasattr(feedback, "index"):  # since control_msgs 6; not in Jazzy
            feedback.index = int(np.searchsorted(self.plan.motion.t, t, side="right")) - 1
        return feedback


class _PathTime(NamedTuple):
    stamp: int  # of the clock, ns
    time: float  # of the motion, s
    pace: float  # its rate


class _Measured(NamedTuple):
    position: float  # rad or m
    velocity: float


class _RefusedByPlayerError(TrajectoryError):
    """A motion that the dynamics node refuses, as it has reported on trajectory_status."""


def _velocities(state: JointState) -> Sequence[float]:
    return state.velocity if len(state.velocity) == len(state.name) else [0.0] * len(state.name)


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
