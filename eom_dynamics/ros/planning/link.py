# SPDX-License-Identifier: Apache-2.0
"""What the node tells the process of its planning services: once who it is, then its state and robot as they change."""

from __future__ import annotations

import ctypes
import mmap
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from ...actuators import ElasticArm
from ...exceptions import EomDynamicsError, StateError
from ...robot import Robot
from ...states import STATE_NAMES
from ...trajectory import Spline

READY = "ready"
"""What the process says when its services are there."""


@dataclass(frozen=True)
class Identity:
    """The node whose services they are.

    Attributes:
        arguments: its command line, for the ROS 2 context.
        name, namespace: of the node.
        names: of services and actions by their own name, after the node's remapping.
        use_sim_time: whether the node does.
        clock, trajectory: the topics of simulated time and of trajectories to play, after the node's remapping.
    """

    arguments: tuple[str, ...]
    name: str
    namespace: str
    names: Mapping[str, str]
    use_sim_time: bool
    clock: str
    trajectory: str


@dataclass(frozen=True)
class Update:
    """State and robot of the node.

    Attributes:
        number: one more with each update.
        state: label of the node's lifecycle state; it answers only when ``active``.
        serial: another one for each robot that the node takes.
        robot: None where there is none.
    """

    number: int
    state: str
    serial: int
    robot: Robot | None


@dataclass(frozen=True)
class Motion:
    """A trajectory from the topic, fitted.

    Attributes:
        serial: of the robot that it is for.
        motion: in the robot's order of joints; its time 0 is the start of the trajectory.
        stamp: when that is, ns; 0 is at once.
        frame_id: of its header.
    """

    serial: int
    motion: Spline
    stamp: int
    frame_id: str


@dataclass(frozen=True)
class Refusal:
    """Why a trajectory from the topic cannot be used."""

    reason: str


@dataclass(frozen=True)
class Stop:
    """The trajectory under way is to end at once."""


class LastNumber:
    """The number of the last update, in memory that both processes have.

    An update takes its time. Whoever was told by the node that it is active, and asks then, must not hear that it is
    not: so the process knows at once that there is an update, and waits for it before it answers.
    """

    def __init__(self, file: int) -> None:
        """Take a file of at least SIZE bytes."""
        self._number = ctypes.c_uint64.from_buffer(mmap.mmap(file, self.SIZE))

    SIZE = 8

    @property
    def value(self) -> int:
        """The number."""
        return self._number.value

    @value.setter
    def value(self, number: int) -> None:
        self._number.value = number


class NodeState:
    """State and arm of the node, followed in a thread, for the threads that compute."""

    def __init__(self, link: Connection, last: LastNumber, on_end: Callable[[], None]) -> None:
        """Follow the updates on a link; ``on_end`` is called when the node has ended, however it did."""
        self._link, self._last, self._on_end = link, last, on_end
        self._changed = threading.Condition()
        self._update = Update(-1, "starting", 0, None)
        self._arm: ElasticArm | None = None
        self._error = ""
        threading.Thread(target=self._follow, name="node state", daemon=True).start()

    def arm(self) -> ElasticArm:
        """The arm of the active node; waits while that is being made ready. StateError: the node is not active."""
        return self.arm_and_serial()[0]

    def arm_and_serial(self) -> tuple[ElasticArm, int]:
        """The arm, as of :meth:`arm`, and the serial number of its robot."""
        with self._changed:
            wanted = self._last.value
            self._changed.wait_for(lambda: self._update.number >= wanted)
            if self._update.state != "active":
                raise StateError(f"the node is {self._update.state}; it answers only when active")
            if self._arm is None:
                raise StateError(f"the planning services cannot use the robot: {self._error}")
            return self._arm, self._update.serial

    def _follow(self) -> None:
        while True:
            try:
                update: Update = self._link.recv()
            except (EOFError, OSError):
                self._on_end()
                return
            arm, error = self._arm, self._error
            if update.serial != self._update.serial or self._update.number < 0:
                arm, error = _arm(update.robot)
            with self._changed:
                self._update, self._arm, self._error = update, arm, error
                self._changed.notify_all()


def _arm(robot: Robot | None) -> tuple[ElasticArm | None, str]:
    """The arm of a robot, or why there is none."""
    if robot is None:
        return None, "there is none"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the node has said them
            arm = ElasticArm(robot)
            # What is made at first use is made now: a trajectory may begin soon after it is sent.
            with suppress(EomDynamicsError), np.errstate(all="ignore"):
                arm.feedforward(*np.zeros((len(STATE_NAMES), 2, robot.n)))
            return arm, ""
    except Exception:
        return None, traceback.format_exc().splitlines()[-1]
