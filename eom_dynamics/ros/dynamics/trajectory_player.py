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

# By how much a clock may be set back, ns: the motion pauses until time has caught up. One that goes back further is
# that of a simulation that starts again.
_LARGEST_CORRECTION = _SECOND // 10


class TrajectoryPlayer:
    """Plays trajectories at the parameter ``stream_rate``, each from its own start time.

    Where another trajectory is under way, or was the last motion commanded, the next one takes over from there
    (:class:`Handover`). All methods are called by the node's executor.

    Attributes:
        skipped: number of setpoints left out since the start, as their time had passed when the node's turn came.
    """

    def __init__(self, node: Node, send: Callable[[JointTrajectorySetpoint], bool]) -> None:
        """Wait for a trajectory; ``send`` receives each setpoint, and returns whether it could be used."""
        self._node, self._send = node, send
        self._period = round(_SECOND / node.get_parameter("stream_rate").value)
        self._message = JointTrajectorySetpoint()
        # Times of the motion are seconds after this one: a float has too few digits for a time of day.
        self._origin = 0
        self._motion: Trajectory | None = None
        self._last = -1
        # The latest time that the clock has shown, ns.
        self._latest = 0
        self._playing = False
        self.skipped = 0
        # Number of the setpoint that is due next, while setpoints follow each other.
        self._due: int | None = None
        # By the node's clock: with simulated time, the motion pauses when the simulation does.
        self._timer = node.create_timer(self._period / _SECOND, self._tick, autostart=False)

    @property
    def playing(self) -> bool:
        """Whether a trajectory is under way, or waits for its time."""
        return self._playing

    def play(self, motion: Spline, stamp: int, frame_id: str, names: Sequence[str]) -> None:
        """Play a motion.

        Args:
            motion: joints in the robot's order; its time 0 is at ``stamp``.
            stamp: ns; 0 is now.
            frame_id: of the setpoints.
            names: of the joints, for errors.

        Raises:
            TrajectoryError: the motion is over, begins away from where the joints are commanded to be at that time,
                or is past its first knot while the positions of the joints are unknown; or there is no simulated
                time yet.
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
            raise TrajectoryError(f"it was over {present - begin - motion.end:.3g} s ago")
        if isinstance(self._motion, Handover):
            self._motion = self._motion.from_then_on(present)
        if self._motion is None:
            _require_first_knot(motion, present - begin, names)
            self._motion = Shifted(motion, begin)
        else:
            self._motion = Handover(self._motion, motion, begin, max(begin, present), names)
        self._message.header.frame_id = frame_id
        self._due = None
        self._playing = True
        self._timer.reset()

    def stop(self, *, forget: bool = False) -> None:
        """Stop; ``forget`` also what was commanded last, so that the next trajectory does not take over from it."""
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
            self._node.get_logger().warning(f"trajectory ended: the clock went back by {back:.3g} s")
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
        if not self._send(self._setpoint(motion, time)) and self._node.context.ok():  # else the process ends
            self._node.get_logger().warning(f"trajectory ended, {time - motion.start:.3g} s after its start")
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
    """Refuse a motion that has left its first knot at ``present``, s of its own time: it would begin by a step."""
    if present <= motion.start:
        return
    moved = np.abs(motion.derivatives(present, 0)[0] - motion.derivatives(motion.start, 0)[0])
    if np.max(moved) > START_TOLERANCE:
        joint = int(np.argmax(moved))
        raise TrajectoryError(
            f"its first waypoint was due {present - motion.start:.3g} s ago, and {names[joint]} is {moved[joint]:.3g} "
            f"from there by now, may be {START_TOLERANCE:g}: let it begin at once (stamp 0, times from 0 on) or later"
        )
