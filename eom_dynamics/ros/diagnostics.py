# SPDX-License-Identifier: Apache-2.0
"""Diagnostic status of a node on ``/diagnostics``.

The functions of diagnostic_updater that are needed here; that package is not available as a wheel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node


class Level(IntEnum):
    """Level of a diagnostic status, as in diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


class Report(NamedTuple):
    """A diagnostic status: level, one line, and values by name."""

    level: Level
    message: str
    values: dict[str, str]


class Diagnostics:
    """Publishes the status of one node, periodically by a steady clock, as simulated time may stand still."""

    def __init__(self, node: Node, name: str, period: float, report: Callable[[float], Report]) -> None:
        """Start to publish.

        Args:
            node: the node.
            name: of the status.
            period: between two messages, s.
            report: the status, called with the time since the last one, s.
        """
        self._node, self._name, self._report = node, name, report
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._last = time.monotonic()
        self._timer = node.create_timer(period, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def set_period(self, period: float) -> None:
        """Publish in this period from now on, s."""
        self._timer.timer_period_ns = round(period * 1e9)
        self._timer.reset()

    def _publish(self) -> None:
        now = time.monotonic()
        level, message, values = self._report(now - self._last)
        self._last = now
        status = DiagnosticStatus(
            level=bytes([level]),
            name=self._name,
            hardware_id=self._node.get_fully_qualified_name(),
            message=message,
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)
