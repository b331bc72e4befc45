# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: joint variables that put one or several tools at given poses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, Array
from ..codegen.native_solver import ANY, MANIPULABLE, PREFERRED, REASONS, NativeSolver, Settings
from ..exceptions import KernelError, StateError
from ..robot import Frame, Robot
from ..states import joint_states
from .compiled import Kinematics

POSITION = (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
"""Weights of a task that leaves the orientation of the tool free."""

POINTING = (1.0, 1.0, 0.0, 1.0, 1.0, 1.0)
"""Weights of a task that leaves the rotation about the tool's z axis free."""

OBJECTIVES = ("start", "central", "manipulable")
"""Preferred solutions of redundant arms: near the start, in the middle of the ranges, or far from singularities."""

# Range of random starts of a prismatic joint without limits, m.
_FAR = 1.0

# Robots and options for which ranges and starts are kept: computing them takes longer than a solution.
_KEPT = 64

# Largest deviation of a target's rotation from an orthogonal matrix; it is then made orthogonal.
_ORTHOGONAL = 1e-6


class InverseKinematics(NamedTuple):
    """Solution for one target, or the solutions for N.

    Attributes:
        q: joint variables (n,) or (N, n), rad or m; where there is no solution, those of the smallest error.
        solved: whether all errors are within the tolerance, () or (N,).
        angle: largest error of the orientation of a tool, rad, () or (N,).
        distance: largest error of the position of a tool, m, () or (N,).
        iterations: steps of all attempts together, () or (N,).
        attempts: starts that were tried, () or (N,).
        reason: why it stopped, () or (N,): ``solved``; ``stuck`` at a minimum of the error, as where the target is out
            of reach; or after the most ``iterations``.
    """

    q: Array
    solved: AnyArray
    angle: Array
    distance: Array
    iterations: AnyArray
    attempts: AnyArray
    reason: AnyArray


def inverse_kinematics(
    kinematics: Kinematics,
    target: ArrayLike,
    start: ArrayLike | None = None,
    *,
    of: str | Sequence[str] | None = None,
    weights: ArrayLike = (1.0,) * 6,
    objective: str | None = None,
    limits: bool = True,
    tolerance: float = 1e-10,
    iterations: int = 100,
    attempts: int = 100,
) -> InverseKinematics:
    """Joint variables that put tools at poses.

    Newton's method on the logarithm of the pose error with its exact derivative, damped by the squared error: T.
    Sugihara, IEEE Trans. Robotics 27 (2011). Joints stay within their limits throughout. An attempt that is stuck is
    followed by one from the next point of a Halton sequence. The first use compiles the iteration for the robot.

    Args:
        kinematics: of the robot.
        target: poses (4, 4) or (N, 4, 4) in the base frame; with k tools (k, 4, 4) or (N, k, 4, 4).
        start: joint variables (n,) or (N, n), clipped to their ranges; by default the middle of these.
        of: name of the frame, or names of k frames; by default the first tool.
        weights: of the errors about and along the axes of the tool, (6,) or (k, 6), angular first: POSITION, POINTING,
            or any others; 0 leaves one free. They choose among inexact solutions only.
        objective: one of OBJECTIVES, which a redundant arm's solution then maximises locally; None for any solution.
        limits: whether joints have limits.
        tolerance: largest error of a solution, rad and m.
        iterations: most steps of one attempt.
        attempts: most attempts.

    Raises:
        StateError: an argument has the wrong shape, is not finite or no pose, or there is no such frame.
        ValueError: an option is out of range.
        KernelError: there is no C compiler.
    """
    robot = kinematics.robot
    names = [of] if of is None or isinstance(of, str) else list(of)
    frames = tuple(kinematics.frame(name) for name in names)
    targets, one = _poses(target, len(frames), several=not (of is None or isinstance(of, str)))
    lower, upper, middle = _ranges(robot, limits=limits)
    starts = np.clip(_starts(robot, middle if start is None else start, len(targets), one=one), lower, upper)
    mask = np.asarray(weights, dtype=float)
    if mask.shape not in ((6,), (len(frames), 6)) or not np.all(np.isfinite(mask)) or np.any(mask < 0):
        raise ValueError(f"weights must be 6 numbers for each tool, none negative, are {weights!r}")
    if not (tolerance > 0 and iterations > 0 and attempts > 0):
        raise ValueError("tolerance, iterations and attempts must be positive")
    kind, preferred, pull = _preference(robot, objective, middle, lower, upper)
    settings = Settings(
        lower=lower,
        upper=upper,
        weights=np.broadcast_to(mask, (len(frames), 6)),
        angle=tolerance,
        distance=tolerance,
        length=_length(robot, frames),
        iterations=iterations,
        attempts=attempts,
        objective=kind,
        starts=_more_starts(robot, limits, attempts - 1),
        preferred=preferred,
        pull=pull,
    )
    solver = _solver(kinematics, frames)
    # Near the start: each target has its own.
    if objective == "start":
        found = [
            solver(targets[i : i + 1], row[None], settings._replace(preferred=row)) for i, row in enumerate(starts)
        ]
        solved = type(found[0])(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    else:
        solved = solver(targets, starts, settings)
    angle, distance = solved.residuals.T
    reason = np.array(REASONS)[solved.reasons]
    result = InverseKinematics(
        solved.q, solved.reasons == 0, angle, distance, solved.iterations, solved.attempts, reason
    )
    return InverseKinematics(*(x[0] for x in result)) if one else result


def _poses(target: ArrayLike, k: int, *, several: bool) -> tuple[Array, bool]:
    """Targets (N, k, 4, 4), and whether it is one for one state."""
    poses = np.asarray(target, dtype=float)
    expected = (k, 4, 4) if several else (4, 4)
    if poses.shape[-len(expected) :] != expected or poses.ndim not in (len(expected), len(expected) + 1):
        raise StateError(f"target must have shape {expected} or (N, {str(expected)[1:]}, has {poses.shape}")
    one = poses.ndim == len(expected)
    poses = poses.reshape(-1, k, 4, 4)
    if not np.all(np.isfinite(poses)):
        raise StateError("target must be finite")
    R = poses[..., :3, :3]
    away = float(np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)), initial=0.0))
    if away > _ORTHOGONAL or np.any(np.linalg.det(R) < 0) or np.any(poses[..., 3, :] != [0, 0, 0, 1]):
        raise StateError("target must be a pose: a rotation matrix, a translation, and a last row 0 0 0 1")
    if away > 1e-14:
        U, _, V = np.linalg.svd(R)
        poses = poses.copy()
        poses[..., :3, :3] = U @ V
    return poses, one


def _starts(robot: Robot, start: ArrayLike, count: int, *, one: bool) -> Array:
    q = joint_states(robot.n, start)[0]
    if q.ndim == 1:
        return np.repeat(q[np.newaxis], count, axis=0)
    if one or len(q) != count:
        raise StateError(
            f"start must have shape ({robot.n},){'' if one else f' or ({count}, {robot.n})'}, has {q.shape}"
        )
    return q


@lru_cache(_KEPT)
def _ranges(robot: Robot, *, limits: bool) -> tuple[Array, Array, Array]:
    """Smallest and largest joint variables, and the middle of each range."""
    joints = [joint.limits for joint in robot.independent_joints]
    lower = np.array([joint.lower if limits else -np.inf for joint in joints])
    upper = np.array([joint.upper if limits else np.inf for joint in joints])
    bounded = np.isfinite(lower) & np.isfinite(upper)
    middle = np.where(bounded, 0.5 * (np.where(bounded, lower, 0.0) + np.where(bounded, upper, 0.0)), 0.0)
    return lower, upper, np.clip(middle, lower, upper)


def _preference(
    robot: Robot, objective: str | None, middle: Array, lower: Array, upper: Array
) -> tuple[int, Array, Array]:
    if objective is None:
        return ANY, middle, np.zeros(robot.n)
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, is {objective!r}")
    if objective == "manipulable":
        return MANIPULABLE, middle, np.zeros(robot.n)
    half = 0.5 * (upper - lower)
    pull = (
        np.ones(robot.n) if objective == "start" else np.where(np.isfinite(half), 1 / np.maximum(half, 1e-9) ** 2, 0.0)
    )
    return PREFERRED, middle, pull


@lru_cache(_KEPT)
def _length(robot: Robot, frames: tuple[Frame, ...]) -> float:
    """Length that weighs as much as 1 rad: about the size of the robot, m."""
    lengths = [float(np.linalg.norm(joint.reference_pose[:3, 3])) for joint in robot.joints]
    lengths += [float(np.linalg.norm(frame.pose[:3, 3])) for frame in frames]
    return 0.5 * sum(lengths) or 1.0


@lru_cache(_KEPT)
def _halton(n: int, count: int) -> Array:
    from scipy.stats import qmc

    points: Array = qmc.Halton(n, scramble=False).random(count + 1)[1:]  # the first one is a corner
    return points


@lru_cache(_KEPT)
def _more_starts(robot: Robot, limits: bool, count: int) -> Array:
    lower, upper, _ = _ranges(robot, limits=limits)
    free = np.array([_FAR if joint.type == "prismatic" else np.pi for joint in robot.independent_joints])
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * free, -free))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * free, free))
    if not count:
        return np.zeros((1, robot.n))
    starts: Array = low + _halton(robot.n, count) * (high - low)
    return starts


def _solver(kinematics: Kinematics, frames: tuple[Frame, ...]) -> NativeSolver:
    if kinematics.backend != "native":
        raise KernelError("inverse kinematics requires the native backend, and thus a C compiler; install gcc")
    return kinematics.solver(frames)
