# SPDX-License-Identifier: Apache-2.0
"""Measured start of motions, and measured motion for the cycles of the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ...arrays import Array, unit
from ...control.measured import MEASURED_TOPICS, MeasuredJoint, MeasuredMotion, measured_joints
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import ELSEWHERE, LONGEST_GAP
from ...exceptions import StateError
from ...terminal import printable
from ..diagnostics import present
from ..interfaces import nanoseconds, subscribe_joint_states
from ..robot_node import MeasuredJoints, RobotNode
from .clocks import WatchedClock

# Largest joint motion between two equal starts, rad or m.
_STILL = 1e-3


class MeasuredArm:
    """Positions on ``joint_states``, read when something begins, so that they cost a stream nothing; and each sample of
    ``joint_states`` and ``motor_states``, in the units of the drives, while cycles of the loop need them.

    Samples that are not finite, do not advance in time or jump are rejected and reported; earlier samples stay.

    Attributes:
        on_sample: called after each sample that the loop has taken.
    """

    def __init__(self, node: RobotNode, clock: WatchedClock) -> None:
        self._node, self._clock, self._joints = node, clock, MeasuredJoints(node)
        # By user: whether it needs links, and motors.
        self._needs: dict[str, tuple[bool, bool]] = {}
        self._loop: SetpointLoop | None = None
        self._names: Sequence[str] = ()
        self._motion: MeasuredMotion | None = None
        self._subscriptions: dict[str, Subscription] = {}
        self._left_out, self._reason = 0, ""
        # True once the unchecked start of the stream is logged; and the time that counts as the present.
        self._unchecked = self._unmeasured = False
        self.on_sample: list[Callable[[], None]] = []

    def take(self, loop: SetpointLoop | None) -> None:
        """Measure the arm of a loop, for a new stream."""
        self._loop, self._unchecked = loop, False
        if loop is not None:
            self._names = loop.arm.robot.joint_names
        self._subscribe()

    def close(self) -> None:
        """Read no more."""
        self._joints.close()

    # --- Position of the arm --------------------------------------------------------------

    def _present(self) -> tuple[Array, int]:
        return self._joints.present(self._names)

    def read(self) -> Array:
        """Positions (n,), rad or m; StateError until all are known and recent."""
        return self._present()[0]

    @property
    def position(self) -> Array | None:
        """Positions as by :meth:`read`, or None."""
        try:
            return self.read()
        except StateError:
            return None

    def joints(self) -> dict[str, MeasuredJoint]:
        """Latest state of each joint, however old."""
        return self._joints.read()

    @property
    def topic(self) -> str:
        """Topic of the positions."""
        return self._joints.topic

    def hold(self, loop: SetpointLoop) -> None:
        """Hold the measured position in a loop, for the check of its first reference; log once if it is unknown."""
        try:
            q = self.read()
        except StateError as error:
            if not (self._unchecked or loop.record.valid):
                text = "the start is not compared with the measured position"
                self._node.get_logger().warning(f"{text}: {printable(str(error))}")
            self._unchecked = True
            return
        if not loop.record.valid or np.abs(q - loop.state[0]).max() > _STILL:
            loop.loop.restart(q)

    def locate(self, loop: SetpointLoop, now: int | None = None, *, ends: bool = False) -> bool:
        """Set the start of a motion at `now`, ns, to the measured position; see :meth:`.ControlLoop.locate`.

        Positions count that came at least 0.1 s after the last change of the command. Without any, this is logged once.
        """
        now = self._clock.now() if now is None else now
        if now - loop.record.moved_at <= LONGEST_GAP or not loop.record.valid:
            return False
        q, before = self._at_rest(loop, now, logs=True), loop.state[0]
        strays = loop.loop.locate(now, q, ends=ends)
        if loop.record.valid and (loop.state[0] != before).any():
            begins = "the last command holds it" if ends else "motion begins"
            self._node.get_logger().warning(f"{away(loop, before, loop.state[0])}: {begins} where it is measured")
        return strays

    def distance(self, loop: SetpointLoop) -> str:
        """Distance of the measured from the commanded position, as a clause; empty within tolerance."""
        q = self._at_rest(loop, self._clock.now())
        most = max(loop.loop.settings["start_tolerance"], ELSEWHERE)
        return "" if q is None or np.abs(q - loop.state[0]).max() <= most else away(loop, loop.state[0], q)

    def sag(self, loop: SetpointLoop, now: int) -> float:
        """Largest distance of joints from the last command at rest, rad or m, as far as drives may let them sag."""
        q = self._at_rest(loop, now) if loop.record.valid and not loop.moves else None
        sag = 0.0 if q is None else float(np.abs(q - loop.state[0]).max())
        return sag if sag <= ELSEWHERE else 0.0

    def _at_rest(self, loop: SetpointLoop, now: int, *, logs: bool = False) -> Array | None:
        """Positions (n,) that came at least 0.1 s after the last change of the command; None without any."""
        try:
            q, age = self._present()
        except StateError as error:
            if logs and not self._unmeasured:
                text = "the last command counts as the position of the arm, also after a pause"
                self._node.get_logger().warning(f"{text}: {printable(str(error))}")
            self._unmeasured = self._unmeasured or logs
            return None
        return q if age <= now - loop.record.moved_at - LONGEST_GAP else None

    # --- Samples for cycles ---------------------------------------------------------------

    def need(self, user: str, *, links: bool, motors: bool) -> None:
        """Set the measurements that a user of the loop needs."""
        self._needs[user] = links, motors
        self._subscribe()

    def _subscribe(self) -> None:
        loop = self._loop
        needed = [any(x) for x in zip(*self._needs.values(), strict=True)] or [False, False]
        self._motion = None
        if loop is not None and any(needed):
            self._motion = MeasuredMotion(loop.loop, links=needed[0], motors=needed[1])
        for topic, wanted in zip(MEASURED_TOPICS, needed, strict=True):
            if wanted and topic not in self._subscriptions:
                receive = partial(self._receive, topic)
                self._subscriptions[topic] = subscribe_joint_states(self._node, receive, topic)
            elif not wanted and topic in self._subscriptions:
                self._node.destroy_subscription(self._subscriptions.pop(topic))

    def _receive(self, topic: str, message: JointState) -> None:
        if self._motion is None:
            return
        try:
            now, stamp = self._clock.now(), nanoseconds(message.header.stamp)
            time = now - (self._clock.reading - stamp if stamp else 0)
            if self._motion.take(topic, measured_joints(message, time), now):
                for act in self.on_sample:
                    act()
        except StateError as error:
            self._left_out += 1
            self._reason = printable(f"{topic}: {error}")
            self._node.warn("measured motion left out", self._reason)

    @property
    def missing(self) -> str:
        """Missing measurements; empty if none."""
        return printable(self._motion.missing(self._clock.now())) if self._motion is not None else ""

    def report(self) -> dict[str, str]:
        """Values for diagnostics."""
        measured = self.missing and f"no: {self.missing}"
        return present({"measured": measured, "last left out": self._reason, "measurements left out": self._left_out})


def away(loop: SetpointLoop, commanded: Array, q: Array) -> str:
    """Distance of an arm at q (n,) from its commanded position (n,), as a clause."""
    joint = int(np.argmax(np.abs(q - commanded)))
    robot = loop.arm.robot
    kind = unit("position", robot.independent_joints[joint].type)
    return printable(
        f"{robot.joint_names[joint]} is measured {abs(q - commanded)[joint]:.3g} {kind} from where it was commanded"
    )
