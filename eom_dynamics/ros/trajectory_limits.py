# SPDX-License-Identifier: Apache-2.0
"""Parameter ``trajectory_limits``: treatment of trajectories that exceed limits of joints or motors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..elastic.limit_violations import summary
from ..exceptions import TrajectoryError
from ..terminal import printable
from ..trajectory import Spline, Verdict
from .node_parameters import Definition
from .robot_node import RobotNode

TRAJECTORY_LIMITS = Definition(
    "refuse",
    "what to do with a trajectory that exceeds limits of joints or motors: refuse it (refuse), play it and report it "
    "(warn), or play it (ignore)",
    choices=("refuse", "warn", "ignore"),
)

START_TOLERANCE = Definition(
    0.01,
    "largest distance of the start of a trajectory from the position of a joint, in rad or m: of a goal of "
    "follow_joint_trajectory from the measured one, of any that is played from the commanded one",
    limits=(1e-6, 1000.0),
)

START_LATENCY = Definition(
    0.1,
    "time by which the start of a trajectory may be behind the position of a moving joint, in s: start_tolerance grows "
    "by the velocity of the joint times this, as planners start where the arm was measured",
    limits=(0.0, 10.0),
)

ON_REFUSED_TRAJECTORY = Definition(
    "continue",
    "what a trajectory or goal that is refused does to the one under way, or that waits: nothing (continue), or bring "
    "the arm to rest (stop)",
    choices=("continue", "stop"),
)

STOPPED_BY_REFUSAL = "stopped, as another trajectory was refused (on_refused_trajectory: stop)"

PLANNED_LIMITS = replace(
    TRAJECTORY_LIMITS,
    description="what to do with a trajectory that exceeds limits of joints or motors: refuse it (refuse), slow it "
    "down until it meets them, or refuse it where that does not help (slow_down), publish it and report it (warn), or "
    "publish it (ignore); or play each trajectory as fast along its path as limits allow, from rest to rest (fastest)",
    choices=("refuse", "slow_down", "fastest", "warn", "ignore"),
)
"""The same parameter where motions are planned."""

# Of the time that a slower motion takes beyond that which its samples ask for, since its own samples are others.
_MARGIN = 1e-3

_MOST_ATTEMPTS = 3


def within_limits(node: RobotNode, motion: Spline, check: Callable[[Spline], Verdict]) -> Spline:
    """The motion, or with ``slow_down`` a slower one that meets the limits; may be called in any thread.

    Raises:
        TrajectoryError: the motion exceeds limits and is refused.
    """
    verdict, duration = check(motion), motion.end - motion.start
    for _ in range(_MOST_ATTEMPTS):
        scaling = verdict.time_scaling
        if verdict.ok or scaling is None or node.get_parameter("trajectory_limits").value != "slow_down":
            break
        motion = motion.stretched(scaling * (1.0 + _MARGIN))
        verdict = check(motion)
    enforce_limits(node, verdict)
    if motion.end - motion.start > duration:
        node.get_logger().info(
            f"trajectory slowed down from {duration:.4g} s to {motion.end - motion.start:.4g} s, to meet limits"
        )
    return motion


def enforce_limits(node: RobotNode, verdict: Verdict, *, transition: bool = False) -> None:
    """Refuse or report a trajectory that exceeds limits; may be called in any thread.

    Args:
        node: node with the parameter.
        verdict: check of the trajectory, or of the transition to it from the commanded state.
        transition: which of both.

    Raises:
        TrajectoryError: the trajectory is refused; the message has the time scaling that meets the limits, if any.
    """
    policy = node.get_parameter("trajectory_limits").value
    if policy == "ignore" or verdict.ok:
        return
    if verdict.in_degrees:
        raise TrajectoryError(verdict.in_degrees)
    if transition:
        reason = (
            f"exceeds limits on the way from the commanded state: {summary(verdict.exceeded)}; start closer to it, or "
            "leave more time until the first knot"
        )
    else:
        reason = f"exceeds limits: {verdict}"
    if policy in ("refuse", "slow_down", "fastest"):
        raise TrajectoryError(reason)
    node.get_logger().warning(f"trajectory {printable(reason)}", throttle_duration_sec=node.warning_period)
