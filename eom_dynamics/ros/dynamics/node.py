# SPDX-License-Identifier: Apache-2.0
"""The node ``eom_dynamics``, which :mod:`..dynamics_node` runs."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from ...control.expected_errors import feedforward_advice
from ...control.setpoint_loop import SetpointLoop
from ...control.setpoint_to_command import SetpointEvaluator
from ...control.settings import MODES
from ...elastic import ElasticArm
from ...elastic.drive_programs import sides_text
from ...exceptions import EomDynamicsError, StateError, TrajectoryError
from ...terminal import printable
from ..diagnostics import Level, StatusReport
from ..executors import LateAnswers, StopSignals, steady_timer
from ..parameter_tables import ROBOT, URDF, dynamics_parameters, start_value, without_joint
from ..robot_node import RobotNode
from ..robot_sources import NOT_LOADED, LoadedRobot
from ..running import freeze_objects, schedule
from . import NODE
from .command_topics import CommandTopics
from .rivals import Rivals
from .services import PayloadTopic, serve_inverse_dynamics
from .setpoint_stream import SetpointStream
from .statistics import STATUS_NAME
from .stops import GAINS
from .trajectory_topics import TrajectoryTopics

# Between looks at other nodes that command the same motors, s.
_BETWEEN_LOOKS = 0.2

_Callback = Callable[[Any, LifecycleState], TransitionCallbackReturn]


def reported(callback: _Callback) -> _Callback:
    """Decorate a transition callback: log it; an exception is logged, reported in diagnostics, and becomes ERROR.

    After ERROR, rclpy calls ``on_error``; of an exception it says nothing.
    """
    name = callback.__name__.removeprefix("on_")

    @functools.wraps(callback)
    def reporting(node: Any, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            result = callback(node, state)
        except Exception as error:
            node.failed_transition = printable(f"{name} failed: {type(error).__name__}: {error}")
            refused = isinstance(error, EomDynamicsError)
            detail = [] if refused else map(printable, traceback.format_exc().splitlines())
            node.get_logger().error("\n".join([f"{node.failed_transition} (correct it and configure again)", *detail]))
            return TransitionCallbackReturn.ERROR
        if result == TransitionCallbackReturn.SUCCESS:
            node.get_logger().info(f"transition {name} from {state.label}")
        return result

    return reporting


def _waits_for(rivals: str) -> str:
    """Reason against activation, and the remedy."""
    return f"not activated: {rivals}; end that node, remap the topics of one, or set allow_other_publishers"


# Number of the first transition of rcl that nobody requests, such as transition_success.
_FIRST_INTERNAL = 10


class TransitionRequests:
    """Transition requests of a node; impossible requests are refused, as rclpy would end the process.

    Two requests are answered later: a transition from the active state first switches the node off, and ``configure``
    first requests the robot of another node, which may have changed.
    """

    def __init__(self, node: DynamicsNode) -> None:
        self._node = node
        service: Any = node._service_change_state
        self._change_state, self._answers = service.callback, LateAnswers(service)
        self._names = {number: name for number, name, *_ in node._state_machine.transition_graph}
        service.callback = self._receive

    def _receive(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        wanted, available = request.transition, self._node._state_machine.available_transitions
        label = next((x[1] for x in available if (wanted.label == x[1] if wanted.label else wanted.id == x[0])), "")
        if not label:
            self._refuse(wanted.label or self._names.get(wanted.id, str(wanted.id)))
            response.success = False
            return response
        asks = label == "configure" and self._node.supply.arrives
        # Each transition from the active state ends it.
        if not (asks or self._node.state == "active"):
            return self._change(request, response)
        answer = self._answers.later(response)

        def change() -> None:
            self._change(request, response)
            answer()

        if asks:
            self._node.supply.ask(change)
        else:
            self._node.switch_off("the node is deactivated", change)
        return response

    def _change(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return self._change_state(request, response)
        except Exception as error:
            if self._node.context.ok():  # at shutdown the transition event cannot be published
                self._refuse(self._names.get(request.transition.id, request.transition.label), str(error))
            response.success = False
            return response

    def _refuse(self, name: str, error: str = "") -> None:
        """Log and report a refused transition, with the possible transitions."""
        # Others end a transition.
        possible = [x[1] for x in self._node._state_machine.available_transitions if x[0] < _FIRST_INTERNAL]
        text = f"{name}: state {self._node.state}, possible transitions: {', '.join(possible) or 'none'}"
        self._node.refuse("transition", StateError(text + (f"; {error}" if error else "")), always=True)


# Time that the end of the node waits until its last command has been received, s.
_DELIVERY = 2.0


class DynamicsNode(LifecycleNode, RobotNode):
    """Dynamics node; see docs/node.md for its topics, service and parameters.

    Setpoints arrive in :class:`.SetpointAnswers`, the base of its stream.

    Args:
        discovering_since: time, s, of time.monotonic(), since when its process discovers others; None for now.
        options: of :class:`rclpy.node.Node`, such as ``cli_args``.

    Attributes:
        failed_transition: why the last transition failed; empty once the node is configured.
    """

    read_only_while = "the node is configured: clean up, set it, and configure again"

    def __init__(self, stop: StopSignals, discovering_since: float | None = None, **options: Any) -> None:
        # For the robot's parameters: their names depend on the robot. Others are refused.
        super().__init__(NODE, allow_undeclared_parameters=True, **options)
        TransitionRequests(self)
        # True if to configure the node once it has a robot; and to activate it once no other node commands the motors.
        self._starting_up = self._waits = False
        self._scheduling_problem = self.failed_transition = self._rivals = ""
        # Robot that is refused until the arm rests.
        self._next_robot: LoadedRobot | None = None
        self.declare(dynamics_parameters(start_value(self, "safety")))
        # Topics exist while the node does, so that they are discovered before activation.
        self._commands = CommandTopics(self)
        self.rivals = Rivals(self, self._commands.topics, lambda: self.diagnostics.publish(), discovering_since)
        deactivate = partial(self.switch_off, "the node deactivates itself", self.trigger_deactivate)
        self._stream = SetpointStream(self, self._commands, deactivate)
        self._trajectories = TrajectoryTopics(self, self._stream, self._loop_to_play)
        takes = partial(self._loop_in_use, "it takes payloads once it has a robot")
        self._payloads = PayloadTopic(
            self, takes, self._stream.contact, self._stream.measured, self._stream.targets.go_on
        )
        serve_inverse_dynamics(self, self._evaluator_to_answer)
        self.complete(STATUS_NAME, stop)
        steady_timer(self, _BETWEEN_LOOKS, self._watch)

    # --- Robot and parameters -----------------------------------------------------------

    @property
    def state(self) -> str:
        """Label of the lifecycle state or transition, such as ``inactive``."""
        return self._state_machine.current_state[1]

    @property
    def arm(self) -> ElasticArm | None:
        """Arm of the configured node."""
        return self._stream.loop.arm if self._stream.loop else None

    @property
    def robot_wanted(self) -> bool:
        """True if an arriving robot is loaded: during autostart, or to replace the current robot."""
        return self._starting_up or self._stream.loop is not None

    def start_up(self) -> None:
        """Configure and activate, now or when the robot arrives; does nothing without ``autostart``."""
        if not self.get_parameter("autostart").value:
            return
        self._starting_up = self.supply.arrives
        if self._starting_up:
            self.log_waiting()
        else:
            self._bring_up()

    def on_robot(self, loaded: LoadedRobot) -> None:
        """Use an arriving robot, or report why it cannot be used, or not yet; called between two setpoints."""
        self._next_robot = None
        loaded = self._protected(loaded)
        if loaded.loop is None:
            self.reject(loaded)
        elif reason := self._stream.objection(loaded.loop):
            self._next_robot = loaded
            self.reject(replace(loaded, error=f"{self.supply.source}: {reason}"))
        elif self._stream.loop:
            self._take_robot(loaded, loaded.loop)
        else:
            self._bring_up()

    def _retry_robot(self) -> None:
        """Use a robot that was refused while the arm moved, once it rests."""
        loaded = self._next_robot
        if loaded is not None and loaded.loop is not None and not self._stream.objection(loaded.loop):
            self.on_robot(loaded)

    def _on_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        result = super()._on_parameters(changes)
        try:
            for change in changes:
                if result.successful and change.name == "mode":
                    self._stream.modes.change(change.value)
                elif result.successful and change.name in GAINS and self._stream.loop is not None:
                    self._stream.loop.configure(**{change.name: change.value})
        except StateError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return result

    def on_parameter(self, name: str, value: object) -> None:
        """Apply a changed parameter."""
        super().on_parameter(name, value)
        self._stream.on_parameter(name, value)

    def switch_off(self, reason: str, then: Callable[[], None]) -> None:
        """Stop the arm, send the last command, and call ``then`` now or later from the executor."""
        if self.active:
            self._trajectories.stop(reason)
            self._stream.switch_off(reason, then)
        else:
            then()

    def _protected(self, loaded: LoadedRobot) -> LoadedRobot:
        """The robot; refused if reactions to contact are impossible, and in strict nodes if it is implausible."""
        reason, refused = self._stream.contact.objection(loaded.loop) if loaded.loop else "", "parameter refused"
        if loaded.doubts and not reason and self.get_parameter("safety").value == "strict":
            refused = loaded.refused
            section = ROBOT if loaded.description.robot else URDF
            reason = f"{'; '.join(loaded.doubts)}; correct them, or set {section}.implausible: accept if intended"
        return replace(loaded, loop=None, error=reason, refused=refused) if reason else loaded

    def _bring_up(self) -> None:
        if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self._waits = True
            self.trigger_activate()

    def _take_robot(self, loaded: LoadedRobot, loop: SetpointLoop) -> None:
        self._warn_of_payload("the new robot begins without the payload of the one before: set it again")
        self._stream.take(loop.renewed())
        self._trajectories.stop("the stream begins again")
        self._trajectories.take(loop)
        self._payloads.begin()
        arm = loop.arm
        origin = f"from {self.supply.source}, computed by {arm.dynamics.backend}"
        self.announce(loaded, arm.robot, f": {', '.join(arm.robot.joint_names)}; {origin}")
        for name in without_joint(self, arm.robot.joint_names):
            self.get_logger().warning(f"parameter {printable(name)} has no effect: the robot has no such joint")
        if advice := feedforward_advice(arm):
            self.get_logger().info(f"least expected link error by the uncertainty of the robot: {advice}")

    def _warn_of_payload(self, text: str) -> None:
        """Warn if the tools carry a payload, which is forgotten now."""
        if self._stream.loop is not None and self._stream.loop.evaluator.payload.any():
            self.get_logger().warning(text)

    def _release(self) -> None:
        """Release the robot of a node that may be configured again."""
        self._waits = False
        self._warn_of_payload("the payload is forgotten with the robot: set it again once the node is configured")
        self._stream.release()
        self.refused_robot, self._next_robot = "", None

    def _loop_in_use(
        self, use: str, *, usable: bool = True, error: type[EomDynamicsError] = StateError
    ) -> SetpointLoop:
        """Return the loop; raises an error with a text on its use if it is missing or unusable."""
        if self._stream.loop is None or not usable:
            state = "about to be switched off" if self.active and self._stream.closed else self.state
            raise error(f"the node is {state}; {use}")
        return self._stream.loop

    def _evaluator_to_answer(self) -> SetpointEvaluator:
        """Return the evaluator; StateError unless the node is active."""
        return self._loop_in_use("it answers only when active", usable=self.active).evaluator

    def _loop_to_play(self) -> SetpointLoop:
        """Return the loop; TrajectoryError unless the node is active, and stays so."""
        use = "it plays trajectories only when active"
        return self._loop_in_use(use, usable=not self._stream.closed, error=TrajectoryError)

    # --- Lifecycle ----------------------------------------------------------------------

    @reported
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot."""
        loaded = self.load_robot()
        if self.stop.came:
            return TransitionCallbackReturn.FAILURE
        consequence = "the node stays unconfigured: correct it and configure again"
        if loaded is None:
            self.failure = f"none from {self.supply.source}: {self.supply.problem}"
            self._failed = NOT_LOADED
            self.get_logger().error(f"{NOT_LOADED}: {self.failure} ({consequence})")
            return TransitionCallbackReturn.FAILURE
        loaded = self._protected(loaded)
        if loaded.loop is None:
            self.reject(loaded, consequence)
            return TransitionCallbackReturn.FAILURE
        self.failed_transition = ""
        self._starting_up = False
        self.supply.pause()
        self._take_robot(loaded, loaded.loop)
        return super().on_configure(state)

    @reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start answering setpoints and requests, unless another node commands the same motors."""
        self.failed_transition = ""
        if self._stream.loop and (reason := self._stream.contact.objection(self._stream.loop)):
            self.failed_transition, self._waits = f"not activated: {reason}", False
            self.get_logger().error(self.failed_transition)
            return TransitionCallbackReturn.FAILURE
        if rivals := self.rivals.bar(self._others_allowed):
            self.failed_transition = _waits_for(rivals)
            self.get_logger().error(self.failed_transition)
            return TransitionCallbackReturn.FAILURE
        self._waits = False
        freeze_objects()
        self._schedule()
        self.active = True
        self._trajectories.stop("the stream begins again")
        self._stream.begin()
        self._trajectories.begin()
        return super().on_activate(state)

    @reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering setpoints and requests."""
        self._end("the node was deactivated")
        return super().on_deactivate(state)

    @reported
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release the robot, so that its parameters can change."""
        self._release()
        self.supply.resume()
        return super().on_cleanup(state)

    @reported
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and release the robot."""
        self._starting_up = False
        self._end("the node was shut down")
        self._stream.release()
        self._next_robot = None
        self.supply.pause()
        return super().on_shutdown(state)

    @reported
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and release the robot after an exception in a transition; the node can be configured again."""
        self._starting_up = False
        self._end("a transition of the node failed")
        self._release()
        super().on_deactivate(state)  # disables the publishers
        self.supply.resume()
        return super().on_error(state)

    def _others_allowed(self) -> bool:
        return bool(self.get_parameter("allow_other_publishers").value)

    def _watch(self) -> None:
        """Yield to a node that was activated before, and activate a waiting node once no rival is left."""
        before, self._rivals = self._rivals, ""
        if self._others_allowed():
            if self._waits and self.state == "inactive":
                self.trigger_activate()
        elif self.active and not self._stream.closed:
            self._rivals, gives_way = self.rivals.contest()
            if self._rivals and self._rivals != before:
                self.get_logger().error(f"two nodes command the same motors: {self._rivals}")
            if gives_way:
                self._give_way()
        elif self._waits and self.state == "inactive":
            if reason := self.rivals.await_end():
                self.failed_transition = _waits_for(reason)
            else:
                self.trigger_activate()

    def _give_way(self) -> None:
        """Stop the arm and deactivate the node, as a rival was activated before."""
        self.failed_transition = f"gives way to the node that was activated before: {self._rivals}"
        self.get_logger().error(self.failed_transition)

        def end() -> None:
            self.trigger_deactivate()
            self._waits = bool(self.get_parameter("autostart").value)

        self.switch_off("another node commands the motors", end)

    def _end(self, reason: str) -> None:
        """End the stream and the trajectories."""
        self.active = self._waits = False
        self._stream.end()
        self._trajectories.stop(reason)

    def _schedule(self) -> None:
        """Apply priority and locked memory; only after loading, which would block a core."""
        priority = self.get_parameter("realtime_priority").value
        problems = [printable(text) for text in schedule(priority)] if priority else []
        for problem in problems:
            self.get_logger().warning(problem)
        self._scheduling_problem = "; ".join(problems)

    def destroy_node(self) -> None:
        """Destroy the node, after its last command, and its lifecycle state machine, which rclpy does not."""
        if self.context.ok():
            self._stream.end()
            self._commands.deliver(_DELIVERY)
        self._stream.measured.close()
        self._trajectories.planner.close()
        self.rivals.close()
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    # --- Diagnostics --------------------------------------------------------------------

    def report(self, seconds: float) -> StatusReport:
        """Diagnostic status of the stream."""
        self._retry_robot()
        level, message, figures = self._stream.report(seconds)
        values = {
            "state": self.state,
            **self.rivals.values,
            "backend": self.arm.dynamics.backend if self.arm else "",
            **figures,
        }
        if self.arm is not None:
            values["drive side"] = sides_text(self.arm.motor_names, self.arm.drive_sides)
        measured = self._stream.measured.report() | self._stream.modes.report()
        modes, contact, mode = self._stream.modes, self._stream.contact, measured.get("mode", MODES[0])
        statuses = (  # the first status with a true condition counts
            (self.active and modes.blinded, Level.ERROR, modes.blinded),
            (self.failed_transition, Level.ERROR, f"{self.state}: {self.failed_transition}"),
            (self._rivals, Level.ERROR, f"two nodes command the same motors: {self._rivals}"),
            (level > Level.WARN, level, message),
            (contact.problem, Level.WARN, contact.problem),
            (level > Level.OK, level, message),
            (self._scheduling_problem, Level.WARN, self._scheduling_problem),
            (self.active and "measured" in measured, Level.WARN, f"measured: {measured.get('measured')}"),
            (modes.too_fast, Level.WARN, modes.too_fast),
            (modes.beyond, Level.WARN, modes.beyond),
            (self.active and mode != MODES[0], level, f"mode {mode}: efforts are streamed"),
            (not self.active, level, f"{self.state}: setpoints are not answered"),
            (True, level, message),
        )
        level, message = next((level, message) for holds, level, message in statuses if holds)
        values |= measured | contact.report() | self._payloads.report()
        status = self._stream.supervision.report(StatusReport(level, message, values))
        if self.active and status.level <= Level.WARN and (held := self._stream.held_by_contact):
            return status._replace(level=Level.WARN, message=held)
        if status.level == Level.OK and self._stream.unlimited:
            return status._replace(level=Level.WARN, message=f"{status.message}; {self._stream.unlimited}")
        return status
