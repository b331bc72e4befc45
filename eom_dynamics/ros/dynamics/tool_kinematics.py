# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of a robot's frames, compiled in a thread when a frame is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ... import lie
from ...control.setpoint_to_command import refusal_reason
from ...exceptions import StateError
from ...kinematics.compiled import kinematics_of
from ...kinematics.motion import ToolTracker
from ...robot import Robot
from ...robot.model import frames_by_name
from ...spelling import hint
from ...terminal import printable
from ..executors import Worker
from ..robot_node import RobotNode


class PreparingError(StateError):
    """What a message requires is being prepared."""


class ToolKinematics:
    """Solvers of frames; all methods are called by the node's executor.

    Attributes:
        robot: the robot; None without one.
        on_ready: called when a frame that was prepared is ready, or cannot be.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self._worker = Worker(node, "kinematics")
        self.robot: Robot | None = None
        # By frame; or why there is none, or None while it is being prepared.
        self._trackers: dict[str, ToolTracker | str | None] = {}
        self.on_ready: Callable[[], None] = lambda: None

    def take(self, robot: Robot) -> bool:
        """Solve for a robot from now on; returns whether it is another one."""
        changed = robot is not self.robot
        if changed:
            self.robot, self._trackers = robot, {}
        return changed

    def tracker(self, frame: str = "") -> ToolTracker:
        """Solver of a frame, by default the first tool.

        Raises:
            PreparingError: it is being compiled.
            StateError: there is no such frame, or it cannot be compiled.
        """
        robot = self.robot
        assert robot is not None  # the node is active
        name = frame or robot.tools[0].name
        if name not in self._trackers:
            known = frames_by_name(robot)
            if name not in known:
                raise StateError(f"{robot.name} has no frame {name!r:.60}; {hint(name, known)}")
            self.prepare(name)
        tracker = self._trackers[name]
        if isinstance(tracker, ToolTracker):
            return tracker
        if tracker is None:
            raise PreparingError(f"inverse kinematics of {name!r} are being prepared")
        raise StateError(tracker)

    def prepare(self, frame: str = "") -> None:
        """Compile the solver of a frame, by default the first tool, in the thread."""
        robot = self.robot
        if robot is None or (name := frame or robot.tools[0].name) in self._trackers:
            return
        self._trackers[name] = None

        def keep(found: ToolTracker | Exception) -> None:
            if robot is self.robot:
                self._trackers[name] = refusal_reason(found) if isinstance(found, Exception) else found
                if isinstance(found, ToolTracker):
                    self._node.get_logger().info(f"task setpoints of {printable(name)} are taken from now on")
                self.on_ready()

        self._worker.submit(partial(_prepared, robot, name), keep)


def _prepared(robot: Robot, frame: str) -> ToolTracker:
    """Solver of a frame with its code; runs in the worker's thread."""
    tracker = ToolTracker(kinematics_of(robot), frame)
    lie.rotation_from_quaternion([0.0, 0.0, 0.0, 1.0])  # imports SciPy, for which the stream must not wait
    q = np.zeros((1, robot.n))
    tracker.solve(q, tracker.kinematics.pose(q, frame), *np.zeros((4, 1, 6)), reference="world_aligned")
    return tracker
