# SPDX-License-Identifier: Apache-2.0
"""Topic ``task_setpoint``: motion of a tool, solved for that of the joints from where they were last."""

from __future__ import annotations

from functools import partial

import numpy as np
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ... import lie
from ...arrays import Array
from ...exceptions import StateError
from ...kinematics import Kinematics
from ...kinematics.compiled import frames_by_name
from ...kinematics.tracking import LARGEST_JUMP, ToolTracker, predicted
from ...messages.fields import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ...messages.joint_states import JointPositions
from ...messages.poses import read_task_setpoint
from ...messages.refusals import refusal_reason
from ...messages.samples import doubles
from ...robot import Robot
from ...spelling import hint
from ..interfaces import JointTrajectorySetpoint, TaskSetpoint
from ..robot_node import RobotNode
from ..worker import Worker

# From any publisher, reliable or not; those of an arm and its gripper may come together.
_STATES = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

# Longest time over which the last commanded motion predicts the next, s.
_PREDICTED = 0.1


class TaskTopic:
    """Solver of task setpoints; all methods are called by the node's executor.

    Code for a frame is compiled in a thread when its first setpoint arrives; until then setpoints are refused. Without
    a commanded state since activation, the joints are where the next message on ``joint_states`` says.
    """

    def __init__(self, node: RobotNode) -> None:
        """Create a solver that knows no state."""
        self._node = node
        self._worker = Worker(node, "kinematics")
        self._setpoint = JointTrajectorySetpoint()
        self._robot: Robot | None = None
        self._trackers: dict[str, ToolTracker | Exception] = {}
        self._prepared: set[str] = set()
        self._subscription: Subscription | None = None
        self._measured: JointPositions | None = None
        # q … qdddd (5, n) commanded last, and their stamp, ns.
        self._commanded: tuple[int, Array] | None = None

    def solve(self, message: TaskSetpoint, robot: Robot) -> JointTrajectorySetpoint:
        """Setpoint of the joints, valid until the next call.

        Raises:
            StateError: the message cannot be used, or no joint motion is next to the present one.
        """
        tracker = self._tracker(message.frame, robot)
        wanted = read_task_setpoint(message)
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        expected = self._expected(stamp, robot)
        q, rates, refusals = tracker.solve(expected[np.newaxis], wanted.pose[np.newaxis], *wanted.twists[:, np.newaxis])
        if refusals[0]:
            raise StateError(refusals[0])
        setpoint = self._setpoint
        setpoint.header = message.header
        for field, values in zip(STATE_FIELDS, (q[0], *rates[:, 0]), strict=True):
            setattr(setpoint, field, doubles(values))
        for field in (*WRENCH_FIELDS, *STIFFNESS_FIELDS):
            setattr(setpoint, field, getattr(message, field))
        return setpoint

    def command(self, stamp: int, states: Array) -> None:
        """Remember a commanded state q … qdddd (5, n) and its stamp, ns."""
        self._commanded = stamp, states
        self._unsubscribe()

    def forget(self) -> None:
        """Forget where the joints are."""
        self._commanded = self._measured = None

    def _tracker(self, frame: str, robot: Robot) -> ToolTracker:
        if robot is not self._robot:
            self._robot, self._trackers, self._prepared, self._measured = robot, {}, set(), None
        name = frame or robot.tools[0].name
        tracker = self._trackers.get(name)
        if isinstance(tracker, ToolTracker):
            return tracker
        if tracker is not None:
            raise StateError(refusal_reason(tracker))
        known = frames_by_name(robot)
        if name not in known:
            raise StateError(f"{robot.name} has no frame {name!r:.60}; {hint(name, known)}")
        if name not in self._prepared:
            self._prepared.add(name)
            self._worker.submit(partial(_tracker_or_error, robot, name), partial(self._keep, robot, name))
        raise StateError(f"inverse kinematics of {name!r} are being prepared: repeat the start, at rest, until then")

    def _keep(self, robot: Robot, name: str, tracker: ToolTracker | Exception) -> None:
        if robot is self._robot:
            self._trackers[name] = tracker

    def _expected(self, stamp: int, robot: Robot) -> Array:
        """Joint variables (n,) predicted for a stamp, ns."""
        if self._commanded is not None:
            then, states = self._commanded
            after = (stamp - then) * 1e-9
            found: Array = predicted(states, after) if 0 <= after <= _PREDICTED else states[0]
            # The derivatives of a sample need not be those of a motion.
            return found if np.max(np.abs(found - states[0])) < LARGEST_JUMP else states[0]
        if self._measured is None:
            self._measured = JointPositions(robot.joint_names)
        if self._subscription is None:
            self._subscription = self._node.create_subscription(
                JointState, "joint_states", self._on_joint_states, _STATES
            )
        try:
            return self._measured.read()
        except StateError as error:
            raise StateError(
                f"{error}: it takes a message on joint_states from now on, or a setpoint of the joints"
            ) from None

    def _on_joint_states(self, state: JointState) -> None:
        if self._measured is not None:
            self._measured.update(state)

    def _unsubscribe(self) -> None:
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None


def _tracker_or_error(robot: Robot, frame: str) -> ToolTracker | Exception:
    """Solver of a frame with its code, or why there is none; runs in the worker's thread."""
    try:
        kinematics = Kinematics(robot)
        tracker = ToolTracker(kinematics, frame)
        lie.rotation_from_quaternion([0.0, 0.0, 0.0, 1.0])  # imports SciPy, for which the stream must not wait
        q = np.zeros((1, robot.n))
        tracker.solve(q, kinematics.pose(q, of=frame), *np.zeros((4, 1, 6)))
    except Exception as error:
        return error
    return tracker
