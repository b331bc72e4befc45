# SPDX-License-Identifier: Apache-2.0
"""Warnings about setpoints and their commands, counted in the statistics and logged at a limited rate."""

from __future__ import annotations

from ...elastic import LimitViolation
from ...elastic.limit_violations import summary
from ...terminal import printable
from ..robot_node import RobotNode
from .statistics import StreamStatistics


class StreamWarnings:
    """Counts and logs refused and expired setpoints, and commands that exceed limits.

    Each method logs by a call of its own, since rclpy limits the rate by the place of the call.
    """

    def __init__(self, node: RobotNode, statistics: StreamStatistics) -> None:
        self._node, self._statistics = node, statistics

    def unreadable(self, error: Exception) -> None:
        """A message could not be deserialised."""
        self._statistics.received += 1
        self._statistics.refuse(f"the message cannot be read: {error}")
        self._node.get_logger().warning(
            f"setpoint refused: the message cannot be read: {error}", throttle_duration_sec=self._node.warning_period
        )

    def refused(self, reason: str, detail: str = "") -> None:
        """A setpoint was refused; ``detail`` is the traceback of an internal error."""
        self._statistics.refuse(reason)
        self._node.get_logger().warning(
            "\n".join(filter(None, [f"setpoint refused: {reason}", detail])),
            throttle_duration_sec=self._node.warning_period,
        )

    def expired(self, age: int, lifespan: int) -> None:
        """A setpoint was dropped because its age exceeds the lifespan, both in ns."""
        self._statistics.expire()
        self._node.get_logger().warning(
            f"setpoint dropped: it is {age * 1e-9:.3g} s old, must be at most {lifespan * 1e-9:g} s "
            "(parameter setpoint_lifespan)",
            throttle_duration_sec=self._node.warning_period,
        )

    def exceeded(self, violations: tuple[LimitViolation, ...], *, clips: bool) -> None:
        """A published command exceeds limits, the worst first; with ``clips``, efforts were clipped afterwards."""
        worst = violations[0]
        self._statistics.exceed(worst.ratio, str(worst))
        clipped = ", efforts clipped" if clips else ""
        self._node.get_logger().warning(
            f"command exceeds limits{clipped}: {printable(summary(violations))}",
            throttle_duration_sec=self._node.warning_period,
        )
