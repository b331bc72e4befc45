# SPDX-License-Identifier: Apache-2.0
"""Stream of setpoints, each answered with a command or refused."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial

from rclpy.serialization import deserialize_message
from rclpy.time import Time
from std_msgs.msg import Header

from ...arrays import Array
from ...elastic import LimitViolation
from ...exceptions import EomDynamicsError, StateError, TrajectoryError
from ...messages.cdr import stamp_of
from ...messages.payload_blend import PayloadBlend
from ...messages.refusals import is_held, refusal_reason
from ...messages.setpoint_to_command import Ahead, EvaluatedCommand, SetpointEvaluator
from ...stream.compiled_stream import CompiledStream, ShapeCall
from ...stream.learned_shapes import LearnedShapes
from ...stream.watchdog import Response, Status
from ..diagnostics import StatusReport
from ..interfaces import JointTrajectorySetpoint, TaskSetpoint
from ..robot_node import RobotNode
from ..stream_qos import stream_qos
from .command_topics import CommandTopics
from .statistics import StreamStatistics
from .stream_warnings import StreamWarnings
from .supervision import Supervision
from .task_topic import TaskTopic
from .trajectory_player import TrajectoryPlayer

# One second of setpoints at 1 kHz, so that none is lost when the node stalls.
_INPUT_DEPTH = 1000

_PARAMETERS = ("effort_command", "limits", "task_limits", "hold_last_command", "setpoint_lifespan", "command_lead")


class SetpointStream:
    """Answers setpoints with commands; all methods are called by the node's executor.

    Setpoints come from the topics ``setpoint`` and ``task_setpoint``, or from the player while it plays a trajectory.
    Those of one shape, as a stream repeats it, are answered by one compiled call, others field by field. An invalid one
    is refused and does not affect later ones. While setpoints are lost, commands come from the supervision.

    Attributes:
        evaluator: of the current robot; None without one.
        limit_policy: one of LIMIT_POLICIES, for setpoints of the joints.
        player: player of trajectories.
        supervision: watchdog and checks of the stream.
        statistics: of the setpoints.
    """

    def __init__(self, node: RobotNode, commands: CommandTopics, deactivate: Callable[[], None]) -> None:
        """Subscribe, knowing no robot.

        Args:
            node: the node.
            commands: where commands are published.
            deactivate: deactivates the node.
        """
        self._node, self._commands = node, commands
        self.evaluator: SetpointEvaluator | None = None
        # Of the payload that the compiled calls take into account; none while that changes.
        self._payload_version: int | None = 0
        self._compiled: CompiledStream | None = None
        self._shapes = LearnedShapes()
        self.statistics = StreamStatistics()
        self._warnings = StreamWarnings(node, self.statistics)
        for name in _PARAMETERS:
            self.on_parameter(name, node.get_parameter(name).value)
        # Of the supervision, where setpoints are supervised; stamp, ns, and frame of the last answered one.
        self._admit: Callable[[int, Array], None] | None = None
        self._stamp, self._frame_id = 0, ""
        quality = stream_qos(_INPUT_DEPTH, watched=True)
        setpoints = node.create_subscription(
            JointTrajectorySetpoint, "setpoint", self.answer_bytes, raw=True, **quality
        )
        self._tasks = TaskTopic(node, self._answer_task, _INPUT_DEPTH)
        self.player = TrajectoryPlayer(node, lambda setpoint, ahead: self.answer(setpoint, ahead=ahead))
        self.supervision = Supervision(
            node,
            self._publish_response,
            deactivate,
            lambda: setpoints.get_publisher_count() + self._tasks.publishers,
            lambda: self.player.playing,
        )
        self.supervision.watch_quality(setpoints, quality["qos_profile"])

    def on_parameter(self, name: str, value: object) -> None:
        """Apply a changed parameter of the node, if it concerns the stream."""
        if name == "effort_command":
            self._commands.commands_motors = value == "motor"
        elif name == "limits":
            self.limit_policy = str(value)
            self._shapes.forget()
        elif name == "command_lead":
            self._command_lead = float(str(value))
            self._take_lead()
            self._shapes.forget()
        elif name == "task_limits":
            self._task_limits = str(value)
        elif name == "hold_last_command":
            self._hold = str(value)
        elif name == "setpoint_lifespan":
            self._lifespan = round(float(str(value)) * 1e9)

    def take(self, evaluator: SetpointEvaluator, compiled: CompiledStream | None) -> None:
        """Begin a stream for a robot.

        Args:
            evaluator: its evaluator.
            compiled: its compiled calls, if any.
        """
        self.evaluator, self._compiled = evaluator, compiled
        evaluator.payload, self._payload_version = PayloadBlend(evaluator.arm.robot), 0
        evaluator.clock = self.supervision.clock.now
        self._take_lead()
        self.begin()
        self._tasks.take(evaluator.arm.robot)

    def _take_lead(self) -> None:
        """Set the lead of setpoints, and of trajectories, whose period is known."""
        if self.evaluator is None:
            return
        given, robot = self._command_lead, self.evaluator.arm.robot
        self.evaluator.lead = given if given >= 0 else robot.command_lead
        stream_period = 1.0 / self._node.get_parameter("stream_rate").value
        self.player.lead = given if given >= 0 else robot.command_lead_at(stream_period)

    def begin(self) -> None:
        """Discard the state of the previous stream; supervise the new one if the node is active."""
        self._commands.forget()
        self._shapes.forget()
        self._tasks.forget()
        self._admit = None
        if self.evaluator:
            self.evaluator.restart()
            if self._node.active:
                self.supervision.begin(self.evaluator)
                self._admit = self.supervision.admit if self.supervision.on else None

    def end(self) -> None:
        """End the stream: the node is no longer active."""
        self._shapes.forget()
        self.supervision.end()

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
        if evaluator.payload.version != self._payload_version and not self._update_payload(
            evaluator.payload, latest, message
        ):
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
            self._tasks.command(stamp, latest.committed_state)
            self.player.command(latest.committed_state)
            if admit is not None:
                self._supervise(stamp, latest.shape.frame_id, latest.command())
        except Exception as error:
            self._fail(deserialize_message(message, JointTrajectorySetpoint), error)
        else:
            statistics.published += 1
            if call.exceeded:
                self._warn_of_limits(latest.violations())
        statistics.add_time(time.perf_counter_ns() - started)

    def _update_payload(self, payload: PayloadBlend, latest: ShapeCall, message: bytes) -> bool:
        """Set the changed payload of all compiled calls; return whether they may answer a message."""
        if payload.blending:
            stamp = stamp_of(message)
            # After any other step the checks of the stream come first.
            if not payload.follows(stamp):
                return False
            payload.at(stamp)
        self._payload_version = None if payload.blending else payload.version
        if latest.has_payload != payload.present:
            self._shapes.forget()
            return False
        self._shapes.set_payload(payload.now)
        return True

    def _answer_serialised(self, message: bytes) -> None:
        """Answer a serialised setpoint field by field, and learn its shape."""
        try:
            setpoint = deserialize_message(message, JointTrajectorySetpoint)
        except Exception as error:
            self._warnings.unreadable(error)
            return
        if self._accept(setpoint) and self.answer(setpoint) and self._compiled:
            call_for = partial(
                self._compiled.call_for, limit_policy=self.limit_policy, commands_motors=self._commands.commands_motors
            )
            self._shapes.learn(setpoint, message, call_for)

    def _supervise(self, stamp: int, frame_id: str, command: EvaluatedCommand) -> None:
        """Pass the command for a setpoint to the supervision; stamp, ns, and frame are those of the setpoint."""
        self._stamp, self._frame_id = stamp, frame_id
        self.supervision.feed(stamp, command)

    def _fail(self, setpoint: JointTrajectorySetpoint, error: Exception) -> None:
        """Refuse a setpoint without a published command, while the error is handled."""
        if isinstance(error, StateError):
            self._refuse(setpoint, error)
        elif self._node.context.ok():  # at shutdown the publishers are gone
            self._refuse(setpoint, error, traceback.format_exc())

    def _warn_of_limits(self, violations: tuple[LimitViolation, ...]) -> None:
        if violations:
            self._warnings.exceeded(violations, clips=self.limit_policy == "clip")

    def _answer_task(self, task: TaskSetpoint) -> None:
        """Answer a setpoint of a tool by that of the joints."""
        if not self._accept(task):
            return
        setpoint, started = JointTrajectorySetpoint(), time.perf_counter_ns()
        try:
            if self._node.active and self.evaluator is not None:
                setpoint = self._tasks.solve(task)
        except Exception as error:
            self.statistics.received += 1
            self._refuse(task, error, "" if isinstance(error, EomDynamicsError) else traceback.format_exc())
        else:
            self.answer(setpoint, self._task_limits, started)

    def _accept(self, setpoint: JointTrajectorySetpoint | TaskSetpoint) -> bool:
        """Refuse a setpoint that is too old or comes during a trajectory; return whether to answer it."""
        if self._lifespan and self._node.active:
            stamp = setpoint.header.stamp
            if self._drop_if_expired(stamp.sec * 1_000_000_000 + stamp.nanosec):
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
        self._warnings.expired(age, self._lifespan)
        return True

    def answer(
        self, setpoint: JointTrajectorySetpoint, limit_policy: str = "", started: int = 0, ahead: Ahead | None = None
    ) -> bool:
        """Publish the command for a setpoint; return whether the setpoint was valid.

        Args:
            setpoint: the setpoint.
            limit_policy: one of LIMIT_POLICIES; by default :attr:`limit_policy`.
            started: when its computation began, ns; by default now.
            ahead: exact motion that the command is for, where it is known.
        """
        started = started or time.perf_counter_ns()
        statistics = self.statistics
        statistics.received += 1
        if not self._node.active or self.evaluator is None:
            statistics.ignored += 1
            return False
        stamp = setpoint.header.stamp
        nanoseconds = stamp.sec * 1_000_000_000 + stamp.nanosec
        answered = False
        try:
            command = self.evaluator.evaluate(
                setpoint,
                stamp=nanoseconds,
                limit_policy=limit_policy or self.limit_policy,
                admit=self._admit,
                ahead=ahead,
            )
            self._commands.publish(setpoint.header, command, Status.FRESH)
            self._tasks.command(nanoseconds, command.state)
            self.player.command(command.state)
            if self._admit is not None:
                self._supervise(nanoseconds, setpoint.header.frame_id, command)
        except Exception as error:
            self._fail(setpoint, error)
        else:
            answered = True
            statistics.published += 1
            self._warn_of_limits(command.violations)
        statistics.add_time(time.perf_counter_ns() - started)
        return answered

    def _refuse(self, setpoint: JointTrajectorySetpoint | TaskSetpoint, error: Exception, detail: str = "") -> None:
        """Report a refused setpoint, and repeat the last command if it is to be held."""
        if self._commands.holds_command and is_held(error, self._hold) and not self.supervision.responding:
            self._commands.repeat(setpoint.header)
            self.statistics.held += 1
        self._warnings.refused(refusal_reason(error), detail)

    # --- Loss of setpoints --------------------------------------------------------------

    def _publish_response(self, evaluator: SetpointEvaluator, last: EvaluatedCommand, response: Response) -> None:
        """Publish the response to a loss of setpoints, in the joint order of the last one, by its evaluator."""
        now = self.supervision.clock.reading
        header = Header(stamp=Time(nanoseconds=now).to_msg(), frame_id=self._frame_id)
        # Dampers go on from the last setpoint, as the response does.
        stamp = self._stamp + round(response.s * 1e9) if self._stamp else 0
        limit_policy = "warn" if self.limit_policy == "refuse" else self.limit_policy
        try:
            command = evaluator.command(last.order, *response.flow, stamp=stamp, limit_policy=limit_policy)
            if response.fade:
                command = response.fade.of(command)
            self._commands.publish(header, command, response.status)
            if evaluator is self.evaluator:  # else another robot is about to take over
                self._tasks.command(now, command.state)
            present = self.evaluator or evaluator
            if present.arm.robot.joint_names == evaluator.arm.robot.joint_names:
                self.player.command(command.state)
        except StateError as error:
            self._node.get_logger().error(
                f"no command for the response to lost setpoints: {error}",
                throttle_duration_sec=self._node.warning_period,
            )
            return
        self._warn_of_limits(command.violations)

    # --- Diagnostics --------------------------------------------------------------------

    def report(self, seconds: float) -> StatusReport:
        """Diagnostic status of setpoints, without supervision."""
        level, message, figures = self.statistics.report(seconds)
        self._commands.count_listeners()
        lead = self.player.lead if self.player.playing else self.evaluator.lead if self.evaluator else 0.0
        values = {"stream": "compiled" if self._compiled else "general", "command lead [ms]": f"{1e3 * lead:g}"}
        return StatusReport(level, message, {**values, **figures})
