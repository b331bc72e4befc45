# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions, from ``joint_states``, while nothing is commanded yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ...arrays import Array
from ...control.measured import JointPositions
from ..interfaces import subscribe_joint_states
from ..robot_node import RobotNode


class StartPositions:
    """Subscription of ``joint_states`` from the first :meth:`read` to :meth:`stop`.

    Attributes:
        on_known: called with each message after which all positions are known.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self._names: Sequence[str] = ()
        self._positions: JointPositions | None = None
        self._subscription: Subscription | None = None
        self.on_known: Callable[[], None] = lambda: None

    def take(self, names: Sequence[str]) -> None:
        """Measure other joints from now on."""
        self._names = names
        self.forget()

    def read(self) -> Array:
        """Positions (n,), rad or m; StateError until all are known."""
        if self._positions is None:
            self._positions = JointPositions(self._names)
        if self._subscription is None:
            self._subscription = subscribe_joint_states(self._node, self._receive)
        return self._positions.read()

    def forget(self) -> None:
        """Forget the positions."""
        self._positions = None

    def stop(self) -> None:
        """Forget the positions, and receive no more until the next :meth:`read`."""
        self._positions = None
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _receive(self, state: JointState) -> None:
        if self._positions is not None and self._positions.update(state):
            self.on_known()
