# SPDX-License-Identifier: Apache-2.0
"""Goal: a trajectory of a topic or of the action ``follow_joint_trajectory``, from its arrival to its end."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectoryPoint

from ...arrays import Array
from ...control.fields import doubles
from ...control.joint_order import shown_name
from ...control.measured import JointTolerances, MeasuredJoint
from ...control.setpoint_to_command import refusal_reason
from ...exceptions import StateError
from ...terminal import printable
from ...trajectory import Spline
from ..ignored_joints import IGNORED_JOINTS
from ..interfaces import TrajectoryStatus, nanoseconds, set_stamp
from ..parameter_tables import GOAL_TIME, joint_constraints

_SECOND = 10**9

# Longest time without joint states, s; then the robot counts as dead.
_NO_STATES = 1.0


class Phase(Enum):
    """Phase of a goal."""

    ACCEPTED = auto()  # and waiting until a stopping arm rests
    PLANNING = auto()
    WAITING = auto()  # until the start of its motion
    PLAYING = auto()
    DONE = auto()


class Goal:
    """Trajectory of a topic.

    Attributes:
        header: header of its message.
        message: serialized message.
        is_spline: True for a ``SplineTrajectory``, False for a ``JointTrajectory``.
        first: time of the first point, s.
        motion: planned motion.
    """

    def __init__(self, publish: Callable[[TrajectoryStatus], None], goal_id: str = "") -> None:
        self._publish, self._goal_id = publish, goal_id
        self.header, self.phase = Header(), Phase.ACCEPTED
        self.message, self.is_spline, self.first = b"", False, 0.0
        self.motion: Spline | None = None

    def tell(self, status: int, message: str = "") -> None:
        """Publish a status, and update the phase."""
        self._publish(TrajectoryStatus(header=self.header, goal_id=self._goal_id, status=status, message=message))
        self.phase = Phase.WAITING if status == TrajectoryStatus.ACCEPTED else Phase.DONE

    def end_empty(self) -> None:
        """End a trajectory without points, which stops the arm."""
        self.phase = Phase.DONE

    def withdraw(self, reason: str) -> None:
        """End a goal that is not played."""
        if self.phase is not Phase.DONE:
            self.tell(TrajectoryStatus.STOPPED, reason)


class ActionGoal(Goal):
    """Goal of an action, a :class:`.GoalAction`, with feedback, tolerances and one result.

    Attributes:
        info: UUID and time of its acceptance.
        status: status of the action, see ``action_msgs/GoalStatus``.
        result: result, once it has ended.
    """

    def __init__(self, action: Any, info: Any) -> None:
        super().__init__(action.publish, bytes(info.goal_id.uuid).hex())
        self._action, self._node, self.info, self.status = action, action.node, info, GoalStatus.STATUS_EXECUTING
        self.result = action.kind.Result()
        self._code, self._remark = self.result.INVALID_GOAL, ""
        self._since = self._now
        # End of the motion on the clock, ns; the time for the goal starts there.
        self._finished: int | None = None
        self.names: tuple[str, ...] = ()

    @property
    def _now(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)

    def read(self, goal: Any) -> None:
        """Read all but the trajectory; StateError if the goal is refused."""
        arm = self._node.arm
        ignored = self._node.get_parameter(IGNORED_JOINTS).value
        given = goal.trajectory.joint_names or (arm.robot.joint_names if arm else ())
        names = self.names = tuple(name for name in given if name not in ignored)
        for field in ("path_tolerance", "goal_tolerance"):
            setattr(goal, field, [entry for entry in getattr(goal, field) if entry.name not in ignored])
        if goal.multi_dof_trajectory.points:
            raise StateError("multi_dof_trajectory is not supported; send joint trajectories")
        for k, point in enumerate(goal.trajectory.points):
            if len(point.effort):
                raise StateError(f"points[{k}].effort must be empty: the node computes the effort of the motion")
        self._path, self._tolerance = (
            JointTolerances.read(field, getattr(goal, field), names, joint_constraints(self._node, kind, names))
            for field, kind in (("path_tolerance", "trajectory"), ("goal_tolerance", "goal"))
        )
        # Zero means the default, a negative value no limit.
        goal_time = nanoseconds(goal.goal_time_tolerance) / _SECOND or self._node.get_parameter(GOAL_TIME).value
        self._goal_time = goal_time if goal_time > 0 else math.inf

    def end_empty(self) -> None:
        """End a trajectory without points, which stops the arm."""
        self._answer(GoalStatus.STATUS_SUCCEEDED, self.result.SUCCESSFUL, "the goal has no points: the arm stops")

    def tell(self, status: int, message: str = "") -> None:
        """Publish a status, and end the goal unless its motion has started or has reached its end."""
        if status == TrajectoryStatus.FINISHED:
            phase, self._finished, self._remark = self.phase, self._now, message
            super().tell(status, message)
            self.phase = phase  # until the arm is there
            return
        super().tell(status, message)
        if status == TrajectoryStatus.REFUSED:
            message += "; the goal before goes on" * (self._action.stream.player.goal is not None)
        if self.phase is Phase.DONE:
            self._answer(GoalStatus.STATUS_ABORTED, self._code, message)

    def cancel(self) -> None:
        """End as the client requests."""
        self.status = GoalStatus.STATUS_CANCELING
        self._end(self.result.SUCCESSFUL, "cancelled")

    def withdraw(self, reason: str) -> None:
        """End a goal that is not played; a finished motion may have met its tolerances by now."""
        if self._finished is not None:
            self.observe(self._action.stream.measured.joints())
        self._end(self.result.INVALID_GOAL, reason)

    def _end(self, code: int, reason: str) -> None:
        """End with a code, and stop the motion."""
        self._code = code
        if self.phase is Phase.DONE:
            return
        stream = self._action.stream
        if self._finished is not None:
            self._answer(GoalStatus.STATUS_ABORTED, code, reason)
        elif stream.player.goal is self:
            stream.drop_trajectory(reason)  # which tells it
        else:
            self.tell(TrajectoryStatus.STOPPED, reason)

    def _answer(self, status: int, code: int, text: str) -> None:
        """Send the result."""
        canceled = self.status == GoalStatus.STATUS_CANCELING
        self.phase, self.status = Phase.DONE, GoalStatus.STATUS_CANCELED if canceled else status
        self.result = self._action.kind.Result(error_code=code, error_string=text)
        if self.status == GoalStatus.STATUS_ABORTED:
            self._node.get_logger().warning(f"goal aborted: {printable(text)}")
        self._action.answer(self)

    # --- While it is played ---------------------------------------------------------------

    @property
    def elapsed(self) -> float:
        """Time of the motion, s; 0 before its start."""
        if self._finished is not None and self.motion is not None:
            return self.motion.end + max(self._now - self._finished, 0) / _SECOND
        return self._action.path_time if self.phase is Phase.PLAYING else 0.0

    def observe(self, joints: Mapping[str, MeasuredJoint]) -> None:
        """Send feedback, and end if the motion, its deviation or the joint states do."""
        if self.motion is None or self.phase is Phase.DONE:
            return
        try:
            self._observe(self.motion, joints)
        except Exception as error:
            # A goal that is not observed must not continue.
            self._node.get_logger().error(f"goal ended by an exception:\n{traceback.format_exc()}")
            self._end(self.result.INVALID_GOAL, refusal_reason(error))

    def _observe(self, motion: Spline, joints: Mapping[str, MeasuredJoint]) -> None:
        t = self.elapsed
        states = self._action.compare(self.names, joints, None if self._finished is None else motion)
        _, actual, deviation = states
        self._action.publish_feedback(self, t, states)
        if reason := self._missing(joints):
            self._end(self.result.INVALID_GOAL, reason)
        elif self._finished is None:
            if self.phase is Phase.PLAYING and (violation := self._path.violation(deviation)):
                self._end(self.result.PATH_TOLERANCE_VIOLATED, f"{violation}, at {t:.3g} s")
        else:
            # If the clock goes back, the time for the goal starts again.
            self._finished = min(self._finished, self._now)
            violation = self._tolerance.violation(deviation)
            # The robot may have died on the way: its last state must be new, unless it never sent any.
            alive = not any(self._action.unheard.get(name, 0.0) for name in self.names)
            if not violation and alive and (actual or not self._has_tolerances):
                self._answer(GoalStatus.STATUS_SUCCEEDED, self.result.SUCCESSFUL, self._remark)
            elif violation and t > motion.end + self._goal_time:
                self._end(self.result.GOAL_TOLERANCE_VIOLATED, f"{violation}, {t - motion.end:.3g} s after the end")

    @property
    def _has_tolerances(self) -> bool:
        return self._path.any or self._tolerance.any

    def _missing(self, joints: Mapping[str, MeasuredJoint]) -> str:
        """Reason if joint states have ended, or are needed and missing; else empty."""
        topic = self._action.stream.measured.topic
        for name in self.names:
            if self._action.unheard.get(name, 0.0) > _NO_STATES:
                return f"{shown_name(name)} has no new states on {topic}: is the robot running?"
        missing = [shown_name(name) for name in self.names if name not in joints]
        if missing and self._has_tolerances and self._now > self._since + _NO_STATES * _SECOND:
            need = f"tolerances need joint states on {topic}"
            return f"{need}; none arrives with a position of {', '.join(missing)}"
        return ""


def trajectory_point(t: float, rows: Sequence[Array]) -> JointTrajectoryPoint:
    """Message with time ``t``, s, and rows of positions, velocities and accelerations; later rows may be missing."""
    point = JointTrajectoryPoint()
    for field, values in zip(("positions", "velocities", "accelerations"), rows, strict=False):
        setattr(point, field, doubles(np.ascontiguousarray(values)))
    set_stamp(point.time_from_start, max(round(t * _SECOND), 0))
    return point
