# SPDX-License-Identifier: Apache-2.0
"""Playback of a trajectory as a stream of setpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from rclpy.node import Node

from ...exceptions import TrajectoryError
from ...messages.fields import STATE_FIELDS
from ...messages.samples import doubles
from ...trajectory import Spline, Trajectory
from ...trajectory.handover import START_TOLERANCE, Handover, Shifted
from ..interfaces import JointTrajectorySetpoint

_SECOND = 10**9

# Largest backward step of the clock during which the motion only pauses, ns. A larger one is a restarted simulation.
_LARGEST_CORRECTION = _SECOND // 10


class TrajectoryPlayer:
    """Player of trajectories at the parameter ``stream_rate``, each from its own start time.

    A trajectory takes over from the current one, or from the last commanded state if that was of a trajectory
    (:class:`Handover`). All methods are called by the node's executor.

    Attributes:
        skipped: number of setpoints skipped since startup because their time had passed.
    """

    def __init__(self, node: Node, send: Callable[[JointTrajectorySetpoint], bool]) -> None:
        """Create an idle player; ``send`` receives each setpoint and returns whether it was valid."""
        self._node, self._send = node, send
        self._period = round(_SECOND / node.get_parameter("stream_rate").value)
        self._message = JointTrajectorySetpoint()
        # Motion times count from here in s, since a float cannot resolve the time of day.
        self._origin = 0
        self._motion: Trajectory | None = None
        self._last = -1
        # Latest time of the clock, ns.
        self._latest = 0
        self._playing = False
        self.skipped = 0
        # Number of the next setpoint; None before the first one of a trajectory.
        self._due: int | None = None
        # On the node's clock, so that the motion pauses with /clock.
        self._timer = node.create_timer(self._period / _SECOND, self._tick, autostart=False)

    @property
    def playing(self) -> bool:
        """Whether a trajectory is being played or waits for its start time."""
        return self._playing

    def play(self, motion: Spline, stamp: int, frame_id: str, names: Sequence[str]) -> None:
        """Play a motion.

        Args:
            motion: motion of the joints in the robot's order; its time 0 is at ``stamp``.
            stamp: ns; 0 for now.
            frame_id: frame of the setpoints.
            names: joint names, for error messages.

        Raises:
            TrajectoryError: the motion has ended, starts away from the commanded position, or has left its first knot
                while the commanded position is unknown; or there is no time on /clock yet.
        """
        now = self._node.get_clock().now().nanoseconds
        if not now:
            raise TrajectoryError("there is no time on /clock yet")
        if self._went_back(now):
            self.stop(forget=True)
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
        # A motion that has not started by then commands nothing to take over from.
        if self._motion is None or at <= self._motion.start:
            _require_first_knot(motion, present - begin, names)
            self._motion = Shifted(motion, begin)
        else:
            self._motion = Handover(self._motion, motion, begin, at, names, self._period / _SECOND)
        self._message.header.frame_id = frame_id
        self._due = None
        self._playing = True
        self._timer.reset()

    def stop(self, *, forget: bool = False) -> None:
        """Stop; with ``forget``, the next trajectory does not take over from the last commanded state."""
        self._timer.cancel()
        self._playing = False
        if forget:
            self._motion = None

    def _tick(self) -> None:
        motion = self._motion
        if motion is None or not self._playing:
            return
        now = self._node.get_clock().now().nanoseconds
        if self._went_back(now):
            back = (self._latest - now) / _SECOND
            self._node.get_logger().warning(f"trajectory stopped: the clock went back by {back:.3g} s")
            self.stop(forget=True)
            return
        self._latest = max(self._latest, now)
        number = (now - self._origin) // self._period
        time = number * self._period / _SECOND
        if time < motion.start or number <= self._last:
            return
        if self._due is not None:
            self.skipped += number - self._due
        self._last, self._due = number, number + 1
        if time >= motion.end:
            time = motion.end
            # The next trajectory takes over from here.
            self.stop()
        if not self._send(self._setpoint(motion, time)) and self._node.context.ok():
            self._node.get_logger().warning(
                f"trajectory stopped {time - motion.start:.3g} s after its start: setpoint refused"
            )
            self.stop(forget=True)

    def _went_back(self, now: int) -> bool:
        return now < self._latest - _LARGEST_CORRECTION

    def _setpoint(self, motion: Trajectory, time: float) -> JointTrajectorySetpoint:
        message = self._message
        nanoseconds = self._origin + math.floor(time * _SECOND + 0.5)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, _SECOND)
        for field, values in zip(STATE_FIELDS, motion.derivatives(time), strict=True):
            setattr(message, field, doubles(np.ascontiguousarray(values)))
        return message


def _require_first_knot(motion: Spline, present: float, names: Sequence[str]) -> None:
    """Refuse a motion that has left its first knot at ``present`` (s, its own time): it would start with a step."""
    if present <= motion.start:
        return
    moved = np.abs(motion.derivatives(present, 0)[0] - motion.derivatives(motion.start, 0)[0])
    if np.max(moved) > START_TOLERANCE:
        joint = int(np.argmax(moved))
        raise TrajectoryError(
            f"its first waypoint was due {present - motion.start:.3g} s ago, and {names[joint]} has moved "
            f"{moved[joint]:.3g} rad or m since, must be at most {START_TOLERANCE:g}: start it now (stamp 0, "
            "times from 0) or later"
        )
