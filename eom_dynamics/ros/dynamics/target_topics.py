# SPDX-License-Identifier: Apache-2.0
"""Topics of joint targets at any rate, and the cycles of the motion to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...arrays import Array
from ...control.control_loop import LoopRecord, Refusal
from ...control.joint_order import JointOrder
from ...control.online_trajectory import MotionLimits, motion_limits, read_chunk, read_target
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import SAFETY
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, StateError
from ...terminal import printable
from ..diagnostics import present
from ..executors import Worker, keep_pace, steady_timer
from ..ignored_joints import IGNORED_JOINTS, remove_ignored
from ..interfaces import nanoseconds, quality_events, stream_qos
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .measured_arm import MeasuredArm
from .stops import Stops
from .trajectory_player import warn_of_speed

# Targets of different joints that arrive together all count.
_DEPTH = 10

# Time that targets wait for joint_states, and between two looks, s.
_PATIENCE, _BETWEEN_LOOKS = 1.0, 0.02

# Time between checks for the end of references during a change of the payload, s.
_LOOK = 0.1

_TOPICS = {"target": JointState, "target_trajectory": JointTrajectory}


NOT_REACHED = "commanded, not reached"
"""Beginning of the report on a target that the measured arm has not reached."""


class PreparingError(StateError):
    """Raised while a target's limits and code are prepared."""


class TargetTopics:
    """Subscribers of the topics; all methods are called by the node's executor.

    Targets wait until a thread has prepared the limits of the motion, and before the first command also for
    ``joint_states``.

    Args:
        measured: positions of the joints.
        stops: stop the arm after limits have ended the motion.
        loop: returns the loop of the active node; StateError unless it is active.
        publish: publishes the command of a cycle of the loop, with stamp, ns, frame, and the cycle's code;
            returns whether it was not refused.
        hold: runs a cycle at `now`, ns, and publishes its command while the payload changes at rest; returns whether
            it changes.

    Attributes:
        refused: number of targets refused since startup.
    """

    def __init__(
        self,
        node: RobotNode,
        clock: WatchedClock,
        measured: MeasuredArm,
        stops: Stops,
        loop: Callable[[], SetpointLoop],
        publish: Callable[[SetpointLoop, int, str, int], bool],
        hold: Callable[[SetpointLoop, int], bool],
    ) -> None:
        self._node, self._clock, self._loop, self._publish, self._hold = node, clock, loop, publish, hold
        self._worker = Worker(node, "targets")
        self._measured, self._stops = measured, stops
        # Messages that wait, and the timer of looks at joint_states, with their number so far.
        self._waiting: list[Any] = []
        self._looks, self._looking = 0, steady_timer(node, _BETWEEN_LOOKS, self._look, autostart=False)
        # Arm with known limits, or limits in preparation; the loop that has them.
        self._arm: ElasticArm | None = None
        self._limits: MotionLimits | Exception | None = None
        self._limited: SetpointLoop | None = None
        self._prepared: SetpointLoop | None = None
        self._stamps: dict[type, int] = {}
        self._resets = 0
        self._frame, self._latest = "", -1
        self._clamped: tuple[str, ...] = ()
        self.refused = 0
        self._period = 1.0 / node.get_parameter("stream_rate").value
        self._timer = node.punctual.create(node, self._period, self.tick)
        for topic, kind in _TOPICS.items():
            events = quality_events(node, topic)
            node.create_subscription(kind, topic, self.receive, event_callbacks=events, **stream_qos(_DEPTH))

    def leads(self, loop: SetpointLoop | None) -> bool:
        """True if a target leads a loop; without a call of the loop before its first target."""
        return loop is not None and loop is self._limited and loop.record.aiming

    def receive(self, message: Any) -> None:
        """Set a target or a chunk; after an invalid message, the last target stays."""
        try:
            self._require_recent(message)
        except EomDynamicsError as error:
            self._refuse(error)
        else:
            self._receive(message)

    def _receive(self, message: Any) -> None:
        try:
            self._aim(message)
        except PreparingError as reason:
            self._waiting = [*self._waiting, message][-_DEPTH:]
            if self._node.is_due("targets wait"):
                self._node.get_logger().info(f"targets wait: {reason}")
        except Exception as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        self.refused += 1
        self._node.refuse("target", error)

    def _receive_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._receive(message)

    def _look(self) -> None:
        """Process waiting targets once joint_states have all positions, or refuse them after a while."""
        self._looks += 1
        if (known := self._measured.position is not None) or self._looks * _BETWEEN_LOOKS >= _PATIENCE:
            self._looking.cancel()
            self._receive_waiting() if known else self._give_up()

    def _give_up(self) -> None:
        """Refuse the targets that wait for joint_states."""
        try:
            nothing = not self._loop().record.valid
        except EomDynamicsError:
            nothing = False
        if nothing:
            self._waiting.clear()
            self._refuse(
                StateError(
                    f"no position is commanded yet, and joint_states lacked positions of joints for {_PATIENCE:g} s: "
                    "publish them, or send a setpoint"
                )
            )

    def _aim(self, message: Any) -> None:
        loop, kind = self._loop(), type(message)
        joints, limits = loop.arm.robot.joint_names, self._limits_of(loop)
        stamp = nanoseconds(message.header.stamp)
        self._clock.now()
        if self._resets != self._clock.resets:  # stamps are reset with the clock
            self._resets = self._clock.resets
            self._stamps.clear()
        if stamp and stamp < (last := self._stamps.get(kind, 0)):
            raise StateError(f"its stamp is {(last - stamp) * 1e-9:.3g} s before the last stamp")
        self._start_measured(loop)
        now, times, origin = self._clock.now(), None, 0
        remove_ignored(message, joints, self._node.get_parameter(IGNORED_JOINTS).value)
        if kind is JointTrajectory:
            rate = self._node.get_parameter("chunk_rate").value
            positions, velocities, times = _read_chunk(message, joints, rate)
            origin = stamp - self._clock.reading + now if stamp else 0
        else:
            positions, velocities = _read_target(message, joints)
        self._limit(loop, limits)
        loop.refuse_far(positions)
        self._measured.locate(loop, now)
        moves = self.leads(loop) and not loop.record.arrived
        if code := loop.loop.aim(now, positions, velocities, times, origin):
            raise loop.refusal(Refusal(code))
        self._stamps[kind] = max(stamp, self._stamps.get(kind, 0))
        self._frame = message.header.frame_id
        if not moves:
            warn_of_speed(self._node, loop.record.speed_scaling, "a motion to a target")
        self._clamped = limits.exceeded(joints, positions, velocities)
        if self._clamped:
            self._node.warn("target clamped to limits", printable(", ".join(self._clamped)))
        self.go_on()

    def _require_recent(self, message: Any) -> None:
        """Refuse a target at its arrival if its stamp is too far from now: later delays are the node's."""
        lifespan = SAFETY[self._node.get_parameter("safety").value]["setpoint_lifespan"]
        stamp = nanoseconds(message.header.stamp)
        age = (self._node.get_clock().now().nanoseconds - stamp) * 1e-9
        if lifespan and stamp and abs(age) > lifespan and not isinstance(message, JointTrajectory):
            when = f"{age:.3g} s old" if age > 0 else f"{-age:.3g} s ahead"
            raise StateError(f"its stamp is {when}, must be at most {lifespan:g} s")

    def go_on(self, period: float = 0.0) -> None:
        """Run cycles of a target or of a payload that changes at rest, or checks of another `period`, s."""
        nanoseconds = round((period or self._period) * 1e9)
        # A reset with each target would put the next cycle off.
        if self._timer.is_canceled() or self._timer.timer_period_ns != nanoseconds:
            self._timer.timer_period_ns = nanoseconds
            self._timer.reset()

    def _start_measured(self, loop: SetpointLoop) -> None:
        """Hold the measured position before the first command; PreparingError until it is known."""
        if loop.record.valid:
            return
        try:
            loop.loop.restart(self._measured.read())
        except StateError as error:
            if self._looking.is_canceled():
                self._looks = 0
                self._looking.reset()
            raise PreparingError(str(error)) from None

    def prepare(self, loop: SetpointLoop) -> None:
        """Set limits of the motion before the first target, once they are known; log missing limits."""
        self._prepared = loop
        try:
            self._limit(loop, self._limits_of(loop))
        except PreparingError:
            return
        except EomDynamicsError as error:
            text = f"on_contact: retract has no limits of the motion back, the arm would stop: {error}"
            self._node.get_logger().error(printable(text))

    def _limit(self, loop: SetpointLoop, limits: MotionLimits) -> None:
        if self._limited is not loop:
            loop.loop.limit(limits, self._period)
            self._limited = loop

    def _limits_of(self, loop: SetpointLoop) -> MotionLimits:
        """Limits of the arm; PreparingError while they are prepared, StateError if they are missing."""
        if self._arm is not loop.arm:
            self._arm, self._limits = loop.arm, None
            self._worker.submit(partial(motion_limits, loop.arm), partial(self.keep, loop.arm))
        if self._limits is None:
            raise PreparingError("limits of their motion are being prepared")
        if isinstance(self._limits, Exception):
            raise self._limits
        return self._limits

    def keep(self, arm: ElasticArm, limits: MotionLimits | Exception) -> None:
        """Set the limits of an arm, or the error of their preparation, for targets."""
        if arm is self._arm:
            self._limits, self._limited = limits, None
            if isinstance(limits, MotionLimits):
                chosen = f"; limits that the robot's file lacks, in SI units: {limits.chosen}" if limits.chosen else ""
                self._node.get_logger().info(f"ready for targets{chosen}")
            if self._prepared is not None and self._prepared.arm is arm:
                self.prepare(self._prepared)
            self._receive_waiting()

    def tick(self) -> None:
        """Run a cycle of the motion, and publish its command."""
        try:
            loop = self._loop()
        except EomDynamicsError:
            self._timer.cancel()
            return
        record = loop.record
        aims, blends = record.aiming, record.blending
        if not (aims or blends):
            self._timer.cancel()
            return
        if not self._timer.is_canceled():
            keep_pace(self._node, self._timer)
        now = self._clock.now()
        if now == self._latest:
            return
        self._latest = now
        if not aims:
            self.go_on(0.0 if self._hold(loop, now) else _LOOK)
            return
        code = loop.loop.update(now)
        if not self._publish(loop, self._clock.reading, self._frame, code) or not loop.record.aiming:
            self._timer.cancel()
            self._stops.break_off("the command of a target was refused")
        elif loop.record.arrived and not blends:
            self._timer.cancel()

    def forget(self) -> None:
        """Begin anew: stamps may go back."""
        self._stamps.clear()
        self._waiting.clear()
        self._looking.cancel()
        self._limited = self._prepared = None

    def report(self, loop: SetpointLoop | None) -> dict[str, str]:
        """Values for diagnostics; none before the first target."""
        record = loop.record if loop else LoopRecord()
        target = "reached" if record.arrived else "under way" if record.aiming else ""
        if loop and target == "reached" and (distance := self._measured.distance(loop)):
            target = f"{NOT_REACHED}: {distance}"
        values = {"target": target, "slowed": loop.loop.text("slowed") if loop else "", "targets refused": self.refused}
        return present(values | {"clamped targets": ", ".join(self._clamped)})


def _read_target(message: JointState, joints: tuple[str, ...]) -> tuple[Array, Array]:
    """Positions, NaN for joints that stay, and velocities (n,); no times."""
    names, velocities = list(message.name or joints), np.zeros(len(joints))
    if len(set(names)) < len(names) or len(message.position) != len(names):
        raise StateError("it must have one position for each name, and each name once; without names, for each joint")
    if len(message.velocity) not in (0, len(names)):
        raise StateError("velocity must be empty or have one value for each name")
    for name, velocity in zip(names, message.velocity, strict=False):
        if name in joints:
            velocities[joints.index(name)] = velocity
    return read_target(joints, dict(zip(names, message.position, strict=True)), velocities)


def _read_chunk(
    message: JointTrajectory, joints: tuple[str, ...], rate: float
) -> tuple[Array, Array | None, Array | None]:
    """Positions (K, n), NaN for joints that stay, no velocities, and times (K,), from joints in any order.

    ``rate``, Hz, sets the times of a chunk without times; 0: it is refused.
    """
    names = list(message.joint_names or joints)
    others = [name for name in joints if name not in names]
    order, n = JointOrder(joints, names + others), len(names)
    if any(len(point.positions) != n for point in message.points):
        raise StateError("each point must have a position for each joint of joint_names")
    times_from_start = [Duration.from_msg(point.time_from_start).nanoseconds * 1e-9 for point in message.points]
    if len(message.points) > 1 and not any(times_from_start):
        if not rate:
            raise StateError("its points have no time_from_start; write times, or set the parameter chunk_rate, in Hz")
        times_from_start = [k / rate for k in range(len(message.points))]
    positions = np.array([point.positions for point in message.points]).reshape(-1, n)
    times, positions = read_chunk(n, times_from_start, positions)
    held = np.full((len(times), len(others)), np.nan)
    return order.to_robot(np.hstack([positions, held])), None, times
