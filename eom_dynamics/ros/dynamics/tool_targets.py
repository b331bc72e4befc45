# SPDX-License-Identifier: Apache-2.0
"""Targets of the first tool as targets of the joints: poses by inverse kinematics, twists by jogging."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped

from ...arrays import Array
from ...control.jogging import Jogging, pose_on_robot
from ...control.online_trajectory import OnlineLimits
from ...control.settings import LONGEST_RESPONSE_STEP
from ...control.spatial import read_pose, read_twist
from ...exceptions import StateError
from ...kinematics import inverse_kinematics
from ...robot import Frame
from ...robot.model import frames_by_name
from ...robot.task_space import TWIST
from ...spelling import listed
from .tool_kinematics import ToolKinematics

# Of a pose, rad and m: less than any arm repeats, and reached at a singularity, too, where Newton's method slows down.
_TOLERANCE = 1e-6

# Time without a twist after which the tool stops, s: streams of 10 Hz may lose one message.
LONGEST_PAUSE = 0.25

# Between changes of the joint rates while a tool is jogged, s.
_STEP = 0.01

# Longest step that counts, s: after a stall the motion goes on later, as that of the loop does.
_LONGEST_STEP = LONGEST_RESPONSE_STEP * 1e-9


class ToolTargets:
    """Solver of poses, and the motion of the last twist, on the clock of the loop.

    Attributes:
        jogging: motion of the present twist; None without one.
    """

    def __init__(self, kinematics: ToolKinematics) -> None:
        self._kinematics = kinematics
        self.jogging: Jogging | None = None
        self._frame: Frame | None = None
        self._twist = np.zeros(TWIST)
        # When the last twist came, and the last step began, ns.
        self._heard = self._begun = 0

    def solve(self, message: PoseStamped, near: Array) -> Array:
        """Target of the joints (n,) for a pose of the tool, next to another one.

        Raises:
            StateError: the pose cannot be used, or is not reached from there.
        """
        tracker, frame = self._kinematics.tracker(), self._frame_of(message)
        pose = read_pose(message.pose.position, message.pose.orientation, "pose")
        if frame is not None:
            pose = pose_on_robot(tracker.kinematics.robot, frame, near) @ pose
        found = inverse_kinematics(
            tracker.kinematics, pose, tracker.frame, near, tolerance=_TOLERANCE, attempts=1, objective=None
        )
        if not found.success:
            raise StateError(
                "the tool cannot reach its pose from the present target within the ranges of the joints: it stays "
                f"{float(found.distance):.3g} m and {float(found.angle):.3g} rad away"
            )
        return found.q

    def jog(self, message: TwistStamped, limits: OnlineLimits, state: Array, now: int) -> None:
        """Take a twist of the tool, from a state q, qd, … (k, n) on where it begins to move; StateError if refused."""
        tracker, frame = self._kinematics.tracker(), self._frame_of(message)
        twist = read_twist(message.twist, "twist")
        jogging = self.jogging or Jogging(tracker, limits, *state[:2])
        jogging.require(self._along_base(frame, jogging.q, twist))
        if self.jogging is None:
            self._begun = now
        self.jogging, self._frame, self._twist, self._heard = jogging, frame, twist, now

    def advance(self, now: int) -> tuple[Array, Array] | None:
        """Target and its rates (n,) for the next step; None until its time has come, or without a twist."""
        jogging, passed = self.jogging, (now - self._begun) * 1e-9
        if jogging is None or 0 < passed < _STEP:
            return None
        twist = np.zeros(TWIST)
        if (now - self._heard) * 1e-9 <= LONGEST_PAUSE:
            twist = self._along_base(self._frame, jogging.q, self._twist)
        jogging.advance(twist, min(passed, _LONGEST_STEP), _STEP)
        self._begun = now
        if not (twist.any() or jogging.qd.any()):
            self.jogging = None
        return jogging.q, jogging.qd

    @property
    def moves(self) -> bool:
        """Whether a twist other than zero was the last one."""
        return self.jogging is not None and bool(self._twist.any())

    @property
    def at_limit(self) -> str:
        """Joint at the end of its range that slows the tool down; empty for none."""
        return self.jogging.at_limit if self.jogging else ""

    def forget(self) -> None:
        """End the motion of a twist."""
        self.jogging = None

    def _frame_of(self, message: PoseStamped | TwistStamped) -> Frame | None:
        """Frame of a header; None for the base."""
        name, robot = message.header.frame_id, self._kinematics.robot
        assert robot is not None  # the node is active
        known = frames_by_name(robot)
        if name and name not in known:
            raise StateError(
                f"header.frame_id: {robot.name} has no frame {name!r:.60}: empty is the base, others {listed(known)}"
            )
        return known.get(name)

    def _along_base(self, frame: Frame | None, q: Array, twist: Array) -> Array:
        """A twist (6,) along the axes of a frame as that along those of the base."""
        if frame is None:
            return twist
        assert self._kinematics.robot is not None  # as above
        rotation = pose_on_robot(self._kinematics.robot, frame, q)[:3, :3]
        along: Array = (twist.reshape(2, 3) @ rotation.T).ravel()
        return along
