# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: joint variables for poses of one or several tools."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import choice, count, flag, is_sequence, joint_states, positive, real_array, violation
from ..arrays import AnyArray, Array
from ..codegen.native import (
    ANY,
    MANIPULABLE,
    NO_POSE,
    PREFERRED,
    REASONS,
    NativeSolver,
    SolverSettings,
    SolverTask,
    task_of,
    traced_task,
)
from ..exceptions import KernelError, StateError
from ..robot import Robot
from ..robot.model import ENDS
from ..robot.task_space import characteristic_length, independent_ranges
from ..spelling import shown
from .compiled import Kinematics, kinematics_of

ALL = (1.0,) * 6
"""Weights of a task with position and orientation."""

POSITION = (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
"""Weights of a task that leaves the orientation of the tool free."""

POINTING = (1.0, 1.0, 0.0, 1.0, 1.0, 1.0)
"""Weights of a task that leaves the rotation about the tool's z axis free."""

OBJECTIVES = ("start", "central", "manipulable")
"""Preferred solutions of redundant arms: near the start, in the middle of the ranges, or far from singularities."""

# Range of random starts of a prismatic joint without limits, m.
_FAR = 1.0

# Cache size for data of robots and options, which take longer to compute than a solution.
_CACHE_SIZE = 64

# Squares of weights above this, or below its inverse, overflow or vanish.
_LARGEST_WEIGHT = 1e20

# Limit of steps and attempts.
_MOST = 100_000

_MOST_ITERATES = 10_000

# Attempts to determine the reason of a failure.
_FEW = 10

_REASONS = np.array([*REASONS, "out of reach"])


class InverseKinematicsResult(NamedTuple):
    """Solution for one target, or solutions for N targets.

    Attributes:
        q: joint variables (n,) or (N, n), rad or m; without a solution, the configuration of the smallest error.
        success: whether all errors are within the tolerance, () or (N,), as all attributes below.
        angle, distance: largest error of the orientation and of the position of a tool, rad and m.
        iterations: total steps of all attempts.
        attempts: number of starts.
        reason: reason to stop, as far as ten more attempts show: ``solved``; ``joint range``: a solution exists beyond
            joint limits; ``orientation``: the position is reachable, the orientation is not; ``out of reach``: the
            position is not reachable; ``stuck``: a minimum of the error, although a solution exists; or ``iterations``:
            the maximum was reached.
        iterates: (K, n) configurations of all attempts, each from its start, at most 10,000; None unless requested.
    """

    q: Array
    success: AnyArray
    angle: Array
    distance: Array
    iterations: AnyArray
    attempts: AnyArray
    reason: AnyArray
    iterates: Array | None = None

    @property
    def error(self) -> Array:
        """The larger of the remaining angle and distance, rad or m, () or (N,)."""
        return np.maximum(self.angle, self.distance)

    def __str__(self) -> str:
        """Number of solved targets, reasons of failures, and the largest errors; q of a single target."""
        reasons, counts = np.unique(self.reason, return_counts=True)
        ends = [f"{count:,} {reason}" for reason, count in sorted(zip(reasons, counts, strict=True), reverse=True)]
        lines = [f"inverse kinematics of {np.size(self.success):,} targets: {', '.join(ends) or 'none'}"]
        for what, rows in (("solved", self.success), ("not solved", ~self.success)):
            if np.any(rows):
                angle, distance = np.max(self.angle[rows]), np.max(self.distance[rows])
                lines.append(f"{what}: errors of at most {angle:.3g} rad and {distance:.3g} m")
        if np.size(self.success):
            steps, attempts = np.mean(self.iterations), np.mean(self.attempts)
            lines.append(f"on average {steps:.3g} steps in {attempts:.3g} attempts")
        lines.append(f"q: {self.q if np.ndim(self.success) == 0 else f'array {np.shape(self.q)}'}")
        return "\n".join(lines)


def inverse_kinematics(
    robot: Robot | Kinematics,
    target: ArrayLike,
    frame: str | Sequence[str] | None = None,
    start: ArrayLike | None = None,
    *,
    weights: ArrayLike = ALL,
    objective: str | None = None,
    limits: bool = True,
    tolerance: float = 1e-10,
    iterations: int = 100,
    attempts: int = 100,
    iterates: bool = False,
) -> InverseKinematicsResult:
    """Inverse kinematics: joint variables for tool poses.

    Newton's method on the logarithm of the pose error with its exact derivative, damped by the squared error: T.
    Sugihara, IEEE Trans. Robotics 27 (2011). Joints stay within their limits throughout. After a stuck attempt, the
    next attempt starts from the next point of a Halton sequence. Among solutions that differ by whole turns of a joint,
    the solution nearest to the start is returned. The first use compiles the iteration for the robot.

    Args:
        robot: the robot, or its kinematics.
        target: poses (4, 4) or (N, 4, 4) in the base frame; with k frames (k, 4, 4) or (N, k, 4, 4).
        frame: name of the frame, or names of k frames; by default the first tool.
        start: joint variables (n,) or (N, n), clipped to their ranges; by default the middle of these.
        weights: weights of the errors about and along the tool axes, (6,) or (k, 6), angular first: POSITION, POINTING,
            or any numbers; 0 leaves a direction free. They choose among inexact solutions only.
        objective: an entry of OBJECTIVES, maximized locally by the solution of a redundant arm; None for any solution.
        limits: whether to respect joint limits.
        tolerance: largest error of a solution, rad and m.
        iterations, attempts: maximum steps of an attempt, and maximum number of attempts.
        iterates: whether to return the configurations of all steps, for a single target; see :func:`.newton_raphson`
            for the textbook method.

    >>> import eom_dynamics as eom
    >>> kinematics = eom.Kinematics(eom.load_robot("ur5e"))
    >>> q = [0.3, -1.2, 1.4, 0.3, 0.9, 0.6]
    >>> answer = eom.inverse_kinematics(kinematics, kinematics.pose(q), start=[0.2, -1.0, 1.2, 0.2, 0.8, 0.5])
    >>> str(answer.reason), answer.q.round(6).tolist()
    ('solved', [0.3, -1.2, 1.4, 0.3, 0.9, 0.6])

    Raises:
        StateError: an argument has the wrong shape, is not finite or not a pose, there is no such frame, or an option
            is out of range.
        KernelError: there is no C compiler.
    """
    kinematics = kinematics_of(robot)
    names = _names(kinematics, frame)
    mask = weights if weights is ALL else tuple(real_array(weights, "weights").ravel().tolist())
    options = objective, limits, tolerance, iterations, attempts
    try:
        problem = _problem(kinematics, names, mask, *options)
    except TypeError:  # an unhashable value is not an option
        _check_options(*options)
        raise
    settings, task, trace = problem.settings, problem.task, None
    targets, single = _poses(target, problem.tools, several=isinstance(names, tuple))
    starts = _starts(kinematics.robot.n, problem.middle if start is None else start, len(targets), single=single)
    starts = np.minimum(np.maximum(starts, settings.lower), settings.upper)
    if flag(iterates, "iterates"):
        if not single:
            raise StateError(f"iterates are of one target, there are {len(targets)}")
        task, configurations, number = traced_task(settings, min(attempts * (iterations + 1), _MOST_ITERATES))
    solved = problem.solver(targets, starts, task, near_starts=objective == "start")
    if iterates:
        trace = configurations[: number.item()].copy()
    if (solved.reasons == NO_POSE).any():
        raise StateError("target must be a pose: a rotation matrix, a finite translation, and a last row 0 0 0 1")
    why = _REASONS[solved.reasons]
    if len(stuck := np.flatnonzero(why == "stuck")):
        closer = _problem(kinematics, names, mask, None, limits, tolerance, iterations, min(attempts, _FEW))
        why[stuck] = _why_stuck(kinematics, closer, targets[stuck], solved.q[stuck])
    q, residuals, steps, tried, reasons, why = (x[0] for x in (*solved, why)) if single else (*solved, why)
    angle, distance = residuals.T
    return InverseKinematicsResult(q, reasons == 0, angle, distance, steps, tried, why, trace)


def _names(kinematics: Kinematics, frame: str | Sequence[str] | None) -> str | tuple[str, ...] | None:
    """Name of a frame, or a tuple of known names."""
    if frame is None or isinstance(frame, str):
        return frame
    if not is_sequence(frame):
        raise StateError(f"frame must be the name of a frame, or a sequence of names, is {shown(frame)}")
    for name in frame:
        kinematics.frame(name)
    return tuple(frame)


def _why_stuck(kinematics: Kinematics, problem: _Problem, targets: Array, q: Array) -> AnyArray:
    """Reasons of unsolved targets, by solving without limits, and without orientation."""
    settings = problem.settings
    free = np.full(kinematics.robot.n, np.inf)
    unlimited = settings._replace(
        lower=-free, upper=free, starts=_more_starts(kinematics.robot, False, settings.attempts - 1)
    )
    relaxed = problem.solver(targets, q, task_of(unlimited))
    within = np.all((relaxed.q >= settings.lower) & (relaxed.q <= settings.upper), axis=1)
    weights = settings.weights.reshape(-1, 6).copy()
    weights[:, :3] = 0.0
    there = problem.solver(targets, q, task_of(unlimited._replace(weights=weights)))
    chosen = [(relaxed.reasons == 0) & within, relaxed.reasons == 0, there.reasons == 0]
    return np.select(chosen, ["stuck", "joint range", "orientation"], "out of reach")


class _Problem(NamedTuple):
    """Solver data that do not depend on targets and starts."""

    solver: NativeSolver
    settings: SolverSettings
    task: SolverTask
    middle: Array
    tools: int


# Typed, since bools equal numbers, but are refused as such.
@lru_cache(_CACHE_SIZE, typed=True)
def _problem(
    kinematics: Kinematics,
    of: str | tuple[str, ...] | None,
    weights: tuple[float, ...],
    objective: str | None,
    limits: bool,
    tolerance: float,
    iterations: int,
    attempts: int,
) -> _Problem:
    robot = kinematics.robot
    frames = tuple(kinematics.frame(name) for name in (of if isinstance(of, tuple) else (of,)))
    if not frames:
        raise StateError("frame must name at least one")
    mask = np.asarray(weights, dtype=float)
    if mask.size not in (6, 6 * len(frames)) or violation(mask, "not negative"):
        raise StateError(f"weights must be 6 numbers for each tool, none negative, are {weights!r}")
    if np.any((mask > _LARGEST_WEIGHT) | ((mask > 0) & (mask < 1 / _LARGEST_WEIGHT))):
        raise StateError(f"weights must be 0 or from {1 / _LARGEST_WEIGHT:g} to {_LARGEST_WEIGHT:g}, are {weights!r}")
    _check_options(objective, limits, tolerance, iterations, attempts)
    lower, upper, middle = _ranges(robot, limits=limits)
    kind, preferred, pull = _preference(robot, objective, middle, lower, upper)
    settings = SolverSettings(
        lower=lower,
        upper=upper,
        period=_period(robot),
        weights=np.broadcast_to(mask.reshape(-1, 6), (len(frames), 6)),
        angle=tolerance,
        distance=tolerance,
        length=characteristic_length(robot, frames),
        iterations=iterations,
        attempts=attempts,
        objective=kind,
        starts=_more_starts(robot, limits, attempts - 1),
        preferred=preferred,
        pull=pull,
    )
    if kinematics.backend != "native":
        raise KernelError("inverse kinematics requires the native backend, and thus a C compiler; install gcc")
    return _Problem(kinematics.solver(frames), settings, task_of(settings), middle, len(frames))


def _check_options(objective: object, limits: object, tolerance: object, iterations: object, attempts: object) -> None:
    if objective is not None:
        choice(objective, "objective", OBJECTIVES)
    flag(limits, "limits")
    positive(tolerance, "tolerance")
    count(iterations, "iterations", 1, _MOST)
    count(attempts, "attempts", 1, _MOST)


def _poses(target: ArrayLike, k: int, *, several: bool) -> tuple[Array, bool]:
    """Targets (N, k, 4, 4), and whether the argument is a single target."""
    poses = real_array(target, "target")
    expected = (k, 4, 4) if several else (4, 4)
    if poses.shape[-len(expected) :] != expected or poses.ndim not in (len(expected), len(expected) + 1):
        raise StateError(f"target must have shape {expected} or (N, {str(expected)[1:]}, has {poses.shape}")
    single = poses.ndim == len(expected)
    return poses.reshape(-1, k, 4, 4), single


def _starts(n: int, start: ArrayLike, count: int, *, single: bool) -> Array:
    q = joint_states(n, start, names=("start",))[0]
    if q.ndim == 1:
        return np.repeat(q[np.newaxis], count, axis=0)
    if single or len(q) != count:
        raise StateError(f"start must have shape ({n},){'' if single else f' or ({count}, {n})'}, has {q.shape}")
    return q


@lru_cache(_CACHE_SIZE)
def _ranges(robot: Robot, *, limits: bool) -> tuple[Array, Array, Array]:
    """Smallest and largest joint variables, with mimic joints within their ranges, and the middle of each range."""
    lower, upper = np.full(robot.n, -np.inf), np.full(robot.n, np.inf)
    if limits:
        ends = (np.array([getattr(joint.limits, end) for joint in robot.joints]) for end in ENDS)
        lower, upper = independent_ranges(robot, *ends)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    middle = np.where(bounded, 0.5 * (np.where(bounded, lower, 0.0) + np.where(bounded, upper, 0.0)), 0.0)
    return lower, upper, np.clip(middle, lower, upper)


def _period(robot: Robot) -> Array:
    """Period of each joint variable without effect on poses, a turn; zero if there is none."""
    E, _ = robot.coupling
    period = np.full(robot.n, 2 * np.pi)
    for joint, row in zip(robot.joints, E, strict=True):
        # Mimic joints are included.
        if joint.type != "revolute" or np.any(row != np.round(row)):
            period[row != 0] = 0.0
    return period


def _preference(
    robot: Robot, objective: str | None, middle: Array, lower: Array, upper: Array
) -> tuple[int, Array, Array]:
    if objective in (None, "manipulable"):
        return ANY if objective is None else MANIPULABLE, middle, np.zeros(robot.n)
    if objective == "start":
        return PREFERRED, middle, np.ones(robot.n)
    half = 0.5 * (upper - lower)
    return PREFERRED, middle, np.where(np.isfinite(half), 1 / np.maximum(half, 1e-9) ** 2, 0.0)


@lru_cache(_CACHE_SIZE)
def _halton(n: int, count: int) -> Array:
    """First points (count, n) of the Halton sequence except its corner; importing scipy.stats would take longer."""
    points, primes = np.zeros((count, n)), list[int]()
    for candidate in itertools.takewhile(lambda _: len(primes) < n, itertools.count(2)):
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
    for column, base in zip(points.T, primes, strict=True):
        remaining, digit = np.arange(1, count + 1), 1.0
        while np.any(remaining):
            digit /= base
            column += digit * (remaining % base)
            remaining //= base
    return points


@lru_cache(_CACHE_SIZE)
def _more_starts(robot: Robot, limits: bool, count: int) -> Array:
    lower, upper, _ = _ranges(robot, limits=limits)
    free = np.array([_FAR if joint.type == "prismatic" else np.pi for joint in robot.independent_joints])
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * free, -free))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * free, free))
    if not count:
        return np.zeros((1, robot.n))
    return low + _halton(robot.n, count) * (high - low)
