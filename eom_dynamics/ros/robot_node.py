# SPDX-License-Identifier: Apache-2.0
"""Base of every node that takes a robot: parameters, diagnostics, and where the robot comes from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..terminal import printable
from . import parameters
from .diagnostics import Diagnostics, Level, Report
from .robot_sources import Loaded
from .robot_supply import RobotSupply
from .stopping import StopSignals


class RobotNode(Node):
    """A node with a robot. Subclasses call :meth:`declare` and :meth:`complete` in their ``__init__``.

    Attributes:
        stop: signals that end the process; one of them interrupts the loading of a robot.
        supply: brings the robot.
        failure: why the robot described cannot be used.
        refused_robot: why a later robot was refused.
        warning_period: least time between two warnings of the same kind, s.
    """

    read_only_while = "there is a robot: restart the node to change it"
    """When, and for how long, parameters of the robot are read-only."""

    def declare(self, table: parameters.Table) -> None:
        """Declare parameters; first in ``__init__``.

        Raises:
            rclpy.exceptions.ParameterException: a parameter other than the robot's has a value that is not allowed.
        """
        self._answer_malformed_requests()
        self._table = table
        parameters.declare(self, table)
        self.failure = self.refused_robot = ""
        self.warning_period = self.get_parameter("warning_period").value

    def complete(self, status: str, stop: StopSignals) -> None:
        """Publish diagnostics, look for a robot and follow parameters; last in ``__init__``.

        Args:
            status: name of the diagnostic status.
            stop: signals that end the process.
        """
        self.stop = stop
        self._diagnostics = Diagnostics(self, status, self.get_parameter("diagnostic_period").value, self._report)
        self._unknown_parameters = parameters.unknown(self, self._table)
        for name, hint in self._unknown_parameters.items():
            self.get_logger().warning(f"parameter {printable(name)} is not one of this node and has no effect: {hint}")
        self.supply = RobotSupply(self, lambda: self.robot_wanted, self.on_robot)
        self.add_on_set_parameters_callback(self._on_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    @property
    @abstractmethod
    def has_robot(self) -> bool:
        """Whether a robot is in use."""

    @property
    @abstractmethod
    def robot_wanted(self) -> bool:
        """Whether a robot that arrives by itself is to be loaded now."""

    @property
    def is_active(self) -> bool:
        """Whether parameters that must not change in operation are read-only."""
        return False

    @abstractmethod
    def on_robot(self, loaded: Loaded) -> None:
        """Take, or refuse, a robot that arrived by itself."""

    @abstractmethod
    def report(self, seconds: float) -> Report:
        """Diagnostic status of what the node does, with values since the last one, ``seconds`` ago."""

    def on_parameter(self, name: str, value: Any) -> None:
        """Follow a change of a parameter."""
        if name == "warning_period":
            self.warning_period = value
            self.get_logger().contexts.clear()  # in which rclpy keeps the period of each warning
        elif name == "diagnostic_period":
            self._diagnostics.set_period(value)

    @property
    def consequence(self) -> str:
        """What follows where a robot cannot be used and there is no other."""
        return (
            f"the node {'waits for another' if self.supply.arrives else 'stands still: correct that, start it again'}"
        )

    def start_up(self) -> None:
        """Load the robot, at once or, where it has yet to arrive, when it arrives."""
        if self.supply.arrives:
            self.log_waiting()
            return
        try:
            with self.stop.interrupting():
                loaded = self.supply.load()
        except KeyboardInterrupt:  # the process is about to end
            return
        if loaded is not None:
            self.on_robot(loaded)

    def log_waiting(self) -> None:
        """Log that the robot is yet to arrive."""
        self.get_logger().info(
            f"waiting for the robot from {self.supply.source} (or start the node with a robot's parameter file, "
            "--params-file, or with the parameter robot_description or robot_source_node)"
        )

    def refuse_robot(self, loaded: Loaded) -> None:
        """Log and report that a robot cannot be used while another one is in use."""
        self.refused_robot = printable(loaded.error)
        self._log_refusal(f"new robot refused, the old one stays: {self.refused_robot}", loaded, Level.WARN)

    def fail(self, loaded: Loaded, consequence: str) -> None:
        """Log and report that a robot cannot be used, and that there is no other."""
        self.failure = printable(loaded.error)
        self._log_refusal(f"robot not loaded: {self.failure} ({consequence})", loaded, Level.ERROR)

    def _log_refusal(self, text: str, loaded: Loaded, level: Level) -> None:
        lines = "\n".join([text, *map(printable, loaded.detail.splitlines())])
        if level is Level.ERROR:
            self.get_logger().error(lines)
        else:
            self.get_logger().warning(lines)

    def _report(self, seconds: float) -> Report:
        level, message, values = self.report(seconds)
        if self.failure:
            level, message = Level.ERROR, f"robot not loaded: {self.failure}"
        elif not self.has_robot and self.robot_wanted:
            level = Level.ERROR if self.supply.overdue else Level.WARN
            message = f"waiting for the robot from {self.supply.source}: {self.supply.problem or 'it is being loaded'}"
        elif self.refused_robot and level == Level.OK:
            level, message = Level.WARN, f"new robot refused, the old one stays: {self.refused_robot}"
        values = {"robot source": self.supply.source, **values}
        if self.refused_robot:
            values["refused robot"] = self.refused_robot
        if self._unknown_parameters:
            values["parameters without effect"] = ", ".join(self._unknown_parameters)
        return Report(level, message, values)

    def _on_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        loaded = self.read_only_while if self.has_robot else ""
        objections = [
            parameters.objection(change, self, self._table, loaded=loaded, active=self.is_active) for change in changes
        ]
        reason = "; ".join(filter(None, objections))
        return SetParametersResult(successful=not reason, reason=reason)

    def _on_parameters_set(self, changes: list[Parameter]) -> None:
        for change in changes:
            self.on_parameter(change.name, change.value)
        if any(parameters.is_robots(change.name) for change in changes):
            self.supply.update()

    def _answer_malformed_requests(self) -> None:
        """Answer requests that rclpy's own services cannot read, and would log with a traceback each."""

        def guarded(answer: Callable[[Any, Any], Any], request: Any, response: Any) -> Any:
            try:
                return answer(request, response)
            except Exception as error:
                if self.context.ok():  # else nobody waits for the answer
                    self.get_logger().error(
                        f"request cannot be read: {printable(str(error))}", throttle_duration_sec=1.0
                    )
                return response

        for service in self.services:
            service.callback = partial(guarded, service.callback)
