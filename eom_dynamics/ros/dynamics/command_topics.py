# SPDX-License-Identifier: Apache-2.0
"""Command topics; topics without subscribers are skipped."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, UnsupportedEventTypeError
from rclpy.lifecycle import LifecycleNode
from rclpy.lifecycle.publisher import LifecyclePublisher
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from ...arrays import EFFORT_NAMES, Array
from ...control.fields import EFFORT_FIELDS, MOTOR_FIELDS, MOTOR_SETPOINT_FIELDS, doubles
from ...control.joint_order import JointOrder
from ...control.library import library
from ...control.serialized import FEEDFORWARD, ShapeCall, drive_side_numbers
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import Status
from ...elastic.drive_programs import DRIVE_NAMES, SENT_NAMES
from ...elastic.motor_programs import MOTOR_NAMES
from ..interfaces import FeedforwardCommand, stream_qos

# A drive that has stalled must continue with the present command, not with a past command.
_DEPTH = 1


class CommandTopics:
    """Publishers of feedforward, motor setpoint and effort command.

    Attributes:
        sent_of: loop of the last command since :meth:`forget`; None without one.
        order, frame_id: of the last command for a setpoint.
        first: index of the first topic with subscribers; a compiled call returns its message.
    """

    def __init__(self, node: LifecycleNode) -> None:
        self._node = node
        # In the order of a compiled call's messages; they are reused, since publishing copies them.
        self._messages = FeedforwardCommand(), JointState(), Float64MultiArray()
        self._publishers = [
            self._create(node, FeedforwardCommand, "feedforward"),
            self._create(node, JointState, "motor_setpoint"),
            self._create(node, Float64MultiArray, "effort_command"),
        ]
        # Loop of the last command since :meth:`forget`, with the joint order and frame of that.
        self.forget()
        self.count_listeners()

    def forget(self) -> None:
        """Clear the last command."""
        self.sent_of: SetpointLoop | None = None
        self.order: JointOrder | None = None
        self.frame_id = ""

    @property
    def topics(self) -> list[str]:
        """Full names of the topics."""
        return [x.topic_name for x in self._publishers]

    def header(self, stamp: int) -> Header:
        """Header with a stamp, ns, and the frame of the last command."""
        return Header(stamp=Time(nanoseconds=stamp).to_msg(), frame_id=self.frame_id)

    def deliver(self, timeout: float) -> None:
        """Wait until subscribers have received the last command, for ``timeout`` s at most.

        With a depth of 1 the middleware asks them with each command; with a deeper queue only every 3 s.
        """
        deadline = time.monotonic() + timeout
        for which in self._heard:
            with suppress(RuntimeError):  # of a middleware that cannot tell
                remaining = max(deadline - time.monotonic(), 0.0)
                self._publishers[which].wait_for_all_acked(Duration(seconds=remaining))

    def publish_bytes(self, call: ShapeCall, first: bytes, loop: SetpointLoop) -> None:
        """Publish a fresh command from a compiled call of a loop, given its first message."""
        if self._publish_first is not None:
            self._publish_first(first)
        for which, publish in self._publish_others:
            publish(call.call.written(which))
        self.sent_of, self.order, self.frame_id = loop, call.order, call.shape.frame_id

    def publish(self, header: Header, loop: SetpointLoop, status: Status = Status.FRESH) -> None:
        """Publish the command of a loop.

        A fresh command has the joint order of the last message, others the order of the last command, if any.
        """
        if status is Status.FRESH or self.order is None:
            self.sent_of, self.order, self.frame_id = loop, loop.order, header.frame_id
        self._publish(header, status, loop.loop.command, loop.loop.sent)

    def publish_final(self, header: Header, loop: SetpointLoop, remaining: float = 0.0) -> None:
        """Publish the command that stays in effect after the last cycle, or one of the fade to it.

        Args:
            remaining: fraction of the time of the fade, during which the last efforts go smoothly to those that remain.
        """
        remain, logger = self._node.get_parameter("effort_on_deactivate").value, self._node.get_logger()
        loop.configure(effort_on_deactivate=remain)
        if not loop.record.valid:
            logger.error("no last command: the arm is not where it was commanded, and cannot be held where it is")
            return
        loop.loop.act("release")
        command, sent = loop.loop.released, loop.loop.sent_last
        if remaining > 0:
            scale = library().fade_weight(1.0 - remaining)
            command = command | {name: scale * loop.loop.command[name] for name in (EFFORT_NAMES[0], MOTOR_NAMES[-1])}
            sent = sent | {name: scale * loop.loop.sent[name] for name in (DRIVE_NAMES[2], *SENT_NAMES)}
            self._publish(header, Status.HELD, command, sent)
            return
        if remain == "gravity" and not loop.record.final_efforts:
            remain = "zero, as gravity efforts cannot be computed"
            logger.error(f"efforts: {remain}: a spring is slack at this position, or numbers would be too large")
        logger.info(f"last command: positions are held, velocities are zero, efforts: {remain}")
        self._publish(header, Status.HELD, command, sent)

    def _publish(self, header: Header, status: Status, command: dict[str, Array], sent: dict[str, Array]) -> None:
        order, loop = self.order, self.sent_of
        assert order is not None and loop is not None  # a command has been published
        feedforward, motor_setpoint, effort_command = self._messages
        feedforward.header = motor_setpoint.header = header
        feedforward.joint_names, feedforward.command_lead = order.names, loop.arm.robot.command_lead
        feedforward.motor_names = motor_setpoint.name = order.motor_names
        feedforward.drive_side = drive_side_numbers(loop.arm, order)
        feedforward.status, feedforward.held = int(status), status is not Status.FRESH
        for field, name in zip(EFFORT_FIELDS, EFFORT_NAMES, strict=True):
            setattr(feedforward, field, doubles(order.to_message(command[name])))
        for field, name in zip(MOTOR_FIELDS, MOTOR_NAMES, strict=True):
            setattr(feedforward, field, doubles(order.motors_to_message(command[name])))
        for field, name in zip(MOTOR_SETPOINT_FIELDS, DRIVE_NAMES, strict=True):
            setattr(motor_setpoint, field, doubles(order.motors_to_message(sent[name])))
        effort_command.data = doubles(sent[DRIVE_NAMES[2]])
        for which in self._heard:
            self._publishers[which].publish(self._messages[which])

    def _create(self, node: LifecycleNode, kind: Any, topic: str) -> LifecyclePublisher:
        events = PublisherEventCallbacks(matched=lambda _: self.count_listeners())
        self._counts = True
        try:
            return node.create_lifecycle_publisher(kind, topic, event_callbacks=events, **stream_qos(_DEPTH))
        except UnsupportedEventTypeError:  # then everything is published
            self._counts = False
            return node.create_lifecycle_publisher(kind, topic, **stream_qos(_DEPTH))

    def count_listeners(self) -> None:
        """Choose the topics with subscribers; runs when they change, and should be called now and then."""
        topics = enumerate(self._publishers)
        self._heard = [which for which, x in topics if not self._counts or x.get_subscription_count()]
        self.first = self._heard[0] if self._heard else FEEDFORWARD
        # Without the checks of rclpy where its handle allows it; the node is active.
        publishers = [self._publishers[which] for which in self._heard]
        publishes = [getattr(x.handle, "publish_raw", x.publish) for x in publishers]
        self._publish_first = publishes[0] if publishes else None
        self._publish_others = [*zip(self._heard[1:], publishes[1:], strict=True)]
