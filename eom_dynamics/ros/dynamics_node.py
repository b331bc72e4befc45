# SPDX-License-Identifier: Apache-2.0
"""The node ``eom_dynamics``: setpoints in, efforts with two time derivatives and the motor side out.

A lifecycle node that brings itself up (parameter ``autostart``), as soon as there is a robot: where it comes from
is written in :mod:`.robot_sources`. Configuring loads it; a robot that cannot be used is refused with one line that
names the parameter or element, and the node stays unconfigured, so that this can be corrected and the node
configured again. Only an active node answers setpoints and requests. A setpoint or request that cannot be used is
refused, and the next one is answered as if nothing had happened. A new robot from the topic takes the place of the
old one between two setpoints, or is refused and the old one stays.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import InvalidQosOverridesError, QoSOverridingOptions
from rclpy.signals import SignalHandlerOptions, install_signal_handlers
from rclpy.task import Future
from rclpy.utilities import try_shutdown
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ..exceptions import StateError
from ..terminal import prepare_streams, printable
from . import parameters
from .conversions import COMMAND_FIELDS, doubles
from .diagnostics import diagnostic_array
from .interfaces import ComputeInverseDynamics, FeedforwardCommand, JointTrajectorySetpoint
from .robot_loading import Loaded
from .robot_supply import RobotSupply
from .solver import Solution, Solver, matrices
from .statistics import Level, StreamStatistics, WarningThrottle
from .stopping import StopSignals

NODE_NAME = "eom_dynamics"

# Reliable, and deep enough for a second at 1 kHz: a hiccup of either side loses nothing.
_STREAM_QOS_DEPTH = 1000

# The middleware keeps room for as many messages, or cannot count to it.
_LARGEST_QOS_DEPTH = 1_000_000

_SPIN_PERIOD = 1.0

_EFFORT_COMMAND_ROWS = {"motor": COMMAND_FIELDS.index("motor_effort"), "joint": COMMAND_FIELDS.index("effort")}


class DynamicsNode(LifecycleNode):
    """The lifecycle node; its topics, service and parameters are in the README."""

    def __init__(self, stop: StopSignals) -> None:
        """Declare parameters and open topics and service; nothing is computed before the node is active.

        Args:
            stop: the signals that end the process; one of them ends also the loading of a robot.

        Raises:
            rclpy.exceptions.ParameterException: a parameter other than the robot's has a value that is not allowed.
        """
        # Undeclared parameters are allowed for the robot's, whose names it decides; _on_parameters refuses others.
        super().__init__(NODE_NAME, allow_undeclared_parameters=True)
        self._outlive_malformed_requests()
        parameters.declare(self)

        self._stop = stop
        self._solver: Solver | None = None
        self._active = False
        self._starting_up = False
        self._failure = ""
        self._refused_robot = ""
        self._statistics = StreamStatistics()
        self._throttle = WarningThrottle(self.get_parameter("warning_period").value)
        self._effort_command_row = _EFFORT_COMMAND_ROWS[self.get_parameter("effort_command").value]

        # Topics live as long as the node, so that an activation meets peers that are long discovered. Publishing
        # copies a message out: one object of each kind serves all.
        self._feedforward, self._motor_setpoint, self._effort_command = (
            FeedforwardCommand(),
            JointState(),
            Float64MultiArray(),
        )
        self._feedforward_publisher = self._stream_publisher(FeedforwardCommand, "feedforward")
        self._motor_setpoint_publisher = self._stream_publisher(JointState, "motor_setpoint")
        self._effort_command_publisher = self._stream_publisher(Float64MultiArray, "effort_command")
        self.create_subscription(
            JointTrajectorySetpoint,
            "setpoint",
            self._on_setpoint,
            QoSProfile(depth=_STREAM_QOS_DEPTH),
            qos_overriding_options=_qos_overriding_options(),
        )
        self.create_service(
            ComputeInverseDynamics,
            "~/inverse_dynamics",
            self._on_inverse_dynamics,
            # Requests of many callers, or of one that does not wait for answers, come at once.
            qos_profile=QoSProfile(depth=_STREAM_QOS_DEPTH),
        )
        self._refuse_impossible_transitions()

        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._last_report = time.monotonic()
        # Steady: with use_sim_time, diagnostics come also while the simulation stands.
        self._diagnostics_timer = self.create_timer(
            self.get_parameter("diagnostic_period").value,
            self._publish_diagnostics,
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

        self._unknown_parameters = parameters.unknown(self)
        for name, hint in self._unknown_parameters.items():
            self.get_logger().warning(f"parameter {printable(name)} is not one of this node and has no effect: {hint}")
        self._supply = RobotSupply(
            self, wanted=lambda: self._starting_up or self._solver is not None, deliver=self._on_robot
        )
        self.add_on_set_parameters_callback(self._on_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    def _stream_publisher(self, message_type: type, topic: str) -> LifecyclePublisher:
        return self.create_lifecycle_publisher(
            message_type,
            topic,
            QoSProfile(depth=_STREAM_QOS_DEPTH),
            qos_overriding_options=_qos_overriding_options(),
        )

    @property
    def state(self) -> str:
        """Label of the lifecycle state: unconfigured, inactive, active, finalized, or a transition between them."""
        label: str = self._state_machine.current_state[1]
        return label

    def start_up(self) -> None:
        """Configure and activate, at once or, where the robot has yet to come, when it comes."""
        self._starting_up = self._supply.can_come
        if self._starting_up:
            self.get_logger().info(
                f"waiting for the robot from {self._supply.source} (or start the node with a robot's parameter file, "
                "--params-file, or with the parameter robot_description or robot_source_node)"
            )
        else:
            self._bring_up()

    def _bring_up(self) -> None:
        if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    # --- Lifecycle ----------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot."""
        try:
            with self._stop.interrupting():
                loaded = self._supply.load()
        except KeyboardInterrupt:  # the process is about to end
            return TransitionCallbackReturn.FAILURE
        error = loaded.error if loaded else f"there is none from {self._supply.source}: {self._supply.missing}"
        if loaded is None or loaded.solver is None:
            self._failure = printable(error)
            hint = "waits for another" if self._starting_up else "stays unconfigured: correct that, configure again"
            detail = map(printable, loaded.detail.splitlines() if loaded else ())
            self.get_logger().error("\n".join([f"robot not loaded: {self._failure} (the node {hint})", *detail]))
            return TransitionCallbackReturn.FAILURE
        self._failure, self._starting_up = "", False
        self._supply.rest()
        self._take_robot(loaded, loaded.solver)
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer setpoints and requests from here on."""
        # What stands now stays: without it the collector goes through the 40 000 objects of imported modules
        # in the middle of the stream.
        gc.collect()
        gc.freeze()
        self._active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ignore setpoints and refuse requests from here on."""
        self._active = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let go of the robot, so that its parameters may change."""
        self._solver = None
        self._refused_robot = ""
        self._supply.look_out()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let go of everything."""
        self._active = self._starting_up = False
        self._solver = None
        self._supply.rest()
        return super().on_shutdown(state)

    def _refuse_impossible_transitions(self) -> None:
        """Answer a transition that the state does not allow, which in rclpy ends the process."""
        service = self._service_change_state
        change_state = service.callback

        def guarded(request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
            try:
                return change_state(request, response)
            except Exception as error:
                if self.context.ok():  # else the transition could not be published, and nobody waits for it
                    self.get_logger().warning(f"transition refused in state {self.state}: {error}")
                response.success = False
                return response

        service.callback = guarded

    def _outlive_malformed_requests(self) -> None:
        """Answer requests that rclpy's own services cannot read, each of which it would log with a traceback."""

        def guarded(answer: Callable[[Any, Any], Any], request: Any, response: Any) -> Any:
            try:
                return answer(request, response)
            except Exception as error:
                if self.context.ok():  # else nobody waits for it
                    self.get_logger().error(
                        f"request cannot be read: {printable(str(error))}", throttle_duration_sec=1.0
                    )
                return response

        for service in self.services:
            service.callback = partial(guarded, service.callback)

    # --- Robot --------------------------------------------------------------------------

    def _on_robot(self, loaded: Loaded) -> None:
        """Take, or refuse, a robot that came by itself; runs between two setpoints."""
        if self._solver is None:
            self._bring_up()
        elif loaded.solver is not None:
            self._take_robot(loaded, loaded.solver)
        else:
            self._refused_robot = printable(loaded.error)
            detail = map(printable, loaded.detail.splitlines())
            self.get_logger().warning(
                "\n".join([f"new robot refused, the old one stays: {self._refused_robot}", *detail])
            )

    def _take_robot(self, loaded: Loaded, solver: Solver) -> None:
        self._solver = solver
        self._refused_robot = ""
        for doubt in loaded.doubts:
            self.get_logger().warning(printable(doubt))
        if unused := self._supply.without_effect(loaded.given):
            self.get_logger().warning(f"the robot is from {self._supply.source}: no effect of {', '.join(unused)}")
        robot = solver.arm.robot
        self.get_logger().info(
            f"robot {printable(robot.name)} with {robot.n} joints: {', '.join(robot.joint_names)}; "
            f"from {self._supply.source}, computed by {solver.arm.dynamics.backend}"
        )

    # --- Parameters ---------------------------------------------------------------------

    def _on_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        return parameters.answer(
            parameters.objection(
                change,
                declared=self.has_parameter(change.name),
                configured=self._solver is not None,
                active=self._active,
            )
            for change in changes
        )

    def _on_parameters_set(self, changes: list[Parameter]) -> None:
        for change in changes:
            if change.name == "warning_period":
                self._throttle.period = change.value
            elif change.name == "effort_command":
                self._effort_command_row = _EFFORT_COMMAND_ROWS[change.value]
            elif change.name == "diagnostic_period":
                self._diagnostics_timer.timer_period_ns = round(change.value * 1e9)
                self._diagnostics_timer.reset()

    # --- Stream -------------------------------------------------------------------------

    def _on_setpoint(self, setpoint: JointTrajectorySetpoint) -> None:
        started = time.perf_counter_ns()
        statistics = self._statistics
        statistics.received += 1
        if not self._active or self._solver is None:
            statistics.ignored += 1
            return
        try:
            self._publish(setpoint, self._solver.solve(setpoint))
        except StateError as error:
            self._refuse(str(error))
        except Exception as error:
            if self.context.ok():  # else the publishers are gone, which is no error
                self._refuse(f"internal error: {type(error).__name__}: {error}", traceback.format_exc())
        else:
            statistics.published += 1
        statistics.add_time(time.perf_counter_ns() - started)

    def _publish(self, setpoint: JointTrajectorySetpoint, solution: Solution) -> None:
        command = solution.order.to_message(solution.command)
        effort, effort_rate, effort_acceleration, position, velocity, acceleration, motor_effort = map(doubles, command)

        feedforward = self._feedforward
        feedforward.header = setpoint.header
        feedforward.joint_names = solution.order.names
        feedforward.effort = effort
        feedforward.effort_rate = effort_rate
        feedforward.effort_acceleration = effort_acceleration
        feedforward.motor_position = position
        feedforward.motor_velocity = velocity
        feedforward.motor_acceleration = acceleration
        feedforward.motor_effort = motor_effort
        self._feedforward_publisher.publish(feedforward)

        motor_setpoint = self._motor_setpoint
        motor_setpoint.header = setpoint.header
        motor_setpoint.name = solution.order.names
        motor_setpoint.position = position
        motor_setpoint.velocity = velocity
        motor_setpoint.effort = motor_effort
        self._motor_setpoint_publisher.publish(motor_setpoint)

        self._effort_command.data = doubles(solution.command[self._effort_command_row])
        self._effort_command_publisher.publish(self._effort_command)

    def _refuse(self, reason: str, detail: str = "") -> None:
        self._statistics.refuse(reason)
        suppressed = self._throttle.pass_at(time.monotonic())
        if suppressed is not None:
            more = f" (and {suppressed} more refused since the last warning)" if suppressed else ""
            self.get_logger().warning("\n".join(filter(None, [f"setpoint refused: {reason}{more}", detail])))

    # --- Service ------------------------------------------------------------------------

    def _on_inverse_dynamics(
        self, request: ComputeInverseDynamics.Request, response: ComputeInverseDynamics.Response
    ) -> ComputeInverseDynamics.Response:
        try:
            self._answer(request, response)
        except StateError as error:
            response = ComputeInverseDynamics.Response(message=str(error))
            self.get_logger().warning(f"request refused: {error}", throttle_duration_sec=1.0)
        except Exception as error:
            response = ComputeInverseDynamics.Response(message=f"internal error: {type(error).__name__}: {error}")
            self.get_logger().error(f"request failed:\n{traceback.format_exc()}")
        return response

    def _answer(self, request: ComputeInverseDynamics.Request, response: ComputeInverseDynamics.Response) -> None:
        if not self._active or self._solver is None:
            raise StateError(f"the node is {self.state}; it answers only when active")
        solution = self._solver.solve(request, optional=("jerk", "snap"))
        fields = dict(zip(COMMAND_FIELDS, solution.order.to_message(solution.command), strict=True))
        if request.include_matrices:
            fields |= matrices(self._solver, solution)
        for name, values in fields.items():
            setattr(response, name, doubles(values))
        response.joint_names = solution.order.names
        response.success = True

    # --- Diagnostics --------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        now = time.monotonic()
        level, message, figures = self._statistics.report(now - self._last_report)
        self._last_report = now
        missing = self._supply.missing if self._solver is None else ""
        if self._failure:
            level, message = Level.ERROR, f"robot not loaded: {self._failure}"
        elif self._starting_up and missing:
            level = Level.ERROR if self._supply.overdue else Level.WARN
            message = f"waiting for the robot from {self._supply.source}: {missing}"
        elif self._refused_robot and level == Level.OK:
            level, message = Level.WARN, f"new robot refused, the old one stays: {self._refused_robot}"
        elif not self._active and level == Level.OK:
            message = f"{self.state}: setpoints are not answered"
        arm = self._solver.arm if self._solver else None
        values = {
            "state": self.state,
            "robot": arm.robot.name if arm else "",
            "robot source": self._supply.source,
            "joints": ", ".join(arm.robot.joint_names) if arm else "",
            "backend": arm.dynamics.backend if arm else "",
            **figures,
        }
        if self._refused_robot:
            values["refused robot"] = self._refused_robot
        if self._unknown_parameters:
            values["parameters without effect"] = ", ".join(self._unknown_parameters)
        self._diagnostics_publisher.publish(
            diagnostic_array(self.get_clock().now().to_msg(), self.get_fully_qualified_name(), level, message, values)
        )


def _qos_overriding_options() -> QoSOverridingOptions:
    """Which qualities of a topic parameters may override, and by what."""

    def check(quality: QoSProfile) -> SetParametersResult:
        if 0 <= quality.depth <= _LARGEST_QOS_DEPTH:
            return SetParametersResult(successful=True)
        reason = f"depth must be from 0 to {_LARGEST_QOS_DEPTH}, is {quality.depth}"
        return SetParametersResult(successful=False, reason=reason)

    return QoSOverridingOptions.with_default_policies(callback=check)


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or a shutdown of its context; returns the exit code."""
    prepare_streams()
    # rclpy ends the context on a signal, and with it the spinning. It gets the signals only then, since before
    # they would make errors of whatever is under way; and Python's own handler would raise KeyboardInterrupt
    # in whatever line happens to run.
    stop = StopSignals()
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        node = DynamicsNode(stop)
    except (RuntimeError, ParameterException, InvalidQosOverridesError) as error:  # RuntimeError: of rclpy
        print(f"{NODE_NAME}: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return 1
    executor = EventsExecutor() if node.get_parameter("executor").value == "events" else SingleThreadedExecutor()
    executor.add_node(node)
    if node.get_parameter("autostart").value:
        node.start_up()
    install_signal_handlers()
    if not stop.came:
        _spin(executor, node)
    try_shutdown()
    return 0


def _spin(executor: Executor, node: DynamicsNode) -> None:
    """Spin until the context ends, whatever comes in."""
    while node.context.ok():
        try:
            # Not spin(): where rclpy is built for an old C library, as the wheels on PyPI are, the events
            # executor's wait without a deadline overflows and never sleeps.
            executor.spin_until_future_complete(Future(), timeout_sec=_SPIN_PERIOD)
        except ExternalShutdownException:
            return
        except Exception as error:
            if node.context.ok():
                place = traceback.extract_tb(error.__traceback__)[-1]
                node.get_logger().error(
                    f"a callback failed, in {place.name} at {place.filename}:{place.lineno}: "
                    f"{type(error).__name__}: {printable(str(error))}",
                    throttle_duration_sec=1.0,
                )


if __name__ == "__main__":
    sys.exit(main())
