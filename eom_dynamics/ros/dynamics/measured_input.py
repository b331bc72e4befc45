# SPDX-License-Identifier: Apache-2.0
"""Measured input of the control loop: topics ``joint_states`` and ``motor_states``, received while they are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ...control.measured import JointSignals, MeasuredMotion
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import LONGEST_GAP
from ...exceptions import StateError
from ...terminal import printable
from ..diagnostics import present
from ..interfaces import nanoseconds, subscribe_joint_states
from ..robot_node import RobotNode
from .clocks import WatchedClock

_TOPICS = ("joint_states", "motor_states")


class MeasuredInput:
    """Measured motion and efforts of links and motors, in the cycles of the loop while they are recent, for 0.1 s.

    Motors are in the units of their drives, as on ``motor_setpoint``. Messages that are stale, jump or have numbers
    that are not finite are left out and reported; the loop then has what was measured before.

    Attributes:
        on_sample: called after each sample that the loop has taken.
    """

    def __init__(self, node: RobotNode, clock: WatchedClock) -> None:
        self._node, self._clock = node, clock
        # By user: whether it needs links, and motors.
        self._needs: dict[str, tuple[bool, bool]] = {}
        self._loop: SetpointLoop | None = None
        self._motion: MeasuredMotion | None = None
        self._subscriptions: dict[str, Subscription] = {}
        self._left_out, self._reason = 0, ""
        self.on_sample: list[Callable[[], None]] = []

    def need(self, user: str, *, links: bool, motors: bool) -> None:
        """Measure what a user of the loop needs from now on, in place of what it needed before."""
        self._needs[user] = links, motors
        self.take(self._loop)

    def take(self, loop: SetpointLoop | None) -> None:
        """Measure for a loop from now on."""
        self._loop = loop
        needed = [any(x) for x in zip(*self._needs.values(), strict=True)] or [False, False]
        self._motion = None
        if loop is not None and any(needed):
            self._motion = MeasuredMotion(loop.loop, links=needed[0], motors=needed[1])
        for topic, wanted in zip(_TOPICS, needed, strict=True):
            if wanted and topic not in self._subscriptions:
                receive = partial(self._receive, topic)
                self._subscriptions[topic] = subscribe_joint_states(self._node, receive, topic)
            elif not wanted and topic in self._subscriptions:
                self._node.destroy_subscription(self._subscriptions.pop(topic))

    def _signals(self, topic: str) -> JointSignals | None:
        if self._motion is None:
            return None
        return self._motion.links if topic == _TOPICS[0] else self._motion.motors

    def _receive(self, topic: str, message: JointState) -> None:
        if self._motion is None or (signals := self._signals(topic)) is None:
            return
        try:
            now, stamp = self._clock.now(), nanoseconds(message.header.stamp)
            age = self._clock.reading - stamp if stamp else 0
            if abs(age) > LONGEST_GAP:
                when = f"{1e-9 * age:.3g} s old" if age > 0 else f"{-1e-9 * age:.3g} s ahead"
                limit = f"at most {1e-9 * LONGEST_GAP:g} s counts"
                raise StateError(f"its stamp is {when}, {limit}: clocks differ, or it came or was read late")
            if signals.update(message, now - age) and self._motion.sample():
                for act in self.on_sample:
                    act()
        except StateError as error:
            self._left_out += 1
            self._reason = printable(f"{topic}: {error}")
            self._node.warn("measured motion left out", self._reason)

    @property
    def missing(self) -> str:
        """What is needed and not measured now; empty for nothing."""
        now, texts = self._clock.now(), []
        for topic in _TOPICS:
            if (signals := self._signals(topic)) is None:
                continue
            if unknown := signals.unknown:
                texts.append(f"{topic} has not told {', '.join(unknown)}")
            elif (age := now - int(signals.times.min())) > LONGEST_GAP:
                texts.append(f"{topic} is {1e-9 * age:.3g} s old")
        return printable("; ".join(texts))

    def report(self) -> dict[str, str]:
        """Values for diagnostics."""
        measured = self.missing and f"no: {self.missing}"
        return present({"measured": measured, "last left out": self._reason, "measurements left out": self._left_out})
