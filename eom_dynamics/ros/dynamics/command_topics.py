# SPDX-License-Identifier: Apache-2.0
"""Command topics; those without subscribers are skipped."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, NamedTuple

from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, UnsupportedEventTypeError
from rclpy.lifecycle import LifecycleNode
from rclpy.lifecycle.publisher import LifecyclePublisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from ...messages.fields import MOTOR_SETPOINT_FIELDS, doubles
from ...messages.setpoint_to_command import EvaluatedCommand
from ...stream.compiled_stream import FEEDFORWARD, ShapeCall
from ...stream.watchdog import Status
from ..interfaces import FeedforwardCommand, nanoseconds, stream_qos

# A drive that has stalled must continue with the present command, not with those of the past.
_DEPTH = 1


class SentCommand(NamedTuple):
    """A command that was sent.

    Attributes:
        command: the command.
        stamp, frame_id: of its header; stamp in ns.
    """

    command: EvaluatedCommand
    stamp: int
    frame_id: str


class CommandTopics:
    """Publishers of feedforward, motor setpoint and effort command.

    Attributes:
        commands_motors: whether the effort command is that of the motors, and not that of the joints.
        first: index of the first topic with subscribers; a compiled call returns its message.
    """

    def __init__(self, node: LifecycleNode) -> None:
        self.commands_motors = True
        # In the order of a compiled call's messages; they are reused, since publishing copies them.
        self._messages = FeedforwardCommand(), JointState(), Float64MultiArray()
        self._publishers = [
            self._create(node, FeedforwardCommand, "feedforward"),
            self._create(node, JointState, "motor_setpoint"),
            self._create(node, Float64MultiArray, "effort_command"),
        ]
        # What was published last since :meth:`forget`, or the compiled call that has it.
        self._latest: SentCommand | ShapeCall | None = None
        self.count_listeners()

    @property
    def holds_command(self) -> bool:
        """Whether there is a valid command since :meth:`forget`, to be repeated."""
        return self._latest is not None

    def forget(self) -> None:
        """Forget the last command."""
        self._latest = None

    @property
    def last(self) -> SentCommand | None:
        """The last command since :meth:`forget`."""
        latest = self._latest
        if latest is None or isinstance(latest, SentCommand):
            return latest
        return SentCommand(latest.command(), latest.call.committed_stamp, latest.shape.frame_id)

    def deliver(self, timeout: float) -> None:
        """Wait until subscribers have received the last command, for ``timeout`` s at most.

        With a depth of 1 the middleware asks them with each command; with a deeper queue only every 3 s.
        """
        deadline = time.monotonic() + timeout
        for which in self._heard:
            with suppress(RuntimeError):  # of a middleware that cannot tell
                remaining = max(deadline - time.monotonic(), 0.0)
                self._publishers[which].wait_for_all_acked(Duration(seconds=remaining))

    def publish(self, header: Header, command: EvaluatedCommand, status: Status) -> None:
        """Publish a command."""
        self._publish(header, command, status)
        self._latest = SentCommand(command, nanoseconds(header.stamp), header.frame_id)

    def publish_bytes(self, latest: ShapeCall, first: bytes) -> None:
        """Publish a fresh command from a compiled call, given its first message."""
        if self._publish_first is not None:
            self._publish_first(first)
        for which, publish in self._publish_others:
            publish(latest.call.written(which))
        self._latest = latest

    def repeat(self, header: Header) -> None:
        """Publish the last command again, marked as held, with another header."""
        if (last := self.last) is not None:
            self._publish(header, last.command, Status.HELD)

    def _publish(self, header: Header, command: EvaluatedCommand, status: Status) -> None:
        order, sent = command.order, command.sent
        feedforward, motor_setpoint, effort_command = self._messages
        feedforward.header = motor_setpoint.header = header
        feedforward.joint_names, feedforward.command_lead = order.names, command.lead
        feedforward.motor_names = motor_setpoint.name = order.motor_names
        feedforward.status, feedforward.held = status.value, status is not Status.FRESH
        for field, values in command.fields().items():
            setattr(feedforward, field, doubles(values))
        if sent is None:
            for field, same in MOTOR_SETPOINT_FIELDS.items():
                setattr(motor_setpoint, field, getattr(feedforward, same))
            effort_command.data = doubles(command.motors[-1] if self.commands_motors else command.efforts[0])
        else:
            for field in MOTOR_SETPOINT_FIELDS:
                setattr(motor_setpoint, field, doubles(order.motors_to_message(getattr(sent, field))))
            effort_command.data = doubles(sent.effort if self.commands_motors else sent.joint_effort)
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
