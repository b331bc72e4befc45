# SPDX-License-Identifier: Apache-2.0
"""Command topics; those without subscribers are skipped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, UnsupportedEventTypeError
from rclpy.lifecycle import LifecycleNode
from rclpy.lifecycle.publisher import LifecyclePublisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from ...arrays import Array
from ...elastic import DriveCommand
from ...messages.fields import COMMAND_FIELDS, MOTOR_SETPOINT_FIELDS, doubles
from ...messages.joint_order import JointOrder
from ...messages.setpoint_to_command import EvaluatedCommand
from ...stream.compiled_stream import EFFORT_COMMAND, FEEDFORWARD, MOTOR_SETPOINT, ShapeCall
from ...stream.watchdog import Status
from ..interfaces import FeedforwardCommand
from ..stream_qos import stream_qos

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
        """Create the publishers."""
        self.commands_motors = True
        # Messages are reused, since publishing copies them.
        self._feedforward = FeedforwardCommand()
        self._motor_setpoint = JointState()
        self._effort_command = Float64MultiArray()
        self._messages: dict[int, Any] = {
            FEEDFORWARD: self._feedforward,
            MOTOR_SETPOINT: self._motor_setpoint,
            EFFORT_COMMAND: self._effort_command,
        }
        self._publishers = {
            FEEDFORWARD: self._create(node, FeedforwardCommand, "feedforward"),
            MOTOR_SETPOINT: self._create(node, JointState, "motor_setpoint"),
            EFFORT_COMMAND: self._create(node, Float64MultiArray, "effort_command"),
        }
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
        self._fill(header, command.order, command.efforts, command.motors, command.lead, command.sent)
        self._send(status)
        stamp = header.stamp.sec * 1_000_000_000 + header.stamp.nanosec
        self._latest = SentCommand(command, stamp, header.frame_id)

    def publish_bytes(self, latest: ShapeCall, first: bytes) -> None:
        """Publish a fresh command from a compiled call, given its first message."""
        if self._publish_first is not None:
            self._publish_first(first)
        for which, publish in self._publish_others:
            publish(latest.call.written(which))
        self._latest = latest

    def repeat(self, header: Header) -> None:
        """Publish the last command again, marked as held, with another header."""
        latest = self._latest
        if isinstance(latest, SentCommand):
            last = latest.command
            self._fill(header, last.order, last.efforts, last.motors, last.lead, last.sent)
        elif latest is not None:
            self._fill(header, latest.order, *latest.efforts_and_motors(), latest.lead, latest.sent())
        self._send(Status.HELD)

    def _fill(
        self,
        header: Header,
        order: JointOrder,
        efforts: Array,
        motors: Array,
        lead: float,
        sent: DriveCommand | None,
    ) -> None:
        feedforward, motor_setpoint = self._feedforward, self._motor_setpoint
        feedforward.header = motor_setpoint.header = header
        feedforward.joint_names, feedforward.command_lead = order.names, lead
        feedforward.motor_names = motor_setpoint.name = order.motor_names
        rows = (*order.to_message(efforts), *order.motors_to_message(motors))
        for field, values in zip(COMMAND_FIELDS, rows, strict=True):
            setattr(feedforward, field, doubles(values))
        if sent is None:
            for field, same in MOTOR_SETPOINT_FIELDS.items():
                setattr(motor_setpoint, field, getattr(feedforward, same))
            self._effort_command.data = doubles(motors[-1] if self.commands_motors else efforts[0])
            return
        for field in MOTOR_SETPOINT_FIELDS:
            setattr(motor_setpoint, field, doubles(order.motors_to_message(getattr(sent, field))))
        self._effort_command.data = doubles(sent.effort if self.commands_motors else sent.joint_effort)

    def _send(self, status: Status) -> None:
        self._feedforward.status, self._feedforward.held = status.value, status is not Status.FRESH
        for which in self._heard:
            self._publishers[which].publish(self._messages[which])

    def _create(self, node: LifecycleNode, kind: Any, topic: str) -> LifecyclePublisher:
        quality = stream_qos(_DEPTH)
        events = PublisherEventCallbacks(matched=lambda _: self.count_listeners())
        self._counts = True
        try:
            return node.create_lifecycle_publisher(kind, topic, event_callbacks=events, **quality)
        except UnsupportedEventTypeError:  # then everything is published
            self._counts = False
            return node.create_lifecycle_publisher(kind, topic, **stream_qos(_DEPTH))

    def count_listeners(self) -> None:
        """Choose the topics with subscribers; runs when they change, and should be called now and then."""
        self._heard = [
            which
            for which, publisher in self._publishers.items()
            if not self._counts or publisher.get_subscription_count()
        ]
        publishes = [(which, _raw(self._publishers[which])) for which in self._heard]
        self.first = self._heard[0] if self._heard else FEEDFORWARD
        self._publish_first = publishes[0][1] if publishes else None
        self._publish_others = publishes[1:]


def _raw(publisher: LifecyclePublisher) -> Callable[[bytes], None]:
    """Publish serialised messages, of an active node only: without the checks of rclpy where its handle allows it."""
    raw: Callable[[bytes], None] = getattr(publisher.handle, "publish_raw", publisher.publish)
    return raw
