# SPDX-License-Identifier: Apache-2.0
"""Jogging: joint motion of a tool that follows a commanded twist."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from ..kinematics.frames import body_poses
from ..kinematics.motion import ToolTracker, differential_inverse_kinematics
from ..robot import Frame, Robot
from ..robot.task_space import TWIST
from .online_trajectory import OnlineLimits

# Share of the acceleration limit: the online trajectory then follows without having to catch up.
_ACCELERATION = 0.5

# Share of the velocity limit that a joint at the end of its range may be asked for: rounding does not stop the tool.
_ROUNDING = 1e-6

# Share of bounds of rates by which rounding may exceed them.
_SLACK = 1e-9

# Share of a twist that joints may miss: more than rounding leaves.
_MISSED = 1e-6

# Room, in changes of rates by steps, from which joints stop from any rate.
_FAR = 1e12

_STILL = np.zeros(TWIST)

_TINY = 1e-300


def pose_on_robot(robot: Robot, frame: Frame, q: Array) -> Array:
    """Pose (4, 4) of a frame in that of the base, of any body and without compiled code."""
    pose: Array = frame.pose if frame.joint < 0 else body_poses(robot, q)[frame.joint] @ frame.pose
    return pose


class Jogging:
    """Target that moves as a twist has it, and stops with it.

    The twist changes evenly, so that joint rates change by half of the acceleration limits at most, and each joint
    comes to rest within its range. The joints slow down together where one comes to the end of its range or to its
    velocity limit, so that the direction of the tool remains. Where they cannot keep up with a twist however slow, near
    a singularity or the end of a range, they brake together, and the tool leaves its line by what is left of its way to
    rest. After a late step, they may brake at their acceleration limits. Near a singularity, rates are damped, and the
    tool leaves out what the joints cannot give.

    Attributes:
        q, qd: the target and its rates (n,).
        at_limit: joint at the end of its range that has slowed the tool down last; empty for none.
    """

    def __init__(self, tracker: ToolTracker, limits: OnlineLimits, q: Array, qd: Array) -> None:
        """Move a tool on from a position and its rates (n,)."""
        self._tracker, self._limits = tracker, limits
        self.q, self.qd = np.clip(q, limits.lower, limits.upper), qd.copy()
        self.at_limit = ""
        self._twist = _STILL

    def require(self, twist: Array) -> None:
        """Refuse a twist (6,), along the axes of the base, that the joints cannot give the tool.

        Raises:
            StateError: the tool is moved by fewer than six joints, which cannot.
        """
        if self._tracker.few:
            _, missed = self._rates(self.q, twist)
            if np.abs(missed).max() > _MISSED * np.abs(twist).max():
                raise StateError(f"the joints cannot give the tool its twist: {np.abs(missed).max():.3g} is missing")

    def advance(self, twist: Array, passed: float, step: float) -> None:
        """Move on for the time that has passed, and take the rates of a twist (6,) for the next step, s."""
        limits, most = self._limits, _ACCELERATION * self._limits.acceleration
        self.q = np.clip(self.q + passed * self.qd, limits.lower, limits.upper)
        middle = self.q + step / 2 * self.qd
        wanted, kept = (self._rates(middle, x)[0] if x.any() else np.zeros_like(self.q) for x in (twist, self._twist))
        up, down = limits.upper - self.q, self.q - limits.lower
        # All joints slow down together, so that each has the share of its acceleration that the fastest one leaves.
        speed = np.maximum(np.abs(wanted), _TINY)
        together = speed * np.min(most / speed)
        room = np.where(wanted > 0, up, down)
        allowed = np.clip(np.sqrt(2 * together * room), _ROUNDING * limits.velocity, limits.velocity)
        share = np.minimum(allowed / speed, 1.0)
        slowest = int(np.argmin(share))
        ends = share[slowest] < 1 and allowed[slowest] < limits.velocity[slowest]
        self.at_limit = self._tracker.kinematics.robot.joint_names[slowest] if ends else ""
        wanted, twist = share[slowest] * wanted, share[slowest] * twist
        lower, upper = self._bounds(up, down, most * step, step)
        least, part = _parts(kept, wanted, lower, upper)
        if least > part:  # more slowly along the present line
            wanted, twist = np.zeros_like(wanted), _STILL
            part, largest = _parts(kept, wanted, lower, upper)
            if part > largest:  # all joints brake together, by which the tool keeps its direction
                kept, part = self.qd, min(1.0, float(np.min(most * step / np.maximum(np.abs(self.qd), _TINY))))
        self.qd = np.clip(kept + part * (wanted - kept), lower, upper)
        self._twist = self._twist + part * (twist - self._twist)

    def _bounds(self, up: Array, down: Array, change: Array, step: float) -> tuple[Array, Array]:
        """Least and largest rates (n,) of the next step: joints stop within their room up and down by their changes."""
        velocity = self._limits.velocity
        upper, lower = (np.minimum(_stoppable(room, change, step), velocity) for room in (up, down))
        # After a late step, joints brake by up to their whole acceleration.
        upper = np.clip(upper, self.qd - change / _ACCELERATION, self.qd + change)
        lower = np.clip(-lower, self.qd - change, self.qd + change / _ACCELERATION)
        return np.where(self.qd > 0, np.minimum(lower, upper), lower), np.where(
            self.qd > 0, upper, np.maximum(lower, upper)
        )

    def _rates(self, q: Array, twist: Array) -> tuple[Array, Array]:
        """Joint rates (n,) of a twist, and what is missing of it (6,); with the orders that a tracker has compiled."""
        motion = differential_inverse_kinematics(
            self._tracker.kinematics,
            q,
            (twist, _STILL, _STILL, _STILL),
            frame=self._tracker.frame,
            reference="world_aligned",
        )
        return motion.rates[0], motion.missed[0]


def _stoppable(room: Array, change: Array, step: float) -> Array:
    """Largest rates (n,) that end within a room, if they change by at most this in each step after the next."""
    room = np.minimum(room, _FAR * change * step)
    steps = np.floor((np.sqrt(1 + 8 * room / (change * step)) - 1) / 2)
    return room / (step * (steps + 1)) + change * steps / 2


def _parts(start: Array, end: Array, lower: Array, upper: Array) -> tuple[float, float]:
    """Least and largest part of the way from rates to others (n,) within bounds; the least is larger for none."""
    slack = _SLACK * np.abs(upper - lower).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        edges = np.sort([(bound - start) / (end - start) for bound in (lower - slack, upper + slack)], axis=0)
    return max(0.0, float(edges[0].max())), min(1.0, float(edges[1].min()))
