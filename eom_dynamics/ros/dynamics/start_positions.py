# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions, from ``joint_states``, at which motions begin."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from ...arrays import Array, unit
from ...control.joint_order import shown_name
from ...control.measured import MeasuredJoint, positions_of
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import ELSEWHERE, LONGEST_GAP
from ...exceptions import StateError
from ...terminal import printable
from ..measured_joints import MeasuredJoints
from ..robot_node import RobotNode

# Age of a message beyond which positions are not known, s.
_OLDEST = 1.0

# What joints may move without the start being another one, rad or m.
_STILL = 1e-3


class StartPositions:
    """Positions on ``joint_states``, which are read when something begins, so that they cost a stream nothing.

    Args:
        now: time of the loop, ns.
    """

    def __init__(self, node: RobotNode, now: Callable[[], int]) -> None:
        self._node, self._now, self._reader = node, now, MeasuredJoints(node)
        self._names: Sequence[str] = ()
        # Whether it was said that the start of the stream is not checked, and what counts as the present.
        self._unchecked = self._unmeasured = False

    def take(self, names: Sequence[str]) -> None:
        """Measure other joints from now on, for a new stream."""
        self._names, self._unchecked = names, False

    def close(self) -> None:
        """Read no more."""
        self._reader.close()

    def _recent(self) -> tuple[Array, float]:
        """Positions (n,), rad or m, and the age of the oldest one, s; errors as of :meth:`read`."""
        joints: dict[str, MeasuredJoint] = self._reader.read()
        positions = positions_of(joints, self._names)
        name = min(self._names, key=lambda x: joints[x].time)
        if (age := 1e-9 * (time.time_ns() - joints[name].time)) > _OLDEST:
            raise StateError(f"joint_states: the position of {shown_name(name)} is {age:.3g} s old")
        return positions, age

    def read(self) -> Array:
        """Positions (n,), rad or m; StateError until all are known, and where one is old."""
        return self._recent()[0]

    @property
    def found(self) -> Array | None:
        """Positions as by :meth:`read`, or None."""
        try:
            return self.read()
        except StateError:
            return None

    def hold(self, loop: SetpointLoop) -> None:
        """Have a loop hold the arm there, so that its first reference is checked; log once where it cannot be."""
        try:
            q = self.read()
        except StateError as error:
            if not (self._unchecked or loop.record.valid):
                text = "the start is not compared with where the arm is"
                self._node.get_logger().warning(f"{text}: {printable(str(error))}")
            self._unchecked = True
            return
        if not loop.record.valid or np.abs(q - loop.state[0]).max() > _STILL:
            loop.loop.restart(q)

    def locate(self, loop: SetpointLoop, now: int | None = None, *, ends: bool = False) -> bool:
        """Have what begins at a time of the loop, ns, begin where the arm is; as :meth:`.ControlLoop.locate`.

        Positions count that came at least 0.1 s after the last change of the command. Without any, this is logged once.
        """
        now = self._now() if now is None else now
        rested = now - loop.record.moved_at
        if rested <= LONGEST_GAP or not loop.record.valid:
            return False
        q = None
        try:
            q, age = self._recent()
            if 1e9 * age > rested - LONGEST_GAP:
                q = None
        except StateError as error:
            if not self._unmeasured:
                text = "the last command counts as where the arm is, also after a pause"
                self._node.get_logger().warning(f"{text}: {printable(str(error))}")
            self._unmeasured = True
        before = loop.state[0]
        strays = loop.loop.locate(now, q, ends=ends)
        if loop.record.valid and (loop.state[0] != before).any():
            begins = "the last command holds it" if ends else "motion begins"
            self._node.get_logger().warning(f"{away(loop, before, loop.state[0])}: {begins} where it is measured")
        return strays

    def distance(self, loop: SetpointLoop) -> str:
        """How far the arm is measured from where a loop has commanded it, beyond tolerance; empty if it is not."""
        rested = self._now() - loop.record.moved_at
        try:
            q, age = self._recent()
        except StateError:
            return ""
        most = max(loop.loop.settings["start_tolerance"], ELSEWHERE)
        late = 1e9 * age > rested - LONGEST_GAP
        return "" if late or np.abs(q - loop.state[0]).max() <= most else away(loop, loop.state[0], q)


def away(loop: SetpointLoop, commanded: Array, q: Array) -> str:
    """How far an arm at q (n,) is from where it is commanded (n,), as a clause."""
    joint = int(np.argmax(np.abs(q - commanded)))
    robot = loop.arm.robot
    kind = unit("position", robot.independent_joints[joint].type)
    return printable(
        f"{robot.joint_names[joint]} is measured {abs(q - commanded)[joint]:.3g} {kind} from where it was commanded"
    )
