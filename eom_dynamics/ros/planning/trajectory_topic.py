# SPDX-License-Identifier: Apache-2.0
"""The topic ``joint_trajectory``: fitted here, beside the stream, and played by the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from ...actuators import ElasticArm
from ...exceptions import EomDynamicsError
from ...trajectory.feedforward import CHECK_RATE, require_finite
from ..interfaces import ComputeTrajectoryFeedforward
from .batches import joint_order
from .link import Motion, Refusal, Stop
from .trajectories import fitted
from .waypoints import read_times

_Constants = ComputeTrajectoryFeedforward.Request
_OPTIONS = _Constants()

# As of trajectory controllers: a planner sends few of them.
_DEPTH = 10


class TrajectoryTopic:
    """Takes trajectories in, and hands what came of them to the node."""

    def __init__(
        self,
        node: Node,
        name: str,
        arm: Callable[[], tuple[ElasticArm, int]],
        submit: Callable[[Callable[[], None]], Any],
        hand_over: Callable[[Motion | Refusal | Stop], None],
    ) -> None:
        """Subscribe.

        Args:
            node: the node of this process.
            name: of the topic.
            arm: the arm and its serial number; StateError where the node is not active.
            submit: has a job done in the thread that computes.
            hand_over: sends to the node.
        """
        self._node, self._arm, self._hand_over = node, arm, hand_over
        node.create_subscription(JointTrajectory, name, lambda message: submit(lambda: self._take(message)), _DEPTH)

    def _take(self, message: JointTrajectory) -> None:
        try:
            arm, serial = self._arm()
            if not message.points:
                self._hand_over(Stop())
                return
            order = joint_order(arm, list(message.joint_names))
            motion = fitted(message, read_times(message), order, _OPTIONS)
            require_finite(arm, motion, CHECK_RATE, _Constants.MAX_SAMPLES)
        except EomDynamicsError as error:
            self._hand_over(Refusal(str(error)))
        except Exception as error:
            self._hand_over(Refusal(f"internal error: {type(error).__name__}: {error}"))
        else:
            stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
            self._hand_over(Motion(serial, motion, stamp, message.header.frame_id))
