# SPDX-License-Identifier: Apache-2.0
"""The node ``eom_dynamics``: setpoints in, efforts with two time derivatives and the motor side out.

A lifecycle node that brings itself up (parameter ``autostart``), as soon as there is a robot: where it comes from
is written in :mod:`.robot_sources`. Configuring loads it; a robot that cannot be used is refused with one line that
names the parameter or element, and the node stays unconfigured, so that this can be corrected and the node
configured again. Only an active node answers setpoints and requests. A setpoint or request that cannot be used is
refused, and the next one is answered as if nothing had happened; where its stiffness cannot be used, the last good
command goes out again (parameter ``hold_last_command``). A new robot from the topic takes the place of the old one
between two setpoints, or is refused and the old one stays.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ..actuators import Excess
from ..exceptions import StateError, StiffnessError, TrajectoryError
from ..stream.conversions import doubles
from ..stream.solver import Solution, Solver, matrices
from ..terminal import printable
from . import parameters
from .command_line import read_arguments
from .diagnostics import diagnostic_array, excess_text
from .interfaces import ComputeInverseDynamics, FeedforwardCommand, JointTrajectorySetpoint
from .planning.link import Motion, Refusal, Stop
from .planning.motion_stream import MotionStream
from .planning.of_node import PlanningProcess
from .realtime import SchedulingError, stream_in_real_time
from .robot_loading import Loaded
from .robot_supply import RobotSupply
from .running import run
from .statistics import Level, StreamStatistics, WarningThrottle
from .stopping import StopSignals
from .stream_qos import overriding_options

NODE_NAME = "eom_dynamics"

# Reliable, and deep enough for a second at 1 kHz: a hiccup of either side loses nothing.
_STREAM_QOS_DEPTH = 1000

# By the parameter hold_last_command: the refusals that are answered with the last good command.
_HELD_REFUSALS: dict[str, tuple[type[Exception], ...]] = {
    "stiffness": (StiffnessError,),
    "always": (Exception,),
    "never": (),
}


class DynamicsNode(LifecycleNode):
    """The lifecycle node; its topics, service and parameters are in the README."""

    def __init__(self, stop: StopSignals, arguments: list[str] | None = None) -> None:
        """Declare parameters and open topics and service; nothing is computed before the node is active.

        Args:
            stop: the signals that end the process; one of them ends also the loading of a robot.
            arguments: the command line; None for that of the process.

        Raises:
            rclpy.exceptions.ParameterException: a parameter other than the robot's has a value that is not allowed.
        """
        # Undeclared parameters are allowed for the robot's, whose names it decides; _on_parameters refuses others.
        super().__init__(NODE_NAME, allow_undeclared_parameters=True)
        self._refuse_impossible_transitions()
        self._outlive_malformed_requests()
        parameters.declare(self)

        self._stop = stop
        self._solver: Solver | None = None
        self._active = False
        self._starting_up = False
        self._failure = ""
        self._refused_robot = ""
        self._scheduling_problem = ""
        self._statistics = StreamStatistics()
        period = self.get_parameter("warning_period").value
        self._refusals, self._excesses = WarningThrottle(period), WarningThrottle(period)
        self._commands_motors = self.get_parameter("effort_command").value == "motor"
        self._clips = self.get_parameter("clip_to_limits").value
        self._held_refusals = _HELD_REFUSALS[self.get_parameter("hold_last_command").value]

        # Topics live as long as the node, so that an activation meets peers that are long discovered. Publishing
        # copies a message out: one object of each kind serves all.
        self._feedforward, self._motor_setpoint, self._effort_command = (
            FeedforwardCommand(),
            JointState(),
            Float64MultiArray(),
        )
        # Whether these objects hold a good command of the present robot, since the node was activated.
        self._holds_command = False
        self._feedforward_publisher = self._stream_publisher(FeedforwardCommand, "feedforward")
        self._motor_setpoint_publisher = self._stream_publisher(JointState, "motor_setpoint")
        self._effort_command_publisher = self._stream_publisher(Float64MultiArray, "effort_command")
        self.create_subscription(
            JointTrajectorySetpoint,
            "setpoint",
            self._on_setpoint_topic,
            QoSProfile(depth=_STREAM_QOS_DEPTH),
            qos_overriding_options=overriding_options(),
        )
        self.create_service(
            ComputeInverseDynamics,
            "~/inverse_dynamics",
            self._on_inverse_dynamics,
            # Requests of many callers, or of one that does not wait for answers, come at once.
            qos_profile=QoSProfile(depth=_STREAM_QOS_DEPTH),
        )

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
        self._motion = MotionStream(self, self._on_setpoint)
        self._refused_trajectory = ""
        self.planning = PlanningProcess(self, arguments, self._on_trajectory)

    def _stream_publisher(self, message_type: type, topic: str) -> LifecyclePublisher:
        return self.create_lifecycle_publisher(
            message_type,
            topic,
            QoSProfile(depth=_STREAM_QOS_DEPTH),
            qos_overriding_options=overriding_options(),
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
        self._schedule()
        self._begin_stream()
        self._active = True
        self._tell_planning("active")
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ignore setpoints and refuse requests from here on."""
        self._active = False
        self._motion.stop(forget=True)
        self._tell_planning("inactive")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let go of the robot, so that its parameters may change."""
        self._solver = None
        self._refused_robot = ""
        self._supply.look_out()
        self._tell_planning("unconfigured")
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let go of everything."""
        self._active = self._starting_up = False
        self._motion.stop(forget=True)
        self._solver = None
        self._supply.rest()
        self._tell_planning("finalized")
        return super().on_shutdown(state)

    def _schedule(self) -> None:
        """Take the priority that the parameter asks for; not before a robot is loaded, which takes all of a core."""
        try:
            stream_in_real_time(self.get_parameter("realtime_priority").value)
            self._scheduling_problem = ""
        except SchedulingError as error:
            self._scheduling_problem = str(error)
            self.get_logger().warning(self._scheduling_problem)

    def _tell_planning(self, state: str) -> None:
        self.planning.tell(state, self._solver.arm.robot if self._solver else None)

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
        self._begin_stream()
        self._tell_planning("active" if self._active else "inactive")
        self._refused_robot = ""
        self._supply.warn(loaded)
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
                self._refusals.period = self._excesses.period = change.value
            elif change.name == "effort_command":
                self._commands_motors = change.value == "motor"
            elif change.name == "clip_to_limits":
                self._clips = change.value
            elif change.name == "hold_last_command":
                self._held_refusals = _HELD_REFUSALS[change.value]
            elif change.name == "diagnostic_period":
                self._diagnostics_timer.timer_period_ns = round(change.value * 1e9)
                self._diagnostics_timer.reset()

    # --- Stream -------------------------------------------------------------------------

    def _on_setpoint_topic(self, setpoint: JointTrajectorySetpoint) -> None:
        if not self._motion.playing:
            self._motion.stop(forget=True)  # the joints are sent elsewhere now
            self._on_setpoint(setpoint)
            return
        self._statistics.received += 1
        reason = "a trajectory is under way; an empty one on joint_trajectory ends it"
        self._refuse(setpoint, TrajectoryError(reason), reason)

    def _on_trajectory(self, said: Motion | Refusal | Stop) -> None:
        """Play, or refuse, what came of a trajectory from the topic; runs between two setpoints."""
        try:
            if isinstance(said, Refusal):
                raise TrajectoryError(said.reason)
            if isinstance(said, Stop):
                self._motion.stop()
            elif self._active and self._solver and not self.planning.is_of_another_robot(said):
                names = self._solver.arm.robot.joint_names
                self._motion.play(said.motion, said.stamp, said.frame_id, names)
            else:
                raise TrajectoryError("the node has changed its robot or its state meanwhile")
        except TrajectoryError as error:
            self._refused_trajectory = printable(str(error))
            self.get_logger().warning(f"trajectory refused: {self._refused_trajectory}", throttle_duration_sec=1.0)

    def _on_setpoint(self, setpoint: JointTrajectorySetpoint) -> bool:
        """Answer a setpoint; returns whether it could be used."""
        started = time.perf_counter_ns()
        statistics = self._statistics
        statistics.received += 1
        if not self._active or self._solver is None:
            statistics.ignored += 1
            return False
        answered = False
        stamp = setpoint.header.stamp
        try:
            solution = self._solver.solve(setpoint, stamp=stamp.sec * 1_000_000_000 + stamp.nanosec, clip=self._clips)
            self._publish(setpoint, solution)
        except StateError as error:
            self._refuse(setpoint, error, str(error))
        except Exception as error:
            if self.context.ok():  # else the publishers are gone, which is no error
                reason = f"internal error: {type(error).__name__}: {error}"
                self._refuse(setpoint, error, reason, traceback.format_exc())
        else:
            answered = True
            statistics.published += 1
            if solution.exceeded:
                self._report_excess(solution.exceeded)
        statistics.add_time(time.perf_counter_ns() - started)
        return answered

    def _publish(self, setpoint: JointTrajectorySetpoint, solution: Solution) -> None:
        order = solution.order
        effort, effort_rate, effort_acceleration = map(doubles, order.to_message(solution.efforts))
        position, velocity, acceleration, motor_effort = map(doubles, order.motors_to_message(solution.motors))
        # Until all are replaced, they are no command.
        self._holds_command = False

        feedforward = self._feedforward
        feedforward.header = setpoint.header
        feedforward.joint_names = order.names
        feedforward.held = False
        feedforward.effort = effort
        feedforward.effort_rate = effort_rate
        feedforward.effort_acceleration = effort_acceleration
        feedforward.motor_names = order.motor_names
        feedforward.motor_position = position
        feedforward.motor_velocity = velocity
        feedforward.motor_acceleration = acceleration
        feedforward.motor_effort = motor_effort

        motor_setpoint = self._motor_setpoint
        motor_setpoint.header = setpoint.header
        motor_setpoint.name = order.motor_names
        motor_setpoint.position = position
        motor_setpoint.velocity = velocity
        motor_setpoint.effort = motor_effort

        self._effort_command.data = doubles(solution.motors[-1] if self._commands_motors else solution.efforts[0])
        self._holds_command = True
        self._send()

    def _send(self) -> None:
        self._feedforward_publisher.publish(self._feedforward)
        self._motor_setpoint_publisher.publish(self._motor_setpoint)
        self._effort_command_publisher.publish(self._effort_command)

    def _hold(self, setpoint: JointTrajectorySetpoint) -> None:
        """Answer a refused setpoint with the last good command."""
        self._feedforward.header = self._motor_setpoint.header = setpoint.header
        self._feedforward.held = True
        self._send()
        self._statistics.held += 1

    def _begin_stream(self) -> None:
        """Forget the setpoints before: what follows does not go on from them."""
        self._holds_command = False
        self._motion.stop(forget=True)
        if self._solver:
            self._solver.restart()

    def _report_excess(self, exceeded: tuple[Excess, ...]) -> None:
        worst = max(exceeded, key=lambda excess: excess.value / excess.limit)
        self._statistics.exceed(worst.value / worst.limit, excess_text(worst))
        suppressed = self._excesses.pass_at(time.monotonic())
        if suppressed is not None:
            more = f" (and {suppressed} more commands since the last warning)" if suppressed else ""
            clipped = ", effort clipped" if self._clips else ""
            self.get_logger().warning(
                f"command exceeds limits{clipped}: {printable('; '.join(map(excess_text, exceeded)))}{more}"
            )

    def _refuse(self, setpoint: JointTrajectorySetpoint, error: Exception, reason: str, detail: str = "") -> None:
        if self._holds_command and isinstance(error, self._held_refusals):
            self._hold(setpoint)
        self._statistics.refuse(reason)
        suppressed = self._refusals.pass_at(time.monotonic())
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
        fields = solution.fields()
        if request.include_matrices:
            fields |= matrices(self._solver, solution)
        for name, values in fields.items():
            setattr(response, name, doubles(values))
        response.joint_names = solution.order.names
        response.motor_names = solution.order.motor_names
        if solution.exceeded:
            response.message = f"exceeds limits: {'; '.join(map(excess_text, solution.exceeded))}"
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
        elif self.planning.problem and level == Level.OK:
            level, message = Level.WARN, self.planning.problem
        elif self._scheduling_problem and level == Level.OK:
            level, message = Level.WARN, self._scheduling_problem
        elif not self._active and level == Level.OK:
            message = f"{self.state}: setpoints are not answered"
        arm = self._solver.arm if self._solver else None
        values = {
            "state": self.state,
            "robot": arm.robot.name if arm else "",
            "robot source": self._supply.source,
            "joints": ", ".join(arm.robot.joint_names) if arm else "",
            "motors": ", ".join(arm.motor_names) if arm else "",
            "backend": arm.dynamics.backend if arm else "",
            "planning services": self.planning.status,
            **figures,
        }
        if self._motion.playing:
            values["trajectory"] = "under way"
        if self._motion.skipped:
            values["trajectory commands left out"] = str(self._motion.skipped)
        if self._refused_trajectory:
            values["last refused trajectory"] = self._refused_trajectory
        if self._refused_robot:
            values["refused robot"] = self._refused_robot
        if self._unknown_parameters:
            values["parameters without effect"] = ", ".join(self._unknown_parameters)
        self._diagnostics_publisher.publish(
            diagnostic_array(self.get_clock().now().to_msg(), self.get_fully_qualified_name(), level, message, values)
        )


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or a shutdown of its context; returns the exit code."""

    def begin(node: DynamicsNode) -> None:
        if node.get_parameter("autostart").value:
            node.start_up()

    return run(
        NODE_NAME,
        partial(DynamicsNode, arguments=args),
        begin,
        end=lambda node: node.planning.close(),
        read_arguments=read_arguments,
        args=args,
    )


if __name__ == "__main__":
    sys.exit(main())
