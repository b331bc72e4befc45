# SPDX-License-Identifier: Apache-2.0
"""Playback of trajectories by the control loop, at the rate of the stream: speed, pause, end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64
from std_srvs.srv import SetBool

from ...control.control_loop import REFUSALS, OffPath, Refusal
from ...control.setpoint_loop import SetpointLoop
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import LARGEST_CORRECTION, LONGEST_GAP, MODES, SHARED_MESSAGES
from ...exceptions import TrajectoryError
from ...terminal import printable
from ...trajectory import Spline
from ..diagnostics import present
from ..executors import keep_pace, steady_timer
from ..interfaces import TrajectoryStatus, nanoseconds
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .goals import Goal, Phase
from .measured_arm import MeasuredArm
from .stops import Stops

# Time lost in late cycles that is reported, s.
_LATE = 0.1

# Motions without a path to pause on, and how each comes to rest.
_OFF_PATH = {
    OffPath["nothing"]: ("", ""),
    OffPath["target"]: ("a motion to a target", "send another target, or an empty trajectory to stop"),
    OffPath["references"]: ("a stream of setpoints", "stop its publisher at rest"),
}


class TrajectoryPace:
    """Speed of trajectories on their paths; all methods are called by the node's executor."""

    def __init__(self, node: RobotNode, clock: WatchedClock, measured: MeasuredArm) -> None:
        self._node, self._clock, self._measured = node, clock, measured
        self._host: SetpointLoop | None = None
        self._scaling, self._pause_cause = 1.0, ""
        node.create_subscription(Float64, "speed_scaling", lambda message: self.scale(message.data), 1)
        self._subscribe_as_controller()
        node.create_service(SetBool, "~/pause", self._answer)

    def _subscribe_as_controller(self) -> None:
        """Subscribe to the topic of ``joint_trajectory_controller``, if ``control_msgs`` has its message."""
        try:
            from control_msgs.msg import SpeedScalingFactor
        except ImportError:
            return
        kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        topic = "~/speed_scaling_input"
        self._node.create_subscription(SpeedScalingFactor, topic, lambda message: self.scale(message.factor), kept)

    def take(self, host: SetpointLoop) -> None:
        """Scale the speed of a loop from now on."""
        self._host = host
        host.loop.speed(self._scaling)

    @property
    def held_by(self) -> str:
        """Reason to refuse motions until the pause ends; else empty."""
        return self._pause_cause if self._host is not None and self._host.record.paused else ""

    def scale(self, factor: float) -> None:
        """Play motions at a factor of their speed, 0 to 1, on their paths; others are reported, and ignored."""
        if not 0 <= factor <= 1:
            self._node.warn("speed_scaling", f"it must be 0 to 1, is {factor:g}: ignored")
            return
        if factor != self._scaling:
            warn_of_speed(self._node, factor, self._off_path[0])
        self._scaling = factor
        if self._host is not None:
            self._host.loop.speed(factor)

    def pause(self, pauses: bool, cause: str = "") -> None:
        """Pause motions on their paths, or resume them; with a cause, others are refused until then."""
        self._pause_cause = cause
        if self._host is not None:
            self._host.loop.act("pause" if pauses else "resume")

    def _answer(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Pause (``data: true``) or resume (``data: false``), and answer whether it has an effect."""
        pauses = request.data
        leader, remedy = self._off_path if pauses else ("", "")
        strays = self._host is not None and not pauses and self._measured.locate(self._host)
        response.success = self._host is not None and not leader and not strays
        if strays:
            response.message = REFUSALS["elsewhere"]
        elif response.success:
            idle = pauses and self._host is not None and not self._host.record.playing
            response.message = "nothing is played: the next trajectory waits" * idle
            self.pause(pauses)
        else:
            response.message = (
                f"{leader} does not pause: {remedy}" if leader else "there is no robot yet: load one first"
            )
        return response

    @property
    def _off_path(self) -> tuple[str, str]:
        """Active motion without a path to pause on, and how it comes to rest; empty if none."""
        record = self._host.record if self._host is not None else None
        if record is None or self._clock.now() - record.latest > LONGEST_GAP:
            return _OFF_PATH[OffPath["nothing"]]
        return _OFF_PATH[OffPath(record.off_path)]

    @property
    def standstill(self) -> str:
        """Reason of a standstill of trajectories, and the remedy; else empty."""
        if self._host is not None and self._host.record.paused:
            return f"paused{self._pause_cause and ' by '}{self._pause_cause}: {SHARED_MESSAGES['resume']}"
        if not self._scaling:
            return "speed_scaling is 0: publish more"
        return "" if self._allowed else SHARED_MESSAGES["standstill"]

    @property
    def _allowed(self) -> float:
        """Speed scaling in effect, at most the requested one."""
        return self._scaling if self._host is None else self._host.record.allowed_pace

    @property
    def lateness(self) -> str:
        """Time that the last motion lost in late cycles, and the cause; empty if small."""
        lost = self._host.record.lost_time if self._host is not None else 0.0
        return f"{lost:.3g} s lost in late cycles: the process was delayed, or the clock has jumped" * (lost > _LATE)

    @property
    def values(self) -> dict[str, str]:
        """Values of diagnostics: why trajectories stand still, or a speed that is not theirs."""
        scaling = "" if self._scaling == self._allowed == 1 else f"{100 * self._scaling:.0f} %"
        scaling += f", limits allow {100 * self._allowed:.0f} %" if self._allowed < self._scaling else ""
        scaling += ", of trajectories alone" if scaling and self._off_path[0] else ""
        late = self.lateness if self._host is not None and self._host.record.playing else ""
        return present({"trajectories": self.standstill, "speed scaling": scaling, "trajectory late": late})

    def warn_of_standstill(self) -> None:
        """Log that limits do not let a trajectory go on."""
        if (why := self.standstill) == SHARED_MESSAGES["standstill"]:
            self._node.warn("trajectory stands still", why)


def warn_of_speed(node: RobotNode, factor: float, leader: str) -> None:
    """Log that speed scaling has no effect on an active target, stop or setpoint stream."""
    if factor != 1 and leader:
        node.warn("speed_scaling", f"it is for trajectories alone, {leader} keeps its speed")


_SECOND = 10**9

# Between observations of the clock while no command is due, such as while /clock is paused, s.
_WATCH_PERIOD = 0.02


class TrajectoryPlayer:
    """Topics and services around the trajectories of the control loop, which plans, plays, paces and ends them.

    All methods are called by the node's executor.

    Args:
        clock, measured: clock of the loop; measured arm, for starts.
        stops: stop the arm if a trajectory ends in motion.
        publish: publishes the command of a cycle of the loop, with stamp, ns, frame, and the cycle's code;
            returns whether it was not refused.

    Attributes:
        pace: their speed, and whether they pause.
        skipped: number of commands left out since startup by late cycles.
    """

    def __init__(
        self,
        node: RobotNode,
        clock: WatchedClock,
        measured: MeasuredArm,
        stops: Stops,
        publish: Callable[[SetpointLoop, int, str, int], bool],
    ) -> None:
        self._node, self._clock, self._measured, self._stops, self._publish = node, clock, measured, stops, publish
        self._period = round(_SECOND / node.get_parameter("stream_rate").value)
        self._host: SetpointLoop | None = None
        # Goals of the active motion, and of the last accepted one: active or waiting.
        self._played: Goal | None = None
        self._accepted: Goal | None = None
        # On the clock, ns: time 0 of the last accepted motion; an instant of the periodic commands; the last
        # one, and the latest time. And the clock less the time of the loop.
        self._begin = self._origin = self._last = self._latest = self._ahead = 0
        # Numbers of trajectories started before the last plan, and finished before the active motion.
        self._begun = self._finished = self.skipped = 0
        self.pace = TrajectoryPace(node, clock, measured)
        # On the node's clock, so that the motion pauses with /clock.
        self._timer = node.punctual.create(node, self._period / _SECOND, self._tick)
        self._watch_timer = steady_timer(node, _WATCH_PERIOD, self._observe, autostart=False)

    @property
    def playing(self) -> bool:
        """True if a trajectory is being played."""
        return self._played is not None

    @property
    def waiting(self) -> bool:
        """True if a trajectory waits for its start."""
        return self._accepted is not self._played and self._accepted is not None

    @property
    def goal(self) -> Goal | None:
        """Goal that was accepted last, while it waits or is played."""
        return self._accepted

    def take(self, host: SetpointLoop) -> None:
        """Play by a loop."""
        self._host = host
        self._played, self._accepted, self._clock.pauses = None, None, False
        self.pace.take(host)

    @property
    def values(self) -> dict[str, str]:
        """Values of diagnostics."""
        phase = "under way" if self.playing else "waits for its start" if self.waiting else ""
        return present({"trajectory": phase, "trajectory commands left out": self.skipped}) | self.pace.values

    def play(self, motion: Spline, goal: Goal, held: NDArray[np.bool_] | None = None) -> None:
        """Play a motion, or let it wait for its start; it replaces a waiting one.

        Args:
            motion: motion of the joints in the robot's order; its time 0 is at the stamp of the header, or now.
            goal: goal, which gets its statuses.
            held: joints (n,) that stay at their commanded position at its start.

        Raises:
            EomDynamicsError: the motion is refused, and earlier motions continue.
        """
        assert self._host is not None  # the node is active
        now, loop = self._now(), self._host.loop
        if not now:
            raise TrajectoryError("there is no time on /clock yet")
        if self.pace.held_by:
            raise TrajectoryError(self.pace.standstill)
        begin = nanoseconds(goal.header.stamp) or now
        if self._instant(self._host, now) < now:  # a late command belongs to the motion before
            self._command(self._host, now)
        loop.send_trajectory(motion, begin - self._ahead, held)
        if (why := self._plan(self._host, now, begin)) is not None:
            raise self._host.refusal(why)
        if self._accepted is not None:
            self._accepted.tell(TrajectoryStatus.STOPPED, "replaced by another trajectory")
        self._accepted, self._begin = goal, begin
        goal.tell(TrajectoryStatus.ACCEPTED, self.pace.standstill)
        self._take_over(goal, self._host, now)
        self._timer.reset()
        self._watch_timer.reset()
        self._command(self._host, now)

    def stop(self, reason: str, action: str = "halt") -> None:
        """End the active and the waiting motion, with the last command, by an action of the loop."""
        if self._host is not None and (self.playing or self.waiting):
            if self._host.record.playing or self._host.record.waiting:
                self._host.loop.act(action)
            self._end(TrajectoryStatus.STOPPED, reason)

    def drop(self, reason: str) -> None:
        """End the waiting motion; the active motion continues."""
        self.stop(reason, "drop")

    def _plan(self, host: SetpointLoop, now: int, begin: int) -> Refusal | None:
        """Plan the new or waiting motion from the arm's state; reason for a refusal, or None."""
        at, sag = now - self._ahead, 0.0
        if not self.playing and now >= begin:
            self._measured.locate(host, at)
            sag = self._measured.sag(host, at)
        self._begun = host.record.begun
        return host.plan(at, self._period / _SECOND, sag)

    def _take_over(self, goal: Goal, host: SetpointLoop, now: int) -> None:
        """Record the start of the last accepted motion at `now`, ns on the clock, if it has started."""
        record = host.record
        if record.begun == self._begun:
            return
        if not self.playing:
            self._origin, self._last = now, 0
        self._played, self._finished, self._clock.pauses = goal, record.finished, True
        goal.phase = Phase.PLAYING
        if reason := self.pace.standstill:
            self._node.get_logger().info(f"trajectory waits: {reason}")

    def _end(self, status: int, reason: str = "") -> None:
        self._timer.cancel()
        self._watch_timer.cancel()
        goal, self._played, self._accepted, self._clock.pauses = self._accepted, None, None, False
        if goal is not None:
            goal.tell(status, reason)

    def _now(self) -> int:
        """Time of the clock, ns; a waiting motion follows it, and motions end if it goes back."""
        ahead = self._clock.ahead()
        now, back, shift = self._clock.reading, self._latest - self._clock.reading, self._ahead - ahead
        self._ahead, self._latest = ahead, now
        if self._host is None or not (self.playing or self.waiting):
            return now
        if back > LARGEST_CORRECTION:
            self._break(f"the clock went back by {back / _SECOND:.3g} s")
        elif shift:
            self._host.loop.delay(shift)
            self._origin, self._last = self._origin - shift, self._last - shift
        return now

    def _break(self, reason: str) -> None:
        self._node.warn("trajectory stopped", reason, always=True)
        if not self.playing:  # another source may lead
            self.drop(reason)
        else:
            self.stop(reason)
            self._stops.break_off(reason)

    def _tick(self) -> None:
        if self._host is not None and (self.playing or self.waiting):
            keep_pace(self._node, self._timer)
            self._command(self._host, self._now())

    def _command(self, host: SetpointLoop, now: int) -> None:
        """Send the command that is due at `now`, ns on the clock, and start a waiting motion that is due."""
        at = self._instant(host, now)
        if self._accepted is not None and self.waiting and at >= self._begin:
            self._start(self._accepted, host, at)
        if self._played is None or not host.record.playing:
            self._find_end(host)
        if self._played is None or at <= self._last:
            return
        self.skipped += (at - self._last) // self._period - 1 if self._last else 0
        self._last = at
        was_late = bool(self.pace.lateness)
        code = host.loop.update(at - self._ahead, self._period / _SECOND)
        if self.pace.lateness and not was_late:
            self._node.warn("trajectory late", self.pace.lateness, always=True)
        sent = self._publish(host, at, self._played.header.frame_id, code)
        if not sent and self._node.context.ok():
            why = refusal_reason(host.refusal(Refusal(code))) if code > 0 else "internal error, see the log"
            self._break(f"{(at - self._begin) / _SECOND:.3g} s after its start: refused: {printable(why)}")
        self._find_end(host)

    def _instant(self, host: SetpointLoop, now: int) -> int:
        """Time of the last command that is due, ns: they are a period apart, from the start of the motion."""
        at = now - (now - (self._begin if self._played is None else self._origin)) % self._period
        return now if self._played is None and at - self._ahead < host.record.latest else at

    def _start(self, goal: Goal, host: SetpointLoop, now: int) -> None:
        """Start the waiting motion; a refusal also ends the active motion, which was reported as replaced."""
        why = self._plan(host, now, self._begin)
        if why is None:
            self._take_over(goal, host, now)
            return
        text = refusal_reason(host.refusal(why))
        if why.name == "ended" and not host.record.valid:  # a single waypoint
            text = "the position of the arm is unknown: publish joint_states, or begin with a waypoint there"
        reason = f"refused at its start: {printable(text)}"
        if self.playing:
            self._break(reason)
            return
        self._node.warn("trajectory", reason, always=True)
        self._end(TrajectoryStatus.STOPPED, reason)

    def _find_end(self, host: SetpointLoop) -> None:
        """Report the end of the active or waiting motion; the next motion starts here."""
        record = host.record
        if record.playing or record.waiting:
            return
        if self.playing and record.finished != self._finished:
            self._end(TrajectoryStatus.FINISHED, self.pace.lateness)
        else:
            mode = MODES[record.mode]
            taken = "a target" if record.aiming else f"mode {mode}" if mode != MODES[0] else "another reference"
            self._end(TrajectoryStatus.STOPPED, f"{taken} takes over")

    def _observe(self) -> None:
        self._now()
        if self._played is not None:
            self.pace.warn_of_standstill()
