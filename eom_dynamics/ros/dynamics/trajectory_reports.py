# SPDX-License-Identifier: Apache-2.0
"""Status of trajectories: topics ``trajectory_status`` and ``path_time``."""

from __future__ import annotations

from sensor_msgs.msg import TimeReference

from ..interfaces import TrajectoryStatus, set_stamp, status_qos
from ..robot_node import RobotNode


class TrajectoryReports:
    """Publishers of the topics, by header and identity of a trajectory."""

    def __init__(self, node: RobotNode) -> None:
        self._path_time = node.create_publisher(TimeReference, "path_time", 10)
        self._status = node.create_publisher(TrajectoryStatus, "trajectory_status", status_qos())

    def tell(self, identity: TrajectoryStatus, status: int, message: str = "") -> None:
        """Publish a status of the trajectory of an identity."""
        self._status.publish(
            TrajectoryStatus(header=identity.header, request=identity.request, status=status, message=message)
        )

    def time(self, identity: TrajectoryStatus, at: int, t: int) -> None:
        """Publish the time on a motion, ns, at a time of the clock, ns; negative while it waits."""
        message = TimeReference(source=identity.request)
        set_stamp(message.header.stamp, at)
        set_stamp(message.time_ref, t)
        self._path_time.publish(message)
