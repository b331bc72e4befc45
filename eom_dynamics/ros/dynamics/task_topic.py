# SPDX-License-Identifier: Apache-2.0
"""Topic ``task_setpoint``: tool motion, solved for joint motion starting from the last joint state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ... import lie
from ...arrays import Array
from ...control.fields import BASE_FIELD, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS, doubles
from ...control.measured import JointPositions
from ...control.setpoint_to_command import refusal_reason
from ...control.spatial import read_task_setpoint
from ...exceptions import StateError
from ...kinematics.compiled import kinematics_of
from ...kinematics.motion import LARGEST_JUMP, ToolTracker, predicted
from ...robot import Robot
from ...robot.model import frames_by_name
from ...spelling import hint
from ...terminal import printable
from ..executors import Worker, steady_timer
from ..interfaces import JointTrajectorySetpoint, TaskSetpoint, nanoseconds, stream_qos, subscribe_joint_states
from ..robot_node import RobotNode

# Longest time over which the last commanded motion predicts the next, s.
_PREDICTED = 0.1

# Age beyond which a command is no evidence of where the joints are, if anybody measures them, s.
_STALE = 1.0

# Of looking for publishers, s.
_LOOK_PERIOD = 1.0


class TaskTopic:
    """Subscription of task setpoints and their solver; all methods are called by the node's executor.

    Code for a frame is compiled in a thread, that of the first tool as soon as somebody publishes setpoints, that of
    another when its first one arrives; until then setpoints are refused. Without a recent commanded state, the joints
    are where the next message on ``joint_states`` says.
    """

    def __init__(self, node: RobotNode, on_setpoint: Callable[[TaskSetpoint], None], depth: int) -> None:
        self._node = node
        self._worker = Worker(node, "kinematics")
        self._setpoint = JointTrajectorySetpoint()
        self._robot: Robot | None = None
        # By frame; or why there is none, or None while it is being prepared.
        self._trackers: dict[str, ToolTracker | str | None] = {}
        self._states: Subscription | None = None
        self._measured: JointPositions | None = None
        # q … qdddd (5, n) commanded last, and their stamp, ns.
        self._commanded: tuple[int, Array] | None = None
        self._subscription = node.create_subscription(TaskSetpoint, "task_setpoint", on_setpoint, **stream_qos(depth))
        # Not every middleware tells when a publisher appears.
        steady_timer(node, _LOOK_PERIOD, self._prepare_for_publishers)

    @property
    def publishers(self) -> int:
        """Number of publishers of task setpoints."""
        return self._subscription.get_publisher_count()

    def take(self, robot: Robot) -> None:
        """Solve for a robot from now on."""
        if robot is not self._robot:
            self._robot, self._trackers, self._measured = robot, {}, None
            self._prepare_for_publishers()

    def solve(self, message: TaskSetpoint) -> JointTrajectorySetpoint:
        """Solve for the joint setpoint, which is valid until the next call.

        Raises:
            StateError: the message cannot be used, or no joint motion is next to the present one.
        """
        assert self._robot is not None  # the node is active
        tracker = self._tracker(message.frame, self._robot)
        wanted = read_task_setpoint(message)
        stamp = nanoseconds(message.header.stamp)
        start = self._expected(stamp, self._robot)
        rows = [x[np.newaxis] for x in (start, wanted.pose, *wanted.twists)]
        q, rates, refusals = tracker.solve(*rows, reference="world_aligned")
        if refusals[0]:
            raise StateError(refusals[0])
        setpoint = self._setpoint
        setpoint.header = message.header
        for field, values in zip(STATE_FIELDS, (q[0], *rates[:, 0]), strict=True):
            setattr(setpoint, field, doubles(values))
        for field in (*WRENCH_FIELDS, *STIFFNESS_FIELDS, BASE_FIELD):
            setattr(setpoint, field, getattr(message, field))
        return setpoint

    def command(self, stamp: int, states: Array) -> None:
        """Remember a commanded state q … qdddd (5, n) and its stamp, ns."""
        self._commanded, self._measured = (stamp, states), None
        if self._states is not None:
            self._node.destroy_subscription(self._states)
            self._states = None

    def forget(self) -> None:
        """Forget the joint state."""
        self._commanded = self._measured = None

    def _prepare_for_publishers(self) -> None:
        """Prepare for the first tool, if anybody moves tools."""
        if self._robot is not None and self._subscription.get_publisher_count():
            self._prepare(self._robot.tools[0].name, self._robot)

    def _tracker(self, frame: str, robot: Robot) -> ToolTracker:
        name = frame or robot.tools[0].name
        if name not in self._trackers:
            known = frames_by_name(robot)
            if name not in known:
                raise StateError(f"{robot.name} has no frame {name!r:.60}; {hint(name, known)}")
            self._prepare(name, robot)
        tracker = self._trackers[name]
        if isinstance(tracker, ToolTracker):
            return tracker
        raise StateError(
            tracker or f"inverse kinematics of {name!r} are being prepared: repeat the start, at rest, until then"
        )

    def _prepare(self, frame: str, robot: Robot) -> None:
        if frame in self._trackers:
            return
        self._trackers[frame] = None

        def keep(found: ToolTracker | Exception) -> None:
            if robot is self._robot:
                self._trackers[frame] = refusal_reason(found) if isinstance(found, Exception) else found
                if isinstance(found, ToolTracker):
                    self._node.get_logger().info(f"task setpoints of {printable(frame)} are taken from now on")

        self._worker.submit(partial(_prepared, robot, frame), keep)

    def _expected(self, stamp: int, robot: Robot) -> Array:
        """Joint variables (n,) predicted for a stamp, ns."""
        if self._commanded is not None:
            then, states = self._commanded
            after = (stamp - then) * 1e-9
            if after <= _STALE or not self._node.count_publishers("joint_states"):
                found: Array = predicted(states, after) if 0 <= after <= _PREDICTED else states[0]
                # The derivatives of a sample need not be those of a motion.
                return found if np.max(np.abs(found - states[0])) < LARGEST_JUMP else states[0]
        if self._measured is None:
            self._measured = JointPositions(robot.joint_names)
        if self._states is None:
            self._states = subscribe_joint_states(self._node, self._on_joint_states)
        try:
            return self._measured.read()
        except StateError as error:
            raise StateError(
                f"{error}: it takes a message on joint_states from now on, or a setpoint of the joints"
            ) from None

    def _on_joint_states(self, state: JointState) -> None:
        if self._measured is not None:
            self._measured.update(state)


def _prepared(robot: Robot, frame: str) -> ToolTracker:
    """Solver of a frame with its code; runs in the worker's thread."""
    tracker = ToolTracker(kinematics_of(robot), frame)
    lie.rotation_from_quaternion([0.0, 0.0, 0.0, 1.0])  # imports SciPy, for which the stream must not wait
    q = np.zeros((1, robot.n))
    tracker.solve(q, tracker.kinematics.pose(q, frame), *np.zeros((4, 1, 6)), reference="world_aligned")
    return tracker
