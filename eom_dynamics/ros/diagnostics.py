# SPDX-License-Identifier: Apache-2.0
"""Diagnostic reports as messages."""

from __future__ import annotations

from collections.abc import Mapping

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from .statistics import Level

STATUS_NAME = "eom_dynamics: feedforward"


def diagnostic_array(
    stamp: Time, hardware_id: str, level: Level, message: str, values: Mapping[str, str]
) -> DiagnosticArray:
    """A diagnostic message with the one status of this node."""
    status = DiagnosticStatus(
        level=bytes([level]),
        name=STATUS_NAME,
        hardware_id=hardware_id,
        message=message,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    array = DiagnosticArray(status=[status])
    array.header.stamp = stamp
    return array
