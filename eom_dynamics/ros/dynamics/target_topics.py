# SPDX-License-Identifier: Apache-2.0
"""Topics ``target`` and ``target_trajectory``: positions at any rate, to which the control loop leads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...arrays import Array
from ...control.control_loop import Refusal
from ...control.joint_order import places
from ...control.online_trajectory import OnlineLimits, motion_limits, read_chunk, read_target
from ...control.setpoint_loop import SetpointLoop
from ...control.setpoint_to_command import refusal_reason
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, StateError
from ...terminal import printable
from ..executors import Worker, keep_pace
from ..interfaces import nanoseconds, stream_qos
from ..robot_node import RobotNode
from .clocks import WatchedClock

# Targets of different joints that arrive together all count.
_DEPTH = 10


class TargetTopics:
    """Subscribers of both topics; all methods are called by the node's executor.

    Limits of the motion are prepared in a thread for the first target; until then targets are refused.

    Args:
        loop: returns the loop of the active node; StateError unless it is active.
        publish: publishes the command of a cycle of the loop, with stamp, ns, frame, and what the cycle has returned;
            returns whether it was not refused.

    Attributes:
        lead: time by which commands are ahead of the motion, s.
        refused: number of targets refused since startup.
        on_start: called with a reason when a target takes over.
        on_break: called with a reason when limits have ended the motion.
    """

    def __init__(
        self,
        node: RobotNode,
        clock: WatchedClock,
        loop: Callable[[], SetpointLoop],
        publish: Callable[[SetpointLoop, int, str, int], bool],
    ) -> None:
        self._node, self._clock, self._loop, self._publish = node, clock, loop, publish
        self._worker = Worker(node, "targets")
        # Of the arm whose limits are known, or being prepared; the loop that has them.
        self._arm: ElasticArm | None = None
        self._limits: OnlineLimits | Exception | None = None
        self._limited: SetpointLoop | None = None
        self._stamps = [0, 0]
        self._frame, self._latest = "", -1
        self._clamped: tuple[str, ...] = ()
        self.lead, self.refused, self._reason = 0.0, 0, ""
        self.on_start: Callable[[str], None] = lambda reason: None
        self.on_break: Callable[[str], None] = lambda reason: None
        self._period = 1.0 / node.get_parameter("stream_rate").value
        self._timer = node.create_timer(self._period, self.tick, autostart=False)
        node.create_subscription(JointState, "target", self.receive, **stream_qos(_DEPTH))
        node.create_subscription(JointTrajectory, "target_trajectory", self.receive, **stream_qos(_DEPTH))

    def leads(self, loop: SetpointLoop | None) -> bool:
        """Whether a target leads a loop; without a call of the loop before its first target."""
        return loop is not None and loop is self._limited and loop.loop.number("aiming") > 0

    def receive(self, message: JointState | JointTrajectory) -> None:
        """Aim at a target, or follow a chunk; refuse an invalid one, after which the last one stays."""
        try:
            self._aim(message)
        except Exception as error:
            self.refused += 1
            self._reason = printable(refusal_reason(error))
            self._node.warn("target refused", self._reason)

    def _aim(self, message: JointState | JointTrajectory) -> None:
        loop, chunk = self._loop(), isinstance(message, JointTrajectory)
        joints, limits = loop.arm.robot.joint_names, self._limits_of(loop)
        stamp = nanoseconds(message.header.stamp)
        if stamp and stamp < self._stamps[chunk]:
            raise StateError(f"its stamp is {(self._stamps[chunk] - stamp) * 1e-9:.3g} s before that of the last one")
        positions, velocities, times = (_read_chunk if chunk else _read_target)(message, joints)
        if self._limited is not loop:
            loop.loop.limit(limits, self._period)
            self._limited = loop
        now = self._clock.now()
        origin = stamp - self._clock.reading + now if chunk and stamp else 0
        if code := loop.loop.aim(now, positions, velocities, times, origin):
            raise loop.refusal(Refusal(code))
        self._stamps[chunk] = max(stamp, self._stamps[chunk])
        self._frame = message.header.frame_id
        self._clamped = limits.exceeded(joints, positions, velocities)
        if self._clamped:
            self._node.warn("target clamped to limits", printable(", ".join(self._clamped)))
        self.on_start("a target takes over")
        if self._timer.is_canceled():  # a reset with each target would put the next cycle off
            self._timer.reset()

    def _limits_of(self, loop: SetpointLoop) -> OnlineLimits:
        """Limits of the arm; StateError while they are prepared, or where it has none."""
        if self._arm is not loop.arm:
            self._arm, self._limits = loop.arm, None
            self._worker.submit(partial(motion_limits, loop.arm), partial(self.keep, loop.arm))
        if self._limits is None:
            raise StateError("limits of its motion are being prepared: send it again")
        if isinstance(self._limits, Exception):
            raise self._limits
        return self._limits

    def keep(self, arm: ElasticArm, limits: OnlineLimits | Exception) -> None:
        """Use limits, or say why an arm has none, for targets from now on."""
        if arm is self._arm:
            self._limits, self._limited = limits, None
            if isinstance(limits, OnlineLimits):
                self._node.get_logger().info("; ".join(filter(None, ["targets are taken from now on", limits.chosen])))

    def tick(self) -> None:
        """Run a cycle of the motion, and publish its command."""
        try:
            loop = self._loop()
        except EomDynamicsError:
            self._timer.cancel()
            return
        if not loop.loop.number("aiming"):
            self._timer.cancel()
            return
        if not self._timer.is_canceled():
            keep_pace(self._node, self._timer)
        now = self._clock.now()
        if now == self._latest:
            return
        self._latest = now
        loop.configure(command_lead=self.lead)
        code = loop.loop.update(now)
        if not self._publish(loop, self._clock.reading, self._frame, code) or not loop.loop.number("aiming"):
            self._timer.cancel()
            self.on_break("the command of a target was refused")
        elif loop.loop.number("arrived"):
            self._timer.cancel()

    def forget(self) -> None:
        """Begin anew: stamps may go back."""
        self._stamps = [0, 0]

    def report(self, loop: SetpointLoop | None) -> dict[str, str]:
        """Values for diagnostics; none before the first target."""
        number = loop.loop.number if loop else lambda name: 0.0
        target = "reached" if number("arrived") else "under way" if number("aiming") else ""
        values = {"target": target, "targets refused": str(self.refused or ""), "last refused target": self._reason}
        return {name: x for name, x in (values | {"clamped targets": ", ".join(self._clamped)}).items() if x}


def _read_target(message: JointState, joints: tuple[str, ...]) -> tuple[Array, Array | None, Array | None]:
    """Positions, NaN for joints that stay, and velocities (n,); no times."""
    names, velocities = list(message.name), np.zeros(len(joints))
    if len(set(names)) < len(names) or len(message.position) != len(names):
        raise StateError("it must have one position for each name, and each name once")
    if len(message.velocity) not in (0, len(names)):
        raise StateError("it must have one velocity for each name, or none")
    for name, velocity in zip(names, message.velocity, strict=False):
        if name in joints:
            velocities[joints.index(name)] = velocity
    return *read_target(joints, dict(zip(names, message.position, strict=True)), velocities), None


def _read_chunk(message: JointTrajectory, joints: tuple[str, ...]) -> tuple[Array, Array | None, Array | None]:
    """Positions (K, n), no velocities, and times (K,), from the joints of a message in any order."""
    order = places(joints, message.joint_names, field="joint_names", kind="joint")
    if any(len(point.positions) != len(order) for point in message.points):
        raise StateError("each point must have a position for each joint")
    given = [Duration.from_msg(point.time_from_start).nanoseconds * 1e-9 for point in message.points]
    positions = np.array([point.positions for point in message.points]).reshape(-1, len(order))
    times, positions = read_chunk(len(order), given, positions[:, order])
    return positions, None, times
