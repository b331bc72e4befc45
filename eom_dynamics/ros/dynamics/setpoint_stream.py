# SPDX-License-Identifier: Apache-2.0
"""Stream of setpoints, each answered with a command or refused."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message
from rclpy.time import Time
from std_msgs.msg import Header

from ...arrays import Array
from ...exceptions import EomDynamicsError, StateError, TrajectoryError
from ...messages.cdr import stamp_of
from ...messages.payload_blend import PayloadBlend
from ...messages.setpoint_to_command import Ahead, EvaluatedCommand, SetpointEvaluator, is_held, refusal_reason
from ...stream.arm_stop import final_command
from ...stream.compiled_stream import CompiledStream, LearnedShapes, ShapeCall
from ...stream.watchdog import Response, Status, moves
from ...terminal import printable
from ..diagnostics import StatusReport
from ..interfaces import JointTrajectorySetpoint, TaskSetpoint, nanoseconds, stream_qos
from ..robot_node import RobotNode
from .command_topics import CommandTopics, SentCommand
from .statistics import StreamStatistics
from .supervision import Supervision
from .task_topic import TaskTopic
from .trajectory_player import TrajectoryPlayer

# One second of setpoints at 1 kHz, so that none is lost when the node stalls.
_INPUT_DEPTH = 1000

_PARAMETERS = ("effort_command", "limits", "setpoint_lifespan", "command_lead")


class SetpointStream:
    """Answers setpoints with commands; all methods are called by the node's executor.

    Setpoints come from the topics ``setpoint`` and ``task_setpoint``, or from the player while it plays a trajectory.
    Those of one shape, as a stream repeats it, are answered by one compiled call, others field by field. An invalid one
    is refused and does not affect later ones: evaluator, tasks and supervision continue from the last command that was
    published. While setpoints are lost, commands come from the supervision.

    Attributes:
        evaluator: of the current robot; None without one.
        limit_policy: one of LIMIT_POLICIES, for setpoints of the joints.
        player: player of trajectories.
        supervision: watchdog and checks of the stream.
        statistics: of the setpoints.
        closed: whether setpoints are ignored: until the node is active, and from :meth:`switch_off` on.
    """

    def __init__(self, node: RobotNode, commands: CommandTopics, deactivate: Callable[[], None]) -> None:
        self._node, self._commands = node, commands
        self.evaluator: SetpointEvaluator | None = None
        # Of the payload that the compiled calls take into account; none while that changes.
        self._payload_version: int | None = 0
        self._compiled: CompiledStream | None = None
        self._shapes = LearnedShapes()
        self.statistics = StreamStatistics(node)
        for name in _PARAMETERS:
            self.on_parameter(name, node.get_parameter(name).value)
        # Of the supervision, where setpoints are supervised; stamp, ns, and frame of the last answered one.
        self._admit: Callable[[int, Array], None] | None = None
        self._stamp, self._frame_id = 0, ""
        # The last command for the robot before, until there is one for the present robot.
        self._of_previous_robot: tuple[SetpointEvaluator, SentCommand] | None = None
        self.closed = True
        # What is to be done when the stream has been switched off.
        self._afterwards: list[Callable[[], None]] = []
        quality = stream_qos(_INPUT_DEPTH, watched=True)
        setpoints = node.create_subscription(
            JointTrajectorySetpoint, "setpoint", self.answer_bytes, raw=True, **quality
        )
        self._tasks = TaskTopic(node, self._answer_task, _INPUT_DEPTH)
        self.player = TrajectoryPlayer(node, lambda setpoint, ahead: self.answer(setpoint, ahead=ahead))
        self.player.on_break = self._stop_unfinished
        self.supervision = Supervision(
            node,
            self._publish_response,
            deactivate,
            lambda: setpoints.get_publisher_count() + self._tasks.publishers,
            lambda: self.player.playing,
        )
        self.player.require_efforts = self.supervision.require_efforts
        self.supervision.watch_quality(setpoints, quality["qos_profile"])

    def on_parameter(self, name: str, value: Any) -> None:
        """Apply a changed parameter of the node, if it concerns the stream."""
        if name == "effort_command":
            self._commands.commands_motors = value == "motor"
        elif name == "limits":
            self.limit_policy: str = value
            self._shapes.forget()
        elif name == "command_lead":
            self._command_lead = value
            self._take_lead()
            self._shapes.forget()
        elif name == "setpoint_lifespan":
            self._lifespan = round(value * 1e9)

    def take(self, evaluator: SetpointEvaluator, compiled: CompiledStream | None) -> None:
        """Begin a stream for the robot of an evaluator, with its compiled calls, if any."""
        last = self._last()
        if last is not None and self.player.playing and moves(last[1].command):
            self._come_to_rest(*last, "the robot was replaced during a trajectory")
        self.evaluator, self._compiled, self._of_previous_robot = evaluator, compiled, last
        evaluator.payload, self._payload_version = PayloadBlend(evaluator.arm.robot), 0
        evaluator.clock = self.supervision.clock.now
        self._take_lead()
        self.begin()
        self._tasks.take(evaluator.arm.robot)

    def _take_lead(self) -> None:
        """Set the lead of setpoints, and of trajectories, whose period is known."""
        if self.evaluator is not None:
            lead, robot = self._command_lead, self.evaluator.arm.robot
            self.evaluator.lead = lead if lead >= 0 else robot.command_lead
            period = 1.0 / self._node.get_parameter("stream_rate").value
            self.player.lead = lead if lead >= 0 else robot.command_lead_at(period)

    def begin(self) -> None:
        """Discard the state of the previous stream; supervise the new one if the node is active."""
        self._commands.forget()
        self._shapes.forget()
        self._tasks.forget()
        self._admit = None
        self.closed = not self._node.active
        if self.evaluator:
            self.evaluator.restart()
            if self._node.active:
                self.supervision.begin(self.evaluator)
                self._admit = self.supervision.admit if self.supervision.on else None

    @property
    def ending(self) -> bool:
        """Whether the arm is being brought to rest, since the stream is switched off."""
        return bool(self._afterwards)

    def switch_off(self, cause: str, then: Callable[[], None]) -> None:
        """Bring the arm to rest, end the stream, and call ``then``: at once, or from a timer."""
        under_way = self.ending
        self._afterwards.append(then)
        if under_way:
            return
        self.closed = True
        self._shapes.forget()
        if (last := self._last()) is None:
            self.end()
            return
        self.player.stop(cause, forget=True)
        self._come_to_rest(*last, cause, self.end)

    def end(self) -> None:
        """End the stream, at once, with a command at rest, unless there was none; the node is no longer active."""
        self.closed = True
        self._shapes.forget()
        if (last := self._last()) is not None:
            try:
                self._send_final(*last)
            except Exception as error:
                self._node.get_logger().error(f"no last command: {printable(refusal_reason(error))}")
        self.supervision.end()
        self._commands.forget()
        self._of_previous_robot = None
        afterwards, self._afterwards = self._afterwards, []
        for then in afterwards:
            then()

    def _last(self) -> tuple[SetpointEvaluator, SentCommand] | None:
        """The last command since activation, and its evaluator."""
        last = self._commands.last
        return self._of_previous_robot if last is None or self.evaluator is None else (self.evaluator, last)

    def _come_to_rest(
        self, evaluator: SetpointEvaluator, last: SentCommand, cause: str, done: Callable[[], None] | None = None
    ) -> None:
        if not self.supervision.responding:
            self._stamp, self._frame_id = last.stamp, last.frame_id
        self.supervision.come_to_rest(evaluator, last.command, cause, done)

    def _stop_unfinished(self, cause: str) -> None:
        """Bring the arm to rest from the last command of a trajectory that has ended in motion."""
        last = self._last()
        if self.closed or self.evaluator is None or last is None or not moves(last[1].command):
            return
        self._come_to_rest(*last, f"trajectory stopped: {cause}")
        # The stream goes on after the stop, supervised as before.
        self.supervision.begin(self.evaluator)
        self._admit = self.supervision.admit

    def _send_final(self, evaluator: SetpointEvaluator, last: SentCommand) -> None:
        """Send the command that remains in effect after the last one."""
        remain = self._node.get_parameter("effort_on_deactivate").value
        command, efforts, logger = last.command, None, self._node.get_logger()
        if self.supervision.released:
            remain = "zero"
        elif remain == "keep":
            efforts = command
        elif remain == "gravity":
            at_rest = np.zeros_like(command.state)
            at_rest[0] = command.state[0]
            payload = command.payload[:1]  # its change may be under way
            try:
                efforts = evaluator.command(
                    command.order, at_rest, (), command.stiffness, command.base, limit_policy="ignore", payload=payload
                )
            except StateError as error:
                remain = "zero"
                logger.error(f"efforts that remain are zero, as those of gravity cannot be computed: {error}")
        self.supervision.clock.now()
        header = Header(stamp=Time(nanoseconds=self.supervision.clock.reading).to_msg(), frame_id=last.frame_id)
        self._commands.publish(header, final_command(command, efforts), Status.HELD)
        logger.info(f"last command: positions are held, velocities are zero, efforts: {remain}")

    def release(self) -> None:
        """Release the robot, after the stream has ended."""
        self.evaluator = None
        self._commands.forget()

    # --- Setpoints ----------------------------------------------------------------------

    def answer_bytes(self, message: bytes) -> None:
        """Answer a serialised setpoint by a compiled call if one accepts the message, else field by field."""
        started = time.perf_counter_ns()
        latest, evaluator = self._shapes.latest, self.evaluator
        if latest is None or evaluator is None or self.player.playing:
            self._answer_serialised(message)
            return
        if evaluator.payload.version != self._payload_version and not self._update_payload(evaluator, latest, message):
            self._answer_serialised(message)
            return
        call = latest.call
        call.first = self._commands.first
        command = call(message)
        if command is None:
            if self._shapes.switch_to(message):
                self.answer_bytes(message)
            else:
                self._answer_serialised(message)
            return
        stamp = call.stamp
        if self._lifespan and self._drop_if_expired(stamp):
            return
        statistics, admit = self.statistics, self._admit
        statistics.received += 1
        try:
            if admit is not None:
                admit(stamp, latest.state)
            self._commands.publish_bytes(latest, command)
            call.commit()
            if self._payload_version is None:
                evaluator.payload.commit()
            self._tasks.command(stamp, latest.committed_state)
            self.player.command(latest.committed_state)
            if admit is not None:
                self._supervise(stamp, latest.shape.frame_id, latest.command())
        except Exception as error:
            self._refuse(deserialize_message(message, JointTrajectorySetpoint), error)
        else:
            statistics.published += 1
            if call.exceeded:
                statistics.exceed(latest.violations(), clips=self.limit_policy == "clip")
        statistics.add_time(time.perf_counter_ns() - started)

    def _update_payload(self, evaluator: SetpointEvaluator, latest: ShapeCall, message: bytes) -> bool:
        """Set the changed payload of all compiled calls; return whether they may answer a message."""
        payload = evaluator.payload
        changes = payload.blending
        parameters = payload.at(stamp_of(message), evaluator.clock()) if changes else payload.target
        self._payload_version = None if changes else payload.version
        if latest.has_payload != bool(parameters):
            self._shapes.forget()
            return False
        self._shapes.set_payload(parameters)
        return True

    def _answer_serialised(self, message: bytes) -> None:
        """Answer a serialised setpoint field by field, and learn its shape."""
        try:
            setpoint = deserialize_message(message, JointTrajectorySetpoint)
        except Exception as error:
            self.statistics.received += 1
            self.statistics.refuse(f"the message cannot be read: {error}")
            return
        if self._accept(setpoint) and self.answer(setpoint) and self._compiled:
            call_for = partial(
                self._compiled.call_for, limit_policy=self.limit_policy, commands_motors=self._commands.commands_motors
            )
            self._shapes.learn(setpoint, message, call_for)

    def _supervise(self, stamp: int, frame_id: str, command: EvaluatedCommand) -> None:
        self._stamp, self._frame_id = stamp, frame_id
        self.supervision.feed(stamp, command)

    def _answer_task(self, task: TaskSetpoint) -> None:
        """Answer a setpoint of a tool by that of the joints."""
        if not self._accept(task):
            return
        setpoint, started = JointTrajectorySetpoint(), time.perf_counter_ns()
        try:
            if not self.closed and self.evaluator is not None:
                setpoint = self._tasks.solve(task)
        except Exception as error:
            self.statistics.received += 1
            self._refuse(task, error)
        else:
            self.answer(setpoint, self._node.get_parameter("task_limits").value, started)

    def _accept(self, setpoint: JointTrajectorySetpoint | TaskSetpoint) -> bool:
        """Refuse a setpoint that is too old or comes during a trajectory; return whether to answer it."""
        if self._lifespan and self._node.active and self._drop_if_expired(nanoseconds(setpoint.header.stamp)):
            return False
        if not self.player.playing:
            return True
        self.statistics.received += 1
        self._refuse(setpoint, TrajectoryError("a trajectory is being played; an empty one stops it"))
        return False

    def _drop_if_expired(self, stamp: int) -> bool:
        """Count and log a setpoint whose stamp, ns, is older than its lifespan; return whether it is."""
        age = self._node.get_clock().now().nanoseconds - stamp
        if age <= self._lifespan:
            return False
        self.statistics.expire(age, self._lifespan)
        return True

    def answer(
        self, setpoint: JointTrajectorySetpoint, limit_policy: str = "", started: int = 0, ahead: Ahead | None = None
    ) -> bool:
        """Publish the command for a setpoint; return whether the setpoint was valid.

        Args:
            limit_policy: one of LIMIT_POLICIES; by default :attr:`limit_policy`.
            started: when its computation began, ns; by default now.
            ahead: exact motion that the command is for, where it is known.
        """
        started = started or time.perf_counter_ns()
        statistics = self.statistics
        statistics.received += 1
        if self.closed or self.evaluator is None:
            statistics.ignored += 1
            return False
        stamp = nanoseconds(setpoint.header.stamp)
        answered = False
        try:
            command = self.evaluator.evaluate(
                setpoint, stamp=stamp, limit_policy=limit_policy or self.limit_policy, admit=self._admit, ahead=ahead
            )
            self._commands.publish(setpoint.header, command, Status.FRESH)
            self.evaluator.commit()
            self._tasks.command(stamp, command.state)
            self.player.command(command.state)
            if self._admit is not None:
                self._supervise(stamp, setpoint.header.frame_id, command)
        except Exception as error:
            self._refuse(setpoint, error)
        else:
            answered = True
            statistics.published += 1
            statistics.exceed(command.violations, clips=self.limit_policy == "clip")
        statistics.add_time(time.perf_counter_ns() - started)
        return answered

    def _refuse(self, setpoint: JointTrajectorySetpoint | TaskSetpoint, error: Exception) -> None:
        """Report a refused setpoint, while its error is handled, and repeat the last command if it is to be held."""
        detail = "" if isinstance(error, EomDynamicsError) else traceback.format_exc()
        if detail and not self._node.context.ok():  # at shutdown the publishers are gone
            return
        held = is_held(error, self._node.get_parameter("hold_last_command").value)
        if held and self._commands.holds_command and not self.supervision.responding:
            self._commands.repeat(setpoint.header)
            self.statistics.held += 1
        self.statistics.refuse(refusal_reason(error), detail)

    # --- Loss of setpoints --------------------------------------------------------------

    def _publish_response(self, evaluator: SetpointEvaluator, last: EvaluatedCommand, response: Response) -> bool:
        """Publish the response to a loss, in the joint order of the last command; return whether that is possible."""
        now = self.supervision.clock.reading
        header = Header(stamp=Time(nanoseconds=now).to_msg(), frame_id=self._frame_id)
        # Dampers go on from the last setpoint, as the response does.
        stamp = self._stamp + round(response.s * 1e9) if self._stamp else 0
        limit_policy = "warn" if self.limit_policy == "refuse" else self.limit_policy
        try:
            # With the lead of the last command, which was that of the player in a trajectory.
            command = evaluator.command(
                last.order, *response.flow, stamp=stamp, limit_policy=limit_policy, lead=last.lead
            )
            if response.fade:
                command = response.fade.of(command)
            self._commands.publish(header, command, response.status)
            evaluator.commit()
            if evaluator is self.evaluator:
                self._tasks.command(now, command.state)
            elif last_sent := self._commands.last:  # another robot is about to take over
                self._of_previous_robot = evaluator, last_sent
                self._commands.forget()
            present = self.evaluator or evaluator
            if present.arm.robot.joint_names == evaluator.arm.robot.joint_names:
                self.player.command(command.state)
        except StateError as error:
            if self._node.is_due("no response"):
                self._node.get_logger().error(f"no command for the response to lost setpoints: {error}")
            return False
        self.statistics.exceed(command.violations, clips=self.limit_policy == "clip")
        return True

    # --- Diagnostics --------------------------------------------------------------------

    def report(self, seconds: float) -> StatusReport:
        """Diagnostic status of setpoints, without supervision."""
        level, message, figures = self.statistics.report(seconds)
        self._commands.count_listeners()
        lead = self.player.lead if self.player.playing else self.evaluator.lead if self.evaluator else 0.0
        values = {"stream": "compiled" if self._compiled else "general", "command lead [ms]": f"{1e3 * lead:g}"}
        return StatusReport(level, message, {**values, **figures})
