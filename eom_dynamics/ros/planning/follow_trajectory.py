# SPDX-License-Identifier: Apache-2.0
"""Action ``follow_joint_trajectory``, through which MoveIt and others use the nodes as a trajectory controller.

A goal is accepted as it comes, fitted like a message on ``joint_trajectory``, played by the dynamics node, and observed
by its status, by the time of its motion and by measured joint states. Its UUID is the identity of its motion.
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
from std_msgs.msg import Header, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...arrays import Array
from ...control.fields import doubles
from ...control.joint_order import shown_name
from ...control.measured import JointTolerances, MeasuredJoint
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import FASTEST_PACE, START_LATENCY
from ...control.trajectories import duration
from ...exceptions import StateError, TrajectoryError
from ...terminal import printable
from ...trajectory import Spline
from ..executors import Worker, steady_timer
from ..interfaces import GOAL_ACTION, TrajectoryStatus, nanoseconds, set_stamp, status_qos
from ..robot_node import MeasuredJoints, RobotNode
from .services import ACTION_QUEUES
from .trajectories import Start, whole_turns

_SECOND = 10**9

# Period of feedback and of the check of tolerances, s.
_PERIOD = 0.05

# Longest time for which the last pace of a scaled motion counts, s.
_LONGEST_GAP = 0.1

# Joint velocities, rad/s or m/s, of an arm at rest and of a moving one; time until it rests, s.
_AT_REST, _NEAR_REST, _CALM = 0.02, 0.1, 0.1

# Longest time for which the executor waits for the plan of a goal, s; most take less.
_AT_ONCE = 0.02

# Time within which the dynamics node must answer, s, and time from the start of this node until it has discovered that
# node.
_PATIENCE, DISCOVERY = 1.0, 3.0

# Number of periods without any report of the dynamics node after which it is taken to be gone, 0.85 s, and the time
# without states of a joint after which the robot is, s. Neither counts while this process is held up.
_SILENT_PERIODS, _NO_STATES = 17, 1.0

# Longest time for which the end of the process waits until clients have been answered, s, and the periods for which it
# does so after the last goal has ended.
_LAST_ANSWERS, _ANSWERED = 1.0, 3


class GoalMotion(NamedTuple):
    """Motion of a goal, joints in the robot's order."""

    names: Sequence[str]  # of the joints
    motion: Spline
    stamp: int  # of its time 0, ns; 0 for the time at which the dynamics node accepts it
    path: JointTolerances  # during the motion
    goal: JointTolerances  # at its end
    goal_time: float  # after the end, within which the goal must be reached, s
    digest: str  # where it meets all limits, see limits_digest

    @property
    def has_tolerances(self) -> bool:
        """True if measured joints are compared with the motion."""
        return self.path.any or self.goal.any


class _Context(NamedTuple):
    """Shared context of a server's goals, see :class:`FollowTrajectory`."""

    node: RobotNode
    kind: Any  # FollowJointTrajectory
    measured: MeasuredJoints
    players: Callable[[], int]
    stop: Callable[[str], None]
    unheard: dict[str, float]  # time without states of joints that had some, on the node's clock, s


class FollowTrajectory:
    """Server of the action. A goal is accepted at once, and aborted with the reason where it is refused.

    Args:
        fit: returns the robot's joint names, the motion of a trajectory from a start, and its digest; runs in a thread.
        measured: measured joints.
        publish: sends a motion and its digest to the dynamics node, with the header of its trajectory and its identity.
        stop: has the dynamics node bring the motion of an identity to rest; any motion, if it is empty.
        refuse: reports that the trajectory of a status is refused, and why.
        players: counts the nodes to which motions are sent.
    """

    def __init__(
        self,
        node: RobotNode,
        measured: MeasuredJoints,
        fit: Callable[[JointTrajectory, Start | None], tuple[Sequence[str], Spline, str]],
        publish: Callable[[Spline, str, Header, str], None],
        stop: Callable[[str], None],
        refuse: Callable[[TrajectoryStatus, Exception], None],
        players: Callable[[], int],
    ) -> None:
        self._node, self._fit, self._publish, self._stop, self._refuse = node, fit, publish, stop, refuse
        self._measured = measured
        self._since = time.monotonic()
        # Goals by the identity of their motion, in the order of arrival.
        self._executions: dict[str, _Execution] = {}
        # Held while a motion is sent, or goals are ended so that theirs must not be sent any more.
        self._sending = threading.Lock()
        self._closing = False
        # When each joint had its last state, and the last look at the clock, ns.
        self._heard: dict[str, int] = {}
        self._looked = node.get_clock().now().nanoseconds
        # Last time of another client's motion, on the monotonic clock, s; and the goal that ended last: its
        # motion may still be reported.
        self._other_played, self._ended = -math.inf, ""
        self._action: ActionServer | None = None
        try:
            from control_msgs.action import FollowJointTrajectory
        except ImportError:
            node.get_logger().info(f"no action {GOAL_ACTION}: control_msgs is not installed (ros-jazzy-control-msgs)")
            return
        self.kind = FollowJointTrajectory
        self._context = _Context(node, self.kind, measured, players, stop, {})
        self._worker = Worker(node, "goals")
        self._lease = node.create_publisher(String, "trajectory_lease", 10)
        node.create_subscription(TrajectoryStatus, "trajectory_status", self._on_status, status_qos())
        node.create_subscription(TimeReference, "path_time", self._on_path_time, 10)
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
            **ACTION_QUEUES,
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

    def _end_all(self, reason: str, but: _Execution | None = None) -> None:
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
        # The goal that is active until this one begins.
        before = next((x for x in reversed(self._executions.values()) if x.is_playing), None)
        if before is not None and before.before is not None:  # it waits for its start
            before = before.before
        execution = self._executions[name] = _Execution(self._context, goal, name, before)
        self._lease.publish(String(data=name))  # so that the dynamics node reads where the arm is meanwhile
        goal.execute(partial(self._execute, execution))

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
            elif execution.is_sent and self._context.players() != execution.receivers:
                self._send_to_new(execution)
            elif time.monotonic() > execution.until:
                missing = "no node has answered on trajectory_status: is dynamics_node running and active?"
                self._reject(execution, TrajectoryError(missing))

    def _send_to_new(self, execution: _Execution) -> None:
        """Send a motion without an answer again to a dynamics node that is known since: after a restart, the killed one
        still counts for seconds.
        """
        with self._sending:
            players = self._context.players()
            if players > execution.receivers and execution.is_sent:
                self._send(execution)
            execution.receivers = players

    def _listen(self) -> None:
        """Read joint states, since a goal would take two milliseconds to read all that came since the last one."""
        now, unheard = self._node.get_clock().now().nanoseconds, self._context.unheard
        # While this process is held up, or the clock stands still, none can come.
        passed, self._looked = min(max(now - self._looked, 0) / _SECOND, 2 * _PERIOD), now
        for name, joint in self._measured.read().items():
            ended = self._heard.get(name) == joint.time
            unheard[name] = unheard.get(name, 0.0) + passed if ended else 0.0
            self._heard[name] = joint.time

    async def _execute(self, execution: _Execution, goal: ServerGoalHandle) -> Any:
        trajectory = goal.request.trajectory
        if trajectory.points:
            self._plan(execution)
        else:
            self._end_all("a goal without points has stopped it", but=execution)
            self._stop("")
            execution.end(self.kind.Result.SUCCESSFUL, "the motion under way stops, as the goal has no points")
        code, text = await execution.done
        del self._executions[execution.name]
        self._ended = execution.name
        trajectory.points.clear()  # the server keeps the goal for a quarter of an hour, for each collection of garbage
        if execution.is_cancelled:
            goal.canceled()
        elif code == self.kind.Result.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
            self._node.get_logger().warning(f"goal aborted: {printable(text)}")
        return self.kind.Result(error_code=code, error_string=text)

    def _plan(self, execution: _Execution) -> None:
        """Have the motion of a goal planned and sent in the worker's thread."""
        request = execution.goal.request
        under_way = any(other.is_playing for other in self._executions.values())
        under_way |= time.monotonic() < self._other_played + _LONGEST_GAP
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
                    execution.is_sent = True
                    self._send(execution)

        def check(planned: Future) -> None:
            if (error := planned.exception()) is not None and not execution.done.done():
                self._reject(execution, error)

        self._worker.compute(plan_and_send, _AT_ONCE if waits else 0.0).add_done_callback(check)

    def _send(self, execution: _Execution) -> None:
        """Send the motion of a goal to the dynamics nodes that are known, and wait for an answer."""
        plan, header = execution.plan, execution.goal.request.trajectory.header
        execution.receivers = self._context.players()
        execution.until = max(time.monotonic(), self._since + DISCOVERY) + _PATIENCE
        self._publish(plan.motion, plan.digest, header, execution.name)

    def _reject(self, execution: _Execution, error: Exception) -> None:
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
            JointTolerances.read(field, getattr(request, field), names, self._node.get_parameter(field).value)
            for field in ("path_tolerance", "goal_tolerance")
        )
        goal_time = nanoseconds(request.goal_time_tolerance) / _SECOND
        # As of a tolerance of position, zero means the default, and a negative value that there is none.
        goal_time = goal_time or self._node.get_parameter("goal_time_tolerance").value
        goal_time = goal_time if goal_time >= 0 else math.inf
        stamp = nanoseconds(request.trajectory.header.stamp)
        return GoalMotion(tuple(names), motion, stamp, path, goal, goal_time, digest)

    def _state(self, joints: Sequence[str], under_way: bool) -> dict[str, MeasuredJoint]:
        """Measured joints of an arm at rest, as some time after a cancel; none if it still moves after a while, if a
        motion is under way, or nobody publishes them.
        """
        if under_way or not self._measured.published:
            return {}

        calm_since, moved = math.inf, False

        def rests(present: Mapping[str, MeasuredJoint]) -> bool:
            nonlocal calm_since, moved
            speeds, now = [abs(present[name].velocity) for name in joints if name in present], time.monotonic()
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
        elif replaced := [x for x in self._executions.values() if x.replaces(message.source)]:
            replaced[0].on_path_time_before(message)
        elif message.source != self._ended:
            self._other_played = time.monotonic()

    def _on_status(self, status: TrajectoryStatus) -> None:
        for name, execution in tuple(self._executions.items()):
            if name == status.request:
                execution.on_status(status)
            elif status.status == status.ACCEPTED:
                execution.on_another()


class _Execution:
    """A goal, from its acceptance to its end.

    Attributes:
        goal, name: its handle, and the identity of its motion.
        plan: its motion, once planned.
        done: completes with error code and text.
        is_sent: whether its motion has been sent to the dynamics node.
        is_accepted: whether that has accepted it.
        is_playing: whether that plays it, or has it wait for its start.
        is_cancelled: whether the client has cancelled the goal.
        until: when the dynamics node must have answered.
        receivers: number of dynamics nodes that are known since the motion was sent.
    """

    plan: GoalMotion

    def __init__(self, context: _Context, goal: ServerGoalHandle, name: str, before: _Execution | None = None) -> None:
        self._context, self._node, self._kind = context, context.node, context.kind
        self.goal, self.name, self.before = goal, name, before
        self.done = Future()
        self.is_sent = self.is_accepted = self.is_playing = self.is_cancelled = self._finished = False
        self._remark = ""  # of the player, at the end
        self.until, self.receivers = math.inf, 0
        self._reference: _PathTime | None = None
        # From the motion of the goal before to the first point, as the loop plans it.
        self._way: Spline | None = None
        # Periods without reports, and when the goal came, on the monotonic clock, s.
        self._silent_periods, self._since = 0, time.monotonic()

    @property
    def elapsed(self) -> float:
        """Time of the motion, s, as the dynamics node reports it; before its start 0."""
        return self._time_at(self._node.get_clock().now().nanoseconds)

    def _time_at(self, now: int) -> float:
        if (last := self._reference) is None:
            return 0.0
        since = max(now - last.stamp, 0) / _SECOND
        return last.time + last.pace * (since if self._finished else min(since, _LONGEST_GAP))

    def cancel(self) -> None:
        """End, as the client wants."""
        self.is_cancelled = not self.done.done()
        stands = self._reference is not None and not self._reference.pace
        text = "cancelled" + ", at a standstill, in which the next goal waits" * stands
        self.end(self._kind.Result.SUCCESSFUL, text)

    def abort(self, reason: str) -> None:
        """End, since the motion is no longer played."""
        self.end(self._kind.Result.INVALID_GOAL, reason)

    def refuse(self, reason: str) -> None:
        """End, since the motion is refused."""
        goes_on = self.before is not None and self.before.is_playing
        self.end(self._kind.Result.INVALID_GOAL, reason + "; the goal before goes on" * goes_on)

    def end(self, code: int, text: str) -> None:
        """Complete, once, and stop the motion if it was sent and has not ended."""
        if not self.done.done():
            self.done.set_result((code, text))
        if self.is_sent and not self._finished:
            self._context.stop(self.name)
        self.is_sent = self.is_playing = False

    def on_status(self, status: TrajectoryStatus) -> None:
        """Take a status of the dynamics node on the trajectory of the goal."""
        if self.done.done():
            return
        if status.status == status.ACCEPTED:
            self.is_accepted = self.is_playing = True
            self._node.get_logger().info(f"goal accepted: {duration(self.plan.motion):.3g} s")
        elif not self.is_accepted:
            self._node.get_logger().warning(f"goal refused: {printable(status.message)}")
            self.refuse(status.message)
        else:
            self.is_playing, self._remark = False, status.message
            self._finished = status.status == status.FINISHED
            if self._finished:  # from now on, as far as the time for the goal
                self.before = None  # if it ended between two reports
                self._reference = _PathTime(self._node.get_clock().now().nanoseconds, self.plan.motion.end, 1.0)
            else:
                self.abort(status.message)

    def on_another(self) -> None:
        """End, as another trajectory is played: by a node that has restarted, or while this one waits for its goal."""
        if self._finished:
            self.observe()  # it may be reached by now
        elif not self.is_playing:
            return
        self.abort("replaced by another trajectory")

    def on_path_time(self, message: TimeReference) -> None:
        """Take the time of the motion, with which the node says that it is alive."""
        stamp, t, last = nanoseconds(message.header.stamp), nanoseconds(message.time_ref) / _SECOND, self._reference
        self._silent_periods = 0
        if self._finished or (last is not None and stamp <= last.stamp):
            return
        pace = (t - last.time) * _SECOND / (stamp - last.stamp) if last else 1.0
        self._reference = _PathTime(stamp, t, min(max(pace, 0.0), FASTEST_PACE))
        if t >= 0 and self.before is not None:
            first, before, self.before = self.plan.motion.start, self.before, None
            if t < first and before._reference is not None:
                leaves = before.state(before._time_at(stamp - round(t * _SECOND)), 4)
                self._way = Spline([0.0, first], np.stack([leaves, self.plan.motion.states[:, 0]], axis=1))

    def observe(self) -> None:
        """Send feedback, and end where the motion, its deviation or its player does."""
        if self.done.done():
            return
        self._silent_periods += 1
        try:
            self._observe()
        except Exception as error:
            # A goal that is not observed must not go on.
            self._node.get_logger().error(f"goal ended by an exception:\n{traceback.format_exc()}")
            self.end(self._kind.Result.INVALID_GOAL, refusal_reason(error))
        if not self._context.players() or (self.is_playing and self._silent_periods > _SILENT_PERIODS):
            self.end(self._kind.Result.INVALID_GOAL, "the node that played it is gone: has dynamics_node ended?")

    def _silent(self, joints: Mapping[str, MeasuredJoint]) -> str:
        """Why the arm is taken to be dead: joint states have ended, or are needed and have never come; empty if not."""
        topic = self._context.measured.topic
        for name in self.plan.names:
            if self._context.unheard.get(name, 0.0) > _NO_STATES:
                return f"{shown_name(name)} has no states on {topic} any more: is the robot running?"
        missing = [shown_name(name) for name in self.plan.names if name not in joints]
        if missing and self.plan.has_tolerances and time.monotonic() > self._since + _NO_STATES:
            need = f"tolerances need joint states on {topic}"
            return f"{need}; none arrives with a position of {', '.join(missing)}"
        return ""

    def _observe(self) -> None:
        """Send feedback, and check tolerances."""
        plan, codes, joints = self.plan, self._kind.Result, self._context.measured.read()
        t, leader = self.elapsed, self._leader
        desired = list(leader.state(leader.elapsed, 2))
        state = [joints[name] for name in plan.names if name in joints]
        known = len(state) == len(plan.names)
        actual = [np.array(x) for x in zip(*state, strict=True)][:2] if known else []
        deviation = [x - y for x, y in zip(desired, actual, strict=False)]
        for x in deviation[:1]:  # the loop plays the nearest turn of continuous joints
            deviation[0] = _to_nearest_turn(self._node, plan.names, x)
            desired[0] = actual[0] + deviation[0]
        self.goal.publish_feedback(self._feedback(t, desired, actual, deviation))
        if reason := self._silent(joints):
            self.end(codes.INVALID_GOAL, reason)
            return
        if self._finished:
            violation = plan.goal.violation(deviation) if plan.goal.any else ""
            # With a state of now, unless there never was one: the robot may have died on the way.
            alive = not any(self._context.unheard.get(name, 0.0) for name in plan.names)
            if not violation and alive and (actual or not plan.has_tolerances):
                self.end(codes.SUCCESSFUL, self._remark)
            elif violation and t > plan.motion.end + plan.goal_time:
                self.end(codes.GOAL_TOLERANCE_VIOLATED, f"{violation}, {t - plan.motion.end:.3g} s after the end")
            return
        begun = leader is not self or self._way is not None or t >= plan.motion.start
        if actual and begun and (violation := plan.path.violation(deviation)):
            self.end(codes.PATH_TOLERANCE_VIOLATED, f"{violation}, at {t:.3g} s")

    def replaces(self, name: str) -> bool:
        """True if the goal of a name leads the arm until this one begins."""
        return self.before is not None and self.before.name == name

    def on_path_time_before(self, message: TimeReference) -> None:
        """Take the time of the motion of the goal before, until this one begins."""
        if self.before is not None:
            self.before.on_path_time(message)

    @property
    def _leader(self) -> _Execution:
        """The active goal: this one, or the one before until the dynamics node reports that this one has begun."""
        return self if self.before is None else self.before

    def state(self, t: float, order: int) -> Array:
        """Position and its derivatives (order + 1, n) at a time, s; before the way to the first point, of that."""
        motion, pace = self.plan.motion, self._reference.pace if self._reference else 1.0
        motion = self._way if self._way is not None and t < motion.start else motion
        place = float(np.clip(t, motion.start, motion.end))
        return np.array([x * pace**k for k, x in enumerate(motion.derivatives(place, order))])

    def _feedback(self, t: float, *states: Sequence[Array]) -> Any:
        """Feedback with the desired and the actual state, and the deviation."""
        feedback = self._kind.Feedback(joint_names=list(self.plan.names))
        feedback.header.stamp = self._node.get_clock().now().to_msg()
        feedback.desired, feedback.actual, feedback.error = (_point(t, x) for x in states)
        if hasattr(feedback, "index"):  # since control_msgs 6; not in Jazzy
            feedback.index = int(np.searchsorted(self.plan.motion.t, t, side="right")) - 1
        return feedback


def _to_nearest_turn(node: RobotNode, names: Sequence[str], difference: Array) -> Array:
    """Differences of positions, without whole turns of continuous joints: the loop plays the nearest turn."""
    continuous = () if node.arm is None else node.arm.robot.continuous_names
    return np.where([name in continuous for name in names], difference - whole_turns(difference), difference)


class _PathTime(NamedTuple):
    stamp: int  # of the clock, ns
    time: float  # of the motion, s
    pace: float  # its rate


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
