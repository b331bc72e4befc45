# SPDX-License-Identifier: Apache-2.0
"""Quality of service of topics."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

JOINT_STATES_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""From any publisher, reliable or not; those of an arm and its gripper may come together."""

# The middleware allocates this many messages; larger depths overflow.
_LARGEST_DEPTH = 1_000_000


def stream_qos(depth: int) -> dict[str, Any]:
    """Arguments of one publisher or subscription, with ``qos_overrides`` parameters; rclpy modifies them."""

    def check(quality: QoSProfile) -> SetParametersResult:
        if 0 <= quality.depth <= _LARGEST_DEPTH:
            return SetParametersResult(successful=True)
        reason = f"depth must be from 0 to {_LARGEST_DEPTH}, is {quality.depth}"
        return SetParametersResult(successful=False, reason=reason)

    overrides = QoSOverridingOptions.with_default_policies(callback=check)
    return {"qos_profile": QoSProfile(depth=depth), "qos_overriding_options": overrides}
