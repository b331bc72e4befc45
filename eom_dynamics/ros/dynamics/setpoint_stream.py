# SPDX-License-Identifier: Apache-2.0
"""Stream of setpoints, each answered with a command or refused."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rclpy.qos import QoSCompatibility, qos_check_compatible
from rclpy.serialization import deserialize_message
from rclpy.time import Time
from std_msgs.msg import Header

from ...arguments import all_finite
from ...arrays import Array
from ...control.cdr import stamp_of
from ...control.control_loop import EXCEEDS, REFUSALS, SUSPECT, Refusal
from ...control.diagnosis import period_note
from ...control.robot_table import limits_of
from ...control.serialized import LearnedShapes
from ...control.setpoint_loop import EarlySetpointError, SetpointLoop
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import LONGEST_GAP, MODES, SAID, Status
from ...exceptions import EomDynamicsError, StateError, StiffnessError, TrajectoryError
from ...terminal import printable
from ..diagnostics import Level, StatusReport
from ..interfaces import JointTrajectorySetpoint, nanoseconds, stream_qos
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .command_topics import CommandTopics
from .contact_topics import ContactTopics
from .measured_arm import MeasuredArm
from .modes import Modes
from .statistics import WAITING, StreamStatistics
from .stops import Phase, Stops
from .supervision import Supervision
from .target_topics import NOT_REACHED, TargetTopics
from .trajectory_player import TrajectoryPlayer

# One second of setpoints at 1 kHz, so that none is lost when the node stalls.
_INPUT_DEPTH = 1000

_PARAMETERS = ("limits", "setpoint_lifespan", "command_lead")

# eom::OffPath::references.
_STREAMS = 2


class SetpointStream:
    """Answers setpoints with commands by the control loop; all methods are called by the node's executor.

    Setpoints come from the topic ``setpoint``; while a trajectory is played, the loop has them from that. Those of one
    shape, as a stream repeats it, are read and answered by one compiled call, others field by field. An invalid one is
    refused and does not affect later ones. While setpoints are lost, the loop brings the arm to rest.

    Attributes:
        loop: control loop of the current robot; None without one.
        limit_policy: one of LIMIT_POLICIES.
        player: player of trajectories.
        targets: topics of targets.
        supervision: watchdog and checks of the stream.
        stops: of the arm, in the place of setpoints.
        clock: of the loop, which follows that of the node.
        measured: where the arm is measured.
        contact: topics of external efforts and contact.
        modes: who leads the arm.
        statistics: of the setpoints.
        closed: whether setpoints are ignored: until the node is active, and from :meth:`switch_off` on.
    """

    def __init__(self, node: RobotNode, commands: CommandTopics, deactivate: Callable[[], None]) -> None:
        self._node, self._commands = node, commands
        self.loop: SetpointLoop | None = None
        self._shapes = LearnedShapes()
        self.statistics = StreamStatistics(node)
        self.closed = True
        # What is to be done when the stream has been switched off.
        self._afterwards: list[Callable[[], None]] = []
        quality = stream_qos(_INPUT_DEPTH, watched=True)
        setpoints = node.create_subscription(
            JointTrajectorySetpoint, "setpoint", self.answer_bytes, raw=True, **quality
        )
        clock = node.get_clock().handle
        self.clock = WatchedClock(lambda: clock.get_now().nanoseconds)  # in a quarter of the time of Clock.now()
        self._subscription, self._deactivate, self._latest = setpoints, deactivate, 0
        self.measured = MeasuredArm(node, self.clock)
        self.stops = Stops(node, self.clock, self.measured, commands, self.statistics)
        self.supervision = Supervision(node, self.clock, self.measured, self.stops, deactivate)
        self.modes = Modes(node, self.measured, self.clock, self._publish_measured)
        motions = node, self.clock, self.measured, self.stops
        self.player = TrajectoryPlayer(*motions, self._publish_played)
        publish = self._publish_played, partial(self._publish_measured, always=False)
        self.targets = TargetTopics(*motions, self._loop_to_aim, *publish)
        self.contact = ContactTopics(node, self.clock, self.measured, self._react)
        self.supervision.watch_quality(setpoints, quality["qos_profile"])
        for name in _PARAMETERS:
            self.on_parameter(name, node.get_parameter(name).value)

    def on_parameter(self, name: str, value: Any) -> None:
        """Apply a changed parameter of the node, if it concerns the stream."""
        if name == "limits":
            self.limit_policy: str = value
            self._limit(value)
        elif name == "command_lead":
            self._take_lead()
        elif name == "setpoint_lifespan":
            self._lifespan = round(value * 1e9)
        elif name == "start_tolerance" and self.loop is not None:
            self.loop.configure(start_tolerance=value)

    def take(self, loop: SetpointLoop) -> None:
        """Begin a stream for the robot of a loop, which holds the arm where that of the loop before rests."""
        before = self._commands.sent_of
        self.player.stop("the stream begins anew")
        self.loop = loop
        self.modes.take(loop)
        self.measured.take(loop)
        held = None if before is None else before.loop.setpoint["q"].copy()
        self.contact.take(loop)
        self._take_lead()
        self._limit(self.limit_policy)
        self.begin(held)

    def _take_lead(self) -> None:
        """Set the lead of setpoints, and of trajectories, whose period is known."""
        if self.loop is not None:
            given, robot = self._node.get_parameter("command_lead").value, self.loop.arm.robot
            self._lead = given if given >= 0 else robot.command_lead
            period = 1.0 / self._node.get_parameter("stream_rate").value
            self.player.lead = self.targets.lead = given if given >= 0 else robot.command_lead_at(period)
            self.loop.configure(command_lead=self._lead)
            self._shapes.forget()

    def _limit(self, policy: str) -> None:
        if self.loop is not None:
            self.loop.configure(limits=policy)

    def begin(self, held: Any = None) -> None:
        """Discard the state of the previous stream, and supervise the new one if the node is active.

        Args:
            held: where joints are held until the first setpoint, (n,); None if that is not known.
        """
        self._shapes.forget()
        self.targets.forget()
        self.closed = not self._node.active
        if self.loop:
            self.modes.take(self.loop)
            self.loop.loop.restart(held)
            self.player.take(self.loop)
            self.measured.take(self.loop)
            if self._node.active:
                self._say_what_is_unchecked(self.loop)
                self.supervision.begin(self.loop)
                self.targets.go_on()
                if self.loop.loop.settings["on_contact"] == "retract":
                    self.targets.prepare(self.loop)

    def _say_what_is_unchecked(self, loop: SetpointLoop) -> None:
        """Log which motors may take steps of any size, although jumps are to be refused."""
        speeds = limits_of(loop.arm)["motor_speed"]
        if loop.loop.settings["jump_check"] == "refuse" and not all_finite(speeds):
            names = ", ".join(name for name, x in zip(loop.arm.motor_names, speeds, strict=True) if np.isinf(x))
            self._node.get_logger().warning(f"{names}: {SAID['unchecked_steps']}")

    def objection(self, loop: SetpointLoop) -> str:
        """Why the robot of a loop cannot take over now, and what to do; empty if it can."""
        present = self._commands.sent_of
        if present is None:
            return ""
        if self.stops.phase in (Phase.RAMPING, Phase.RELEASED):
            return REFUSALS["released"]
        names = [(x.arm.robot.joint_names, x.arm.motor_names) for x in (loop, present)]
        if names[0] != names[1]:
            return "it has other joints or motors than the arm that is commanded: deactivate the node first"
        if mode := present.record.mode:
            return f"the arm is in the mode {MODES[mode]}: set the parameter mode to position"
        return "the arm moves, the robot is taken once it rests" if self.leads or present.moves else ""

    @property
    def leads(self) -> bool:
        """Whether a trajectory is played, or a target leads."""
        return self.player.playing or self.targets.leads(self.loop)

    def _loop_to_aim(self) -> SetpointLoop:
        if self.closed or self.loop is None:
            raise StateError("the node takes targets only when active")
        return self.loop

    def switch_off(self, cause: str, then: Callable[[], None]) -> None:
        """Bring the arm to rest, end the stream, and call ``then``: at once, or from a timer."""
        under_way = bool(self._afterwards)
        self._afterwards.append(then)
        if under_way:
            return
        self.closed = True
        self._shapes.forget()
        if (last := self._commands.sent_of) is None:
            self.end()
            return
        self.player.stop(cause)
        self.stops.come_to_rest(last, cause, self.end)

    def end(self) -> None:
        """End the stream, at once, with a command at rest, unless there was none; the node is no longer active."""
        self.closed = True
        self._shapes.forget()
        if (last := self._commands.sent_of) is not None:
            try:
                self.clock.now()
                faded = self.stops.phase in (Phase.RAMPING, Phase.RELEASED)
                self.measured.locate(last, ends=True)
                self._commands.publish_final(self._commands.header(self.clock.reading), last, faded=faded)
            except Exception as error:
                self._node.get_logger().error(f"no last command: {printable(refusal_reason(error))}")
        self.supervision.end()
        self.stops.end()
        self._commands.forget()
        afterwards, self._afterwards = self._afterwards, []
        for then in afterwards:
            then()

    def _react(self, cause: str) -> None:
        """React to contact, to which the loop has reacted, as the parameter on_contact says."""
        reaction = self._node.get_parameter("on_contact").value
        loop = None if self.closed or reaction == "ignore" else self.loop
        pauses, does = loop is not None and reaction == "hold" and self.player.playing, ""
        if pauses:
            does = ": what is played pauses on its path, call ~/resume"
        elif loop is not None and loop.record.aiming:
            does = ": the arm goes back to where it was commanded 0.2 s before"
        self._node.get_logger().warning(f"{cause} (on_contact: {reaction}){does}")
        if loop is None:
            return
        if reaction == "deactivate":
            self._deactivate()
        elif pauses:
            self.player.pace.pause(True, cause)
        else:
            self.player.stop(cause)
            if loop.record.aiming:
                self.targets.go_on()
            elif (last := self._commands.sent_of) is not None:
                self.stops.come_to_rest(last, cause)

    @property
    def held_by_contact(self) -> str:
        """Why references are refused after contact, and what to do; empty for nothing."""
        return self.player.pace.standstill if self.player.pace.held_by else self.contact.consequence

    def end_trajectory(self, cause: str) -> None:
        """End a trajectory that is played or waits, and hold the arm at rest, unless a stream leads."""
        leads, last = self.leads, self._commands.sent_of
        streams = not leads and last is not None and last.record.off_path == _STREAMS
        self.player.stop(cause)
        if not streams:
            self.stops.break_off(cause)
        if leads and not self.closed and last is not None and not last.moves:
            last.loop.act("stop")

    def release(self) -> None:
        """Release the robot, after the stream has ended."""
        self.loop = None
        self.modes.take(None)
        self.measured.take(None)
        self._commands.forget()

    # --- Setpoints ----------------------------------------------------------------------

    def answer_bytes(self, message: bytes) -> None:
        """Answer a serialised setpoint by a compiled call if one accepts the message, else field by field."""
        started, loop = time.perf_counter_ns(), self.loop
        if loop is None or not self._shapes.calls or self.player.playing:
            self._answer_serialised(message)
            return
        if self._lifespan:
            if not (stamp := stamp_of(message)):
                self._answer_serialised(message)
                return
            if self._drop_if_expired(stamp):
                return
        now = self.clock.now()
        if now - self._latest > LONGEST_GAP:
            self.start_measured()
        self._latest = now
        answer = self._shapes.answer(message, now, self._commands.first)
        if answer is None:
            self._answer_serialised(message)
            return
        (call, command), statistics = answer, self.statistics
        loop.remember(call.call.stamp)
        statistics.received += 1
        try:
            if isinstance(command, int):
                raise loop.refusal(Refusal(command))
            self._commands.publish_bytes(call, command, loop)
            self._answered(loop)
        except Exception as error:
            self._refuse(deserialize_message(message, JointTrajectorySetpoint).header, error)
        else:
            statistics.published += 1
            if call.call.remarks:
                self._remark(loop, call.call.remarks)
        statistics.add_time(time.perf_counter_ns() - started)

    def _answered(self, loop: SetpointLoop) -> None:
        """Record a setpoint whose command has been sent."""
        self.supervision.answered(loop)

    def _remark(self, loop: SetpointLoop, remarks: int) -> None:
        """Log warnings about an accepted setpoint, in bits: EXCEEDS, SUSPECT."""
        if remarks & EXCEEDS:
            self.statistics.exceed(loop.violations(), clips=self.limit_policy == "clip")
        if remarks & SUSPECT:
            self._node.warn("setpoint in doubt", printable(loop.suspicion()))

    def _answer_serialised(self, message: bytes) -> None:
        """Answer a serialised setpoint field by field, and learn its shape."""
        try:
            setpoint = deserialize_message(message, JointTrajectorySetpoint)
        except Exception as error:
            self.statistics.received += 1
            self.statistics.refuse(f"the message cannot be read: {error}")
            return
        if self._accept(setpoint) and self.answer(setpoint) and self.loop:
            self._shapes.learn(setpoint, message, partial(self.loop.call_for, setpoint, message))

    def _accept(self, setpoint: JointTrajectorySetpoint) -> bool:
        """Refuse a setpoint that is too old or comes during a trajectory; return whether to answer it."""
        stamp = nanoseconds(setpoint.header.stamp)
        if self._lifespan and stamp and self._node.active and self._drop_if_expired(stamp):
            return False
        if not self.player.playing or self.loop is None:
            return True
        self.statistics.received += 1
        self._refuse(setpoint.header, TrajectoryError(REFUSALS["busy"]))
        return False

    def _drop_if_expired(self, stamp: int) -> bool:
        """Count and log a setpoint whose stamp, ns, is further than its lifespan from now; return whether it is."""
        age = self._node.get_clock().now().nanoseconds - stamp
        if abs(age) <= self._lifespan:
            return False
        self.statistics.expire(age, self._lifespan)
        return True

    def answer(self, setpoint: JointTrajectorySetpoint) -> bool:
        """Publish the command for a setpoint; return whether the setpoint was valid."""
        loop, stamp = self.loop, nanoseconds(setpoint.header.stamp)
        if self.closed or loop is None:
            self.statistics.received += 1
            self.statistics.ignored += 1
            return False

        def cycle() -> int:
            self.start_measured()
            loop.read(setpoint)
            self.require_radians(loop.loop.given["q"])
            loop.configure(command_lead=self._lead)
            return loop.answer(stamp, self.clock.now())

        remarks = self._sent(setpoint.header, loop, cycle, time.perf_counter_ns())
        if remarks is not None:
            self._remark(loop, remarks)
        return remarks is not None

    def start_measured(self) -> None:
        """Hold the arm where it is measured, so that the first reference is checked, also after a pause."""
        loop = self.loop
        if loop is None or loop.loop.settings["jump_check"] == "ignore":
            return
        if self._commands.sent_of is not None:
            self.measured.locate(loop)
        elif not (self.leads or self.player.waiting):
            self.measured.hold(loop)

    def require_radians(self, q: Array) -> None:
        """Refuse a first position (n,) that seems to be in degrees; only with ``safety: strict``."""
        strict = self._node.get_parameter("safety").value == "strict"
        if strict and self.loop is not None and not self.loop.record.fed:
            self.loop.require_radians(q)

    def _sent(self, header: Header, loop: SetpointLoop, cycle: Callable[[], int], started: int) -> int | None:
        """Publish the command of a cycle; return what is wrong with it all the same, or None where it was refused."""
        statistics = self.statistics
        statistics.received += 1
        try:
            remarks = cycle()
            self._commands.publish(header, loop)
            self._answered(loop)
            statistics.published += 1
            return remarks
        except Exception as error:
            self._refuse(header, error)
            return None
        finally:
            statistics.add_time(time.perf_counter_ns() - started)

    def _refuse(self, header: Header, error: Exception) -> None:
        """Report a refused setpoint, while its error is handled; for an invalid stiffness, repeat the last command."""
        detail = "" if isinstance(error, EomDynamicsError) else traceback.format_exc()
        if detail and not self._node.context.ok():  # at shutdown the publishers are gone
            return
        self.supervision.notice_loss()
        last = self._commands.sent_of
        if isinstance(error, EarlySetpointError):  # it waits for the next cycle
            self._node.warn("setpoint early", str(error))
            return
        if isinstance(error, StiffnessError) and last is not None and not self.stops.responding:
            self._commands.publish(header, last, Status.HELD)
            self.statistics.held += 1
        self.statistics.refuse(refusal_reason(error), detail)

    # --- Commands without setpoints -----------------------------------------------------

    def _publish_played(self, loop: SetpointLoop, stamp: int, frame_id: str, code: int) -> bool:
        """Publish the command of a trajectory at a stamp, ns; return whether it was not refused."""
        started = time.perf_counter_ns()
        self._shapes.forget()  # the lead is that of trajectories
        header = Header(stamp=Time(nanoseconds=stamp).to_msg(), frame_id=frame_id)
        self.statistics.led += 1
        remarks = self._sent(header, loop, lambda: loop.accepted(code), started)
        if remarks is not None:
            self._remark(loop, remarks)
        return remarks is not None

    def _publish_measured(self, loop: SetpointLoop, now: int, *, always: bool = True) -> bool:
        """Run a cycle without references, unless others go on; publish always, or a new command; return whether."""
        record = loop.record
        busy = self.player.playing or record.aiming or self.stops.responding
        idle = not always and self._commands.sent_of is None
        if self.closed or busy or idle:
            return False
        followed = record.followed
        loop.loop.update(now)
        record = loop.record
        if record.blending and record.payload_stays:
            self._node.warn("the payload changes no further", loop.loop.text("overload"))
        if not (record.valid and (always or record.followed > followed)):
            return False
        self._shapes.forget()
        self._commands.publish(self._commands.header(self.clock.reading), loop, loop.loop.status)
        return True

    # --- Diagnostics --------------------------------------------------------------------

    def _unheard(self) -> str:
        """Why setpoints of a publisher are not received, and what to do; empty for nothing."""
        own = self._subscription.qos_profile
        for x in self._node.get_publishers_info_by_topic(self._subscription.topic_name):
            found, reason = qos_check_compatible(x.qos_profile, own)
            if found == QoSCompatibility.ERROR:
                name = f"{x.node_namespace.rstrip('/')}/{x.node_name}"
                why = reason.removeprefix("ERROR: ").rstrip("; ").lower()
                return printable(
                    f"no setpoints of {name} are received, by their quality of service ({why}): publish reliably, or "
                    f"set qos_overrides.{self._subscription.topic_name}.subscription.reliability to best_effort"
                )
        return ""

    def report(self, seconds: float) -> StatusReport:
        """Diagnostic status of setpoints, without supervision."""
        level, message, figures = self.statistics.report(seconds)
        self._commands.count_listeners()
        if self.loop is not None and (period := self.loop.period) > 0:
            for line in period_note(self.loop.arm.robot, period):
                self._node.warn("timing", line)
        lead = self.player.lead if self.player.playing else self._lead if self.loop else 0.0
        values = {"command lead [ms]": f"{1e3 * lead:g}", **self.player.values, **self.targets.report(self.loop)}
        if level == Level.OK and (late := self.player.lateness):
            level, message = Level.WARN, f"trajectory late: {late}"
        what = next((x for x in ("target", "trajectory") if x in values), "")
        if what and level == Level.OK and (self.leads or message == WAITING):
            message = (self.player.playing and self.player.pace.standstill) or f"{what} {values[what]}"
        if message == WAITING and (unheard := self._unheard()):
            level, message = Level.WARN, unheard
        elif level == Level.OK and values.get("target", "").startswith(NOT_REACHED):
            level = Level.WARN
        return StatusReport(level, message, values | figures)
