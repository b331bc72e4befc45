# SPDX-License-Identifier: Apache-2.0
"""Textbook inverse kinematics: planar arm in closed form, and Newton-Raphson with all iterates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import choice, count, joint_vectors, positive, real_array
from ..arrays import Array
from ..exceptions import StateError
from ..robot import Robot
from .compiled import Kinematics, kinematics_of
from .inverse import ALL, POSITION
from .motion import differential_inverse_kinematics

# Rounding of a distance, relative to the reach.
_ROUNDING = 1e-15


def planar_2r_inverse(lengths: tuple[float, float], target: ArrayLike) -> tuple[Array, Array]:
    """Both elbow configurations for a point in the plane, by the law of cosines.

    Args:
        lengths: link lengths, m.
        target: x, y (2,), m, from the first joint; StateError if it is out of reach or leaves the first angle
            undetermined.

    Returns:
        Joint angles (2,), rad, with the elbow to the right of the line to the target (second angle not negative), and
        to its left. They are equal at the border of the workspace.

    >>> right, left = planar_2r_inverse((1.0, 1.0), (1.0, 1.0))
    >>> right.round(6).tolist(), left.round(6).tolist()
    ([0.0, 1.570796], [1.570796, -1.570796])
    """
    first, second = real_array(lengths, "lengths", (2,)).tolist()
    x, y = real_array(target, "target", (2,)).tolist()
    if not (first > 0 and second > 0 and np.isfinite(first + second + x + y)):
        raise StateError(f"lengths must be positive and their sum finite, are {first:g} and {second:g}")
    distance = float(np.hypot(x, y))
    longest, shortest = first + second, abs(first - second)
    away = max(distance - longest, shortest - distance)
    if away > _ROUNDING * longest:
        reach = f"more than {longest:.6g} m" if distance > longest else f"less than {shortest:.6g} m"
        raise StateError(f"out of reach by {away:.6g} m: the target is {distance:.6g} m from the first joint, {reach}")
    if distance <= _ROUNDING * longest:
        raise StateError("the target is on the first joint, so its angle is undetermined")
    # Half angles: the cosine of the elbow angle loses digits at the border.
    elbow = 2 * np.arctan2(
        np.sqrt(max((longest - distance) * (longest + distance), 0.0)),
        np.sqrt(max((distance - shortest) * (distance + shortest), 0.0)),
    )

    def configuration(angle: float) -> Array:
        shoulder = np.arctan2(y, x) - np.arctan2(second * np.sin(angle), first + second * np.cos(angle))
        return np.array([np.arctan2(np.sin(shoulder), np.cos(shoulder)), angle])

    return configuration(elbow), configuration(-elbow)


ERRORS = ("twist", "difference")
"""Errors of a pose in :func:`newton_raphson`."""

# Allowed error of a rotation matrix, such as a matrix with six digits.
_ROTATION = 1e-5


class NewtonRaphson(NamedTuple):
    """Iterates of :func:`newton_raphson`.

    Attributes:
        q: (K + 1, n) start and configuration after each of K steps, rad or m.
        error: (K + 1, 6) error of each configuration, along the frame axes, rad and m; angular part first.
        success: whether the last error is within the tolerance.
    """

    q: Array
    error: Array
    success: bool

    @property
    def loss(self) -> Array:
        """Squared norm of each error (K + 1,); for ``difference`` the loss Δp · Δp + Δω · Δω of J. Zhang, (149)."""
        return np.sum(self.error**2, axis=-1)


def newton_raphson(
    robot: Robot | Kinematics,
    target: ArrayLike,
    start: ArrayLike,
    frame: str | None = None,
    *,
    error: str = "twist",
    step: float = 1.0,
    damping: float = 0.0,
    length: float = 1.0,
    tolerance: float = 1e-10,
    iterations: int = 100,
) -> NewtonRaphson:
    """Newton-Raphson inverse kinematics, q + step J⁺ V, with its iterates: to teach, to compare and to plot.

    There are two errors V of a pose with rotation R and origin p, both along the axes of the frame:

    - ``twist``: log(C⁻¹ target), the body twist to the target in unit time: K. Lynch and F. Park, Modern Robotics
      (2017), section 6.2.
    - ``difference``: (Rᵀ Δω; Rᵀ Δp), with Δp = p_target - p and the rotation vector Δω of R_target Rᵀ: J. Zhang, Robot
      Kinematics: Motion, Kinematics and Dynamics, (149)-(154), with ``step`` his λ.

    The errors differ if the pose rotates on its way, and so do the iterates; the solutions are the same. Joint limits
    are ignored, and the iteration may diverge; use :func:`.inverse_kinematics` to solve poses.

    Args:
        robot: the robot, or its kinematics.
        target: pose (4, 4) in the base frame; or a position (3,), m, for any orientation.
        start: joint variables (n,), rad or m.
        frame: name of the frame; by default the first tool.
        error: ``twist`` or ``difference``; without effect on a position.
        step: share of each step, above 0.
        damping, length: damping and unit of length of the inverse Jacobian, as for
            :func:`.differential_inverse_kinematics`. Damping replaces the pseudo-inverse by the singularity-robust
            inverse.
        tolerance: largest error, rad and m.
        iterations: maximum number of steps.

    >>> import numpy as np, eom_dynamics as eom
    >>> kinematics = eom.Kinematics(eom.load_robot("planar_2r"))
    >>> answer = eom.kinematics.newton_raphson(kinematics, kinematics.pose([0.4, 0.9]), [0.2, 0.5])
    >>> len(answer.q), answer.q[-1].round(9).tolist()
    (4, [0.4, 0.9])

    Raises:
        StateError: an argument has the wrong shape, is not finite or out of range, or there is no such frame.
    """
    kinematics = kinematics_of(robot)
    goal = real_array(target, "target")
    if goal.shape not in ((3,), (4, 4)):
        raise StateError(f"target must be a pose (4, 4) or a position (3,), has shape {goal.shape}")
    if goal.shape == (4, 4) and not np.allclose(goal[:3, :3] @ goal[:3, :3].T, np.eye(3), rtol=0, atol=_ROTATION):
        raise StateError("target must be a pose: a rotation matrix, a translation, and a last row 0 0 0 1")
    (q,), most = joint_vectors(kinematics.robot.n, start), count(iterations, "iterations")
    share, allowed = positive(step, "step"), positive(tolerance, "tolerance")
    choice(error, "error", ERRORS)
    at_any_angle = goal.shape == (3,)

    def pose_error(q: Array) -> Array:
        C = kinematics.pose(q, frame)
        if at_any_angle:
            return np.concatenate([np.zeros(3), C[:3, :3].T @ (goal - C[:3, 3])])
        gap = lie.inverse(C) @ goal
        return lie.log(gap) if error == "twist" else np.concatenate([lie.rotation_vector(gap[:3, :3]), gap[:3, 3]])

    iterates, errors = [np.array(q, dtype=float)], [pose_error(q)]
    while len(iterates) <= most and np.max(np.abs(errors[-1])) > allowed:
        move = differential_inverse_kinematics(
            kinematics,
            iterates[-1],
            (errors[-1],),
            frame=frame,
            task=POSITION if at_any_angle else ALL,
            damping=damping,
            length=length,
        )
        iterates.append(iterates[-1] + share * move.rates[0])
        errors.append(pose_error(iterates[-1]))
    return NewtonRaphson(np.array(iterates), np.array(errors), bool(np.max(np.abs(errors[-1])) <= allowed))
