# SPDX-License-Identifier: Apache-2.0
"""Playback of trajectories by the control loop, at the rate of the stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sensor_msgs.msg import TimeReference
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from ...arrays import STATE_NAMES, Array, unit
from ...control.control_loop import REFUSALS, Refusal, rows
from ...control.setpoint_loop import SetpointLoop
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import FASTEST_PACE, LARGEST_CORRECTION, LONGEST_GAP, SAID, START_LATENCY, TRANSITION_SAMPLES
from ...exceptions import TrajectoryError
from ...terminal import printable
from ...trajectory import Spline, Verdict, check
from ..diagnostics import present
from ..executors import keep_pace, steady_timer
from ..interfaces import set_stamp
from ..robot_node import RobotNode
from .clocks import WatchedClock

_SECOND = 10**9

# Between observations of the clock while no command is due, such as while /clock is paused, s.
_WATCH_PERIOD = 0.02

# Time that a motion loses in late cycles, s, from which on that is reported.
_LATE = 0.1

# Names of eom::OffPath, and how each comes to rest.
_REST = {
    "a motion to a target": "send another target, or an empty trajectory to stop",
    "a stream of setpoints": "have its publisher come to rest",
}


class _Planned(NamedTuple):
    """A trajectory; arguments as of :meth:`TrajectoryPlayer.play`.

    Attributes:
        origin: its time 0 on the clock of the loop, ns.
        end: end of what is planned of it, s.
    """

    motion: Spline
    origin: int
    frame_id: str
    request: str
    end: float = 0.0

    @property
    def first_knot(self) -> int:
        """Time of its first knot, ns."""
        return self.origin + round(self.motion.start * _SECOND)


class TrajectoryPlayer:
    """Player of trajectories, each from its own start time, by the control loop, which plans how one takes over.

    After a late cycle the motion continues later, and reports the time that it has lost; where the clock goes back, it
    ends. All methods are called by the node's executor.

    Args:
        clock: of the loop.
        publish: publishes the command of a cycle of the loop, with stamp, ns, frame, and what the cycle has returned;
            returns whether it was not refused.

    Attributes:
        lead: time by which commands are ahead of the motion, s.
        skipped: number of commands left out since startup by late cycles.
        judge: receives the check of the transition to a trajectory; raises TrajectoryError to refuse it.
        on_end: called when a trajectory ends, with whether it has reached its end, and the reason, or what it has lost.
        on_break: called with the reason after one has ended in motion, and nothing takes over.
        locate: has a loop begin where the arm is, at a time of it, ns; returns as :meth:`.ControlLoop.locate`.
    """

    def __init__(
        self, node: RobotNode, clock: WatchedClock, publish: Callable[[SetpointLoop, int, str, int], bool]
    ) -> None:
        self._node, self._clock, self._publish = node, clock, publish
        self._period = round(_SECOND / node.get_parameter("stream_rate").value)
        self._host: SetpointLoop | None = None
        self._forget()
        # First command of the motion, and the last one, as a number of periods since then; its last time, ns.
        self._origin = self._ends = 0
        self._last = -1
        # Time of the clock less that of the loop; the clock has jumped where it changes, ns.
        self._ahead = 0
        # Latest time of the clock, ns.
        self._latest = 0
        self.lead = 0.0
        self.skipped, self._pause_cause = 0, ""
        self.judge: Callable[[Verdict], None] = lambda verdict: None
        self.on_end: Callable[[bool, str], None] = lambda finished, reason: None
        self.on_break: Callable[[str], None] = lambda reason: None
        self.locate: Callable[[SetpointLoop, int], bool] = lambda host, now: False
        # Time of the clock in the last cycle, ns, and the time of the motion then, s.
        self._place = 0, 0.0
        # Number of the next command; None before the first one of a trajectory.
        self._due: int | None = None
        # Whether what is played keeps its own speed, so that its end is known, and the speed wanted.
        self._even, self._scaling = True, 1.0
        self._path_time = node.create_publisher(TimeReference, "path_time", 10)
        node.create_subscription(Float64, "speed_scaling", self._on_scaling, 1)
        node.create_service(Trigger, "~/pause", partial(self._answer, True))
        node.create_service(Trigger, "~/resume", partial(self._answer, False))
        # On the node's clock, so that the motion pauses with /clock.
        self._timer = node.punctual.create(node, self._period / _SECOND, self._tick)
        self._watch_timer = steady_timer(node, _WATCH_PERIOD, self._observe, autostart=False)

    @property
    def playing(self) -> bool:
        """Whether a trajectory is being played."""
        return self._played is not None

    @property
    def waiting(self) -> bool:
        """Whether a trajectory waits for its start."""
        return self._next is not None

    @property
    def held_by(self) -> str:
        """Why motions are refused until the service resume; empty for nothing."""
        return self._pause_cause if self._host is not None and self._host.record.paused else ""

    def take(self, host: SetpointLoop) -> None:
        """Play by a loop from now on."""
        self._host = host
        self._forget()
        host.loop.speed(self._scaling)

    def scale_speed(self, factor: float) -> None:
        """Play motions at a factor of their speed, 0 to 1.5, on their paths; others are reported, and ignored."""
        if not 0 <= factor <= FASTEST_PACE:
            self._node.warn("speed_scaling", f"it must be 0 to {FASTEST_PACE:g}, is {factor:g}: ignored")
            return
        if factor != self._scaling:
            self._warn_of_speed(factor, self._leader)
        self._scaling, self._even = factor, False
        if self._host is not None:
            self._host.loop.speed(factor)

    def _warn_of_speed(self, factor: float, leader: str) -> None:
        if factor != 1 and leader:
            self._node.warn("speed_scaling", f"it is for trajectories alone, {leader} keeps its speed")

    def _on_scaling(self, message: Float64) -> None:
        self.scale_speed(message.data)

    def pause(self, pauses: bool, cause: str = "") -> None:
        """Pause motions on their paths, or resume them; with a cause, others are refused until then."""
        self._even, self._pause_cause = False, cause
        if self._host is not None:
            self._host.loop.act("pause" if pauses else "resume")

    def _answer(self, pauses: bool, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Services pause and resume: apply the request, and answer whether it has an effect."""
        leader = self._leader if pauses else ""
        strays = self._host is not None and not pauses and self.locate(self._host, self._clock.now())
        response.success = self._host is not None and not leader and not strays
        if strays:
            response.message = REFUSALS["elsewhere"]
        elif response.success:
            response.message = "" if self.playing or not pauses else "nothing is played: the next trajectory waits"
            self.pause(pauses)
        else:
            response.message = (
                f"{leader} does not pause: {_REST[leader]}" if leader else "there is no robot yet: load one first"
            )
        return response

    @property
    def _leader(self) -> str:
        """What leads without a path on which it could pause: a key of _REST; empty for nothing."""
        record = self._host.record if self._host is not None else None
        if record is None or self._clock.now() - record.latest > LONGEST_GAP:
            return ""
        return ("", *_REST)[record.off_path]

    @property
    def standstill(self) -> str:
        """Why trajectories stand still, and what to do; empty for nothing."""
        if self._host is not None and self._host.record.paused:
            return f"paused{self._pause_cause and ' by '}{self._pause_cause}: call ~/resume"
        if not self._scaling:
            return "speed_scaling is 0: publish more"
        return "" if self._allowed else SAID["standstill"]

    @property
    def _allowed(self) -> float:
        """The pace that limits allow so far, at most the one that is wanted."""
        return self._scaling if self._host is None else self._host.record.allowed_pace

    @property
    def values(self) -> dict[str, str]:
        """Values of diagnostics: why trajectories stand still, or a speed that is not theirs."""
        phase = "under way" if self.playing else "waits for its start" if self.waiting else ""
        scaling = "" if self._scaling == self._allowed == 1 else f"{100 * self._scaling:.0f} %"
        scaling += f", limits allow {100 * self._allowed:.0f} %" if self._allowed < self._scaling else ""
        scaling += ", of trajectories alone" if scaling and self._leader else ""
        values = {"trajectory": phase, "trajectory commands left out": self.skipped, "trajectory late": self.lateness}
        return present(values | {"trajectories": self.standstill, "speed scaling": scaling})

    @property
    def lateness(self) -> str:
        """What the motion that is played has lost in late cycles, and why; empty for little."""
        lost = self._host.record.lost_time if self._host is not None and self.playing else 0.0
        return f"{lost:.3g} s lost in late cycles: the process was held up, or the clock has jumped" * (lost > _LATE)

    def _forget(self) -> None:
        # What is played, what waits in the loop, and what is to wait there after that.
        self._played: _Planned | None = None
        self._next: _Planned | None = None
        self._later: list[_Planned] = []

    def play(self, motion: Spline, stamp: int, frame_id: str, request: str = "") -> None:
        """Play a motion, or have it wait for its start while setpoints, or another motion, are followed.

        Args:
            motion: motion of the joints in the robot's order; its time 0 is at ``stamp``.
            stamp: ns; 0 for now.
            request: identity, with which its time is reported.

        Raises:
            TrajectoryError: the motion has ended, starts away from the commanded position, or has left
                its first knot while the commanded position is unknown; or there is no time on /clock yet.
            StateError: the motors cannot realise the transition to the motion, or have no efforts.
        """
        assert self._host is not None  # the node is active
        now = self._node.get_clock().now().nanoseconds
        if not now:
            raise TrajectoryError("there is no time on /clock yet")
        if self.held_by:
            raise TrajectoryError(self.standstill)
        if self.playing or self.waiting:
            self._follow_clock(now)
        if not (self.playing or self.waiting):  # from now on, the clock and that of the loop run alike
            self._ahead = self._clock.ahead()
        self._start_waiting(now - self._ahead)
        present = now - self._ahead
        late = (now - (stamp or now)) / _SECOND - motion.end
        if late > 0:
            raise TrajectoryError(f"it ended {late:.3g} s ago")
        planned = _Planned(motion, (stamp or now) - self._ahead, frame_id, request)
        self._later = [other for other in self._later if other.first_knot < planned.origin]
        if self._next is not None and self._next.first_knot < planned.origin:
            before = [self._next, *self._later][-1]
            end = min((planned.first_knot - before.origin) / _SECOND, before.motion.end)
            if error := _starts_away(self._host, motion, motion.start, *before.motion.derivatives(end, 1)):
                raise error
            self._later.append(planned)
        else:
            self._send(planned, present, now)
        self._latest = now
        self._timer.reset()
        self._watch_timer.reset()

    def stop(self, reason: str) -> None:
        """End what is played and what waits, with the last command."""
        if self.playing or self.waiting:
            self._end(finished=False, reason=reason)

    def give_way(self, reason: str) -> None:
        """End what a target has replaced: what is played, and what waits, unless the target before led already."""
        if self._host is not None and not self._host.record.waiting:
            self.stop(reason)
        self._warn_of_speed(self._scaling, next(iter(_REST)))

    def _send(self, planned: _Planned, present: int, now: int) -> None:
        """Send a trajectory to the loop, and follow its plan; times of loop and clock, ns; errors as of play."""
        assert self._host is not None
        self._host.loop.send_trajectory(planned.motion, planned.origin)
        self._follow_plan(planned, present, now)

    def _start_waiting(self, now: int) -> None:
        """Begin to play what waits if its time has come, at a time of the loop, ns; report if it is refused."""
        if self._next is None:
            return
        try:
            if not self.playing:
                now = self._keep_in_step(self._next, now)
            self._follow_plan(self._next, now, now + self._ahead)
        except Exception as error:
            reason = f"refused at its start: {printable(refusal_reason(error))}"
            self._node.warn("trajectory", reason, always=True)
            self._next, self._later = None, []
            if self.playing:  # until its end, but nothing of what was accepted last will be
                self.on_end(False, reason)
            else:
                self._end(finished=False, reason=reason)

    def _keep_in_step(self, waiting: _Planned, now: int) -> int:
        """Delay what waits in the loop by as much as its time has run on while the clock stood still, or went back a
        little; without that, the motion of setpoints would seem to be long ago. Returns the time of the loop, ns.
        """
        assert self._host is not None
        late = self._ahead - self._clock.ahead()
        if abs(late) <= self._period:
            return now
        self._ahead -= late
        self._next, *self._later = (x._replace(origin=x.origin + late) for x in (waiting, *self._later))
        self._host.loop.act("halt")
        self._host.loop.send_trajectory(self._next.motion, self._next.origin)
        return now + late

    def _follow_plan(self, planned: _Planned, present: int, now: int) -> None:
        """Play what the loop plans now, if it does, or have it wait; times of loop and clock, ns; errors as of play."""
        assert self._host is not None
        loop = self._host.loop
        if not self.playing and present >= planned.origin:
            self.locate(self._host, present)
        refusal = loop.plan(present, self._period / _SECOND)
        if refusal is None:
            if self.waiting and not loop.record.waiting:  # it begins, as was planned when it came
                self._begin(planned, present, now)
            return
        why = Refusal(refusal)
        plan = loop.record
        waits, start, end = plan.plan_waits, plan.plan_start, plan.plan_end
        try:
            # Without the payload, so that it is not blamed for limits that are exceeded anyway.
            if why.name in ("none", "over_limits") and not waits and end > start:
                states = np.stack([rows(loop.plan_from, STATE_NAMES), rows(loop.plan_to, STATE_NAMES)], axis=1)
                transition = Spline([start, end], states)
                self.judge(check(self._host.arm, transition, rate=TRANSITION_SAMPLES / (end - start)))
            if refusal:
                raise self._explained(why, planned.motion, self._host)
        except Exception:
            if not refusal:
                loop.act("drop")
            raise
        loop.act("play")
        planned = planned._replace(end=max(planned.motion.end, end))
        if loop.record.waiting:
            self._next = planned
        else:
            self._begin(planned, present, now)

    def _begin(self, planned: _Planned, present: int, now: int) -> None:
        """Record that a trajectory is played from now on; times of loop and clock, ns."""
        if self._played is None:
            self._origin, self._last = now, -1
        self._played, self._next, self._due = planned, None, None
        self._place = now, planned.motion.start
        assert self._host is not None
        record = self._host.record
        self._even = record.speed_scaling == 1 and not record.paused
        # The first time at which the loop has reached it.
        last = math.ceil(planned.end * _SECOND)
        self._ends = planned.origin + last + (last * 1e-9 < planned.end) + self._ahead
        if reason := self.standstill:
            self._node.get_logger().info(f"trajectory waits: {reason}")
        if self._later:
            self._send(self._later.pop(0), present, now)

    def _explained(self, why: Refusal, motion: Spline, host: SetpointLoop) -> Exception:
        """The error of a trajectory that the loop refuses."""
        if why.name == "ended" and motion.start == motion.end and not host.record.valid:
            return TrajectoryError(
                "the position of the arm is unknown: publish joint_states, or begin with a waypoint there"
            )
        return host.refusal(why)

    def _end(self, *, finished: bool, reason: str = "") -> None:
        self._timer.cancel()
        self._watch_timer.cancel()
        loop = self._host.loop if self._host is not None else None
        if loop and not finished and (loop.record.playing or loop.record.waiting):
            loop.act("halt")
        self._forget()
        self.on_end(finished, reason)

    # --- Playback -----------------------------------------------------------------------

    def _tick(self) -> None:
        if not (self.playing or self.waiting) or self._host is None:
            return
        keep_pace(self._node, self._timer)
        now = self._node.get_clock().now().nanoseconds
        if not self._follow_clock(now):
            return
        self._start_waiting(now - self._ahead)
        if self._played is None:
            return
        number = (now - self._origin) // self._period
        if number <= self._last:
            return
        if self._due is not None:
            self.skipped += number - self._due
        self._last, self._due = number, number + 1
        host, at = self._host, self._origin + number * self._period
        at = self._ends if self._even and 0 < at - self._ends < self._period else at
        if host.lead != self.lead:
            host.configure(command_lead=self.lead)
        was_late = bool(self.lateness)
        code = host.loop.update(at - self._ahead, self._period / _SECOND)
        # A payload may slow it down, and late cycles delay it.
        record = host.record
        self._even = self._even and record.pace == 1 and not record.lost_time
        if self.lateness and not was_late:
            self._node.warn("trajectory late", self.lateness, always=True)
        self._place = at, record.path_time
        sent = self._publish(host, at, self._played.frame_id, code)
        if not sent and self._node.context.ok():
            reason = f"{(at - self._origin) / _SECOND:.3g} s after its start: setpoint refused"
            self._node.get_logger().warning(f"trajectory stopped {reason}")
            self.stop(reason)
            self.on_break(reason)
        elif not host.record.playing:
            # The next trajectory takes over from here.
            self._end(finished=True, reason=self.lateness)

    def _report(self, planned: _Planned, at: int, t: int) -> None:
        """Publish the time of a motion, ns, below that of its first knot while it waits, at a time of the clock, ns."""
        message = TimeReference(source=planned.request)
        set_stamp(message.header.stamp, at)
        set_stamp(message.time_ref, t)
        self._path_time.publish(message)

    def _observe(self) -> None:
        now = self._node.get_clock().now().nanoseconds
        if not (self.playing or self.waiting) or not self._follow_clock(now):
            return
        if self._played is not None:
            self._report(self._played, self._place[0], round(self._place[1] * _SECOND))
            if self.standstill == SAID["standstill"]:
                self._node.warn("trajectory stands still", self.standstill)
        if self._next is not None:
            last = [self._next, *self._later][-1]
            self._report(last, now, now - self._ahead - last.origin)

    def _follow_clock(self, now: int) -> bool:
        """Stop the motion if the clock goes back; return whether it continues."""
        back = self._latest - now
        if back <= LARGEST_CORRECTION:
            if back > 0 and self.playing:  # it goes on
                self._origin, self._ends, self._ahead = (x - back for x in (self._origin, self._ends, self._ahead))
            self._latest = now if self.playing else max(self._latest, now)
            return True
        reason = f"the clock went back by {(self._latest - now) / _SECOND:.3g} s"
        self._latest = now
        self._node.warn("trajectory stopped", reason, always=True)
        self.stop(reason)
        self.on_break(reason)
        return False


def _starts_away(host: SetpointLoop, motion: Spline, start: float, q: Array, qd: Array) -> TrajectoryError | None:
    """The error of a motion, at its start, s, away from a position (n,) with a velocity; None where it is near."""
    away = np.abs(motion.derivatives(start, 0)[0] - q)
    most = host.loop.settings["start_tolerance"] + START_LATENCY * np.abs(qd)
    joint = int(np.argmax(away - most))
    if away[joint] <= most[joint]:
        return None
    kind = unit("position", host.arm.robot.independent_joints[joint].type)
    numbers = {"value": f"{away[joint]:.4g}", "limit": f"{most[joint]:.4g}", "unit": kind}
    return TrajectoryError(REFUSALS["starts_away"].format(name=host.arm.robot.joint_names[joint], **numbers))
