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

# Share of a twist that joints may miss: more than rounding leaves.
_MISSED = 1e-6

_STILL = np.zeros(TWIST)

_TINY = float(np.finfo(float).tiny)


def pose_on_robot(robot: Robot, frame: Frame, q: Array) -> Array:
    """Pose (4, 4) of a frame in that of the base, of any body and without compiled code."""
    pose: Array = frame.pose if frame.joint < 0 else body_poses(robot, q)[frame.joint] @ frame.pose
    return pose


class Jogging:
    """Target that moves as a twist has it, and stops with it.

    The twist changes evenly, so that joint rates change by half of the acceleration limits at most, and the joints slow
    down together where one comes to the end of its range or to its velocity limit: the direction of the tool remains.
    Near a singularity, rates are damped, and the tool leaves out what the joints cannot give.

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
        limits = self._limits
        self.q = np.clip(self.q + passed * self.qd, limits.lower, limits.upper)
        middle, most = self.q + step / 2 * self.qd, _ACCELERATION * limits.acceleration
        wanted, kept = (self._rates(middle, x)[0] if x.any() else np.zeros_like(self.q) for x in (twist, self._twist))
        room = np.maximum(np.where(wanted > 0, limits.upper - self.q, self.q - limits.lower), 0.0)
        allowed = np.clip(np.sqrt(2 * most * room), _ROUNDING * limits.velocity, limits.velocity)
        share = np.divide(allowed, np.abs(wanted), out=np.ones_like(wanted), where=np.abs(wanted) > allowed)
        slowest = int(np.argmin(share))
        ends = share[slowest] < 1 and allowed[slowest] < limits.velocity[slowest]
        self.at_limit = self._tracker.kinematics.robot.joint_names[slowest] if ends else ""
        wanted, twist = share[slowest] * wanted, share[slowest] * twist
        # The largest part of the change of the twist that joints can make, or of that of their rates, where they cannot
        # keep the present twist.
        change, lacking, most_change = wanted - kept, kept - self.qd, most * step
        if np.any(np.abs(lacking) > most_change):
            change, lacking = wanted - self.qd, np.zeros_like(self.qd)
        left = most_change - np.sign(change) * lacking
        part = min(1.0, float(np.min(left / np.maximum(np.abs(change), _TINY))))
        self.qd = self.qd + lacking + part * change
        self._twist = self._twist + part * (twist - self._twist)

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
