# SPDX-License-Identifier: Apache-2.0
"""Base class of robot nodes: parameters, diagnostics, robot supply, and the measured state of joints."""

from __future__ import annotations

import math
import threading
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from ..arrays import Array
from ..control.measured import PRESENT, JointStates, MeasuredJoint, measured_joints, present_positions
from ..control.setpoint_to_command import refusal_reason
from ..elastic import ElasticArm
from ..exceptions import EomDynamicsError, StateError
from ..robot import Robot
from ..spelling import without_numbers
from ..terminal import printable
from . import parameter_tables
from .diagnostics import Diagnostics, Level, StatusReport, present
from .executors import PunctualTimers, StopSignals
from .robot_sources import NOT_LOADED, LoadedRobot, RobotSupply

DIAGNOSTIC_PERIOD, WARNING_PERIOD = 1.0, 1.0
"""Time between messages on /diagnostics, and least time between warnings of the same kind and reason, s."""

_MOST_REASONS = 10  # a publisher may send new reasons without end


class RobotNode(Node):
    """Node with a robot. Subclasses call :meth:`declare`, raise its errors, and call :meth:`complete`.

    Attributes:
        stop: termination signals; they also interrupt loading a robot.
        supply: supply of robots.
        failure: why the described robot cannot be used.
        refused_robot: why a replacement of the robot was refused.
        punctual: timers that go on in a flood of messages.
    """

    read_only_while = "there is a robot: restart the node to change it"
    """Condition that makes the robot's parameters read-only, and how to end it; completes a message."""

    def declare(self, table: parameter_tables.Table) -> None:
        """Declare parameters, with the errors of :func:`.parameter_tables.declare`; call first in ``__init__``."""
        self._table = table
        self.punctual = PunctualTimers()
        self._logged: dict[tuple[str, str], float] = {}
        # Warning for the next diagnostics, and why something was refused last, by its key.
        self._warning, self._refusals = "", dict[str, str]()
        parameter_tables.declare(self, table)
        self.failure = self.refused_robot = ""
        self._failed = NOT_LOADED

    def complete(self, status: str, stop: StopSignals) -> None:
        """Start diagnostics of a status, robot supply and parameter callbacks; call last in ``__init__``."""
        self.stop = stop
        self.diagnostics = Diagnostics(self, status, DIAGNOSTIC_PERIOD, self._report)
        self._unknown_parameters = parameter_tables.find_unknown(self, self._table)
        for name, hint in self._unknown_parameters.items():
            self.get_logger().warning(f"unknown parameter {printable(name)} has no effect: {hint}")
        self.supply = RobotSupply(self, lambda: self.robot_wanted, self.on_robot)
        self.add_on_set_parameters_callback(self._on_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    def create_service(self, srv_type: Any, srv_name: str, callback: Callable[..., Any], **options: Any) -> Any:
        """Create a service; a request that it cannot read gets an empty response and a line in the log.

        rclpy creates its own services by this method and would not respond to such requests.
        """

        def answer(request: Any, response: Any) -> Any:
            try:
                return callback(request, response)
            except Exception as error:
                if self.context.ok():  # at shutdown there is no caller
                    self.get_logger().error(
                        f"request cannot be read: {printable(str(error))}", throttle_duration_sec=1.0
                    )
                return response

        return super().create_service(srv_type, srv_name, answer, **options)

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Callable[[Any], None], qos_profile: Any, **options: Any
    ) -> Any:
        """Create a subscription; rclpy's own one of /clock ignores times that no clock can show, with a line."""

        def take(message: Any) -> None:
            callback(message)
            self.punctual.catch_up()

        def take_time(message: Any) -> None:
            try:
                callback(message)
            except (ValueError, OverflowError) as error:
                self.get_logger().warning(f"a time of /clock is ignored: {error}", throttle_duration_sec=1.0)

        taken = take_time if msg_type is Clock else take
        return super().create_subscription(msg_type, topic, taken, qos_profile, **options)

    active = False
    """True if the node is active, so that parameters marked ``while_inactive`` are read-only."""

    @property
    @abstractmethod
    def arm(self) -> ElasticArm | None:
        """Arm in use; None without a robot."""

    @property
    @abstractmethod
    def robot_wanted(self) -> bool:
        """True if to load a robot that arrives from another node or the topic."""

    @abstractmethod
    def on_robot(self, loaded: LoadedRobot) -> None:
        """Use a loaded robot, or report why it cannot be used."""

    @abstractmethod
    def report(self, seconds: float) -> StatusReport:
        """Return the diagnostic status of the last ``seconds``."""

    def switch_off(self, reason: str, then: Callable[[], None]) -> None:
        """End commands of the node, and call ``then`` now or later from the executor."""
        then()

    def on_parameter(self, name: str, value: Any) -> None:
        """Apply a changed parameter."""

    def warn(self, kind: str, text: str, *, always: bool = False, in_full: Callable[[], str] | None = None) -> None:
        """Report a warning ``kind: text``, in the log always, or by :meth:`is_due`, ``in_full``; in any thread."""
        self._warning = f"{kind}: {text}".partition("\n")[0]
        if always or self.is_due(kind, without_numbers(text.partition(";")[0])):
            self.get_logger().warning(f"{kind}: {in_full() if in_full else text}")

    def refuse(self, what: str, error: Exception, *, always: bool = False) -> str:
        """Report a refusal by :meth:`warn`, and as ``last refused …`` in diagnostics; returns the reason."""
        reason = self._refusals[f"last refused {what}"] = printable(refusal_reason(error))
        lines = [] if isinstance(error, EomDynamicsError) else traceback.format_exception(error)
        text = "\n".join([reason.removeprefix(f"{what}: "), "".join(lines)]).rstrip()
        self.warn(f"{what} refused", text, always=always)
        return reason

    def is_due(self, kind: str, reason: str = "") -> bool:
        """True if to log a message of a kind now: each reason, of some, once per WARNING_PERIOD."""
        now, key = time.monotonic(), (kind, reason)
        if now < self._logged.get(key, -math.inf) + WARNING_PERIOD:
            return False
        recent = {logged: at for logged, at in self._logged.copy().items() if now < at + WARNING_PERIOD}
        if sum(logged[0] == kind for logged in recent) >= _MOST_REASONS:
            return False
        self._logged = recent | {key: now}
        return True

    def start_up(self) -> None:
        """Load the robot now, or when it arrives from another node or the topic."""
        if self.supply.arrives:
            self.log_waiting()
            return
        if (loaded := self.load_robot()) is not None:
            self.on_robot(loaded)

    def load_robot(self) -> LoadedRobot | None:
        """Load the robot; None if it is not available yet, or after a signal to end the process."""
        with suppress(KeyboardInterrupt), self.stop.interrupting():
            return self.supply.load()
        return None

    def log_waiting(self) -> None:
        """Log that the node waits for a robot."""
        self.get_logger().info(
            f"waiting for the robot from {self.supply.source} (or restart the node with --params-file and "
            "a robot's parameter file, or with the parameter robot_file, robot_description or robot_source_node)"
        )

    def announce(self, loaded: LoadedRobot, robot: Robot, text: str) -> None:
        """Log a new robot, with warnings about it; ``text`` completes the line."""
        self.failure = self.refused_robot = ""
        self.supply.log_warnings(loaded)
        self.get_logger().info(f"robot {printable(robot.name)} with {robot.n} joint{'s'[: robot.n != 1]}{text}")

    def reject(self, loaded: LoadedRobot, consequence: str = "") -> None:
        """Log and report that a robot cannot be used, with the consequence; by default a wait, or a restart."""
        reason, detail = printable(loaded.error), map(printable, loaded.detail.splitlines())
        if self.arm:
            self.refused_robot = reason
            self.get_logger().warning("\n".join([f"new robot refused, the current one remains: {reason}", *detail]))
            return
        self.failure, self._failed = reason, loaded.refused
        default = "the node waits for another" if self.supply.arrives else "correct it and restart the node"
        self.get_logger().error("\n".join([f"{loaded.refused}: {reason} ({consequence or default})", *detail]))

    def _report(self, seconds: float) -> StatusReport:
        level, message, values = self.report(seconds)
        warning, self._warning = self._warning, ""
        arm = self.arm
        if self.failure:
            level, message = Level.ERROR, f"{self._failed}: {self.failure}"
        elif arm is None and self.robot_wanted:
            level = Level.ERROR if self.supply.overdue else Level.WARN
            message = f"waiting for the robot from {self.supply.source}: {self.supply.problem or 'it is being loaded'}"
        elif self.refused_robot and level == Level.OK:
            level, message = Level.WARN, f"new robot refused, the current one remains: {self.refused_robot}"
        elif warning and level == Level.OK:
            level, message = Level.WARN, warning
        values = {
            "robot source": self.supply.source,
            "robot": arm.robot.name if arm else "",
            "joints": ", ".join(arm.robot.joint_names) if arm else "",
            "motors": ", ".join(arm.motor_names) if arm else "",
            **values,
        }
        unused = ", ".join(self._unknown_parameters)
        values |= present({"refused robot": self.refused_robot, "parameters without effect": unused} | self._refusals)
        return StatusReport(level, message, values)

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """Set parameters; unchanged values of read-only parameters are accepted, so that a dump can be loaded again."""
        changes = [x for x in parameter_list if not (self._is_read_only(x) and parameter_tables.is_unchanged(x, self))]
        if parameter_list and not changes:
            return SetParametersResult(successful=True)
        return super().set_parameters_atomically(changes)

    def _is_read_only(self, change: Parameter) -> bool:
        """True if the parameter must not change, at all or now."""
        return self.describe_parameter(change.name).read_only or bool(self._validation_error(change))

    def _validation_error(self, change: Parameter) -> str:
        loaded = self.read_only_while if self.arm else ""
        return parameter_tables.validation_error(change, self, self._table, loaded=loaded, active=self.active)

    def _on_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        reason = "; ".join(filter(None, map(self._validation_error, changes)))
        return SetParametersResult(successful=not reason, reason=reason)

    def _on_parameters_set(self, changes: list[Parameter]) -> None:
        for change in changes:
            self.on_parameter(change.name, change.value)
        if any(parameter_tables.is_robots(change.name) for change in changes):
            self.supply.update()


# Longest wait for a joint state, and time between two reads, s.
_PATIENCE, _BETWEEN_READS = 1.0, 0.002


class MeasuredJoints:
    """Latest state of each joint on ``joint_states``, from one publisher or several, with the time of its arrival.

    The middleware keeps messages until they are read. In a subscription of the node, each would be work of its
    executor, and a new subscription takes milliseconds to find its publishers. It keeps enough of all publishers
    together for 2 kHz between ticks of goals: with less, an arm's states are lost among faster states of a gripper.
    """

    def __init__(self, node: Node) -> None:
        quality = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
        # No event handlers: while a message waits, the middleware wakes an executor for them, without end.
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        self._reader = node.create_subscription(
            JointState, "joint_states", lambda _: None, quality, event_callbacks=events
        )
        node._subscriptions.remove(self._reader)  # its executor must not read it
        self.topic = self._reader.topic_name
        self._states = JointStates()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Destroy the reader; destroying the node does not."""
        self._reader.destroy()

    def read(self) -> dict[str, MeasuredJoint]:
        """Latest state of each joint, however old, without wrong samples: see :class:`.JointStates`."""
        with self._lock:
            while (taken := self._reader.handle.take_message(JointState, False)) is not None:
                times = taken[1]
                # Not every middleware tells when a message came.
                arrival = times["received_timestamp"] or times["source_timestamp"]
                with suppress(StateError):  # its names and numbers do not belong together
                    self._states.take(measured_joints(taken[0], arrival))
            return dict(self._states.joints)

    def present(self, names: Sequence[str]) -> tuple[Array, int]:
        """Positions (n,) and the age of the oldest one; StateError as of :func:`.present_positions`."""
        return present_positions(self.read(), names, time.time_ns())

    def positions(self, names: Sequence[str]) -> Array:
        """Joint positions (n,), once all are present or after a timeout; called in a thread.

        Raises:
            StateError: a joint is not measured.
        """
        end = time.monotonic() + _PATIENCE
        try:
            while True:
                since, joints = time.time_ns() - PRESENT, self.read()
                present = {name: joints[name] for name in names if name in joints and joints[name].time >= since}
                if len(present) == len(names) or time.monotonic() > end:
                    return present_positions(present, names, time.time_ns())[0]
                time.sleep(_BETWEEN_READS)
        except StateError as error:
            remedy = "publish it on joint_states, or give a request the positions at which the motion starts"
            raise StateError(f"{error} after {_PATIENCE:g} s: {remedy}") from None
