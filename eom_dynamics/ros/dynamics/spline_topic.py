# SPDX-License-Identifier: Apache-2.0
"""Topic ``spline_trajectory``: motions as piecewise polynomials, validated beside the stream, then played."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, TrajectoryError
from ...messages.spline_trajectory import check_size, read_spline
from ...terminal import printable
from ...trajectory import Spline
from ...trajectory.feedforward import CHECK_RATE, require_finite
from ..interfaces import SplineTrajectory
from ..robot_node import RobotNode
from ..worker import Worker
from .trajectory_player import TrajectoryPlayer

# A planner sends few of them.
_DEPTH = 10

# Times at which the efforts of a motion are checked, at most: some milliseconds, since threads of one Python process
# take turns. The planning node checks a thousand times a second, and each setpoint is checked when it is played.
_MOST_CHECKS = 1000


class SplineTopic:
    """Plays what arrives on the topic; all methods are called by the node's executor.

    Attributes:
        last_refusal: why a trajectory was refused last.
    """

    def __init__(self, node: RobotNode, player: TrajectoryPlayer, arm: Callable[[], ElasticArm]) -> None:
        """Subscribe.

        Args:
            node: the node.
            player: plays the trajectories.
            arm: the arm that they are for; TrajectoryError where none is played now.
        """
        self._node, self._player, self._arm = node, player, arm
        self._worker = Worker(node, "trajectories")
        self._waiting = self._epoch = 0
        self.last_refusal = ""
        node.create_subscription(SplineTrajectory, "spline_trajectory", self._receive, _DEPTH)

    def stop(self, *, forget: bool = False) -> None:
        """Stop the trajectory under way, and drop those that are being validated; ``forget`` as for the player."""
        self._epoch += 1
        self._player.stop(forget=forget)

    def _receive(self, message: SplineTrajectory) -> None:
        try:
            arm = self._arm()
            check_size(message)
            if self._waiting >= _DEPTH:
                raise TrajectoryError(f"{_DEPTH} others are still being validated")
        except EomDynamicsError as error:
            self._refuse(error)
            return
        if not message.knots:
            self.stop()
            return
        self._waiting += 1
        self._worker.submit(partial(_validated, arm, message), partial(self._play, arm, message, self._epoch))

    def _play(self, arm: ElasticArm, message: SplineTrajectory, epoch: int, found: Spline | Exception) -> None:
        self._waiting -= 1
        if epoch != self._epoch:
            return
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        try:
            if isinstance(found, Exception):
                raise found
            if self._arm() is not arm:
                raise TrajectoryError("the node has another robot by now")
            self._player.play(found, stamp, message.header.frame_id, arm.robot.joint_names)
        except Exception as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        internal = "" if isinstance(error, EomDynamicsError) else f"internal error: {type(error).__name__}: "
        self.last_refusal = printable(f"{internal}{error}")
        self._node.get_logger().warning(
            f"trajectory refused: {self.last_refusal}", throttle_duration_sec=self._node.warning_period
        )


def _validated(arm: ElasticArm, message: SplineTrajectory) -> Spline | Exception:
    """The motion of a message, or why it cannot be used; in the worker's thread."""
    try:
        motion = read_spline(message, arm.robot.joint_names)
        require_finite(arm, motion, CHECK_RATE, _MOST_CHECKS)
    except Exception as error:
        return error
    return motion
