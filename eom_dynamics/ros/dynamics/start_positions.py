# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions, from ``joint_states``, while nothing is commanded yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ...arrays import Array
from ...control.measured import JointPositions
from ...exceptions import StateError
from ..interfaces import subscribe_joint_states
from ..robot_node import RobotNode

# Age of a message beyond which positions are not known, s.
_OLDEST = 1.0


class StartPositions:
    """Positions on ``joint_states`` from :meth:`watch`, or the first :meth:`read`, to :meth:`stop`.

    Attributes:
        on_known: called with each message after which all positions are known.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self._names: Sequence[str] = ()
        self._positions = JointPositions(())
        self._subscription: Subscription | None = None
        self._received = 0.0
        self.on_known: Callable[[], None] = lambda: None

    def take(self, names: Sequence[str]) -> None:
        """Measure other joints from now on."""
        self._names = names
        self._positions = JointPositions(names)

    def watch(self) -> None:
        """Receive positions from now on."""
        if self._subscription is None:
            self._positions = JointPositions(self._names)
            self._subscription = subscribe_joint_states(self._node, self._receive)

    def read(self) -> Array:
        """Positions (n,), rad or m; StateError until all are known, and where the last message is old."""
        self.watch()
        positions = self._positions.read()
        if (age := time.monotonic() - self._received) > _OLDEST:
            raise StateError(f"joint_states is {age:.3g} s old")
        return positions

    def stop(self) -> None:
        """Forget the positions, and receive no more until they are wanted again."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _receive(self, state: JointState) -> None:
        self._received = time.monotonic()
        if self._positions.update(state):
            self.on_known()
