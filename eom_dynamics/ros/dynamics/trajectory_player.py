# SPDX-License-Identifier: Apache-2.0
"""Playback of a trajectory as a stream of setpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from ...elastic import ElasticArm
from ...exceptions import TrajectoryError
from ...messages.fields import STATE_FIELDS
from ...messages.samples import doubles
from ...messages.setpoint_to_command import Ahead
from ...trajectory import Spline, Trajectory, Verdict
from ...trajectory.handover import Handover, Shifted
from ...trajectory.takeover import take_over
from ..executors import keep_pace
from ..interfaces import JointTrajectorySetpoint
from .clock_watch import ClockWatch

_SECOND = 10**9

# Largest backward step of the clock during which the motion only pauses, ns. A larger one is a restarted simulation.
_LARGEST_CORRECTION = _SECOND // 10

# Smallest jump forward of the clock: this many periods of the stream, and this time, ns.
_JUMP_PERIODS, _SHORTEST_JUMP = 10, _SECOND // 10

# Between observations of the clock while no command is due, such as while /clock is paused, s.
_WATCH_PERIOD = 0.02


class TrajectoryPlayer:
    """Player of trajectories at the rate ``stream_rate``, each from its own start time.

    A trajectory takes over from the current one, or from the last commanded state if that was of a trajectory
    (:func:`.take_over`). Where the clock jumps, the next command would be a step: the motion ends, or after a jump
    forward, with the parameter ``on_clock_jump`` set to ``hold``, continues from the last command. All methods are
    called by the node's executor.

    Attributes:
        lead: time by which commands are ahead of the motion, s.
        skipped: number of setpoints skipped since startup because their time had passed.
        on_end: called when a trajectory ends, with whether it has reached its end, and if not, the reason.
    """

    def __init__(self, node: Node, send: Callable[[JointTrajectorySetpoint, Ahead], bool]) -> None:
        """Create an idle player.

        Args:
            node: the node.
            send: receives each setpoint, and the motion at the lead; returns whether the setpoint was valid.
        """
        self._node, self._send = node, send
        self._period = round(_SECOND / node.get_parameter("stream_rate").value)
        self._message = JointTrajectorySetpoint()
        # Motion times count from here in s, since a float cannot resolve the time of day.
        self._origin = 0
        self._motion: Trajectory | None = None
        self._last = -1
        # Latest time of the clock, ns.
        self._latest = 0
        self._watch = ClockWatch(max(_JUMP_PERIODS * self._period, _SHORTEST_JUMP))
        self._playing = False
        self.lead = 0.0
        self.skipped = 0
        self.on_end: Callable[[bool, str], None] = lambda finished, reason: None
        # Number of the next setpoint; None before the first one of a trajectory, or after a jump of the clock.
        self._due: int | None = None
        # On the node's clock, so that the motion pauses with /clock.
        self._timer = node.create_timer(self._period / _SECOND, self._tick, autostart=False)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._watch_timer = node.create_timer(_WATCH_PERIOD, self._observe, clock=steady, autostart=False)

    @property
    def playing(self) -> bool:
        """Whether a trajectory is being played or waits for its start time."""
        return self._playing

    @property
    def remembers(self) -> bool:
        """Whether the commanded state comes from a trajectory, playing or ended."""
        return self._motion is not None

    def under_way(self, now: int) -> tuple[Trajectory, float] | None:
        """Return the motion being played and its time, s, at a time of the clock, ns; None if nothing moves."""
        motion, t = self._motion, (now - self._origin) / _SECOND
        if not self._playing or motion is None or not np.any(motion.derivatives(t)[1:]):
            return None
        return motion, t

    def play(
        self, motion: Spline, stamp: int, frame_id: str, arm: ElasticArm, judge: Callable[[Verdict], None]
    ) -> None:
        """Play a motion.

        Args:
            motion: motion of the joints in the robot's order; its time 0 is at ``stamp``.
            stamp: ns; 0 for now.
            judge: receives the check of limits of the transition to the motion; raises TrajectoryError to refuse it.

        Raises:
            TrajectoryError: the motion has ended, starts away from the commanded position, or has left
                its first knot while the commanded position is unknown; or there is no time on /clock yet.
            StateError: the motors cannot realise the transition to the motion.
        """
        # At the same time, since what follows may take long, and would look like a jump of the clock.
        now, steady = self._node.get_clock().now().nanoseconds, time.monotonic_ns()
        if not now:
            raise TrajectoryError("there is no time on /clock yet")
        if self._playing:
            self._follow_clock(now)
        elif self._went_back(now):
            self._motion = None
        if self._motion is None:
            self._origin = self._latest = now
            self._last = -1
        begin = ((stamp or now) - self._origin) / _SECOND
        present = (now - self._origin) / _SECOND
        if begin + motion.end < present:
            raise TrajectoryError(f"it ended {present - begin - motion.end:.3g} s ago")
        if isinstance(self._motion, Handover):
            self._motion = self._motion.from_then_on(present)
        at = max(begin, present)
        tolerance = self._node.get_parameter("start_tolerance").value
        # A motion that has not started by then commands nothing to take over from.
        if self._motion is None or at <= self._motion.start:
            _require_first_knot(motion, present - begin, arm.robot.joint_names, tolerance)
            self._motion = Shifted(motion, begin)
        else:
            replaced, verdict = take_over(arm, self._motion, motion, begin, at, self._period / _SECOND, tolerance)
            judge(verdict)
            self._motion = replaced
        self._message.header.frame_id = frame_id
        self._due = None
        self._playing = True
        self._watch.restart(now, steady)
        self._timer.reset()
        self._watch_timer.reset()

    def stop(self, reason: str, *, forget: bool = False) -> None:
        """Stop; with ``forget``, the next trajectory does not take over from the last commanded state."""
        if forget:
            self._motion = None
        if self._playing:
            self._end(finished=False, reason=reason)

    def _end(self, *, finished: bool, reason: str = "") -> None:
        self._timer.cancel()
        self._watch_timer.cancel()
        self._playing = False
        self.on_end(finished, reason)

    def _tick(self) -> None:
        if not self._playing:
            return
        keep_pace(self._node, self._timer)
        now = self._node.get_clock().now().nanoseconds
        if not self._follow_clock(now):
            return
        motion = self._motion
        assert motion is not None  # while playing
        number = (now - self._origin) // self._period
        at = number * self._period / _SECOND
        if at < motion.start or number <= self._last:
            return
        if self._due is not None:
            self.skipped += number - self._due
        self._last, self._due = number, number + 1
        at = min(at, motion.end)
        later = min(at + self.lead, motion.end)
        ahead = Ahead(self.lead, np.stack(motion.derivatives(later)))
        if not self._send(self._setpoint(motion, at), ahead) and self._node.context.ok():
            reason = f"{at - motion.start:.3g} s after its start: setpoint refused"
            self._node.get_logger().warning(f"trajectory stopped {reason}")
            self.stop(reason, forget=True)
        elif at == motion.end:
            # The next trajectory takes over from here.
            self._end(finished=True)

    def _observe(self) -> None:
        if self._playing:
            self._follow_clock(self._node.get_clock().now().nanoseconds)

    def _follow_clock(self, now: int) -> bool:
        """Stop or delay the motion if the clock has jumped; return whether it continues."""
        jump = self._watch.jump(now, time.monotonic_ns())
        waits = self._due is None and self._motion is not None and now < self._origin + self._motion.start * _SECOND
        if self._went_back(now):
            reason = f"went back by {(self._latest - now) / _SECOND:.3g} s"
        elif not jump or waits:
            self._latest = max(self._latest, now)
            return True
        else:
            self._latest = now
            reason = f"jumped forward by {jump / _SECOND:.3g} s"
            if self._node.get_parameter("on_clock_jump").value == "hold":
                self._node.get_logger().warning(f"trajectory delayed: the clock {reason}")
                self._delay(jump)
                return True
        self._node.get_logger().warning(f"trajectory stopped: the clock {reason}")
        self.stop(f"the clock {reason}", forget=True)
        return False

    def _delay(self, by: int) -> None:
        """Delay the rest of the motion by a time in ns."""
        assert self._motion is not None  # while playing
        self._motion = Shifted(self._motion, by / _SECOND)
        self._due = None  # nothing is left out

    def _went_back(self, now: int) -> bool:
        return now < self._latest - _LARGEST_CORRECTION

    def _setpoint(self, motion: Trajectory, t: float) -> JointTrajectorySetpoint:
        message = self._message
        nanoseconds = self._origin + math.floor(t * _SECOND + 0.5)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, _SECOND)
        for field, values in zip(STATE_FIELDS, motion.derivatives(t), strict=True):
            setattr(message, field, doubles(np.ascontiguousarray(values)))
        return message


def _require_first_knot(motion: Spline, present: float, names: Sequence[str], tolerance: float) -> None:
    """Refuse a motion that has left its first knot at ``present`` (s, its own time): it would start with a step."""
    if present <= motion.start:
        return
    moved = np.abs(motion.derivatives(present, 0)[0] - motion.derivatives(motion.start, 0)[0])
    if np.max(moved) > tolerance:
        joint = int(np.argmax(moved))
        raise TrajectoryError(
            f"its first waypoint was due {present - motion.start:.3g} s ago, and {names[joint]} has moved "
            f"{moved[joint]:.3g} rad or m since, must be at most {tolerance:g}: start it now (stamp 0, "
            "times from 0) or later"
        )
