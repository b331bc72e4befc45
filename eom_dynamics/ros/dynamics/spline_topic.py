# SPDX-License-Identifier: Apache-2.0
"""Topic ``spline_trajectory``: piecewise polynomials, validated in a thread, then played."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, TrajectoryError
from ...messages.setpoint_to_command import refusal_reason
from ...messages.trajectories import RequestNames, check_size, read_spline
from ...terminal import printable
from ...trajectory import Spline
from ...trajectory.feedforward import CHECK_RATE, checked
from ...trajectory.takeover import stop
from ..executors import Worker
from ..interfaces import SplineTrajectory, TrajectoryStatus, nanoseconds, stream_qos
from ..robot_node import RobotNode
from ..trajectory_limits import STOPPED_BY_REFUSAL, enforce_limits
from .trajectory_player import Judge, TrajectoryPlayer

# Planners send trajectories at a low rate.
_DEPTH = 10

# Samples of the check, besides those within short pieces. It takes a few milliseconds for 100 knots, 0.3 s for 7,000,
# during which the stream shares the interpreter. Each setpoint is checked again when it is played.
_MOST_CHECKS = 1000

# Between the arrival of an empty trajectory and the start of the stop, for its computation, ns.
_LEAD = 50_000_000

_STOPPED = "stopped by an empty trajectory"


class SplineTopic:
    """Subscriber of the topic; all methods are called by the node's executor.

    Attributes:
        last_refusal: why the last refused trajectory was refused.
        on_finished: called when a trajectory has reached its end.
    """

    def __init__(self, node: RobotNode, player: TrajectoryPlayer, arm: Callable[[], ElasticArm]) -> None:
        self._node, self._player, self._arm = node, player, arm
        self._worker = Worker(node, "trajectories")
        # Of its own: a stop must not wait until others are validated.
        self._stops = Worker(node, "stops")
        self._waiting = self._epoch = 0
        # Identity of the stop being computed.
        self._stopping: object = None
        self._requests = RequestNames("spline_trajectory")
        # Header and identity of the trajectory that is played or waits for its start.
        self._played: TrajectoryStatus | None = None
        self.last_refusal = ""
        self.on_finished: Callable[[], None] = lambda: None
        self._status = node.create_publisher(TrajectoryStatus, "trajectory_status", **stream_qos(_DEPTH))
        player.on_end = self._ended
        node.create_subscription(SplineTrajectory, "spline_trajectory", self._receive, **stream_qos(_DEPTH))

    def stop(self, reason: str, *, forget: bool = False) -> None:
        """Stop the current trajectory and discard those in validation; ``forget`` as for the player."""
        self._epoch += 1
        self._stopping = None
        self._player.stop(reason, forget=forget)

    def _receive(self, message: SplineTrajectory) -> None:
        # Statuses of the message begin with its header and its identity.
        status = TrajectoryStatus(header=message.header, request=self._requests.next(message))
        try:
            arm = self._arm()
            check_size(message)
            if self._waiting >= _DEPTH:
                raise TrajectoryError(f"{_DEPTH} others are still being validated")
        except EomDynamicsError as error:
            self._refuse(error, status)
            return
        if not message.knots:
            self._epoch += 1
            self._come_to_rest(arm, status, _STOPPED)
            return
        self._waiting += 1
        self._worker.submit(partial(self._validated, arm, message), partial(self._play, arm, status, self._epoch))

    def _validated(self, arm: ElasticArm, message: SplineTrajectory) -> Spline:
        """Read and check a message; return its motion. Runs in the worker's thread."""
        motion = read_spline(message, arm.robot.joint_names)
        enforce_limits(self._node, checked(arm, motion, CHECK_RATE, _MOST_CHECKS))
        return motion

    def _play(self, arm: ElasticArm, status: TrajectoryStatus, epoch: int, found: Spline | Exception) -> None:
        self._waiting -= 1
        if epoch != self._epoch:
            self._refuse(TrajectoryError("the stream, or an empty trajectory, ended it before it began"), status)
            return
        stamp = nanoseconds(status.header.stamp)
        try:
            if isinstance(found, Exception):
                raise found
            if self._arm() is not arm:
                raise TrajectoryError("the robot has been replaced")
            self._require_start(found, stamp)
            judge = partial(enforce_limits, self._node, transition=True)
            self._replace(found, stamp, status, arm, judge, "replaced by another trajectory")
        except Exception as error:
            self._refuse(error, status)
            return
        self._stopping = None
        self._node.get_logger().info(
            f"trajectory accepted: {found.end - found.start:.4g} s, {len(found.t)} knots, "
            + (f"time 0 at {stamp * 1e-9:.3f} s" if stamp else "from now on")
        )

    def _replace(
        self, motion: Spline, stamp: int, status: TrajectoryStatus | None, arm: ElasticArm, judge: Judge, reason: str
    ) -> None:
        """Replace the current motion, and report both; ``status`` is None for a motion that nobody has sent."""
        self._player.play(motion, stamp, status.header.frame_id if status else "", arm, judge)
        self._ended(False, reason)
        self._played = status
        if status is not None:
            self._publish(status, TrajectoryStatus.ACCEPTED)

    def _publish(self, identity: TrajectoryStatus, status: int, message: str = "") -> None:
        """Publish a status of the trajectory of an identity."""
        found = TrajectoryStatus(header=identity.header, request=identity.request, status=status, message=message)
        self._status.publish(found)

    def _come_to_rest(self, arm: ElasticArm, status: TrajectoryStatus | None, reason: str, lead: int = _LEAD) -> None:
        """Replace the motion under way by one that stops, from ``lead`` ns on; it is computed in a thread."""
        self._stopping = stopping = object()
        now = self._node.get_clock().now().nanoseconds
        under_way = self._player.under_way(now)
        if under_way is None:
            self._player.stop(reason)
            return
        motion, t = under_way[0], under_way[1] + lead * 1e-9

        def replace(found: Spline | Exception) -> None:
            if stopping is not self._stopping or not self._player.playing:
                return
            self._stopping = None
            try:
                if isinstance(found, Exception):
                    raise found
                # On a busy machine, the motion has left the state from which it was to stop, and may be far from it.
                if (late := self._node.get_clock().now().nanoseconds - now - lead) > 0:
                    self._come_to_rest(arm, status, reason, 2 * (lead + late))
                    return
                # Whatever the limits, it is the best that can be done.
                self._replace(found, now + lead, status, arm, lambda verdict: None, reason)
                self._node.get_logger().info(f"trajectory stops within {found.end:.3g} s: {reason}")
            except Exception as error:
                self._node.get_logger().error(f"trajectory stopped off its motion: {printable(refusal_reason(error))}")
                self._player.stop(reason)
                self._player.on_break(reason)

        if t < motion.end:  # else it is about to end, at rest
            self._stops.submit(partial(stop, arm, motion, t), replace)

    def _ended(self, finished: bool, reason: str) -> None:
        if finished:
            self.on_finished()
        status, self._played = self._played, None
        if status is not None:
            self._publish(status, TrajectoryStatus.FINISHED if finished else TrajectoryStatus.STOPPED, reason)

    def _require_start(self, motion: Spline, stamp: int) -> None:
        """Refuse a motion that would be under way for a long time before it starts; its time 0 is at ``stamp``, ns."""
        now = self._node.get_clock().now().nanoseconds
        longest = self._node.get_parameter("max_start_delay").value
        delay = motion.start + ((stamp - now) / 10**9 if stamp and now else 0.0)
        if delay > longest:
            raise TrajectoryError(
                f"it starts {delay:.3g} s from now, must be at most {longest:g} (parameter max_start_delay): "
                "check its time stamp and first time, and the clock"
            )

    def _refuse(self, error: Exception, status: TrajectoryStatus) -> None:
        self.last_refusal = printable(refusal_reason(error))
        self._node.get_logger().warning(f"trajectory refused: {self.last_refusal}")
        self._publish(status, TrajectoryStatus.REFUSED, self.last_refusal)
        stops = self._node.get_parameter("on_refused_trajectory").value == "stop"
        if stops and self._played is not None and self._stopping is None:
            self._come_to_rest(self._arm(), None, STOPPED_BY_REFUSAL)
