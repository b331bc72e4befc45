# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions, for computations in threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ...arrays import Array
from ...exceptions import StateError
from ...messages.measured import JointPositions
from ..stream_qos import JOINT_STATES_QOS

# Time within which a joint state must arrive, s.
_PATIENCE = 1.0


class MeasuredJoints:
    """Subscriber of ``joint_states``, created on first use."""

    def __init__(self, node: Node) -> None:
        """Subscribe to nothing yet."""
        self._node = node
        self._subscription: Subscription | None = None
        self._waiting: list[tuple[JointPositions, threading.Event]] = []

    def listen(self) -> None:
        """Subscribe; called by the node's executor."""
        if self._subscription is None:
            self._subscription = self._node.create_subscription(
                JointState, "joint_states", self._receive, JOINT_STATES_QOS
            )

    def positions(self, names: Sequence[str]) -> Array:
        """Joint positions (n,) from the next messages; called in a thread, after :meth:`listen`.

        Raises:
            StateError: no message arrives, or it cannot be used.
        """
        positions, known = JointPositions(names), threading.Event()
        waiting = positions, known
        self._waiting.append(waiting)
        known.wait(_PATIENCE)
        self._waiting.remove(waiting)
        try:
            return positions.read()
        except StateError as error:
            raise StateError(
                f"{error} after {_PATIENCE:g} s: publish it on joint_states, or give a request the positions at which "
                "the motion starts"
            ) from None

    def _receive(self, state: JointState) -> None:
        for positions, known in tuple(self._waiting):
            if positions.update(state):
                known.set()
