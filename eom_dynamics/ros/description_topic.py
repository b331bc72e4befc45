# SPDX-License-Identifier: Apache-2.0
"""The topic ``robot_description``: the robot as a URDF, from whoever publishes it."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from . import parameters
from .robot_loading import Given, GivenUrdf

TOPIC = "robot_description"

# That of robot_state_publisher: who comes late gets the last description all the same.
_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class DescriptionTopic:
    """Holds the last description that came, from its opening until it is closed."""

    problem = "nothing was published on it yet"

    def __init__(self, node: Node, on_arrival: Callable[[], None]) -> None:
        """Subscribe; ``on_arrival`` is called for each description."""
        self._node, self._on_arrival = node, on_arrival
        self.label = f"topic {node.resolve_topic_name(TOPIC)}"
        self._text: str | None = None
        self._subscription = node.create_subscription(String, TOPIC, self._take, _QOS)

    @property
    def given(self) -> Given | None:
        """The last description, with what the node's parameters add to it now; None before there is one."""
        if self._text is None:
            return None
        return GivenUrdf(self._text, parameters.section(self._node, parameters.URDF), self.label)

    def poll(self) -> None:
        """Do nothing: messages come by themselves."""

    def look_again(self) -> None:
        """Do nothing: messages come by themselves."""

    def close(self) -> None:
        """Unsubscribe."""
        self._node.destroy_subscription(self._subscription)

    def _take(self, message: String) -> None:
        self._text = message.data
        self._on_arrival()
