# SPDX-License-Identifier: Apache-2.0
"""Measured state of joints, from ``joint_states``, read when it is needed: the reader of both nodes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from ..arrays import Array
from ..control.measured import PRESENT, JointStates, MeasuredJoint, measured_joints, present_positions
from ..exceptions import StateError

# Time for which a joint state is waited for, and between two looks, s.
_PATIENCE, _BETWEEN_READS = 1.0, 0.002


class MeasuredJoints:
    """Latest state of each joint on ``joint_states``, from one publisher or several, with the time of its arrival.

    The middleware keeps messages until they are read. In a subscription of the node, each would be work of its
    executor, and a new subscription takes milliseconds to find its publishers. It keeps enough of all publishers
    together for 2 kHz between ticks of goals: with less, an arm's states are lost among a gripper's faster ones.
    """

    def __init__(self, node: Node) -> None:
        quality = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
        # No event handlers: while a message waits, the middleware wakes an executor for them, without end.
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        self._reader = node.create_subscription(
            JointState, "joint_states", lambda _: None, quality, event_callbacks=events
        )
        node._subscriptions.remove(self._reader)  # its executor must not read it
        self.topic = self._reader.topic_name
        self._states = JointStates()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Destroy the reader; destroying the node does not."""
        self._reader.destroy()

    @property
    def published(self) -> bool:
        """True if anybody publishes states."""
        return bool(self._reader.get_publisher_count())

    def read(self) -> dict[str, MeasuredJoint]:
        """Latest state of each joint, however old, without wrong samples: see :class:`.JointStates`."""
        with self._lock:
            while (taken := self._reader.handle.take_message(JointState, False)) is not None:
                times = taken[1]
                # Not every middleware tells when a message came.
                arrival = times["received_timestamp"] or times["source_timestamp"]
                with suppress(StateError):  # its names and numbers do not belong together
                    self._states.take(measured_joints(taken[0], arrival))
            return dict(self._states.joints)

    def present(self, names: Sequence[str]) -> tuple[Array, int]:
        """Positions (n,) and the age of the oldest one; StateError as of :func:`.present_positions`."""
        return present_positions(self.read(), names, time.time_ns())

    def wait(
        self, names: Sequence[str], is_enough: Callable[[dict[str, MeasuredJoint]], bool] = bool
    ) -> dict[str, MeasuredJoint]:
        """Present states, once they are enough and have all joints of these names that were ever measured.

        After a timeout, the positions known so far; called in a thread.
        """
        end = time.monotonic() + _PATIENCE
        while True:
            joints, since = self.read(), time.time_ns() - PRESENT
            present = {name: joint for name, joint in joints.items() if joint.time >= since}
            complete = present and joints.keys() & {*names} <= present.keys() and is_enough(present)
            if complete or time.monotonic() > end:
                return present
            time.sleep(_BETWEEN_READS)

    def positions(self, names: Sequence[str]) -> Array:
        """Joint positions (n,); called in a thread.

        Raises:
            StateError: one is not measured.
        """
        try:
            present = self.wait(names, lambda positions: {*names} <= positions.keys())
            return present_positions(present, names, time.time_ns())[0]
        except StateError as error:
            remedy = "publish it on joint_states, or give a request the positions at which the motion starts"
            raise StateError(f"{error} after {_PATIENCE:g} s: {remedy}") from None
