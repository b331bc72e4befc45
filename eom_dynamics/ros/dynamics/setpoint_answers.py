# SPDX-License-Identifier: Apache-2.0
"""Stream of setpoints, each answered with a command or refused."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial

import numpy as np
from rclpy.serialization import deserialize_message
from rclpy.time import Time
from std_msgs.msg import Header

from ...arrays import Array
from ...control.control_loop import REFUSALS, Refusal
from ...control.fields import STATE_FIELDS
from ...control.serialized import LearnedShapes, stamp_of
from ...control.setpoint_loop import EarlySetpointError, SetpointLoop
from ...control.setpoint_to_command import refusal_reason
from ...control.settings import LONGEST_GAP, SAFETY, Status
from ...exceptions import EomDynamicsError, StateError, StiffnessError, TrajectoryError
from ..interfaces import JointTrajectorySetpoint, nanoseconds, stream_qos
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .command_topics import CommandTopics
from .measured_arm import MeasuredArm
from .statistics import StreamStatistics
from .stops import Stops
from .supervision import Supervision
from .target_topics import TargetTopics
from .trajectory_player import TrajectoryPlayer

# One second of setpoints at 1 kHz, so that none is lost when the node stalls.
INPUT_DEPTH = 1000

# Largest age, ns, of an answered setpoint at rest: a setpoint typed again has its old stamp.
_TYPED_AGAIN = 60 * 10**9


class SetpointAnswers:
    """Answers setpoints with commands by the control loop; all methods are called by the node's executor.

    Setpoints come from the topic ``setpoint``; while a trajectory is played, they are refused. Once two of a stream
    in a row have one shape, they are read and answered by one compiled call, others field by field. An invalid one
    is refused and does not affect later ones. While setpoints are lost, the loop brings the arm to rest.

    Attributes:
        loop: control loop of the current robot; None without one.
        clock: clock of the loop, which follows the node's clock.
        measured: where the arm is measured.
        stops: of the arm, in the place of setpoints.
        supervision: watchdog and checks of the stream.
        player, targets: of trajectories, and of targets.
        statistics: of the setpoints.
        closed: whether setpoints are ignored: until the node is active, and from its switching off on.
    """

    def __init__(self, node: RobotNode, commands: CommandTopics, deactivate: Callable[[], None]) -> None:
        self._node, self._commands = node, commands
        self.loop: SetpointLoop | None = None
        self._shapes, self.statistics, self.closed = LearnedShapes(), StreamStatistics(node), True
        # Largest age of setpoints, and the time of the last one, ns.
        lifespan = SAFETY[node.get_parameter("safety").value]["setpoint_lifespan"]
        self._lifespan, self._latest = round(lifespan * 1e9), 0
        quality = stream_qos(INPUT_DEPTH, watched=True)
        self._subscription = node.create_subscription(
            JointTrajectorySetpoint, "setpoint", self.answer_bytes, raw=True, **quality
        )
        clock = node.get_clock().handle
        self.clock = WatchedClock(lambda: clock.get_now().nanoseconds)  # in a quarter of the time of Clock.now()
        self.measured = MeasuredArm(node, self.clock)
        self.stops = Stops(node, self.clock, self.measured, commands, self.statistics)
        self.supervision = Supervision(node, self.clock, self.measured, self.stops, deactivate)
        self.supervision.watch_quality(self._subscription, quality["qos_profile"])
        motions = node, self.clock, self.measured, self.stops
        self.player = TrajectoryPlayer(*motions, self._publish_played)
        publish = self._publish_played, partial(self._publish_measured, always=False)
        self.targets = TargetTopics(*motions, self._loop_to_aim, *publish)

    @property
    def leads(self) -> bool:
        """True if a trajectory is played, or a target leads."""
        return self.player.playing or self.targets.leads(self.loop)

    def _loop_to_aim(self) -> SetpointLoop:
        if self.closed or self.loop is None:
            raise StateError("the node takes targets only when active")
        return self.loop

    def answer_bytes(self, message: bytes) -> None:
        """Answer a serialised setpoint by a compiled call if one accepts the message, else field by field."""
        started, loop = time.perf_counter_ns(), self.loop
        aged = self._lifespan and (not (stamp := stamp_of(message)) or abs(self._age(stamp)) > self._lifespan)
        if aged or loop is None or not self._shapes.calls or self.player.playing:
            self._answer_serialised(message)
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
                raise loop.refusal(Refusal(command), stamped=bool(call.call.stamp))
            self._commands.publish_bytes(call, command, loop)
            self.supervision.answered(loop)
        except Exception as error:
            self._refuse(deserialize_message(message, JointTrajectorySetpoint).header, error)
        else:
            statistics.published += 1
            if call.call.remarks:
                statistics.remark(loop, call.call.remarks)
        statistics.add_time(time.perf_counter_ns() - started)

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
        if self._lifespan and stamp and self._node.active and abs(age := self._age(stamp)) > self._lifespan:
            if not self._rests(setpoint, age):
                self.statistics.expire(age, self._lifespan)
                return False
            setpoint.header.stamp = type(setpoint.header.stamp)()  # none: for the present
        if not self.player.playing or self.loop is None:
            return True
        self.statistics.received += 1
        self._refuse(setpoint.header, TrajectoryError(REFUSALS["busy"]))
        return False

    def _age(self, stamp: int) -> int:
        """Age of a stamp, both in ns."""
        return self._node.get_clock().now().nanoseconds - stamp

    def _rests(self, setpoint: JointTrajectorySetpoint, age: int) -> bool:
        """True if a setpoint of some age, ns, is at rest while the arm is: typed a second time."""
        last = self._commands.sent_of
        moves = self.leads or (last is not None and last.moves)
        return 0 < age <= _TYPED_AGAIN and not moves and not any(np.any(getattr(setpoint, x)) for x in STATE_FIELDS[1:])

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
            return loop.answer(stamp, self.clock.now())

        return self._sent(setpoint.header, loop, cycle, time.perf_counter_ns())

    def start_measured(self, *, always: bool = False) -> None:
        """Hold the arm where it is measured, so that its first step is checked: if jumps are, or ``always``."""
        loop = self.loop
        if loop is None or (loop.loop.settings["jump_check"] == "ignore" and not always):
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

    def _sent(self, header: Header, loop: SetpointLoop, cycle: Callable[[], int], started: int) -> bool:
        """Publish the command of a cycle, which returns remarks on it; return whether it was not refused."""
        statistics = self.statistics
        statistics.received += 1
        try:
            remarks = cycle()
            self._commands.publish(header, loop)
            self.supervision.answered(loop)
        except Exception as error:
            self._refuse(header, error)
            return False
        else:
            statistics.published += 1
            statistics.remark(loop, remarks)
            return True
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
        header = Header(stamp=Time(nanoseconds=stamp).to_msg(), frame_id=frame_id)
        self.statistics.led += 1
        return self._sent(header, loop, lambda: loop.accepted(code), started)

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
        if not (record.valid and (always or record.followed > followed)):
            return False
        self._shapes.forget()
        self._commands.publish(self._commands.header(self.clock.reading), loop, loop.loop.status)
        return True
