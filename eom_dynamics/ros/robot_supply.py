# SPDX-License-Identifier: Apache-2.0
"""Robot supply of a node: find the description, load it in a thread, pass it to the node."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from ..terminal import printable
from .robot_sources import LoadedRobot, chosen_source, given_parameters, open_source
from .worker import Worker

# Between requests to another node until a robot is in use, s.
_ASK_PERIOD = 0.2


class RobotSupply:
    """Robots from the source selected by the node's parameters.

    All methods are called by the node's executor. Requests to another node and loading of arriving robots run in a
    thread.
    """

    def __init__(self, node: Node, wanted: Callable[[], bool], deliver: Callable[[LoadedRobot], None]) -> None:
        """Open the source.

        Args:
            wanted: whether to load a robot that arrives from another node or the topic.
        """
        self._node, self._wanted, self._deliver = node, wanted, deliver
        self._worker = Worker(node, "robot supply")
        self._loading = threading.Lock()
        self._last: LoadedRobot | None = None
        self._busy = False
        self._told = ""
        self._asking, self._since = True, time.monotonic()
        self._moving_base = node.has_parameter("moving_base") and node.get_parameter("moving_base").value
        self._choice = chosen_source(node)
        self._source = open_source(node, self._choice, self._look)
        # Steady, since simulated time may be paused.
        self._timer = node.create_timer(_ASK_PERIOD, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    @property
    def source(self) -> str:
        """Name of the source for messages."""
        return self._source.label

    @property
    def arrives(self) -> bool:
        """Whether a robot may arrive later, from another node or the topic."""
        return self._source.arrives

    @property
    def problem(self) -> str:
        """Why there is no robot; empty if there is one."""
        return "" if self._source.description else self._source.problem

    @property
    def overdue(self) -> bool:
        """Whether the robot has been missing for longer than ``robot_timeout``."""
        return time.monotonic() - self._since > self._node.get_parameter("robot_timeout").value

    def load(self) -> LoadedRobot | None:
        """Load the current robot, unless it is loaded already; None if there is none."""
        description = self._source.description
        with self._loading:
            if description is None:
                return None
            last = self._last
            # A file may have changed since.
            if last is None or last.description != description or last.evaluator is None or description.file:
                self._last = description.load(moving_base=self._moving_base)
            return self._last

    def log_warnings(self, loaded: LoadedRobot) -> None:
        """Log warnings about a robot, and parameters that do not apply to it."""
        for warning in loaded.warnings:
            self._node.get_logger().warning(printable(warning))
        unused = [key for key in given_parameters(self._node) if key != self._choice[0]]
        if unused:
            self._node.get_logger().warning(f"the robot is from {self.source}; without effect: {', '.join(unused)}")

    def pause(self) -> None:
        """Stop requests to another node; descriptions on the topic are still received."""
        self._asking = False
        self._timer.cancel()

    def resume(self) -> None:
        """Request the robot again, starting now."""
        self._asking, self._since = True, time.monotonic()
        self._timer.reset()
        self._look()

    def update(self) -> None:
        """Switch to the source that the parameters select."""
        choice = chosen_source(self._node)
        if choice != self._choice:
            self._source.close()
            self._choice, self._source = choice, open_source(self._node, choice, self._look)
        self._look()

    def _look(self) -> None:
        """Start loading the robot if it is new."""
        if self._source.arrives and not self._busy and (self._asking or self._is_new()):
            self._busy = True
            self._worker.submit(self._find, self._found)

    def _is_new(self) -> bool:
        description = self._source.description
        return (
            description is not None and self._wanted() and (self._last is None or self._last.description != description)
        )

    def _find(self) -> LoadedRobot | None:
        """Request the robot, and load it if it is new; runs in the thread."""
        if self._asking:
            self._source.refresh()
        if not self._is_new() or (description := self._source.description) is None:
            return None
        with self._loading:
            self._last = description.load(moving_base=self._moving_base)
            return self._last

    def _found(self, loaded: LoadedRobot | None) -> None:
        self._busy = False
        if (problem := self.problem) and problem != self._told and self._wanted():
            self._node.get_logger().info(f"no robot from {self.source} yet: {printable(problem)}")
        self._told = problem
        # Another description may have arrived during loading, or the node may have been cleaned up.
        if loaded is not None and self._wanted() and loaded.description == self._source.description:
            self._deliver(loaded)
        if self._is_new():
            self._look()
