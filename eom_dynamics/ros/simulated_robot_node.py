# SPDX-License-Identifier: Apache-2.0
"""Node ``simulated_robot``: real-time simulation of an elastic-joint arm with its drives.

It takes its robot from the same sources as the node ``eom_dynamics``, follows motor commands and publishes joint
states. It holds its position until commands arrive, and after a command timeout. Invalid commands are refused; the last
valid one remains in effect. If the simulation diverges, the arm stops and ignores commands until they have paused.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import deque
from enum import Enum
from statistics import median
from typing import Any, cast

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.clock import ROSClock
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ..control.fields import MOTOR_SETPOINT_FIELDS, doubles
from ..control.joint_order import read_motors
from ..control.spatial import moment_first
from ..elastic import DriveState, ElasticArm
from ..exceptions import EomDynamicsError, StateError
from ..simulation import SimulatedDrives, SimulatedRobot, SimulationError
from ..simulation.simulated_robot import SensorNoise
from ..terminal import printable
from .diagnostics import Level, StatusReport
from .executors import StopSignals, steady_timer
from .interfaces import FeedforwardCommand, stream_qos
from .parameter_tables import ARRAYS, NOISE, SIMULATED_ROBOT
from .robot_node import RobotNode
from .robot_sources import LoadedRobot
from .running import Executable, freeze_objects, run

# Largest delay behind the clock before steps are dropped, s.
_LARGEST_BACKLOG = 0.1

# Longest simulated time per call, so that other callbacks run in between, s.
_ONE_GO = 0.02


class Pace:
    """Number of steps due, of a period, s.

    After a stall the simulation catches up. In a long stall, or when a clock jumps ahead, the time beyond 0.1 s is
    dropped.

    Attributes:
        steps: number of steps taken.
        late: number of steps taken together with an earlier one, to catch up.
        lost: number of dropped steps.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._most_at_once = max(1, round(_ONE_GO / period))
        self._backlog = max(self._most_at_once, round(_LARGEST_BACKLOG / period))
        self._start: float | None = None
        self._now = 0.0
        self._since_start = 0
        self.steps = self.late = self.lost = 0

    def due(self, now: float) -> int:
        """Return how many steps to take at clock time ``now``, s. A clock that goes back restarts the count."""
        if self._start is None or now < self._now:
            self._start, self._since_start = now, 0
        self._now = now
        # Allow for rounding.
        behind = int((now - self._start) / self._period + 1e-6) - self._since_start
        if behind > self._backlog:
            self.lost += behind - self._backlog
            self._since_start += behind - self._backlog
            behind = self._backlog
        count = min(behind, self._most_at_once)
        self._since_start += count
        self.steps += count
        self.late += max(count - 1, 0)
        return count

    @property
    def lag(self) -> float:
        """Delay of the simulation behind the clock at the last :meth:`due`, s."""
        return 0.0 if self._start is None else self._now - self._start - self._since_start * self._period


# Pause of commands that ends a stop, if there is no timeout, s.
_PAUSE = 1.0


class CommandPhase(Enum):
    """State of the simulated robot, with its text in diagnostics."""

    WAITING = "holding the initial position: waiting for commands"
    FOLLOWING = "following commands"
    LOST = "no commands"
    STOPPED = "stopped"


class CommandWatchdog:
    """Command timeout, s, 0 to disable it; after a stop, commands are refused until they have paused."""

    def __init__(self, timeout: float) -> None:
        self._timeout, self._last = timeout, 0.0
        self.phase = CommandPhase.WAITING

    def command(self, now: float) -> bool:
        """Register a command at time ``now``, s; return whether to follow it."""
        self._last = now
        if self.phase is not CommandPhase.STOPPED:
            self.phase = CommandPhase.FOLLOWING
        return self.phase is CommandPhase.FOLLOWING

    def missed(self, now: float) -> bool:
        """Return true once when commands time out. A clock that goes back restarts the timeout."""
        self._last = min(self._last, now)
        pause = now - self._last
        if self.phase is CommandPhase.FOLLOWING and self._timeout and pause > self._timeout:
            self.phase = CommandPhase.LOST
            return True
        if self.phase is CommandPhase.STOPPED and pause > (self._timeout or _PAUSE):
            self.phase = CommandPhase.WAITING
        return False

    def stop(self, now: float) -> None:
        """Ignore commands until they have paused for the timeout."""
        self._last = now
        self.phase = CommandPhase.STOPPED


_KEPT_TIMES = 10_000


class SimulatedRobotStatistics:
    """Counts commands and steps, command timeouts, and stops of a simulation that diverged.

    Attributes:
        last_refusal: why the last refused command was refused.
        step_times: computation times of the steps of the period, ns.
    """

    def __init__(self) -> None:
        self.received = self.refused = self.stops = self.timeouts = 0
        self.last_refusal = ""
        self._before = (0, 0, 0, 0, 0)
        self.step_times: deque[int] = deque(maxlen=_KEPT_TIMES)

    def report(self, seconds: float, pace: Pace, phase: CommandPhase) -> StatusReport:
        """Return the status of the last ``seconds``, and start the next period."""
        counts = (self.received, self.refused, pace.steps, pace.late, pace.lost)
        received, refused, steps, late, lost = (a - b for a, b in zip(counts, self._before, strict=True))
        self._before = counts
        times, self.step_times = self.step_times, deque(maxlen=_KEPT_TIMES)
        values = {
            "phase": phase.name.lower(),
            "commands": self.received,
            "commands refused": self.refused,
            "last refusal": self.last_refusal,
            "command rate (Hz)": f"{received / seconds:.1f}",
            "timeouts": self.timeouts,
            "stops": self.stops,
            "steps": pace.steps,
            "steps late": pace.late,
            "steps lost": pace.lost,
            "step rate (Hz)": f"{steps / seconds:.1f}",
            "step time median (us)": f"{median(times) * 1e-3:.1f}" if times else "",
            "step time max (us)": f"{max(times) * 1e-3:.1f}" if times else "",
        }
        level, message = Level.WARN, phase.value
        if phase is CommandPhase.STOPPED:
            level, message = Level.ERROR, "stopped: the simulation diverged; pause the commands to continue"
        elif lost:
            message = f"slower than real time: {lost} of {steps + lost} steps dropped"
        elif refused:
            level = Level.ERROR if refused == received else Level.WARN
            message = f"{refused} of {received} commands refused, the last: {self.last_refusal}"
        elif phase is CommandPhase.LOST:
            message = "command timeout: on_timeout is in effect"
        elif late > 0.5 * steps > 0:
            message = f"{late} of {steps} steps were late"
        else:
            level = Level.OK
        return StatusReport(level, message, {key: str(value) for key, value in values.items()})


STATUS_NAME = "simulated robot"

PROGRAM = Executable(
    "simulated_robot_node",
    "simulated_robot",
    "Simulated robot: follows motor commands and publishes joint states, in real time.",
    """\
examples:
  simulated_robot_node --ros-args --params-file my_arm.yaml                 robot and parameters from a file
  simulated_robot_node --ros-args -p robot_source_node:=/eom_dynamics       robot of a running dynamics_node
  simulated_robot_node --ros-args --params-file my_arm.yaml -p command:=motor_effort

topics (relative to the namespace):
  motor_setpoint      in     sensor_msgs/msg/JointState, with command:=motor_setpoint
  feedforward         in     eom_dynamics/msg/FeedforwardCommand, with command:=feedforward
  effort_command      in     std_msgs/msg/Float64MultiArray, with command:=motor_effort
  applied_wrench      in     geometry_msgs/msg/WrenchStamped, wrench on a frame while messages arrive
  robot_description   in     std_msgs/msg/String, if no parameter gives the robot
  joint_states        out    sensor_msgs/msg/JointState, link side, with the efforts of the springs
  motor_states        out    sensor_msgs/msg/JointState, motors in drive units, mean efforts of a step
  /diagnostics        out    diagnostic_msgs/msg/DiagnosticArray, status <node>: simulated robot
""",
    lambda: SIMULATED_ROBOT,
)

# Time until the last push ends, s.
_PUSH = 0.1

# Only the latest command matters.
_QOS_DEPTH = 10

# Largest velocity of a motor at rest, rad/s or m/s.
_REST = 1e-3

# Message type, topic, field with the motor names, and fields with values of each kind of command.
_COMMANDS: dict[str, tuple[type, str, str, tuple[str, ...]]] = {
    "motor_setpoint": (JointState, "motor_setpoint", "name", tuple(MOTOR_SETPOINT_FIELDS)),
    "feedforward": (FeedforwardCommand, "feedforward", "motor_names", tuple(MOTOR_SETPOINT_FIELDS.values())),
    "motor_effort": (Float64MultiArray, "effort_command", "", ("data",)),
}


class SimulatedRobotNode(RobotNode):
    """Simulated robot; see docs/simulated_robot.md for its topics and parameters."""

    def __init__(self, stop: StopSignals) -> None:
        super().__init__(PROGRAM.node, allow_undeclared_parameters=True)
        self._robot: SimulatedRobot | None = None
        self._statistics = SimulatedRobotStatistics()
        self._published = 0
        self._commanded_rest = False
        self.declare(SIMULATED_ROBOT)
        self._command = self.get_parameter("command").value
        self._period = 1.0 / self.get_parameter("rate").value
        self._publish_period = 1.0 / self.get_parameter("publish_rate").value
        self._pace = Pace(self._period)
        self._watchdog = CommandWatchdog(self.get_parameter("command_timeout").value)
        self._joint_states, self._motor_states = JointState(), JointState()
        self._joint_states_publisher = self.create_publisher(JointState, "joint_states", **stream_qos(_QOS_DEPTH))
        self._motor_states_publisher = self.create_publisher(JointState, "motor_states", **stream_qos(_QOS_DEPTH))
        message_type, topic, self._names_field, self._value_fields = _COMMANDS[self._command]
        self.create_subscription(message_type, topic, self._on_command, **stream_qos(_QOS_DEPTH))
        self._pushed = -np.inf
        self.create_subscription(WrenchStamped, "applied_wrench", self._on_wrench, _QOS_DEPTH)
        self.complete(STATUS_NAME, stop)

    # --- Robot --------------------------------------------------------------------------

    @property
    def arm(self) -> ElasticArm | None:
        """Simulated arm."""
        return self._robot.arm if self._robot else None

    @property
    def robot_wanted(self) -> bool:
        """True if there is no robot yet; the first robot stays."""
        return self._robot is None

    def on_robot(self, loaded: LoadedRobot) -> None:
        """Use a loaded robot, or report why it cannot be used."""
        if loaded.evaluator is not None:
            try:
                self._take_robot(loaded, loaded.evaluator.arm)
            except EomDynamicsError as refusal:
                loaded = LoadedRobot(loaded.description, error=str(refusal))
        if self._robot is None:
            self.reject(loaded)

    def _take_robot(self, loaded: LoadedRobot, arm: ElasticArm) -> None:
        arrays = {name: self.get_parameter(name).value for name in ARRAYS}
        kp, kd = (None if max(x, default=-1.0) < 0 else x for x in (arrays["kp"], arrays["kd"]))
        period, delay = (self.get_parameter(name).value for name in ("command_period", "drive_delay"))
        interpolation = self.get_parameter("drive_interpolation").value
        drives = SimulatedDrives(
            natural_frequency=self.get_parameter("natural_frequency").value,
            damping_ratio=self.get_parameter("damping_ratio").value,
            kp=kp,
            kd=kd,
            command_period=period if period >= 0 else None,
            drive_delay=delay if delay >= 0 else None,
            drive_interpolation=None if interpolation == "robot" else interpolation,
        )
        with warnings.catch_warnings(record=True) as rounded:
            self._robot = robot = SimulatedRobot(
                arm,
                period=self._period,
                position=arrays["initial_position"] or 0.0,
                drives=drives,
                limited=self.get_parameter("limit_effort").value,
                compensates=self._command != "feedforward",
                noise=SensorNoise(*(arrays[x] or 0.0 for x in NOISE)) if any(any(arrays[x]) for x in NOISE) else None,
            )
        for warning in rounded:
            self.get_logger().warning(printable(str(warning.message)))
        self.supply.pause()
        self._joint_states.name, self._motor_states.name = list(arm.robot.joint_names), list(arm.motor_names)
        if any(arm.variable & ~arm.paired):
            self.get_logger().warning(
                "joints of type variable keep their nominal stiffness: commanded stiffness is not simulated"
            )
        # The first step loads or compiles kernels.
        robot.advance()
        freeze_objects()
        steady_timer(self, self._period, self._tick)
        held = "interpolated over" if robot.drive_interpolation == "linear" else "held for"
        self.announce(
            loaded,
            arm.robot,
            f", from {self.supply.source}: {1 / self._period:g} steps a second, commands from {self._command}, {held} "
            f"{1e3 * robot.command_period:g} ms and acting {1e3 * robot.drive_delay:g} ms later",
        )

    # --- Commands -----------------------------------------------------------------------

    def _on_command(self, message: Any) -> None:
        robot = self._robot
        if robot is None:
            return
        self._statistics.received += 1
        names = getattr(message, self._names_field) if self._names_field else ()
        values = {field: getattr(message, field) for field in self._value_fields}
        try:
            command = read_motors(robot.arm.motor_names, self._names_field, names, **values)
        except StateError as error:
            self._statistics.refused += 1
            self._statistics.last_refusal = str(error)
            self.warn("command refused, the last valid one remains", printable(str(error)))
            return
        if self._watchdog.command(self._now()):
            if len(command) == 1:
                (effort,) = command
                robot.apply(robot.arm.drive_state(0 * effort, 0 * effort, effort).motor_effort)
            else:
                # A FeedforwardCommand has the model's values, in SI units.
                motors = command if self._command == "feedforward" else robot.arm.drive_state(*command)
                robot.follow(*motors)
                self._commanded_rest = bool(np.all(np.abs(motors[1]) <= _REST))

    def _on_wrench(self, message: WrenchStamped) -> None:
        """Push the robot at the frame of a message, along its axes; at the first tool where it names none."""
        if self._robot is None:
            return
        try:
            self._robot.push(moment_first(message.wrench), message.header.frame_id or None)
            self._pushed = self._now()
        except EomDynamicsError as error:
            self.warn("applied_wrench refused", printable(str(error)))

    # --- Motion -------------------------------------------------------------------------

    def _now(self) -> float:
        """Current time, s: of /clock with use_sim_time, else of a steady clock."""
        clock = cast(ROSClock, self.get_clock())
        return clock.now().nanoseconds * 1e-9 if clock.ros_time_is_active else time.monotonic()

    def _tick(self) -> None:
        try:
            self._move()
        except Exception:
            if self.context.ok():  # at shutdown there are no publishers
                raise

    def _move(self) -> None:
        """Advance by the steps that are due, and publish states at the publish rate."""
        robot, now = self._robot, self._now()
        stamp = self.get_clock().now().nanoseconds
        if robot is None or now == 0.0:  # there is no /clock yet
            return
        due = self._pace.due(now)
        if not due:
            return
        if self._watchdog.missed(now):
            self._on_timeout(robot)
        if not 0 <= now - self._pushed <= _PUSH:
            robot.push(None)
        for left in reversed(range(due)):
            started = time.perf_counter_ns()
            try:
                robot.advance()
            except SimulationError as error:
                self._on_stop(str(error), now)
            self._statistics.step_times.append(time.perf_counter_ns() - started)
            # Allow for rounding.
            number = int((self._pace.steps - left) * self._period / self._publish_period + 1e-6)
            if number > self._published:
                self._published = number
                # Time of the state: after a stall, the states of all steps are published, as by drives with a clock.
                self._publish_states(robot, stamp - round((self._pace.lag + left * self._period) * 1e9))

    def _on_timeout(self, robot: SimulatedRobot) -> None:
        self._statistics.timeouts += 1
        if self.get_parameter("on_timeout").value == "hold":
            robot.hold()
            done = "holding the position"
        else:
            robot.apply(robot.readings().motor_effort * 0.0)
            done = "no effort"
        text = f"no commands for {self.get_parameter('command_timeout').value:g} s: {done}"
        # After a command at rest, a motion has ended as planned. rclpy refuses two severities from one line of code.
        if self._commanded_rest:
            self.get_logger().info(text)
        else:
            self.get_logger().warning(text)

    def _on_stop(self, reason: str, now: float) -> None:
        self._statistics.stops += 1
        self._watchdog.stop(now)
        if self.is_due("stopped"):
            text = f"stopped: {printable(reason)}. The arm rests at its last position until commands pause"
            self.get_logger().error(text)

    def _publish_states(self, robot: SimulatedRobot, nanoseconds: int) -> None:
        stamp = Time(nanoseconds=max(nanoseconds, 0)).to_msg()
        readings = robot.readings()
        for publisher, message, rows in (
            (self._joint_states_publisher, self._joint_states, readings[:3]),
            (self._motor_states_publisher, self._motor_states, robot.arm.drive_report(DriveState(*readings[3:]))),
        ):
            message.header.stamp = stamp
            message.position, message.velocity, message.effort = map(doubles, rows)
            publisher.publish(message)

    # --- Diagnostics --------------------------------------------------------------------

    def report(self, seconds: float) -> StatusReport:
        """Return the diagnostic status of the simulation."""
        level, message, figures = self._statistics.report(seconds, self._pace, self._watchdog.phase)
        if self._watchdog.phase is CommandPhase.WAITING and self._now() == 0.0:
            level, message = Level.WARN, "waiting for /clock"
        return StatusReport(level, message, {"command": self._command, **figures})


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or shutdown of its context; return 1 if it cannot start."""
    return run(PROGRAM, SimulatedRobotNode, args)


if __name__ == "__main__":
    sys.exit(main())
