# SPDX-License-Identifier: Apache-2.0
"""Topic ``task_setpoint``: tool motion, solved for joint motion starting from the last joint state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays import Array
from ...control.fields import BASE_FIELD, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS, doubles
from ...control.spatial import read_task_setpoint
from ...exceptions import StateError
from ...kinematics.motion import LARGEST_JUMP, predicted
from ..executors import steady_timer
from ..interfaces import JointTrajectorySetpoint, TaskSetpoint, nanoseconds, stream_qos
from ..robot_node import RobotNode
from .start_positions import StartPositions
from .tool_kinematics import PreparingError, ToolKinematics

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

    def __init__(
        self,
        node: RobotNode,
        kinematics: ToolKinematics,
        measured: StartPositions,
        on_setpoint: Callable[[TaskSetpoint], None],
        depth: int,
    ) -> None:
        self._node, self._kinematics, self._measured = node, kinematics, measured
        self._setpoint = JointTrajectorySetpoint()
        # q … qdddd (5, n) commanded last, and their stamp, ns.
        self._commanded: tuple[int, Array] | None = None
        self._subscription = node.create_subscription(TaskSetpoint, "task_setpoint", on_setpoint, **stream_qos(depth))
        # Not every middleware tells when a publisher appears.
        steady_timer(node, _LOOK_PERIOD, self.prepare_for_publishers)

    @property
    def publishers(self) -> int:
        """Number of publishers of task setpoints."""
        return self._subscription.get_publisher_count()

    def solve(self, message: TaskSetpoint) -> JointTrajectorySetpoint:
        """Solve for the joint setpoint, which is valid until the next call.

        Raises:
            StateError: the message cannot be used, or no joint motion is next to the present one.
        """
        try:
            tracker = self._kinematics.tracker(message.frame)
        except PreparingError as error:
            raise StateError(f"{error}: repeat the start, at rest, until then") from None
        wanted = read_task_setpoint(message)
        stamp = nanoseconds(message.header.stamp)
        start = self._expected(stamp)
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
        self._commanded = stamp, states

    def forget(self) -> None:
        """Forget the joint state."""
        self._commanded = None

    def prepare_for_publishers(self) -> None:
        """Prepare for the first tool, if anybody moves tools."""
        if self._subscription.get_publisher_count():
            self._kinematics.prepare()

    def _expected(self, stamp: int) -> Array:
        """Joint variables (n,) predicted for a stamp, ns."""
        if self._commanded is not None:
            then, states = self._commanded
            after = (stamp - then) * 1e-9
            if after <= _STALE or not self._node.count_publishers("joint_states"):
                found: Array = predicted(states, after) if 0 <= after <= _PREDICTED else states[0]
                # The derivatives of a sample need not be those of a motion.
                return found if np.max(np.abs(found - states[0])) < LARGEST_JUMP else states[0]
        try:
            return self._measured.read()
        except StateError as error:
            raise StateError(
                f"{error}: it takes a message on joint_states from now on, or a setpoint of the joints"
            ) from None
