# SPDX-License-Identifier: Apache-2.0
"""Parameter ``trajectory_limits``: treatment of trajectories that exceed limits of joints or motors."""

from __future__ import annotations

from collections.abc import Callable

from ..elastic.limit_violations import summary
from ..exceptions import TrajectoryError
from ..terminal import printable
from ..trajectory import Verdict
from .parameters import Definition
from .robot_node import RobotNode

TRAJECTORY_LIMITS = Definition(
    "refuse",
    "what to do with a trajectory that exceeds limits of joints or motors: refuse it (refuse), play it and report it "
    "(warn), or play it (ignore)",
    choices=("refuse", "warn", "ignore"),
)


def enforce_limits(node: RobotNode, verdict: Verdict) -> None:
    """Refuse or report a trajectory that exceeds limits; may be called in any thread.

    Args:
        node: node with the parameter.
        verdict: check of the trajectory.

    Raises:
        TrajectoryError: the trajectory exceeds limits and is refused; the message has the time scaling that meets them.
    """
    _enforce(node, verdict, lambda: f"exceeds limits: {verdict}")


def enforce_limits_of_transition(node: RobotNode, verdict: Verdict) -> None:
    """Refuse or report a trajectory to which the transition from the commanded state exceeds limits.

    Args:
        node: node with the parameter.
        verdict: check of the transition.

    Raises:
        TrajectoryError: the trajectory is refused.
    """
    way_on = "start closer to it, or leave more time until the first knot"
    _enforce(
        node,
        verdict,
        lambda: f"exceeds limits on the way from the commanded state: {summary(verdict.exceeded)}; {way_on}",
    )


def _enforce(node: RobotNode, verdict: Verdict, reason: Callable[[], str]) -> None:
    policy = node.get_parameter("trajectory_limits").value
    if policy == "ignore" or verdict.ok:
        return
    if policy == "refuse":
        raise TrajectoryError(reason())
    node.get_logger().warning(f"trajectory {printable(reason())}", throttle_duration_sec=node.warning_period)
