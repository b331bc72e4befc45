# SPDX-License-Identifier: Apache-2.0
"""Where the joints are now, for computations in threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ...arrays import Array
from ...exceptions import StateError
from ...messages.joint_states import read_positions

# Time within which a joint state must arrive, s.
_PATIENCE = 1.0


class MeasuredJoints:
    """Subscriber of ``joint_states``, once somebody needs them."""

    def __init__(self, node: Node) -> None:
        """Subscribe to nothing yet."""
        self._node = node
        self._subscription: Subscription | None = None
        self._state = JointState()
        self._arrived = threading.Event()

    def listen(self) -> None:
        """Subscribe; called by the node's executor."""
        if self._subscription is None:
            self._subscription = self._node.create_subscription(JointState, "joint_states", self._receive, 1)

    def positions(self, names: Sequence[str]) -> Array:
        """Positions (n,) of the joints by the next message; called in a thread, after :meth:`listen`.

        Raises:
            StateError: no message arrives, or it cannot be used.
        """
        self._arrived.clear()
        if not self._arrived.wait(_PATIENCE):
            raise StateError(
                "where the joints are is not known: no message has arrived on joint_states; give the positions at "
                "which the motion starts, where it can be given, or publish them"
            )
        return read_positions(self._state, names)

    def _receive(self, state: JointState) -> None:
        self._state = state
        self._arrived.set()
