# SPDX-License-Identifier: Apache-2.0
"""The node ``fake_robot``: a robot that is not there. Motor commands in, joint states out, at the pace of the clock.

It has links, springs, motors and drives of the robot that the node ``eom_dynamics`` computes for, and takes it from
the same places. It starts at rest and holds its position until commands come; when they stop coming it holds again.
A command that cannot be used is refused, and the last good one stays in force. A motion that leaves all bounds ends:
the arm is at rest where it was, and obeys no command until they have paused.
"""

from __future__ import annotations

import gc
import sys
import time
from functools import partial
from typing import Any, cast

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ROSClock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ..actuators import ElasticArm
from ..exceptions import EomDynamicsError, StateError
from ..simulate import FakeRobot, SimulationError
from ..simulate.fake_robot import torque_controlled
from ..stream.conversions import doubles
from ..terminal import printable
from . import parameters as robot_parameters
from .command_line import read_arguments
from .diagnostics import diagnostic_array
from .fake_robot import parameters
from .fake_robot.commands import MotorOrder
from .fake_robot.pace import Pace
from .fake_robot.statistics import FakeRobotStatistics
from .fake_robot.watchdog import Phase, Watchdog
from .interfaces import FeedforwardCommand
from .robot_loading import Loaded
from .robot_supply import RobotSupply
from .running import run
from .statistics import Level, WarningThrottle
from .stopping import StopSignals
from .stream_qos import overriding_options

NODE_NAME = "fake_robot"

STATUS_NAME = "eom_dynamics: fake robot"

# The latest command is the one that counts; of a burst, the last few.
_QOS_DEPTH = 10

_EXAMPLES = """\
examples:
  fake_robot_node --ros-args --params-file my_arm.yaml                 a robot, and parameters, from a file
  fake_robot_node --ros-args -p robot_source_node:=/eom_dynamics       the robot of a node that runs
  fake_robot_node --ros-args --params-file my_arm.yaml -p command:=motor_effort

topics (relative to the namespace):
  motor_setpoint      in     sensor_msgs/msg/JointState, with the parameter command:=motor_setpoint
  feedforward         in     eom_dynamics/msg/FeedforwardCommand, with command:=feedforward
  effort_command      in     std_msgs/msg/Float64MultiArray, with command:=motor_effort or joint_effort
  robot_description   in     std_msgs/msg/String, where no parameter says the robot
  joint_states        out    sensor_msgs/msg/JointState, of the links
  motor_states        out    sensor_msgs/msg/JointState, of the motors, link side of the gear
  /diagnostics        out    diagnostic_msgs/msg/DiagnosticArray
"""

PROGRAM = (
    "fake_robot_node",
    "The node fake_robot: a robot that is not there, which takes motor commands and publishes joint states.",
    _EXAMPLES,
)


class FakeRobotNode(Node):
    """The node; its topics and parameters are in docs/fake_robot.md."""

    def __init__(self, stop: StopSignals) -> None:
        """Declare parameters and open topics; nothing moves before there is a robot.

        Args:
            stop: the signals that end the process; one of them ends also the loading of a robot.

        Raises:
            rclpy.exceptions.ParameterException: a parameter other than the robot's has a value that is not allowed.
        """
        super().__init__(NODE_NAME, allow_undeclared_parameters=True)
        parameters.declare(self)
        self._stop = stop
        self._robot: FakeRobot | None = None
        self._failure = ""
        self._command = self.get_parameter("command").value
        self._period = 1.0 / self.get_parameter("rate").value
        self._publish_period = 1.0 / self.get_parameter("publish_rate").value
        self._pace = Pace(self._period)
        self._watchdog = Watchdog(self.get_parameter("command_timeout").value)
        self._statistics = FakeRobotStatistics()
        self._refusals = WarningThrottle(self.get_parameter("warning_period").value)
        self._stops = WarningThrottle(self.get_parameter("warning_period").value)
        self._published = 0

        self._joint_states, self._motor_states = JointState(), JointState()
        self._joint_states_publisher = self._state_publisher("joint_states")
        self._motor_states_publisher = self._state_publisher("motor_states")
        self._subscribe()
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._last_report = time.monotonic()
        # Steady, all of them: with use_sim_time, diagnostics come also while the simulation stands, and steps are
        # counted by the node's clock whenever the timer looks at it.
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostics_timer = self.create_timer(
            self.get_parameter("diagnostic_period").value, self._publish_diagnostics, clock=self._steady
        )

        self._unknown_parameters = robot_parameters.unknown(self, parameters.table())
        for name, hint in self._unknown_parameters.items():
            self.get_logger().warning(f"parameter {printable(name)} is not one of this node and has no effect: {hint}")
        self._supply = RobotSupply(self, wanted=lambda: self._robot is None, deliver=self._on_robot)
        self.add_on_set_parameters_callback(self._on_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    def start_up(self) -> None:
        """Load the robot, at once or, where it has yet to come, when it comes."""
        if self._supply.can_come:
            self.get_logger().info(
                f"waiting for the robot from {self._supply.source} (or start the node with a robot's parameter file, "
                "--params-file, or with the parameter robot_description or robot_source_node)"
            )
            return
        try:
            with self._stop.interrupting():
                loaded = self._supply.load()
        except KeyboardInterrupt:  # the process is about to end
            return
        if loaded is not None:
            self._on_robot(loaded)

    def _state_publisher(self, topic: str) -> Publisher:
        return self.create_publisher(
            JointState, topic, QoSProfile(depth=_QOS_DEPTH), qos_overriding_options=overriding_options()
        )

    def _subscribe(self) -> None:
        message_type, topic, read = {
            "motor_setpoint": (JointState, "motor_setpoint", self._read_motor_setpoint),
            "feedforward": (FeedforwardCommand, "feedforward", self._read_feedforward),
            "motor_effort": (Float64MultiArray, "effort_command", self._read_effort),
            "joint_effort": (Float64MultiArray, "effort_command", self._read_effort),
        }[self._command]
        self.create_subscription(
            message_type,
            topic,
            partial(self._on_command, read),
            QoSProfile(depth=_QOS_DEPTH),
            qos_overriding_options=overriding_options(),
        )

    # --- Robot --------------------------------------------------------------------------

    def _on_robot(self, loaded: Loaded) -> None:
        """Take, or refuse, a robot."""
        error, detail = loaded.error, loaded.detail
        if loaded.solver is not None:
            try:
                self._take_robot(loaded, loaded.solver.arm)
            except EomDynamicsError as refusal:
                error, detail = str(refusal), ""
        if self._robot is None:
            self._failure = printable(error)
            hint = "waits for another" if self._supply.can_come else "stands still: correct that, start it again"
            lines = [f"robot not loaded: {self._failure} (the node {hint})", *map(printable, detail.splitlines())]
            self.get_logger().error("\n".join(lines))

    def _take_robot(self, loaded: Loaded, arm: ElasticArm) -> None:
        if self._command == "joint_effort":
            arm = ElasticArm(torque_controlled(arm.robot))
        given = parameters.arrays(self)
        self._robot = robot = FakeRobot(
            arm,
            period=self._period,
            position=given.get("initial_position", 0.0),
            natural_frequency=self.get_parameter("natural_frequency").value,
            damping_ratio=self.get_parameter("damping_ratio").value,
            kp=given.get("kp"),
            kd=given.get("kd"),
            limited=self.get_parameter("limit_effort").value,
        )
        self._failure = ""
        self._supply.rest()
        self._order = MotorOrder(arm.motor_names)
        self._joint_states.name, self._motor_states.name = list(arm.robot.joint_names), list(arm.motor_names)
        self._supply.warn(loaded)
        if any(arm.variable & ~arm.paired):
            self.get_logger().warning("joints of type variable keep their nominal stiffness: no command brings another")
        # The first step brings kernels from the cache, or compiles them.
        robot.advance()
        # What stands now stays: without it the collector goes through the objects of imported modules in mid-motion.
        gc.collect()
        gc.freeze()
        self.create_timer(self._period, self._tick, clock=self._steady)
        self.get_logger().info(
            f"robot {printable(arm.robot.name)} with {arm.robot.n} joints, from {self._supply.source}: "
            f"{1 / self._period:g} steps a second, commands from {self._command}"
        )

    # --- Parameters ---------------------------------------------------------------------

    def _on_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        return robot_parameters.answer(
            robot_parameters.objection(
                change,
                declared=self.has_parameter(change.name),
                configured=self._robot is not None,
                active=False,
            )
            for change in changes
        )

    def _on_parameters_set(self, changes: list[Parameter]) -> None:
        for change in changes:
            if change.name == "warning_period":
                self._refusals.period = self._stops.period = change.value
            elif change.name == "diagnostic_period":
                self._diagnostics_timer.timer_period_ns = round(change.value * 1e9)
                self._diagnostics_timer.reset()

    # --- Commands -----------------------------------------------------------------------

    def _on_command(self, read: Any, message: Any) -> None:
        robot = self._robot
        if robot is None:
            return
        self._statistics.received += 1
        try:
            command = read(message)
        except StateError as error:
            self._refuse(str(error))
            return
        if self._watchdog.command(self._now()):
            if len(command) == 1:
                robot.apply(*command)
            else:
                robot.follow(*command)

    def _read_motor_setpoint(self, message: JointState) -> list[Any]:
        return self._order.read(
            "name", message.name, position=message.position, velocity=message.velocity, effort=message.effort
        )

    def _read_feedforward(self, message: FeedforwardCommand) -> list[Any]:
        return self._order.read(
            "motor_names",
            message.motor_names,
            motor_position=message.motor_position,
            motor_velocity=message.motor_velocity,
            motor_effort=message.motor_effort,
        )

    def _read_effort(self, message: Float64MultiArray) -> list[Any]:
        return self._order.read("names", (), data=message.data)

    def _refuse(self, reason: str) -> None:
        self._statistics.refuse(reason)
        suppressed = self._refusals.pass_at(time.monotonic())
        if suppressed is not None:
            more = f" (and {suppressed} more refused since the last warning)" if suppressed else ""
            self.get_logger().warning(f"command refused, the last good one stays: {printable(reason)}{more}")

    # --- Motion -------------------------------------------------------------------------

    def _now(self) -> float:
        """Time on the clock that the simulation follows, s: that of /clock with use_sim_time, else a steady one."""
        clock = cast(ROSClock, self.get_clock())
        return clock.now().nanoseconds * 1e-9 if clock.ros_time_is_active else time.monotonic()

    def _tick(self) -> None:
        try:
            self._move()
        except Exception:
            if self.context.ok():  # else the publishers are gone, which is no error
                raise

    def _move(self) -> None:
        """Take the steps that are due, and publish when it is time."""
        robot, now = self._robot, self._now()
        stamp = self.get_clock().now().nanoseconds
        if robot is None or now == 0.0:  # there is no /clock yet
            return
        due = self._pace.due(now)
        if not due:
            return
        if self._watchdog.missed(now):
            self._on_timeout(robot)
        for _ in range(due):
            started = time.perf_counter_ns()
            try:
                robot.advance()
            except SimulationError as error:
                self._on_stop(str(error), now)
            self._statistics.add_step(time.perf_counter_ns() - started)
        # A hair before its time counts: products of periods are rounded.
        number = int(self._pace.steps * self._period / self._publish_period + 1e-6)
        if number > self._published:
            self._published = number
            # The time that the state is of, which after a hiccup is not yet now.
            self._publish_states(robot, stamp - round(self._pace.lag * 1e9))

    def _on_timeout(self, robot: FakeRobot) -> None:
        self._statistics.timeouts += 1
        action = self.get_parameter("on_timeout").value
        if action == "hold":
            robot.hold()
        else:
            robot.apply(robot.readings().motor_effort * 0.0)
        done = "holding the position" if action == "hold" else "no effort"
        self.get_logger().warning(f"no commands for {self.get_parameter('command_timeout').value:g} s: {done}")

    def _on_stop(self, reason: str, now: float) -> None:
        self._statistics.stops += 1
        self._watchdog.stop(now)
        if self._stops.pass_at(time.monotonic()) is not None:
            self.get_logger().error(
                f"stopped: {printable(reason)}. The arm is at rest where it was, and obeys after a pause in commands"
            )

    def _publish_states(self, robot: FakeRobot, nanoseconds: int) -> None:
        stamp = Time(nanoseconds=max(nanoseconds, 0)).to_msg()
        said = robot.readings()
        joints, motors = self._joint_states, self._motor_states
        joints.header.stamp = motors.header.stamp = stamp
        joints.position, joints.velocity, joints.effort = map(doubles, said[:3])
        motors.position, motors.velocity, motors.effort = map(doubles, said[3:])
        self._joint_states_publisher.publish(joints)
        self._motor_states_publisher.publish(motors)

    # --- Diagnostics --------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        now = time.monotonic()
        level, message, figures = self._statistics.report(now - self._last_report, self._pace, self._watchdog.phase)
        self._last_report = now
        robot = self._robot
        if self._failure:
            level, message = Level.ERROR, f"robot not loaded: {self._failure}"
        elif robot is None:
            level = Level.ERROR if self._supply.overdue else Level.WARN
            message = f"waiting for the robot from {self._supply.source}: {self._supply.missing or 'it is loading'}"
        elif self._watchdog.phase is Phase.WAITING and self._now() == 0.0:
            level, message = Level.WARN, "waiting for /clock"
        values = {
            "robot": robot.arm.robot.name if robot else "",
            "robot source": self._supply.source,
            "joints": ", ".join(robot.arm.robot.joint_names) if robot else "",
            "motors": ", ".join(robot.arm.motor_names) if robot else "",
            "command": self._command,
            **figures,
        }
        if self._unknown_parameters:
            values["parameters without effect"] = ", ".join(self._unknown_parameters)
        name = self.get_fully_qualified_name()
        stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(diagnostic_array(stamp, name, level, message, values, STATUS_NAME))


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or a shutdown of its context; returns the exit code."""
    return run(
        NODE_NAME,
        FakeRobotNode,
        FakeRobotNode.start_up,
        read_arguments=partial(read_arguments, program=PROGRAM, table=parameters.table()),
        args=args,
    )


if __name__ == "__main__":
    sys.exit(main())
