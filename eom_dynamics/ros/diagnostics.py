# SPDX-License-Identifier: Apache-2.0
"""Diagnostic reports as messages."""

from __future__ import annotations

from collections.abc import Mapping

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from ..actuators import Excess
from .statistics import Level

STATUS_NAME = "eom_dynamics: feedforward"

_UNITS = {"torque": "N m", "speed": "rad/s", "current": "A", "voltage": "V"}


def excess_text(excess: Excess) -> str:
    """Which motor exceeds which limit, and by how much; quantities of its shaft, before the gear."""
    unit = _UNITS[excess.quantity]
    return f"{excess.motor}: {excess.quantity} {excess.value:.4g} {unit}, limit {excess.limit:.4g} {unit}"


def diagnostic_array(
    stamp: Time, hardware_id: str, level: Level, message: str, values: Mapping[str, str], name: str = STATUS_NAME
) -> DiagnosticArray:
    """A diagnostic message with the one status of a node."""
    status = DiagnosticStatus(
        level=bytes([level]),
        name=name,
        hardware_id=hardware_id,
        message=message,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    array = DiagnosticArray(status=[status])
    array.header.stamp = stamp
    return array
