# SPDX-License-Identifier: Apache-2.0
"""Brings robots to the node: found in their source, loaded beside the stream, handed over when they are ready."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from ..terminal import printable
from .background import Background
from .robot_loading import Given, Loaded, load
from .robot_sources import RobotSources

# How soon what has come is seen, s.
_POLL_PERIOD = 0.05


class RobotSupply:
    """The robot for :meth:`load`, and robots that come by themselves for the function ``deliver``.

    Everything is called by the node's executor; only the loading of robots that come by themselves is in a
    thread of its own.
    """

    def __init__(self, node: Node, wanted: Callable[[], bool], deliver: Callable[[Loaded], None]) -> None:
        """Open the source.

        Args:
            node: the node, whose parameters say where the robot comes from.
            wanted: whether a robot that comes by itself is to be loaded now.
            deliver: takes what came of it. A call of :meth:`load` in it returns the same.
        """
        self._node, self._wanted, self._deliver = node, wanted, deliver
        self._sources = RobotSources(node, self._look)
        self._background: Background[Loaded] = Background()
        self._delivery: Loaded | None = None
        self._last: Given | None = None
        self._looking, self._since = True, time.monotonic()
        # Steady: with use_sim_time, robots come also while the simulation stands.
        self._timer = node.create_timer(_POLL_PERIOD, self._poll, clock=Clock(clock_type=ClockType.STEADY_TIME))

    @property
    def source(self) -> str:
        """Where the robot comes from, for messages."""
        return self._sources.current.label

    @property
    def missing(self) -> str:
        """Why there is no robot; empty where there is one."""
        return "" if self._sources.current.given is not None else self._sources.current.problem

    @property
    def can_come(self) -> bool:
        """Whether a robot may come by itself."""
        return self._sources.can_come

    @property
    def overdue(self) -> bool:
        """Whether it is longer than ``robot_timeout`` that there is no robot."""
        return time.monotonic() - self._since > self._node.get_parameter("robot_timeout").value

    def load(self) -> Loaded | None:
        """Load the robot that there is now; None where there is none. Takes as long as it takes."""
        # After the one under way, since two cannot be loaded at a time.
        ready = self._background.fetch(wait=True) or self._delivery
        self._sources.update()
        given = self._sources.current.given
        if given is None:
            return None
        self._last = given
        return ready if ready is not None and ready.given == given else load(given)

    def warn(self, loaded: Loaded) -> None:
        """Log what is doubtful in a robot that was taken, and which parameters are set but not used for it."""
        logger = self._node.get_logger()
        for doubt in loaded.doubts:
            logger.warning(printable(doubt))
        if unused := self._sources.without_effect(loaded.given):
            logger.warning(f"the robot is from {self.source}: no effect of {', '.join(unused)}")

    def look_out(self) -> None:
        """Look for a robot again, after :meth:`rest`."""
        self._looking, self._since = True, time.monotonic()
        self._sources.current.look_again()
        self._timer.reset()

    def rest(self) -> None:
        """Look no more, except at what a topic brings by itself."""
        self._looking = False

    def _poll(self) -> None:
        if self._background.busy:
            loaded = self._background.fetch()
            # A newer one may have come in the meantime, or the node may have been cleaned up.
            if loaded is not None and self._wanted() and loaded.given == self._sources.current.given:
                self._delivery = loaded
                self._deliver(loaded)
                self._delivery = None
        elif self._looking:
            self._sources.update()
            self._sources.current.poll()
        else:
            self._timer.cancel()
        self._look()

    def _look(self) -> None:
        """Start to load the robot that there is, where it is a new one."""
        given = self._sources.current.given
        if self._background.busy or not self._sources.can_come or not self._wanted():
            return
        if given is not None and given != self._last:
            self._last = given
            self._background.start(partial(load, given))
            self._timer.reset()
