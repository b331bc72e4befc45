# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions, from ``joint_states``, while nothing is commanded yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ...arrays import Array
from ...control.joint_order import shown_name
from ...control.measured import MeasuredJoint, measured_joints, positions_of
from ...control.setpoint_loop import SetpointLoop
from ...exceptions import StateError
from ...terminal import printable
from ..interfaces import subscribe_joint_states
from ..robot_node import RobotNode

# Age of a message beyond which positions are not known, s.
_OLDEST = 1.0

# What joints may move without the start being another one, rad or m.
_STILL = 1e-3


class StartPositions:
    """Positions on ``joint_states`` from :meth:`watch`, or the first :meth:`read`, to :meth:`stop`.

    Attributes:
        on_known: called with each message after which all positions are known.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self._names: Sequence[str] = ()
        self._joints: dict[str, MeasuredJoint] = {}
        self._subscription: Subscription | None = None
        # Whether it was said that the start of the stream is not checked.
        self._unchecked = False
        self.on_known: Callable[[], None] = lambda: None

    def take(self, names: Sequence[str]) -> None:
        """Measure other joints from now on."""
        self._names, self._joints = names, {}

    def watch(self) -> None:
        """Receive positions from now on."""
        if self._subscription is None:
            self._joints = {}
            self._subscription = subscribe_joint_states(self._node, self._receive)

    def read(self) -> Array:
        """Positions (n,), rad or m; StateError until all are known, and where one is old."""
        self.watch()
        positions = positions_of(self._joints, self._names)
        name = min(self._names, key=lambda x: self._joints[x].time)
        if (age := 1e-9 * (time.monotonic_ns() - self._joints[name].time)) > _OLDEST:
            raise StateError(f"joint_states: the position of {shown_name(name)} is {age:.3g} s old")
        return positions

    @property
    def found(self) -> Array | None:
        """Positions as by :meth:`read`, or None."""
        try:
            return self.read()
        except StateError:
            return None

    def hold(self, loop: SetpointLoop) -> None:
        """Have a loop hold the arm there, so that its first reference is checked; log once where it cannot be."""
        try:
            q = self.read()
        except StateError as error:
            if not (self._unchecked or loop.loop.number("valid")):
                text = "the start is not compared with where the arm is"
                self._node.get_logger().warning(f"{text}: {printable(str(error))}")
            self._unchecked = True
            return
        if not loop.loop.number("valid") or np.abs(q - loop.state[0]).max() > _STILL:
            loop.loop.restart(q)

    def stop(self) -> None:
        """Forget the positions, and receive no more until they are wanted again."""
        self._unchecked = False
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _receive(self, state: JointState) -> None:
        self._joints |= measured_joints(state, time.monotonic_ns())
        if {*self._names} <= self._joints.keys():
            self.on_known()
