# SPDX-License-Identifier: Apache-2.0
"""Stream of setpoints of a node, from its begin to the last command."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.qos import QoSCompatibility, qos_check_compatible

from ...arguments import all_finite
from ...control.control_loop import OffPath
from ...control.robot_table import limits_of, missing_limits
from ...control.setpoint_loop import SetpointLoop, period_note
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import MODES, SHARED_MESSAGES
from ...elastic.drive_programs import DRIVE_NAMES
from ...spelling import listed
from ...terminal import printable
from ..diagnostics import Level, StatusReport
from ..robot_node import RobotNode
from .command_topics import CommandTopics
from .contact_topics import ContactTopics
from .setpoint_answers import INPUT_DEPTH, SetpointAnswers
from .statistics import WAITING
from .stops import Modes
from .target_topics import NOT_REACHED

# Duration of the fade to zero efforts before the node is deactivated, s.
FADE = 0.5


class SetpointStream(SetpointAnswers):
    """Stream of the robot of the node: its begin, its end, and the cycles in between.

    Attributes:
        limit_policy: one of LIMIT_POLICIES.
        contact: topics of external efforts and contact.
        modes: control modes.
        unlimited: joints of the robot without limits, and the remedy, in a strict node; empty for none.
    """

    def __init__(self, node: RobotNode, commands: CommandTopics, deactivate: Callable[[], None]) -> None:
        super().__init__(node, commands, deactivate)
        self._deactivate = deactivate
        # Called when the stream has been switched off.
        self._afterwards: list[Callable[[], None]] = []
        self.unlimited = ""
        self.modes = Modes(node, self.measured, self.clock, self._publish_measured)
        self.contact = ContactTopics(node, self.clock, self.measured, self._react)
        self._fade_end = 0.0
        period = 1.0 / node.get_parameter("stream_rate").value
        self._fade = node.punctual.create(node, period, self._continue_fade, steady=True)
        self.on_parameter("limits", node.get_parameter("limits").value)

    def on_parameter(self, name: str, value: Any) -> None:
        """Apply a changed parameter of the node, if it concerns the stream."""
        if name == "limits":
            self.limit_policy: str = value
            self._limit(value)
        elif name == "start_tolerance" and self.loop is not None:
            self.loop.configure(start_tolerance=value)

    def take(self, loop: SetpointLoop) -> None:
        """Start a stream for the robot of a loop; a resting arm stays at the last command of the previous loop."""
        before = self._commands.sent_of
        self.player.stop("the stream begins again")
        self.loop = loop
        self.modes.take(loop)
        self.measured.take(loop)
        held = None if before is None else before.loop.setpoint["q"].copy()
        self.contact.take(loop)
        strict = self._node.get_parameter("safety").value == "strict"
        missing = missing_limits(loop.arm) if strict else {}
        joints = ", ".join(f"{name} ({listed(quantities)})" for name, quantities in missing.items())
        self.unlimited = printable(f"no limits of {joints}: add them to the robot's file") if missing else ""
        self._limit(self.limit_policy)
        self.begin(held)

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
        if self.closed and self._node.active:
            self._ignore_waiting()
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

    def _ignore_waiting(self) -> None:
        """Ignore setpoints that wait in the middleware from before the node was active: they would come at once."""
        statistics, subscription = self.statistics, self._subscription
        with subscription.handle:
            for _ in range(INPUT_DEPTH):
                if subscription.handle.take_message(subscription.msg_type, subscription.raw) is None:
                    return
                statistics.received += 1
                statistics.ignored += 1

    def _say_what_is_unchecked(self, loop: SetpointLoop) -> None:
        """Log which motors may take steps of any size, although jumps are to be refused."""
        speeds = limits_of(loop.arm)["motor_speed"]
        if loop.loop.settings["jump_check"] == "refuse" and not all_finite(speeds):
            names = ", ".join(name for name, x in zip(loop.arm.motor_names, speeds, strict=True) if np.isinf(x))
            self._node.get_logger().warning(f"{names}: {SHARED_MESSAGES['unchecked_steps']}")

    def objection(self, loop: SetpointLoop) -> str:
        """Why the robot of a loop cannot take over now, and what to do; empty if it can."""
        present = self._commands.sent_of
        if present is None:
            return ""
        names = [(x.arm.robot.joint_names, x.arm.motor_names) for x in (loop, present)]
        if names[0] != names[1]:
            return "it has other joints or motors than the arm that is commanded: deactivate the node first"
        if mode := present.record.mode:
            return f"the arm is in the mode {MODES[mode]}: set the parameter mode to position"
        return "the arm moves, the robot is used once it rests" if self.leads or present.moves else ""

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
        self.stops.come_to_rest(last, cause, self._fade_out)

    def _fade_out(self) -> None:
        """End the stream once the efforts have faded to zero, or now if the last command keeps efforts."""
        last = self._commands.sent_of
        keeps = self._node.get_parameter("effort_on_deactivate").value != "zero"
        if last is None or keeps or not last.record.valid or not last.loop.sent[DRIVE_NAMES[2]].any():
            self.end()
            return
        self.supervision.end()
        self.stops.end()
        self._fade_end = time.monotonic() + FADE
        self._fade.reset()

    def _continue_fade(self) -> None:
        """Publish a command of the fade, and end the stream after the last one."""
        remaining, last = (self._fade_end - time.monotonic()) / FADE, self._commands.sent_of
        if last is None or remaining <= 0:
            self.end()
            return
        self._commands.publish_final(self._commands.header(self.clock.reading), last, remaining)

    def end(self) -> None:
        """End the stream, at once, with a command at rest, unless there was none; the node is no longer active."""
        self.closed = True
        self._fade.cancel()
        self._shapes.forget()
        if (last := self._commands.sent_of) is not None:
            try:
                self.clock.now()
                self.measured.locate(last, ends=True)
                self._commands.publish_final(self._commands.header(self.clock.reading), last)
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
        loop = self.loop if not self.closed and self.loop is not None and self.loop.record.touched else None
        does = ""
        if loop is not None and loop.record.aiming:
            does = ": the arm returns to its commanded position 0.2 s earlier"
        self._node.get_logger().warning(f"{cause} (on_contact: {reaction}){does}")
        if loop is None:
            return
        self.player.stop(cause)
        if reaction == "deactivate":
            self._deactivate()
        elif loop.record.aiming:
            self.targets.go_on()
        elif (last := self._commands.sent_of) is not None:
            self.stops.come_to_rest(last, cause)

    @property
    def held_by_contact(self) -> str:
        """Why references are refused after contact, and what to do; empty for nothing."""
        return self.player.pace.standstill if self.player.pace.held_by else self.contact.consequence

    def drop_trajectory(self, cause: str) -> None:
        """Stop the active trajectory, or drop a waiting one and leave the present motion alone."""
        if self.player.playing:
            self.end_trajectory(cause)
        else:
            self.player.drop(cause)

    def end_trajectory(self, cause: str) -> None:
        """End a trajectory that is played or waits, and hold the arm at rest, unless a stream leads."""
        leads, last = self.leads, self._commands.sent_of
        streams = not leads and last is not None and last.record.off_path == OffPath["references"]
        self.player.stop(cause)
        if not streams:
            self.stops.break_off(cause)
        if leads and not self.closed and last is not None and not last.moves:
            last.loop.act("stop")

    def release(self) -> None:
        """Release the robot, after the stream has ended."""
        self.loop, self.unlimited = None, ""
        self.modes.take(None)
        self.measured.take(None)
        self._commands.forget()

    # --- Diagnostics --------------------------------------------------------------------

    def _unheard(self) -> str:
        """Why setpoints of a publisher are not received, and what to do; empty for nothing."""
        offered = self._subscription.qos_profile
        for x in self._node.get_publishers_info_by_topic(self._subscription.topic_name):
            compatibility, reason = qos_check_compatible(x.qos_profile, offered)
            if compatibility == QoSCompatibility.ERROR:
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
        lead = self.loop.arm.robot.command_lead if self.loop else 0.0
        values = {"command lead [ms]": f"{1e3 * lead:g}", **self.player.values, **self.targets.report(self.loop)}
        if level == Level.OK and self.player.playing and (late := self.player.pace.lateness):
            level, message = Level.WARN, f"trajectory late: {late}"
        what = next((x for x in ("target", "trajectory") if x in values), "")
        if what and level == Level.OK and (self.leads or message == WAITING):
            message = (self.player.playing and self.player.pace.standstill) or f"{what} {values[what]}"
        if message == WAITING and (unheard := self._unheard()):
            level, message = Level.WARN, unheard
        elif level == Level.OK and values.get("target", "").startswith(NOT_REACHED):
            level = Level.WARN
        return StatusReport(level, message, values | figures)
