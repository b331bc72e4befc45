# SPDX-License-Identifier: Apache-2.0
"""Playback of a trajectory as a stream of setpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from rclpy.node import Node

from ...arrays import Array
from ...elastic import ElasticArm
from ...exceptions import StateError, TrajectoryError
from ...kinematics.motion import predicted
from ...messages.fields import STATE_FIELDS, doubles
from ...messages.setpoint_to_command import Ahead, refusal_reason
from ...stream.watchdog import ClockWatch
from ...terminal import printable
from ...trajectory import Spline, Trajectory, Verdict
from ...trajectory.takeover import (
    JUMP_PERIODS,
    LARGEST_CORRECTION,
    SHORTEST_JUMP,
    SMALL_STEP,
    Handover,
    Shifted,
    take_over,
)
from ..executors import keep_pace, steady_timer
from ..interfaces import JointTrajectorySetpoint, set_stamp

_SECOND = 10**9

# Between observations of the clock while no command is due, such as while /clock is paused, s.
_WATCH_PERIOD = 0.02

# Time after the last command for which the arm is commanded to move on, ns; after it, drives hold their position.
_MOVES_ON = _SECOND // 10

# Takes the check of limits of a transition; raises TrajectoryError to refuse it.
Judge: TypeAlias = Callable[[Verdict], None]


class _Planned(NamedTuple):
    """A trajectory to be played; arguments as of :meth:`TrajectoryPlayer.play`, ``begin`` is its time 0, ns."""

    motion: Spline
    begin: int
    frame_id: str
    arm: ElasticArm
    judge: Judge

    @property
    def first_knot(self) -> int:
        """Time of its first knot, ns."""
        return self.begin + round(self.motion.start * _SECOND)


class TrajectoryPlayer:
    """Player of trajectories at the rate ``stream_rate``, each from its own start time.

    A trajectory takes over from the commanded state (:func:`.take_over`): that of the current one, or of the last
    command, which may be one for a setpoint. One that starts later waits meanwhile, and the commanded state is that of
    setpoints. Where the clock jumps, the next command would be a step: the motion ends, or after a jump forward, with
    the parameter ``on_clock_jump`` set to ``hold``, continues from the last command. All methods are called by the
    node's executor.

    Args:
        send: receives each setpoint, and the motion at the lead; returns whether the setpoint was valid.

    Attributes:
        lead: time by which commands are ahead of the motion, s.
        skipped: number of setpoints skipped since startup because their time had passed.
        on_end: called when a trajectory ends, with whether it has reached its end, and if not, the reason.
        on_break: called with the reason after one has ended in motion, and nothing takes over.
        require_efforts: called before a trajectory is accepted, or begins after a wait; raises StateError to refuse it.
    """

    def __init__(self, node: Node, send: Callable[[JointTrajectorySetpoint, Ahead], bool]) -> None:
        self._node, self._send = node, send
        self._period = round(_SECOND / node.get_parameter("stream_rate").value)
        self._message = JointTrajectorySetpoint()
        # State q … qdddd (5, n) of the last command; its time and the time since the one before, ns.
        self._commanded: Array | None = None
        self._commanded_at = self._interval = 0
        # Motion times count from here in s, since a float cannot resolve the time of day.
        self._origin = 0
        # While playing.
        self._motion: Trajectory | None = None
        # In order of their start; none while playing.
        self._waiting: list[_Planned] = []
        self._last = -1
        # Latest time of the clock, ns.
        self._latest = 0
        self._watch = ClockWatch(max(JUMP_PERIODS * self._period, SHORTEST_JUMP))
        self.lead = 0.0
        self.skipped = 0
        self.on_end: Callable[[bool, str], None] = lambda finished, reason: None
        self.on_break: Callable[[str], None] = lambda reason: None
        self.require_efforts: Callable[[], None] = lambda: None
        # Number of the next setpoint; None before the first one of a trajectory, or after a jump of the clock.
        self._due: int | None = None
        # On the node's clock, so that the motion pauses with /clock.
        self._timer = node.create_timer(self._period / _SECOND, self._tick, autostart=False)
        self._watch_timer = steady_timer(node, _WATCH_PERIOD, self._observe, autostart=False)

    @property
    def playing(self) -> bool:
        """Whether a trajectory is being played."""
        return self._motion is not None

    @property
    def waiting(self) -> bool:
        """Whether a trajectory waits for its start."""
        return bool(self._waiting)

    def command(self, state: Array) -> None:
        """Remember the state q … qdddd (5, n) of a published command."""
        now: int = self._node.get_clock().handle.get_now().nanoseconds  # in a quarter of the time of now()
        self._interval, self._commanded_at = now - self._commanded_at, now
        self._commanded = state

    def under_way(self, now: int) -> tuple[Trajectory, float] | None:
        """Return the motion being played and its time, s, at a time of the clock, ns; None if nothing moves."""
        motion, t = self._motion, (now - self._origin) / _SECOND
        if motion is None or not np.any(motion.derivatives(t)[1:]):
            return None
        return motion, t

    def play(self, motion: Spline, stamp: int, frame_id: str, arm: ElasticArm, judge: Judge) -> None:
        """Play a motion, or have it wait for its start if nothing is being played.

        Args:
            motion: motion of the joints in the robot's order; its time 0 is at ``stamp``.
            stamp: ns; 0 for now.
            judge: receives the check of the transition to the motion.

        Raises:
            TrajectoryError: the motion has ended, starts away from the commanded position, or has left
                its first knot while the commanded position is unknown; or there is no time on /clock yet.
            StateError: the motors cannot realise the transition to the motion, or have no efforts.
        """
        self.require_efforts()
        # At the same time, since what follows may take long, and would look like a jump of the clock.
        now, steady = self._node.get_clock().now().nanoseconds, time.monotonic_ns()
        if not now:
            raise TrajectoryError("there is no time on /clock yet")
        if self.playing or self._waiting:
            self._follow_clock(now)
        planned = _Planned(motion, stamp or now, frame_id, arm, judge)
        late = (now - planned.begin) / _SECOND - motion.end
        if late > 0:
            raise TrajectoryError(f"it ended {late:.3g} s ago")
        if self.playing:
            self._replace(planned, now)
        elif self._start(planned) > now:
            self._wait(planned)
        else:
            self._begin(planned, now)
        self._latest = now
        self._watch.restart(now, steady)
        self._timer.reset()
        self._watch_timer.reset()

    def stop(self, reason: str, *, forget: bool = False) -> None:
        """Stop; with ``forget``, the commanded state is unknown from now on."""
        if forget:
            self._commanded = None
        if self.playing or self._waiting:
            self._end(finished=False, reason=reason)

    def _end(self, *, finished: bool, reason: str = "") -> None:
        self._timer.cancel()
        self._watch_timer.cancel()
        self._motion = None
        self._waiting = []
        self.on_end(finished, reason)

    # --- Start --------------------------------------------------------------------------

    def _start(self, planned: _Planned) -> int:
        """Time at which to start, ns: its first knot if there is no commanded state from which to move to that."""
        return planned.begin if self._commanded is not None else max(planned.begin, planned.first_knot)

    def _wait(self, planned: _Planned) -> None:
        """Have a motion wait for its start, in place of those that start later."""
        before = [other for other in self._waiting if other.first_knot < planned.begin]
        if before:
            begin = (planned.begin - before[-1].begin) / _SECOND
            self._transition(before[-1].motion, planned, begin, begin)
        self._waiting = [*before, planned]

    def _begin(self, planned: _Planned, now: int) -> None:
        """Begin to play a motion from the commanded state, at a time of the clock, ns."""
        begin = (planned.begin - now) / _SECOND
        # Up to a period late, the motion is as if on time.
        at = planned.begin if now - planned.begin < self._period else now
        state = self._commanded_state(at)
        if state is None:
            tolerance = self._node.get_parameter("start_tolerance").value
            _require_first_knot(planned.motion, -begin, planned.arm.robot.joint_names, tolerance)
            motion: Trajectory = Shifted(planned.motion, begin)
        else:
            late = at > planned.begin and not np.any(state[1:])
            on_time = self._begun_on_time(state, planned, begin) if late else None
            t = (at - now) / _SECOND
            motion, verdict = on_time or self._plan(Spline([t], state[:, np.newaxis]), planned, begin, t)
            planned.judge(verdict)
        self._origin, self._last, self._waiting = now, -1, []
        self._take(motion, planned)

    def _begun_on_time(self, state: Array, planned: _Planned, begin: float) -> tuple[Handover, Verdict] | None:
        """The plan of an arm at rest as if begun at ``begin`` < 0, s; None where it would be a step by now."""
        try:
            motion, verdict = self._plan(Spline([begin], state[:, np.newaxis]), planned, begin, begin)
        except (TrajectoryError, StateError):
            return None
        moved = np.max(np.abs(motion.derivatives(np.linspace(begin, 0.0, 200), 0)[0] - state[0]))
        return (motion, verdict) if moved <= SMALL_STEP else None

    def _replace(self, planned: _Planned, now: int) -> None:
        """Replace the motion being played, at a time of the clock, ns, or later."""
        assert self._motion is not None  # while playing
        begin, present = ((t - self._origin) / _SECOND for t in (planned.begin, now))
        if isinstance(self._motion, Handover):
            self._motion = self._motion.from_then_on(present)
        self._take(self._transition(self._motion, planned, begin, max(begin, present)), planned)

    def _take(self, motion: Trajectory, planned: _Planned) -> None:
        self._motion, self._due = motion, None
        self._message.header.frame_id = planned.frame_id

    def _transition(self, old: Trajectory, planned: _Planned, begin: float, at: float) -> Handover:
        """The motions in sequence, with a transition at a time ``at``, s; raises errors as :meth:`play`."""
        motion, verdict = self._plan(old, planned, begin, at)
        planned.judge(verdict)
        return motion

    def _plan(self, old: Trajectory, planned: _Planned, begin: float, at: float) -> tuple[Handover, Verdict]:
        """The same before it is judged, with the check of its limits."""
        tolerance, latency = (self._node.get_parameter(x).value for x in ("start_tolerance", "start_latency"))
        return take_over(planned.arm, old, planned.motion, begin, at, self._period / _SECOND, tolerance, latency)

    def _start_waiting(self, now: int) -> bool:
        """Begin to play what waits if its time has come; return whether it is played."""
        first, *others = self._waiting
        if self._start(first) > now:
            return False
        steady = time.monotonic_ns()
        try:
            self.require_efforts()
            self._begin(first, now)
            for planned in others:
                self._replace(planned, now)
        except Exception as error:
            reason = f"refused at its start: {printable(refusal_reason(error))}"
            self._node.get_logger().warning(f"trajectory {reason}")
            self.stop(reason)
            return False
        self._watch.restart(now, steady)
        return True

    def _commanded_state(self, at: int) -> Array | None:
        """State (5, n) commanded at a time of the clock, ns: moving on after the last command, later held; or None."""
        if self._commanded is None:
            return None
        age = at - self._commanded_at
        if abs(age) > _MOVES_ON:
            at_rest = np.zeros_like(self._commanded)
            at_rest[0] = self._commanded[0]
            return at_rest
        step = max(min(age, self._interval), 0) / _SECOND
        with np.errstate(over="ignore", invalid="ignore"):  # a state that is not finite is refused
            return np.stack([predicted(self._commanded[k:], step) for k in range(len(self._commanded))])

    # --- Playback -----------------------------------------------------------------------

    def _tick(self) -> None:
        if not (self.playing or self._waiting):
            return
        keep_pace(self._node, self._timer)
        now = self._node.get_clock().now().nanoseconds
        if not self._follow_clock(now) or not (self.playing or self._start_waiting(now)):
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
        message = self._message
        set_stamp(message.header.stamp, self._origin + math.floor(at * _SECOND + 0.5))
        for field, values in zip(STATE_FIELDS, motion.derivatives(at), strict=True):
            setattr(message, field, doubles(np.ascontiguousarray(values)))
        ahead = Ahead(self.lead, np.stack(motion.derivatives(min(at + self.lead, motion.end))))
        if not self._send(message, ahead) and self._node.context.ok():
            reason = f"{at - motion.start:.3g} s after its start: setpoint refused"
            self._node.get_logger().warning(f"trajectory stopped {reason}")
            self.stop(reason)
            self.on_break(reason)
        elif at == motion.end:
            # The next trajectory takes over from here.
            self._end(finished=True)

    def _observe(self) -> None:
        if self.playing or self._waiting:
            self._follow_clock(self._node.get_clock().now().nanoseconds)

    def _follow_clock(self, now: int) -> bool:
        """Stop or delay the motion if the clock has jumped; return whether it continues."""
        jump = self._watch.jump(now, time.monotonic_ns())
        if now < self._latest - LARGEST_CORRECTION:
            reason = f"went back by {(self._latest - now) / _SECOND:.3g} s"
        elif not jump or (self._waiting and now < self._start(self._waiting[0])):
            self._latest = max(self._latest, now)
            return True
        else:
            self._latest = now
            reason = f"jumped forward by {jump / _SECOND:.3g} s"
            if self._node.get_parameter("on_clock_jump").value == "hold":
                self._node.get_logger().warning(f"trajectory delayed: the clock {reason}")
                if self._motion is not None:
                    self._motion = Shifted(self._motion, jump / _SECOND)
                self._waiting = [planned._replace(begin=planned.begin + jump) for planned in self._waiting]
                self._due = None  # nothing is left out
                return True
        reason = f"the clock {reason}"
        self._node.get_logger().warning(f"trajectory stopped: {reason}")
        self.stop(reason)
        self.on_break(reason)
        return False


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
