# SPDX-License-Identifier: Apache-2.0
"""Cycles of the loop without setpoints: stops that bring the arm to rest, and modes on springs or led by hands."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import isfinite

from ...arrays import unit
from ...control.control_loop import LoopRecord
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import MODES, Status
from ...exceptions import StateError
from ...terminal import printable
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .command_topics import CommandTopics
from .measured_arm import MeasuredArm
from .statistics import StreamStatistics


class StreamPhase(Enum):
    """State of the stream, with its name in diagnostics."""

    WAITING = "waiting"
    STREAMING = "streaming"
    LOST = "lost"
    STOPPING = "stopping"
    HELD = "held"


class Stops:
    """Cycles of the response of the loop to a loss, and of requested stops; called by the node's executor.

    Attributes:
        loop: loop of the stream, or the stopped loop; None while the node is not active.
        cause: reason of the stop or hold; empty while setpoints are answered.
        done: called at the end of a stop that ends the stream.
    """

    def __init__(
        self,
        node: RobotNode,
        clock: WatchedClock,
        measured: MeasuredArm,
        commands: CommandTopics,
        statistics: StreamStatistics,
    ) -> None:
        self._node, self._clock, self._measured = node, clock, measured
        self._commands, self._statistics = commands, statistics
        self.loop: SetpointLoop | None = None
        self.cause = ""
        self.done: Callable[[], None] | None = None
        # True if the loop responds; and the time of its last cycle.
        self._responds, self._responded = False, -1
        period = 1.0 / node.get_parameter("stream_rate").value
        self._timer = node.punctual.create(node, period, self._tick, steady=True)

    def begin(self, loop: SetpointLoop) -> None:
        """Begin a new stream; an arm that is held at rest stays held by the robot of the loop."""
        holds, cause = self._responds, self.cause
        self.end()
        self.loop = loop
        if holds:
            loop.loop.act("stop")
            self.cause, self._responds, self._responded = cause, True, -1
            self._timer.reset()

    def end(self) -> None:
        """End all stops: the node is not active."""
        self._timer.cancel()
        self.loop = self.done = None
        self.cause, self._responds = "", False

    def answered(self, loop: SetpointLoop) -> None:
        """Note that a setpoint, or a motion, leads again."""
        if self._responds:
            self._responds = False
            self._timer.cancel()
            if not (loop.record.playing or loop.record.aiming):
                self._node.get_logger().info("setpoints are back")
        self.loop, self.cause = loop, ""

    def respond(self, loop: SetpointLoop, now: int, code: int) -> None:
        """Continue the response to a loss; ``now``, ns, and ``code`` are from its first cycle."""
        self._responds, self._responded = True, now
        self._timer.reset()
        self.publish(loop, code)

    def break_off(self, cause: str) -> None:
        """Stop the arm from the last command of a motion that has ended on its path."""
        last = self._commands.sent_of
        if self.loop is not None and last is not None and _moves(last):
            self.come_to_rest(last, f"trajectory stopped: {cause}")

    @property
    def phase(self) -> StreamPhase:
        """State of the stream."""
        if self.loop is None:
            return StreamPhase.WAITING
        record = self.loop.record
        status, lost = Status(record.status), record.lost
        if (lost or record.held) and record.stopping:
            return StreamPhase.STOPPING if status is Status.STOPPING else StreamPhase.HELD
        if lost:
            return StreamPhase.LOST
        # At the end of a trajectory, the arm is at rest as intended.
        return StreamPhase.STREAMING if record.fed and not record.stopping else StreamPhase.WAITING

    @property
    def responding(self) -> bool:
        """True if the loop brings the arm to rest, or holds it, in the place of setpoints."""
        return self._responds

    def come_to_rest(self, loop: SetpointLoop, cause: str, done: Callable[[], None] | None = None) -> None:
        """Stop the arm of a loop under any policy.

        A response under way goes on.

        Args:
            done: called at the end, now or by a timer; it ends the stream.
        """
        if not self._responds or self._overtaken:
            self._responds, self.done = False, None
            self._measured.locate(loop)
            if not loop.moves and (done or not _moves(loop)):  # the last command of a stream has no velocity anyway
                if done:
                    done()
                return
            names = ("stop_duration", "start_tolerance")
            loop.configure(**{name: self._node.get_parameter(name).value for name in names})
            loop.loop.act("stop")
            self.loop, self.cause = loop, cause
            self._responds, self._responded = True, -1
            self._node.get_logger().info(f"{cause}: {description_of_stop(loop)}")
        elif done and self.at_rest:
            done()
            return
        self.done = done or self.done
        self._timer.reset()
        self._tick()

    @property
    def at_rest(self) -> bool:
        """True if the response has ended, or no stop is possible."""
        return self.phase is not StreamPhase.STOPPING

    @property
    def _overtaken(self) -> bool:
        """True if a motion or a mode has replaced the response, and nothing of it has been sent yet."""
        record = self.loop.record if self.loop else LoopRecord()
        return not (record.held or record.lost)

    def _tick(self) -> None:
        loop = self.loop
        if loop is None or not self._responds:
            self._timer.cancel()
            return
        if self._overtaken:  # by a motion that waits for a stopped clock
            self._responds, done = False, self.done
            if done:
                self.come_to_rest(loop, self.cause, done)
            return
        now = self._clock.now()
        if now == self._responded:  # between two readings of /clock
            return
        self._responded = now
        self.publish(loop, loop.loop.update(now, 1e-9 * self._timer.timer_period_ns))
        if self.done and self.at_rest:
            done, self.done = self.done, None
            done()

    def publish(self, loop: SetpointLoop, code: int) -> None:
        """Publish the command of a cycle of the response, by the cycle's code."""
        try:
            exceeds = loop.responded(code)
            status = Status.HELD if loop.loop.status is Status.LOST else loop.loop.status
            self._commands.publish(self._commands.header(self._clock.reading), loop, status)
            if exceeds:
                self._statistics.exceed(loop)
        except StateError as error:
            if self._node.is_due("no response"):
                self._node.get_logger().error(f"no command for the response to lost setpoints: {error}")


def _moves(loop: SetpointLoop) -> bool:
    """True if the last command of a loop moves joints, or motors: at the lead, they already move."""
    return loop.moves or bool(loop.loop.command["motor_velocity"].any())


def description_of_stop(loop: SetpointLoop) -> str:
    """How the loop stops the arm, as a clause."""
    record = loop.record
    excess, duration = record.excess, record.stop_end
    if not isfinite(excess):
        return "its position is held, as no stop is possible: numbers would be too large, or a spring slack"
    beyond = f", beyond limits by {100 * excess:.2g} %" if excess > 0 else ""
    return f"the arm stops within {duration:.3g} s{beyond}" if isfinite(duration) else "the arm stops on its path"


GAINS = ("stiffness", "tool_stiffness", "damping_ratio")

# Time between cycles without samples, s; with more than LONGEST_RESPONSE_STEP, they would count less.
_LOOK = 0.02


class Modes:
    """Control mode, by the parameter ``mode``.

    Each measured sample makes a cycle of the loop. Without samples, cycles go on: after 0.1 s in the mode position,
    with a feedforward that carries the arm, until another mode is requested.
    """

    def __init__(
        self, node: RobotNode, measured: MeasuredArm, clock: WatchedClock, publish: Callable[[SetpointLoop, int], bool]
    ) -> None:
        self._node, self._measured, self._clock, self._publish = node, measured, clock, publish
        self._loop: SetpointLoop | None = None
        self._mode, self._last = node.get_parameter("mode").value, 0
        self._said, self._ended, self._fast = MODES[0], False, ""
        measured.on_sample.append(self._cycle)
        self._timer = node.punctual.create(node, _LOOK, self._look)

    def take(self, loop: SetpointLoop | None) -> None:
        """Set the mode and the stiffness of the parameters in a loop."""
        self._loop = loop
        if loop is not None:
            self.change(self._mode)

    def change(self, mode: str) -> None:
        """Change the mode once measurements suffice; StateError if parameters do not."""
        complies, loop = mode != MODES[0], self._loop
        if loop is not None:
            loop.configure(mode=mode, **{name: self._node.get_parameter(name).value for name in GAINS})
            loop.loop.change_mode(mode)
        self._mode = mode
        rigid = loop is not None and bool(loop.arm.rigid.all())
        self._measured.need("mode", links=complies and rigid, motors=complies and not rigid)
        if complies:
            self._last = self._clock.now()
            self._timer.reset()

    def _cycle(self) -> None:
        """Make a cycle after a sample, or for lack of one."""
        loop = self._loop
        self._say()
        if loop is None or (self._mode == MODES[0] and not loop.record.mode):
            return
        now = self._clock.now()
        if not loop.record.valid:
            loop.loop.restart(now=now)
        self._last = now
        self._publish(loop, now)
        self._say()
        if beyond := self.beyond:
            self._node.warn("limit", beyond)
        if (fast := self.too_fast) and fast != self._fast:
            self._node.get_logger().warning(fast)
        self._fast = fast

    def _say(self) -> None:
        """Log a change of the mode, and its end for lack of measurements, also by the cycle of a setpoint."""
        if self._loop is not None and (mode := MODES[self._loop.record.mode]) != self._said:
            self._node.get_logger().info(f"mode: {self._said} -> {mode}")
            self._said = mode
        ended, why = self._ended, self.blinded
        self._ended = bool(why)
        if why and not ended:
            self._node.get_logger().error(why)

    def _look(self) -> None:
        """Make a cycle if there was no sample for a while."""
        begun = self._loop is not None and (self._loop.record.mode or self.blinded)
        if self._mode == MODES[0] and not begun:
            self._timer.cancel()
        elif begun and 1e-9 * (self._clock.now() - self._last) > _LOOK / 2:
            self._cycle()

    @property
    def blinded(self) -> str:
        """Reason that the mode has ended or not started; else empty."""
        if self._loop is None or self._mode == MODES[0] or not self._loop.record.blinded:
            return ""
        missing = self._measured.missing or "motors are measured again, or have jumped"
        state = f"{self._mode} has ended, feedforward alone carries the arm and does not hold it"
        return printable(f"mode {state}: {missing}; set the parameter mode again")

    @property
    def beyond(self) -> str:
        """Joint that was guided beyond its limits, as a clause; else empty."""
        joint = self._loop.record.beyond_limit if self._loop is not None else 0
        if self._loop is None or not joint:
            return ""
        robot = self._loop.arm.robot
        name, of = robot.joint_names[joint - 1], robot.independent_joints[joint - 1]
        ends = f"{of.limits.lower:.4g} to {of.limits.upper:.4g} {unit('position', of.type)}"
        return f"{printable(name)} is guided beyond its limits, {ends}"

    @property
    def too_fast(self) -> str:
        """Joint that was guided too fast since hand guiding began, as a clause; else empty."""
        record = self._loop.record if self._loop is not None else None
        if self._loop is None or record is None or not record.too_fast:
            return ""
        robot = self._loop.arm.robot
        name, of = robot.joint_names[record.too_fast - 1], robot.independent_joints[record.too_fast - 1]
        kind = unit("velocity", of.type)
        return printable(
            f"hand guiding stopped: {name} moved at {record.guided_speed:.3g} {kind}, limit {record.guided_limit:.3g} "
            f"{kind} (hand_guiding_speed); friction is not compensated until the mode begins again"
        )

    def report(self) -> dict[str, str]:
        """Values for diagnostics."""
        if self._loop is None or (self._mode == MODES[0] and not self._loop.record.mode):
            return {}
        return {"mode": MODES[self._loop.record.mode], "mode, wanted": self._mode}
