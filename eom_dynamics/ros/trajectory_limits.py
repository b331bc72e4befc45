# SPDX-License-Identifier: Apache-2.0
"""Treatment of trajectories that exceed limits of joints or motors."""

from __future__ import annotations

from collections.abc import Callable

from ..elastic.limit_violations import question_of_speed
from ..exceptions import TrajectoryError
from ..terminal import printable
from ..trajectory import Spline, Verdict
from .robot_node import RobotNode

# Extra duration of a slower motion, because its own samples differ.
_MARGIN = 1e-3

_MOST_ATTEMPTS = 3


def within_limits(node: RobotNode, motion: Spline, check: Callable[[Spline], Verdict]) -> tuple[Spline, bool]:
    """The motion, or with ``slow_down`` a slower one, and whether it meets the limits; may be called in any thread.

    Raises:
        TrajectoryError: the motion exceeds limits and is refused.
    """
    policy = node.get_parameter("trajectory_limits").value
    verdict, duration = check(motion), motion.end - motion.start
    for _ in range(_MOST_ATTEMPTS):
        scaling = verdict.time_scaling
        if verdict.ok or scaling is None or policy != "slow_down":
            break
        motion = motion.stretched(scaling * (1.0 + _MARGIN))
        verdict = check(motion)
    enforce_limits(node, policy, verdict)
    if motion.end - motion.start > duration:
        node.get_logger().info(
            f"trajectory slowed down from {duration:.4g} s to {motion.end - motion.start:.4g} s, to meet limits"
        )
    return motion, verdict.ok


def enforce_limits(node: RobotNode, policy: str, verdict: Verdict) -> None:
    """Refuse or report a trajectory that exceeds limits; may be called in any thread.

    Args:
        policy: ``trajectory_limits`` of the planning node, or ``limits`` of the dynamics node.

    Raises:
        TrajectoryError: the trajectory is refused; the message has the time scaling that meets the limits, if any.
    """
    if policy == "ignore" or verdict.ok:
        return
    if verdict.in_degrees:
        raise TrajectoryError(verdict.in_degrees)
    reason = f"exceeds limits: {verdict}{question_of_speed(verdict.exceeded)}"
    if policy in ("refuse", "slow_down", "fastest"):
        raise TrajectoryError(reason)
    if node.is_due("trajectory limits"):
        node.get_logger().warning(f"trajectory {printable(reason)}")
