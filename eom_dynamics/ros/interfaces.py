# SPDX-License-Identifier: Apache-2.0
"""ROS 2 interfaces of this package, time stamps, and quality of service of topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

try:
    import eom_dynamics.srv as srv  # of the type Any, unlike attributes of the package
    from eom_dynamics.msg import (
        FeedforwardCommand,
        JointTrajectorySetpoint,
        LimitViolation,
        Payload,
        SplineTrajectory,
        TrajectoryStatus,
    )
except ImportError as error:
    raise ImportError(
        "the ROS 2 interfaces of eom_dynamics are not built, or not on the Python path: make build, or colcon build "
        "and source install/setup.bash"
    ) from error

__all__ = [
    "GOALS_AT_ONCE",
    "FeedforwardCommand",
    "JointTrajectorySetpoint",
    "LimitViolation",
    "Payload",
    "SplineTrajectory",
    "TrajectoryStatus",
    "nanoseconds",
    "quality_events",
    "set_stamp",
    "srv",
    "status_qos",
    "stream_qos",
    "subscribe_joint_states",
]

GOAL_ACTION = "follow_joint_trajectory"

GOALS_AT_ONCE = 100
"""Goals of an action, or requests, that wait to be received; the middleware silently drops those beyond."""

# The middleware allocates this many messages; larger depths overflow.
_LARGEST_DEPTH = 1_000_000

_DEFAULT = (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY)
_WATCHED = (QoSPolicyKind.DEADLINE, QoSPolicyKind.LIVELINESS, QoSPolicyKind.LIVELINESS_LEASE_DURATION)
_KEPT = (QoSPolicyKind.DURABILITY,)


def stream_qos(depth: int, *, watched: bool = False, latched: bool = False) -> dict[str, Any]:
    """Arguments of one publisher or subscription, with ``qos_overrides`` parameters; rclpy modifies them.

    Args:
        watched: whether deadline, liveliness and its lease can be requested; 0 ns disables them.
        latched: whether messages from before are received, unless ``qos_overrides`` set another durability.
    """

    def check(quality: QoSProfile) -> SetParametersResult:
        reason = ""
        for name in ("liveliness_lease_duration", "deadline"):
            if (time := getattr(quality, name).nanoseconds) < 0:
                reason = f"{name} must be positive, in ns, or 0 to disable it, is {time}"
        if not 0 <= quality.depth <= _LARGEST_DEPTH:
            reason = f"depth must be from 0 to {_LARGEST_DEPTH}, is {quality.depth}"
        return SetParametersResult(successful=not reason, reason=reason)

    overrides = QoSOverridingOptions(_DEFAULT + _WATCHED * watched + _KEPT * latched, callback=check)
    durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    return {"qos_profile": QoSProfile(depth=depth, durability=durability), "qos_overriding_options": overrides}


def quality_events(node: Node, topic: str) -> SubscriptionEventCallbacks:
    """Callbacks that report publishers whose messages are not received because of their quality of service."""
    name = node.resolve_topic_name(topic)

    def report(_: Any) -> None:
        node.get_logger().error(
            f"no messages of a publisher on {name} are received, by their quality of service: publish reliably, or set "
            f"qos_overrides.{name}.subscription.reliability to best_effort"
        )

    return SubscriptionEventCallbacks(incompatible_qos=report)


def status_qos() -> QoSProfile:
    """Quality of ``trajectory_status``: a node that starts late receives the last messages."""
    return QoSProfile(depth=GOALS_AT_ONCE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def subscribe_joint_states(
    node: Node, receive: Callable[[JointState], None], topic: str = "joint_states"
) -> Subscription:
    """Receive states of any publisher, reliable or not; arm and gripper may publish together."""
    quality = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    return node.create_subscription(JointState, topic, receive, quality)


def nanoseconds(time: Any) -> int:
    """Return a Time or Duration of a message in ns."""
    return int(time.sec * 1_000_000_000 + time.nanosec)


def set_stamp(time: Any, nanoseconds: int) -> None:
    """Write ns into a Time or Duration of a message."""
    time.sec, time.nanosec = divmod(nanoseconds, 1_000_000_000)
