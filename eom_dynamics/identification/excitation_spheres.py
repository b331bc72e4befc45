# SPDX-License-Identifier: Apache-2.0
"""Self-collision of sampled motions, by spheres on the bodies of a robot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import TrajectoryError
from ..kinematics import Kinematics
from ..robot import Robot
from ..robot.model import frames_by_name

BASE = "base"
"""Name of the base, where no frame of the robot has it."""

# Random postures that decide which spheres always meet.
_POSTURES = 500


class Spheres:
    """Spheres that cover the bodies of a robot.

    Each pair of bodies with spheres counts, except neighbours, which a joint connects and whose spheres may overlap.

    Attributes:
        robot: the robot.
        clearance: distance to keep between spheres, m.
        pairs: names of the pairs of bodies, such as ``shoulder/hand``.
        always: pairs left out, whose spheres meet in all of many random postures, such as two bodies of a wrist.
    """

    def __init__(self, robot: Robot, spheres: Mapping[str, ArrayLike], clearance: float = 0.0) -> None:
        """Attach spheres to bodies.

        Args:
            robot: the robot.
            spheres: by name of a body, link, tool or ``base``, rows (k, 4) of centre x, y, z in that
                frame and radius, m.
            clearance: distance to keep between spheres, m.

        Raises:
            TrajectoryError: a frame is unknown, a row is not four numbers with a positive radius, or the clearance is
                negative.
        """
        if not (np.isfinite(clearance) and clearance >= 0):
            raise TrajectoryError(f"clearance must be a number of m from 0 on, is {clearance}")
        self.robot, self.clearance = robot, float(clearance)
        self._kinematics = Kinematics(robot)
        frames = frames_by_name(robot)
        bodies: dict[int, list[Array]] = {}
        for name, given in spheres.items():
            if name not in frames and name != BASE:
                raise TrajectoryError(f"spheres of unknown frame {name!r}; {robot.name} has {', '.join(frames)}")
            body, pose = (frames[name].joint, frames[name].pose) if name in frames else (-1, np.eye(4))
            rows = _rows(name, given)
            if body >= 0:  # to the frame that has the name of the body's joint, mostly that of the body itself
                pose = np.linalg.inv(frames[robot.joints[body].name].pose) @ pose
            rows[:, :3] = rows[:, :3] @ pose[:3, :3].T + pose[:3, 3]
            bodies.setdefault(body, []).append(rows)
        self._spheres = {body: np.concatenate(rows) for body, rows in sorted(bodies.items())}
        self._pairs = [(i, j) for i in self._spheres for j in self._spheres if i < j and robot.joints[j].parent != i]
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (_POSTURES, robot.n))
        meeting = np.all(self.ratios(q) > 1, axis=0)
        self.always = tuple(self._pair_name(pair) for pair, at in zip(self._pairs, meeting, strict=True) if at)
        self._pairs = [pair for pair, at in zip(self._pairs, meeting, strict=True) if not at]
        self.pairs = tuple(self._pair_name(pair) for pair in self._pairs)

    def ratios(self, q: Array) -> Array:
        """Sum of radii and clearance over distance (K, pairs) of the two closest spheres, for positions (K, n).

        A ratio above 1 is a violation.
        """
        return self._evaluate(q, partials=False)[0]

    def partials(self, q: Array) -> Array:
        """Derivatives (pairs, K, n) of the ratios with respect to q."""
        return self._evaluate(q, partials=True)[1]

    def _evaluate(self, q: Array, *, partials: bool) -> tuple[Array, Array]:
        used = {body for pair in self._pairs for body in pair}
        centers = {body: self._centers(body, q) for body in used}
        jacobians = {
            body: self._kinematics.jacobian(q, self._name(body), "world_aligned") for body in used if body >= 0
        }
        ratios = np.empty((len(q), len(self._pairs)))
        slopes = np.zeros((len(self._pairs), *q.shape))
        rows = np.arange(len(q))
        for c, (i, j) in enumerate(self._pairs):
            apart = centers[i][0][:, :, np.newaxis] - centers[j][0][:, np.newaxis]
            reach = self._spheres[i][:, np.newaxis, 3] + self._spheres[j][:, 3] + self.clearance
            distance = np.maximum(np.linalg.norm(apart, axis=-1), 1e-9)
            each = (reach / distance).reshape(len(q), -1)
            worst = np.argmax(each, axis=1)
            ratios[:, c] = each[rows, worst]
            if not partials:
                continue
            a, b = np.divmod(worst, len(self._spheres[j]))
            direction = apart[rows, a, b] / distance[rows, a, b, np.newaxis]
            for body, sphere, sign in ((i, a, 1.0), (j, b, -1.0)):
                if body < 0:
                    continue
                J = jacobians[body]
                lever = centers[body][1][rows, sphere]
                # The centre moves with v + omega x lever; u . (omega x lever) = omega . (lever x u).
                along = np.einsum("ka,kan->kn", direction, J[:, 3:])
                along += np.einsum("ka,kan->kn", np.cross(lever, direction), J[:, :3])
                slopes[c] -= sign * (ratios[:, c] / distance[rows, a, b])[:, np.newaxis] * along
        return ratios, slopes

    def _centers(self, body: int, q: Array) -> tuple[Array, Array]:
        """Centres in the base frame, and from the origin of the body, each (K, k, 3)."""
        local = self._spheres[body][:, :3]
        if body < 0:
            fixed = np.broadcast_to(local, (len(q), *local.shape))
            return fixed, fixed
        pose = self._kinematics.pose(q, self._name(body))
        levers = local @ np.swapaxes(pose[:, :3, :3], 1, 2)
        return levers + pose[:, np.newaxis, :3, 3], levers

    def _pair_name(self, pair: tuple[int, int]) -> str:
        return "/".join(self._name(body) for body in pair)

    def _name(self, body: int) -> str:
        return BASE if body < 0 else self.robot.joints[body].name


def _rows(name: str, given: ArrayLike) -> Array:
    try:
        rows = np.array(given, dtype=float)
    except (TypeError, ValueError):
        rows = np.zeros(0)
    if (
        rows.ndim != 2
        or rows.shape[1] != 4
        or not len(rows)
        or not np.all(np.isfinite(rows))
        or np.any(rows[:, 3] <= 0)
    ):
        raise TrajectoryError(f"spheres of {name!r} must be rows x, y, z, radius in m, with a positive radius")
    return rows
