# SPDX-License-Identifier: Apache-2.0
"""Diagnostic status of a node on ``/diagnostics``, a substitute for diagnostic_updater, which has no wheel."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from ..terminal import printable
from .executors import steady_timer

# Shortest period of figures, for two statuses in a row, s.
_SHORTEST_PERIOD = 1e-3


class Level(IntEnum):
    """Level of a diagnostic status, as in diagnostic_msgs/DiagnosticStatus."""

    OK, WARN, ERROR = range(3)


class StatusReport(NamedTuple):
    """Diagnostic status: level, one-line message, and values by key."""

    level: Level
    message: str
    values: dict[str, str]


def present(values: Mapping[str, object]) -> dict[str, str]:
    """Values of a status that are neither empty nor zero, as text."""
    return {key: str(value) for key, value in values.items() if value}


def payload_values(masses: Mapping[str, float]) -> dict[str, str]:
    """Masses at tools, kg, as values of a status."""
    carried = ", ".join(f"{mass:.4g} kg at {printable(tool)}" for tool, mass in masses.items() if mass)
    return present({"payload": carried})


class Diagnostics:
    """Periodic publisher of a node's status.

    Args:
        name: name of the status, after the node's name.
        period: time between messages, s.
        report: returns the status; called with the time since the previous one, s.
    """

    def __init__(self, node: Node, name: str, period: float, report: Callable[[float], StatusReport]) -> None:
        self._node, self._report = node, report
        # As in diagnostic_updater: an aggregator groups by the name before the colon.
        self._name = f"{node.get_fully_qualified_name().removeprefix('/')}: {name}"
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._last = time.monotonic()
        steady_timer(node, period, self.publish)

    def publish(self) -> None:
        """Publish the status now."""
        now = time.monotonic()
        level, message, values = self._report(max(now - self._last, _SHORTEST_PERIOD))
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
