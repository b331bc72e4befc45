# SPDX-License-Identifier: Apache-2.0
"""Topic ``spline_trajectory``: plays splines after a planner, or a thread, has checked their limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import String

from ...arrays import Array
from ...control.setpoint_loop import SetpointLoop
from ...control.setpoint_to_command import refusal_reason
from ...control.trajectories import RequestNames, duration, limits_digest, read_spline
from ...elastic import ElasticArm
from ...exceptions import TrajectoryError
from ...robot import Robot
from ...robot.payload import with_parameters
from ...terminal import printable
from ...trajectory import Spline
from ...trajectory.feedforward import CHECK_RATE, checked
from ..executors import Worker, steady_timer
from ..interfaces import GOAL_ACTION, SplineTrajectory, TrajectoryStatus, nanoseconds, stream_qos
from ..robot_node import RobotNode
from ..trajectory_limits import enforce_limits
from .setpoint_stream import SetpointStream

# Planners send trajectories at a low rate.
_DEPTH = 10

# Goals that are known again.
_GOALS = 100

# Samples of the check, besides those within short pieces. It takes a few milliseconds for 100 knots, 0.3 s for 7,000,
# during which the stream shares the interpreter. Each setpoint is checked again when it is played.
_MOST_CHECKS = 1000

_STOPPED = "stopped by an empty trajectory"

# Period in which leases are counted, s; and the number of periods without a renewal after which a lease has ended, and
# after which it is forgotten. Periods in which this process is held up do not count.
_LEASE_PERIOD, _LEASE, _FORGOTTEN = 0.05, 10, 200

# Periods more for the first renewal of a goal's lease, as the middleware may discover its topic later than others.
_FIRST_RENEWAL = 20

_SENDER_GONE = f"its sender is gone: {_LEASE * _LEASE_PERIOD:g} s without its identity on trajectory_lease"


class SplineTopic:
    """Subscriber of the topic; all methods are called by the node's executor.

    Args:
        loop: returns the loop that plays; raises TrajectoryError if none does.
    """

    def __init__(self, node: RobotNode, stream: SetpointStream, loop: Callable[[], SetpointLoop]) -> None:
        self._node, self._stream, self._loop = node, stream, loop
        self._worker = Worker(node, "trajectories")
        # Identities of motions in validation, True for a cancelled one.
        self._validating: dict[str, bool] = {}
        # Identities of the last goals, whatever has become of them.
        self._goals: deque[str] = deque(maxlen=_GOALS)
        # Periods since the last renewal of a lease, by the identity of its trajectory.
        self._leases: dict[str, int] = {}
        self._requests = RequestNames("spline_trajectory")
        node.create_subscription(SplineTrajectory, "spline_trajectory", self._receive, **stream_qos(_DEPTH))
        node.create_subscription(String, "trajectory_lease", self._renew, _DEPTH)
        steady_timer(node, _LEASE_PERIOD, self._count_leases)

    def stop(self, reason: str) -> None:
        """End the current trajectory and discard those in validation."""
        self._withdraw()
        self._stream.player.stop(reason)

    def _withdraw(self, request: str = "") -> None:
        """Have the trajectory of an identity, or all, not be played once validated."""
        self._validating |= dict.fromkeys((x for x in self._validating if request in ("", x)), True)

    def _renew(self, message: String) -> None:
        if message.data not in self._leases:  # meanwhile a motion is planned
            self._stream.measured.catch_up()
        self._leases[message.data] = 0

    def _count_leases(self) -> None:
        """Bring a motion to rest after its sender's lease has ended."""
        for request in tuple(self._leases):
            self._leases[request] += 1
            if self._leases[request] > _FORGOTTEN:
                del self._leases[request]
        if self._leases.get(self._stream.player.request or "", 0) > _LEASE - 1:
            self._node.warn("trajectory stopped", _SENDER_GONE, always=True)
            self._stream.drop_trajectory(_SENDER_GONE)

    def _receive(self, message: SplineTrajectory) -> None:
        if message.knots and _is_goal(message.request):  # sent again until it is answered
            if message.request in self._goals:
                return
            self._goals.append(message.request)
        # Statuses of the message begin with its header and its identity.
        status = TrajectoryStatus(header=message.header, request=self._requests.next(message))
        try:
            loop = self._loop()
            if not message.knots:
                self._withdraw(message.request)
                if not message.request:
                    self._stream.end_trajectory(_STOPPED)
                elif message.request == self._stream.player.request:
                    self._stream.drop_trajectory(_STOPPED)
                return
            if len(self._validating) >= _DEPTH:
                raise TrajectoryError(f"{_DEPTH} others are still being validated")
            names = loop.arm.robot.joint_names
            held = np.array([name not in (message.joint_names or names) for name in names])
            # Unknown names are refused before positions are needed.
            holds = held.any() and {*message.joint_names} <= {*names}
            motion = read_spline(message, names, self._positions(loop)[held] if holds else None)
            robot = _with_payload(loop.arm.robot, loop.evaluator.payload.tobytes())
            meets = message.limits_digest == limits_digest(motion, robot)
        except Exception as error:
            self._refuse(error, status)
            return
        if meets and not self._validating:
            self._play(loop.arm, status, held, motion)
            return
        self._validating[status.request] = False
        self._worker.submit(
            partial(self._checked, loop.arm, motion, meets), partial(self._validated, loop.arm, status, held)
        )

    def _positions(self, loop: SetpointLoop) -> Array:
        """Positions (n,) that are commanded, or else measured; StateError if they are unknown."""
        return np.array(loop.loop.setpoint["q"]) if loop.record.valid else self._stream.measured.read()

    def _checked(self, arm: ElasticArm, motion: Spline, meets: bool) -> Spline:
        """Check the limits of a motion, unless it is known to meet them; return it. Runs in the worker's thread."""
        if not meets:
            enforce_limits(self._node, self._stream.limit_policy, checked(arm, motion, CHECK_RATE, _MOST_CHECKS))
        return motion

    def _validated(
        self, arm: ElasticArm, status: TrajectoryStatus, held: NDArray[np.bool_], result: Spline | Exception
    ) -> None:
        if self._validating.pop(status.request, True):
            result = TrajectoryError("the stream, or an empty trajectory, ended it before it began")
        self._play(arm, status, held, result)

    def _play(
        self, arm: ElasticArm, status: TrajectoryStatus, held: NDArray[np.bool_], result: Spline | Exception
    ) -> None:
        try:
            if isinstance(result, Exception):
                raise result
            if self._loop().arm is not arm:
                raise TrajectoryError("the robot has been replaced")
            self._stream.require_radians(result.states[0, 0])
            self._stream.start_measured(always=True)
            self._stream.player.play(result, status, held if held.any() else None)
            if _is_goal(status.request):  # its sender may end before the first renewal arrives
                self._leases.setdefault(status.request, -_FIRST_RENEWAL)
        except Exception as error:
            self._refuse(error, status)
            return
        stamp = nanoseconds(status.header.stamp)
        begin = f"time 0 at {stamp * 1e-9:.3f} s" if stamp else "from now on"
        self._node.get_logger().info(f"trajectory accepted: {duration(result):.4g} s, knots: {len(result.t)}, {begin}")

    def _refuse(self, error: Exception, status: TrajectoryStatus) -> None:
        reason = printable(refusal_reason(error))
        self._node.refuse("trajectory", reason, always=True)
        self._stream.player.reports.tell(status, TrajectoryStatus.REFUSED, reason)


def _is_goal(request: str) -> bool:
    """True for the identity of a goal's motion, from the planning node."""
    return request.startswith(f"{GOAL_ACTION}/")


@lru_cache(maxsize=2)
def _with_payload(robot: Robot, parameters: bytes) -> Robot:
    """The robot with the parameters of payloads at its tools."""
    payload = np.frombuffer(parameters)
    return with_parameters(robot, payload) if payload.any() else robot
