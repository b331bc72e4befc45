# SPDX-License-Identifier: Apache-2.0
"""Node ``eom_dynamics``: feedforward of elastic-joint arms for a stream of setpoints.

A lifecycle node that configures and activates itself (parameter ``autostart``) when its robot is available
(:mod:`.robot_sources`). Only an active node answers setpoints and requests. Invalid ones are refused and do not affect
later ones. With an invalid robot the node stays unconfigured; a new robot on the topic replaces the current one between
two setpoints.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.serialization import deserialize_message
from std_msgs.msg import Header

from ..arrays import Array
from ..elastic import ElasticArm, LimitViolation
from ..elastic.limit_violations import summary
from ..exceptions import EomDynamicsError, StateError, TrajectoryError
from ..messages.refusals import is_held, refusal_reason
from ..messages.setpoint_to_command import Solution, Solver
from ..stream.compiled_stream import CompiledStream, Shape, ShapedStream, shape_of
from ..stream.watchdog import Response, Status
from ..terminal import printable
from .command_line import Program
from .diagnostics import Level, Report
from .dynamics.command_topics import CommandTopics
from .dynamics.inverse_dynamics_service import InverseDynamicsService
from .dynamics.parameters import TABLE
from .dynamics.realtime import schedule
from .dynamics.spline_topic import SplineTopic
from .dynamics.statistics import STATUS_NAME, StreamStatistics
from .dynamics.supervision import Supervision
from .dynamics.task_topic import TaskTopic
from .dynamics.trajectory_player import TrajectoryPlayer
from .dynamics.transitions import refuse_impossible_transitions, reported, state_label
from .interfaces import JointTrajectorySetpoint, TaskSetpoint
from .robot_node import RobotNode
from .robot_sources import Loaded
from .running import run
from .stopping import StopSignals
from .stream_qos import stream_qos

PROGRAM = Program(
    "dynamics_node",
    "eom_dynamics",
    "Lifecycle node: joint efforts with two time derivatives and motor commands for a stream of setpoints.",
    """\
examples:
  dynamics_node --ros-args --params-file my_arm.yaml                  robot and parameters from a file
  dynamics_node --ros-args -r __ns:=/left -p effort_command:=joint    namespace and a parameter
  dynamics_node --ros-args -p robot_source_node:=/robot_state_publisher

topics and services (relative to the namespace):
  setpoint             in     eom_dynamics/msg/JointTrajectorySetpoint
  task_setpoint        in     eom_dynamics/msg/TaskSetpoint, of a tool
  joint_states         in     sensor_msgs/msg/JointState, from which the first task setpoint is solved
  spline_trajectory    in     eom_dynamics/msg/SplineTrajectory to play, as from planning_node
  robot_description    in     std_msgs/msg/String, if no parameter gives the robot
  trajectory_status    out    eom_dynamics/msg/TrajectoryStatus of a trajectory
  feedforward          out    eom_dynamics/msg/FeedforwardCommand
  motor_setpoint       out    sensor_msgs/msg/JointState
  effort_command       out    std_msgs/msg/Float64MultiArray
  /diagnostics         out    diagnostic_msgs/msg/DiagnosticArray
  ~/inverse_dynamics   serves eom_dynamics/srv/ComputeInverseDynamics
""",
    TABLE,
)

# One second of setpoints at 1 kHz, so that none is lost when the node stalls.
_INPUT_DEPTH = 1000

# Of messages that calls are kept for: publishers of setpoints that take turns.
_MOST_SHAPES = 4


class DynamicsNode(LifecycleNode, RobotNode):
    """Dynamics node; see docs/node.md for its topics, service and parameters."""

    read_only_while = "the node is configured: clean up, set it, and configure again"

    def __init__(self, stop: StopSignals, **options: Any) -> None:
        """Declare parameters, and create topics and service.

        Args:
            stop: termination signals.
            options: of :class:`rclpy.node.Node`, such as ``cli_args`` where a process has several nodes.

        Raises:
            rclpy.exceptions.ParameterException: a parameter other than the robot's has a value that is not allowed.
        """
        # For the robot's parameters, whose names depend on the robot; others are refused.
        super().__init__(PROGRAM.node, allow_undeclared_parameters=True, **options)
        refuse_impossible_transitions(self)
        self._solver: Solver | None = None
        self._starting_up = False
        self._scheduling_problem = self._failed_transition = ""
        self._statistics = StreamStatistics()
        self.declare(TABLE)
        for name in ("limits", "task_limits", "hold_last_command", "setpoint_lifespan"):
            self.on_parameter(name, self.get_parameter(name).value)

        # Topics exist while the node does, so that they are discovered before activation.
        self._commands = CommandTopics(self)
        self._commands.commands_motors = self.get_parameter("effort_command").value == "motor"
        # Compiled calls for the robot, and those for the shapes of its messages, that of the last one first.
        self._compiled: CompiledStream | None = None
        self._streams: list[ShapedStream] = []
        self._shape: Shape | None = None
        # Of the supervision, where setpoints are supervised; stamp, ns, and frame of the last answered one.
        self._admit: Callable[[int, Array], None] | None = None
        self._stamp, self._frame_id = 0, ""
        quality = stream_qos(_INPUT_DEPTH, watched=True)
        setpoints = self.create_subscription(
            JointTrajectorySetpoint, "setpoint", self._on_setpoint_bytes, raw=True, **quality
        )
        self._tasks = TaskTopic(self, self._on_task_setpoint, _INPUT_DEPTH)
        self._player = TrajectoryPlayer(self, self._on_setpoint)
        self._trajectories = SplineTopic(self, self._player, self._arm_to_play)
        self._supervision = Supervision(
            self,
            self._send_response,
            self.trigger_deactivate,
            lambda: setpoints.get_publisher_count() + self._tasks.publishers,
            lambda: self._player.playing,
        )
        self._supervision.watch_quality(setpoints, quality["qos_profile"])
        self._trajectories.on_finished = self._supervision.expect_nothing
        InverseDynamicsService(self, self._solver_to_answer, lambda: self._limits)
        self.complete(STATUS_NAME, stop)

    # --- Robot and parameters -----------------------------------------------------------

    @property
    def state(self) -> str:
        """Label of the lifecycle state or transition, such as ``inactive``."""
        return state_label(self)

    @property
    def arm(self) -> ElasticArm | None:
        """Arm of the configured node."""
        return self._solver.arm if self._solver else None

    @property
    def robot_wanted(self) -> bool:
        """Whether to load an arriving robot: during autostart, or to replace the current one."""
        return self._starting_up or self._solver is not None

    def start_up(self) -> None:
        """Configure and activate, now or when the robot arrives; does nothing without ``autostart``."""
        if not self.get_parameter("autostart").value:
            return
        self._starting_up = self.supply.arrives
        if self._starting_up:
            self.log_waiting()
        else:
            self._bring_up()

    def on_robot(self, loaded: Loaded) -> None:
        """Use an arriving robot, or report why it cannot be used; called between two setpoints."""
        if loaded.solver is None:
            self.reject(loaded)
        elif self._solver:
            self._take_robot(loaded, loaded.solver)
        else:
            self._bring_up()

    def on_parameter(self, name: str, value: object) -> None:
        """Apply a changed parameter."""
        super().on_parameter(name, value)
        if name == "effort_command":
            self._commands.commands_motors = value == "motor"
        elif name in ("limits", "clip_to_limits"):
            self._limits = self._limit_policy()
        elif name == "task_limits":
            self._task_limits = str(value)
        elif name == "hold_last_command":
            self._hold = str(value)
        elif name == "setpoint_lifespan":
            self._lifespan = round(float(str(value)) * 1e9)

    def _limit_policy(self) -> str:
        policy: str = self.get_parameter("limits").value
        return "clip" if policy == "warn" and self.get_parameter("clip_to_limits").value else policy

    def _bring_up(self) -> None:
        if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    def _take_robot(self, loaded: Loaded, solver: Solver) -> None:
        self._solver, self._compiled = solver, loaded.compiled
        self._begin_stream()
        self._tasks.take(solver.arm.robot)
        self.refused_robot = ""
        self.supply.log_warnings(loaded)
        robot = solver.arm.robot
        self.get_logger().info(
            f"robot {printable(robot.name)} with {robot.n} joints: {', '.join(robot.joint_names)}; "
            f"from {self.supply.source}, computed by {solver.arm.dynamics.backend}"
        )

    # --- Lifecycle ----------------------------------------------------------------------

    @reported
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot."""
        try:
            with self.stop.interrupting():
                loaded = self.supply.load()
        except KeyboardInterrupt:  # the process is ending
            return TransitionCallbackReturn.FAILURE
        consequence = "the node stays unconfigured: correct it and configure again"
        if loaded is None:
            self.failure = f"none from {self.supply.source}: {self.supply.problem}"
            self.get_logger().error(f"robot not loaded: {self.failure} ({consequence})")
            return TransitionCallbackReturn.FAILURE
        if loaded.solver is None:
            self.reject(loaded, consequence)
            return TransitionCallbackReturn.FAILURE
        self.failure = self._failed_transition = ""
        self._starting_up = False
        self.supply.pause()
        self._take_robot(loaded, loaded.solver)
        return super().on_configure(state)

    @reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start answering setpoints and requests."""
        # So that garbage collection during the stream skips the 40 000 objects of imported modules.
        gc.collect()
        gc.freeze()
        self._schedule()
        self.active = True
        self._begin_stream()
        return super().on_activate(state)

    @reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering setpoints and requests."""
        self.active = False
        self._streams = []
        self._supervision.end()
        self._trajectories.stop("the node was deactivated", forget=True)
        return super().on_deactivate(state)

    @reported
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release the robot, so that its parameters can change."""
        self._solver = None
        self.refused_robot = ""
        self.supply.resume()
        return super().on_cleanup(state)

    @reported
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and release the robot."""
        self.active = self._starting_up = False
        self._streams = []
        self._supervision.end()
        self._trajectories.stop("the node was shut down", forget=True)
        self._solver = None
        self.supply.pause()
        return super().on_shutdown(state)

    @reported
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and release the robot after an exception in a transition; the node can be configured again."""
        self.active = self._starting_up = False
        self._streams = []
        self._commands.forget()
        self._supervision.end()
        self._solver = None
        self.refused_robot = ""
        super().on_deactivate(state)  # disables the publishers
        self._trajectories.stop("a transition of the node failed", forget=True)
        self.supply.resume()
        return super().on_error(state)

    def on_transition_failure(self, reason: str, detail: str) -> None:
        """Log and report an exception in a transition."""
        self._failed_transition = printable(reason)
        self.get_logger().error(
            "\n".join(
                [f"{self._failed_transition} (correct it and configure again)", *map(printable, detail.splitlines())]
            )
        )

    def _schedule(self) -> None:
        """Apply priority, processors and locked memory; only after loading, which would block a core."""
        processors, priority, locks_memory = (
            self.get_parameter(name).value for name in ("cpu_affinity", "realtime_priority", "lock_memory")
        )
        problems = [printable(text) for text in schedule(processors, priority, locks_memory=locks_memory)]
        for problem in problems:
            self.get_logger().warning(problem)
        self._scheduling_problem = "; ".join(problems)

    def destroy_node(self) -> None:
        """Destroy the node, with its lifecycle, which rclpy leaves to the end of the interpreter."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    # --- Stream -------------------------------------------------------------------------

    def _on_setpoint_bytes(self, message: bytes) -> None:
        """Answer a serialised setpoint: by a compiled call, if it takes the message, or else field by field."""
        started = time.perf_counter_ns()
        if not self._streams or self._player.remembers:
            self._on_setpoint_message(message)
            return
        stream = self._streams[0]
        call = stream.call
        call.first = self._commands.first
        command = call(message)
        if command is None:
            if self._turn_to_shape(message):
                self._on_setpoint_bytes(message)
            else:
                self._on_setpoint_message(message)
            return
        stamp = call.stamp
        if self._lifespan and self._is_expired(stamp):
            return
        statistics, admit = self._statistics, self._admit
        statistics.received += 1
        try:
            if admit is not None:
                admit(stamp, stream.state)
            self._commands.publish_bytes(stream, command)
            call.commit()
            self._tasks.command(stamp, stream.committed_state)
            if admit is not None:
                self._stamp, self._frame_id = stamp, stream.shape.frame_id
                self._supervision.feed(stamp, stream.solution())
        except StateError as error:
            self._refuse(deserialize_message(message, JointTrajectorySetpoint), error)
        except Exception as error:
            if self.context.ok():  # at shutdown the publishers are gone
                self._refuse(deserialize_message(message, JointTrajectorySetpoint), error, traceback.format_exc())
        else:
            statistics.published += 1
        statistics.add_time(time.perf_counter_ns() - started)

    def _turn_to_shape(self, message: bytes) -> bool:
        """Whether another call takes the message, which then is the first."""
        for k, stream in enumerate(self._streams[1:], start=1):
            if stream.call(message) is not None:
                self._streams.insert(0, self._streams.pop(k))
                return True
        return False

    def _on_setpoint_message(self, message: bytes) -> None:
        try:
            setpoint = deserialize_message(message, JointTrajectorySetpoint)
        except Exception as error:
            self._statistics.received += 1
            self._statistics.refuse(f"the message cannot be read: {error}")
            self.get_logger().warning(
                f"setpoint refused: the message cannot be read: {error}", throttle_duration_sec=self.warning_period
            )
            return
        if self._begins(setpoint) and self._on_setpoint(setpoint) and self._compiled and self._compiled.motors:
            self._learn_shape(self._compiled, setpoint, message)

    def _learn_shape(self, compiled: CompiledStream, setpoint: JointTrajectorySetpoint, message: bytes) -> None:
        """Prepare a call for messages like this valid one, once two in a row are alike."""
        shape, before = shape_of(setpoint), self._shape
        self._shape = shape
        if shape is None or shape != before or self._solver is None:
            return
        if any(stream.shape == shape for stream in self._streams):  # it has taken others and not this one
            return
        compiled.commands_motors, compiled.checks_limits = self._commands.commands_motors, self._limits != "ignore"
        if stream := compiled.shaped(setpoint, message, self._solver.order_of(setpoint)):
            self._streams = [stream, *self._streams[: _MOST_SHAPES - 1]]

    def _on_task_setpoint(self, task: TaskSetpoint) -> None:
        if not self._begins(task):
            return
        setpoint, started = JointTrajectorySetpoint(), time.perf_counter_ns()
        try:
            if self.active and self._solver is not None:
                setpoint = self._tasks.solve(task)
        except Exception as error:
            self._statistics.received += 1
            self._refuse(task, error, "" if isinstance(error, EomDynamicsError) else traceback.format_exc())
        else:
            self._on_setpoint(setpoint, self._task_limits, started)

    def _begins(self, setpoint: JointTrajectorySetpoint | TaskSetpoint) -> bool:
        """Whether a setpoint is to be solved: in time, and while no trajectory is played."""
        if self._lifespan and self.active:
            stamp = setpoint.header.stamp
            if self._is_expired(stamp.sec * 1_000_000_000 + stamp.nanosec):
                return False
        if not self._player.playing:
            # The setpoint, not a trajectory, now determines the commanded state.
            self._player.stop("", forget=True)
            return True
        self._statistics.received += 1
        self._refuse(setpoint, TrajectoryError("a trajectory is being played; an empty one stops it"))
        return False

    def _is_expired(self, stamp: int) -> bool:
        """Whether a setpoint of a stamp, ns, is older than its lifespan, and counted and logged as such."""
        age = self.get_clock().now().nanoseconds - stamp
        if age <= self._lifespan:
            return False
        self._statistics.expire()
        self.get_logger().warning(
            f"setpoint dropped: it is {age * 1e-9:.3g} s old, must be at most {self._lifespan * 1e-9:g} s "
            "(parameter setpoint_lifespan)",
            throttle_duration_sec=self.warning_period,
        )
        return True

    def _solver_to_answer(self) -> Solver:
        """Return the solver; StateError unless the node is active."""
        if not self.active or self._solver is None:
            raise StateError(f"the node is {self.state}; it answers only when active")
        return self._solver

    def _arm_to_play(self) -> ElasticArm:
        """Return the arm; TrajectoryError unless the node is active."""
        if not self.active or self._solver is None:
            raise TrajectoryError(f"the node is {self.state}; it plays trajectories only when active")
        return self._solver.arm

    def _on_setpoint(self, setpoint: JointTrajectorySetpoint, limits: str = "", started: int = 0) -> bool:
        """Publish the command for a setpoint; return whether the setpoint was valid.

        Args:
            setpoint: the setpoint.
            limits: one of LIMIT_POLICIES; by default the parameter of the node.
            started: when its computation began, ns; by default now.
        """
        started = started or time.perf_counter_ns()
        statistics = self._statistics
        statistics.received += 1
        if not self.active or self._solver is None:
            statistics.ignored += 1
            return False
        answered = False
        stamp = setpoint.header.stamp
        try:
            nanoseconds = stamp.sec * 1_000_000_000 + stamp.nanosec
            solution = self._solver.solve(setpoint, stamp=nanoseconds, limits=limits or self._limits, admit=self._admit)
            self._commands.publish(setpoint.header, solution, Status.FRESH)
            self._tasks.command(nanoseconds, solution.state)
            if self._admit is not None:
                self._stamp, self._frame_id = nanoseconds, setpoint.header.frame_id
                self._supervision.feed(nanoseconds, solution)
        except StateError as error:
            self._refuse(setpoint, error)
        except Exception as error:
            if self.context.ok():  # at shutdown the publishers are gone
                self._refuse(setpoint, error, traceback.format_exc())
        else:
            answered = True
            statistics.published += 1
            if solution.exceeded:
                self._report_violations(solution.exceeded)
        statistics.add_time(time.perf_counter_ns() - started)
        return answered

    def _begin_stream(self) -> None:
        """Discard the state of the previous stream."""
        self._commands.forget()
        self._streams, self._shape = [], None
        self._tasks.forget()
        self._trajectories.stop("the stream begins anew", forget=True)
        self._admit = None
        if self._solver:
            self._solver.restart()
            if self.active:
                self._supervision.begin(self._solver.arm)
                self._admit = self._supervision.admit if self._supervision.on else None

    def _send_response(self, last: Solution, response: Response) -> None:
        """Publish the response to a loss of setpoints, in the joint order of the last one."""
        assert self._solver is not None  # the node is active
        now = self.get_clock().now()
        header = Header(stamp=now.to_msg(), frame_id=self._frame_id)
        # Dampers go on from the last setpoint, as the response does.
        stamp = self._stamp + round(response.s * 1e9) if self._stamp else 0
        limits = "warn" if self._limits == "refuse" else self._limits
        try:
            solution = self._solver.command(last.order, *response.flow, stamp=stamp, limits=limits)
            if response.fade:
                solution = response.fade.of(solution)
            self._commands.publish(header, solution, response.status)
            self._tasks.command(now.nanoseconds, solution.state)
        except StateError as error:
            self.get_logger().error(
                f"no command for the response to lost setpoints: {error}", throttle_duration_sec=self.warning_period
            )
            return
        if solution.exceeded:
            self._report_violations(solution.exceeded)

    def _report_violations(self, exceeded: tuple[LimitViolation, ...]) -> None:
        worst = exceeded[0]
        self._statistics.exceed(worst.ratio, str(worst))
        clipped = ", efforts clipped" if self._limits == "clip" else ""
        self.get_logger().warning(
            f"command exceeds limits{clipped}: {printable(summary(exceeded))}",
            throttle_duration_sec=self.warning_period,
        )

    def _refuse(self, setpoint: JointTrajectorySetpoint | TaskSetpoint, error: Exception, detail: str = "") -> None:
        reason = refusal_reason(error)
        if self._commands.holds_command and is_held(error, self._hold) and not self._supervision.responding:
            self._commands.repeat(setpoint.header)
            self._statistics.held += 1
        self._statistics.refuse(reason)
        self.get_logger().warning(
            "\n".join(filter(None, [f"setpoint refused: {reason}", detail])), throttle_duration_sec=self.warning_period
        )

    # --- Diagnostics --------------------------------------------------------------------

    def report(self, seconds: float) -> Report:
        """Diagnostic status of the stream."""
        level, message, figures = self._statistics.report(seconds)
        self._commands.count_listeners()
        if self._failed_transition:
            level, message = Level.ERROR, f"{self.state}: {self._failed_transition}"
        elif self._scheduling_problem and level == Level.OK:
            level, message = Level.WARN, self._scheduling_problem
        elif not self.active and level == Level.OK:
            message = f"{self.state}: setpoints are not answered"
        backend = self._solver.arm.dynamics.backend if self._solver else ""
        whole = self._compiled is not None and self._compiled.motors
        values = {"state": self.state, "backend": backend, "stream": "compiled" if whole else "general", **figures}
        if self._player.playing:
            values["trajectory"] = "under way"
        if self._player.skipped:
            values["trajectory commands left out"] = str(self._player.skipped)
        if self._trajectories.last_refusal:
            values["last refused trajectory"] = self._trajectories.last_refusal
        return self._supervision.report(Report(level, message, values))


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or shutdown of its context; return 1 if it cannot start."""
    return run(PROGRAM, DynamicsNode, DynamicsNode.start_up, args)


if __name__ == "__main__":
    sys.exit(main())
