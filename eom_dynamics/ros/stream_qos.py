# SPDX-License-Identifier: Apache-2.0
"""Quality-of-service overrides of stream topics."""

from __future__ import annotations

from rcl_interfaces.msg import SetParametersResult
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

# The middleware allocates this many messages; larger depths overflow.
_LARGEST_DEPTH = 1_000_000


def overriding_options() -> QoSOverridingOptions:
    """Allow the default policies as ``qos_overrides`` parameters, with a limit on the depth."""

    def check(quality: QoSProfile) -> SetParametersResult:
        if 0 <= quality.depth <= _LARGEST_DEPTH:
            return SetParametersResult(successful=True)
        reason = f"depth must be from 0 to {_LARGEST_DEPTH}, is {quality.depth}"
        return SetParametersResult(successful=False, reason=reason)

    return QoSOverridingOptions.with_default_policies(callback=check)
