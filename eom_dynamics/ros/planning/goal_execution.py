# SPDX-License-Identifier: Apache-2.0
"""Goal of the action ``follow_joint_trajectory``, from its acceptance to its end: feedback, tolerances, and the one
answer, from the reports of the dynamics node and measured joint states.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.action.server import ServerGoalHandle
from rclpy.task import Future
from sensor_msgs.msg import TimeReference
from trajectory_msgs.msg import JointTrajectoryPoint

from ...arrays import Array
from ...control.fields import STATE_FIELDS, doubles
from ...control.joint_order import shown_name
from ...control.measured import JointTolerances, MeasuredJoint
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import FASTEST_PACE
from ...control.trajectories import duration
from ...terminal import printable
from ...trajectory import Spline
from ..interfaces import JointTrajectorySetpoint, TrajectoryStatus, nanoseconds, set_stamp
from ..robot_node import MeasuredJoints, RobotNode
from .trajectories import whole_turns

_SECOND = 10**9

# Longest time for which the last report of a motion counts, s.
LONGEST_GAP = 0.1

# The dynamics node is considered gone after this number of periods without a report (0.85 s), the robot after this time
# without states of a joint, s. Neither counts while this process is held up.
_SILENT_PERIODS, _NO_STATES = 17, 1.0


class GoalMotion(NamedTuple):
    """Motion of a goal: of the joints that it names."""

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


class CommandedMotion:
    """Motion of the links that the dynamics node commands: its reports on ``commanded_motion``."""

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._stamp, self._states = 0, np.zeros((len(STATE_FIELDS), 0))

    def receive(self, message: JointTrajectorySetpoint) -> None:
        """Take a report."""
        self._names, self._stamp = message.joint_names, nanoseconds(message.header.stamp)
        self._states = np.array([getattr(message, field) for field in STATE_FIELDS])

    def at(self, now: int, names: Sequence[str], since: int) -> Array | None:
        """Position, velocity and acceleration (3, n) of joints at a time, ns; None without a report since another."""
        if self._stamp < since or not {*names} <= {*self._names}:
            return None
        states = self._states[:, [self._names.index(name) for name in names]]
        passed = min(max(now - self._stamp, 0) / _SECOND, LONGEST_GAP)
        terms = [passed**k / math.factorial(k) for k in range(len(states))]
        return np.array([np.tensordot(terms[: len(states) - k], states[k:], 1) for k in range(3)])


class GoalContext(NamedTuple):
    """Shared context of a server's goals, see :class:`~.follow_trajectory.FollowTrajectory`."""

    node: RobotNode
    kind: Any  # FollowJointTrajectory
    measured: MeasuredJoints
    players: Callable[[], int]
    stop: Callable[[str], None]
    commanded: CommandedMotion
    is_playing: Callable[[], bool]  # whether a goal of the server is active, or waits
    unheard: dict[str, float]  # time without states of joints that had some, on the node's clock, s


class GoalExecution:
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
        again: when the motion is sent again without an answer.
        receivers: number of dynamics nodes that were known when the motion was sent.
    """

    plan: GoalMotion

    def __init__(self, context: GoalContext, goal: ServerGoalHandle, name: str) -> None:
        self._context, self._node, self._kind = context, context.node, context.kind
        self.goal, self.name = goal, name
        self.done = Future()
        self.is_sent = self.is_accepted = self.is_playing = self.is_cancelled = self._finished = False
        self._remark = ""  # of the player, at the end
        self.until = self.again = math.inf
        self.receivers = -1
        self._reference: _PathTime | None = None
        # Periods without reports; when the goal came, on the monotonic clock, s; and when it was accepted, ns.
        self._silent_periods, self._since, self._accepted = 0, time.monotonic(), 0

    @property
    def elapsed(self) -> float:
        """Time of the motion, s, as the dynamics node reports it; before its start 0."""
        if (last := self._reference) is None:
            return 0.0
        since = max(self._node.get_clock().now().nanoseconds - last.stamp, 0) / _SECOND
        return last.time + last.pace * (since if self._finished else min(since, LONGEST_GAP))

    def cancel(self) -> None:
        """End, as the client wants."""
        self.is_cancelled = not self.done.done()
        self.end(self._kind.Result.SUCCESSFUL, "cancelled")

    def abort(self, reason: str) -> None:
        """End, since the motion is no longer played."""
        self.end(self._kind.Result.INVALID_GOAL, reason)

    def refuse(self, reason: str) -> None:
        """End, since the motion is refused."""
        goes_on = "; the goal before goes on" * self._context.is_playing()
        self.end(self._kind.Result.INVALID_GOAL, reason + goes_on)

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
            self._accepted = self._node.get_clock().now().nanoseconds
            self._node.get_logger().info(f"goal accepted: {duration(self.plan.motion):.3g} s")
        elif not self.is_accepted:
            self._node.get_logger().warning(f"goal refused: {printable(status.message)}")
            self.refuse(status.message)
        else:
            self.is_playing, self._remark = False, status.message
            self._finished = status.status == status.FINISHED
            if self._finished:  # from now on, as far as the time for the goal
                self._reference = _PathTime(self._node.get_clock().now().nanoseconds, self.plan.motion.end, 1.0)
            else:
                self.abort(status.message)

    def on_another(self, newer: bool) -> None:
        """End, as another trajectory is played: by a node that has restarted, or while this one waits for its goal.

        Args:
            newer: whether it was sent after this one, whose motion is lost if it has no answer yet.
        """
        if self._finished:
            self.observe()  # it may be reached by now
        elif not (self.is_playing or (newer and self.is_sent)):
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
        now, t = self._node.get_clock().now().nanoseconds, self.elapsed
        commanded = (
            None
            if self._finished
            else self._context.commanded.at(now, plan.names, self._accepted - round(LONGEST_GAP * _SECOND))
        )
        motion = plan.motion
        desired = [
            *(motion.derivatives(motion.end if self._finished else motion.start, 2) if commanded is None else commanded)
        ]
        state = [joints[name] for name in plan.names if name in joints]
        known = len(state) == len(plan.names)
        actual = [np.array(x) for x in zip(*state, strict=True)][:2] if known else []
        deviation = [x - y for x, y in zip(desired, actual, strict=False)]
        if actual:  # the loop plays the nearest turn of continuous joints
            deviation[0] = _to_nearest_turn(self._node, plan.names, deviation[0])
            desired[0] = actual[0] + deviation[0]
        self.goal.publish_feedback(self._feedback(t, desired, actual, deviation))
        if reason := self._silent(joints):
            self.end(codes.INVALID_GOAL, reason)
            return
        if self._finished:
            # Where the clock goes back, the time for the goal begins anew.
            end = _PathTime(now, plan.motion.end, 1.0)
            self._reference = min(self._reference or end, end)
            violation = plan.goal.violation(deviation) if plan.goal.any else ""
            # With a state of now, unless there never was one: the robot may have died on the way.
            alive = not any(self._context.unheard.get(name, 0.0) for name in plan.names)
            if not violation and alive and (actual or not plan.has_tolerances):
                self.end(codes.SUCCESSFUL, self._remark)
            elif violation and t > plan.motion.end + plan.goal_time:
                self.end(codes.GOAL_TOLERANCE_VIOLATED, f"{violation}, {t - plan.motion.end:.3g} s after the end")
            return
        if actual and commanded is not None and (violation := plan.path.violation(deviation)):
            self.end(codes.PATH_TOLERANCE_VIOLATED, f"{violation}, at {t:.3g} s")

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


def _point(t: float, rows: Sequence[Array]) -> JointTrajectoryPoint:
    point = JointTrajectoryPoint()
    for field, values in zip(("positions", "velocities", "accelerations"), rows, strict=False):
        setattr(point, field, doubles(np.ascontiguousarray(values)))
    set_stamp(point.time_from_start, max(round(t * _SECOND), 0))
    return point
