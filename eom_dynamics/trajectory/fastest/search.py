# SPDX-License-Identifier: Apache-2.0
"""The fastest motion along a path within all limits of an arm, and those along many paths."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import TOLERANCE, Bounds, GivenLimits, bounds
from ...exceptions import TrajectoryError
from ..spline import Spline
from ..trajectory import Trajectory
from .constraints import Constraints, ToolLimits
from .ends import (
    AT_MOVING_ENDS,
    SLOW,
    end_states,
    entered,
    motion_between,
    outset,
    positive_limits,
    require_ends,
    require_limits,
    require_limits_everywhere,
    require_positions,
    require_statics,
)
from .interior_point import feasible, minimise
from .motion import (
    CHECK_RATE,
    FastestMotion,
    ViolatedInstants,
    heat,
    motion_of,
    motion_rate,
    places_of,
    violated_instants,
)
from .path import GeometricPath, path_through
from .speed import SquaredSpeed

_INTERVALS = 120  # least number of intervals between knots of the speed
_PER_PIECE = 6  # intervals in a piece of a spline
_PER_END_PIECE, _AT_REST = 12, 4  # intervals in each of so many pieces next to the ends
_DENSEST = 100_000  # most intervals per unit of σ
_END = 0.03  # length of the first and the last interval, in those of the least number
_GRADED = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8])  # ends of intervals next to an end that moves, in usual ones
_SHORTEST = 4e-4  # shortest duration of an interval next to an end that moves, s
_SHORTEST_MOTION = 0.006  # shortest duration of a path, s: about the shortest piece for each interval
_MOST_SLOWED = 2.0  # duration over that before limits are tightened at which nodes are too far apart for the path

# Nodes at which limits are checked for each one of the problem: with limits of jerk or effort rates, and with motors or
# joint friction, which change efforts within a millisecond where they turn back.
_FINE, _FINE_OF_RATES, _FINE_OF_MOTORS = 3, 5, 15

_BETWEEN = 8e-4  # relative violation of limits between nodes that is left
_ATTEMPTS, _LATE = 12, 6  # attempts to get there, and the last ones, in which motions are checked in any case
_SCALED, _SLOWEST = 1e-3, 0.5  # largest time scaling less 1 of the result, and of a motion to fall back to

# Value over its limit at which a place between nodes becomes a node in so many first attempts: a narrow peak, which
# limits at nodes around do not reduce. In later ones, all violations show that these do not suffice.
_PEAK, _PATIENT = 1.05, 3

# Duration over the shortest one found up to which a motion within the limits is the fastest one, with friction or
# motors. Otherwise limits were tightened by peaks that are elsewhere by now.
_NEARLY = 1.005

_AT_ENDS = 24  # nodes at either end at which limits are not tightened with all others
_START, _TIGHTENED, _END_GAP = 1.0, 3e-3, 1e-4  # relative distances from the shortest duration, in this order
_COLD, _INSIDE = 0.7, 0.993  # share of the largest squared speed with which to begin, and to go on
_MARGIN = 1e-5  # margin of durations for peaks between samples


def minimum_time(
    arm: ElasticArm,
    path: Trajectory | ArrayLike,
    limits: GivenLimits | None = None,
    *,
    tool: ToolLimits | None = None,
    start: Sequence[ArrayLike] = (),
    end: Sequence[ArrayLike] = (),
    progress: Callable[[float], Any] = lambda fraction: None,
) -> FastestMotion:
    """The fastest motion along a path, C⁴ and within all limits of joints and motors, from rest to rest by default.

    Limits are those of :func:`.check`: position, velocity, acceleration, jerk, effort and effort rate of joints; speed,
    torque, current and voltage of motors, with friction, gear losses and springs of the arm; and those of a tool.
    Without limits of effort rate or jerk, efforts change within a millisecond.

    Args:
        arm: the arm.
        path: a trajectory with a start and an end, whose timing does not matter; or waypoints (K, n), rad or m, for the
            smoothest curve through them.
        limits: by name of joint, in place of those in the robot's file: :class:`.Limits`, or single ones by name, as
            ``{"velocity": 1.0}``.
        tool: limits of a tool.
        start, end: velocity, acceleration, jerk and snap of the joints at the start and the end, each (n,), or the
            first of these: the others are free. Along the path; the smoothest curve through waypoints bends to them.
            At rest if none is given.
        progress: called at times with the fraction that is done; exceptions that it raises end the computation.

    Returns:
        The motion, which starts at 0 s.

    Raises:
        TrajectoryError: no motion along the path meets the limits (a position is out of range, or the effort at rest
            exceeds a limit), the path is not smooth, a state at an end is not along the path or beyond a limit, or
            there are no limits. The message has the place on the path.
    """
    begin = time.perf_counter()
    bounds_of_arm = positive_limits(arm, limits)
    task = _task(arm, bounds_of_arm, tool or ToolLimits(), path, {"start": start, "end": end})
    motion, parameters = _searched(task, progress)
    progress(1.0)
    return FastestMotion(arm, bounds_of_arm, motion, parameters, time.perf_counter() - begin)


class _Task(NamedTuple):
    """A path, the limits of a motion along it, and those at fine nodes; moving ends are those of :func:`.outset`."""

    arm: ElasticArm
    limits: Bounds
    tool: ToolLimits
    ends: dict[str, list[Array]]
    curve: GeometricPath
    moving: list[tuple[int, Array, int]]
    fastest: float  # bound of the squared speed
    fine: SquaredSpeed
    everywhere: Constraints


class _Nodes(NamedTuple):
    """The speed at nodes, their indices among the fine ones, and limits there."""

    speed: SquaredSpeed
    places: NDArray[np.intp]
    constraints: Constraints


def _task(
    arm: ElasticArm,
    limits: Bounds,
    tool: ToolLimits,
    path: Trajectory | ArrayLike,
    states: Mapping[str, Sequence[ArrayLike]],
) -> _Task:
    ends = {name: end_states(name, trajectory) for name, trajectory in states.items()}
    trajectory = cast("Trajectory", path) if hasattr(path, "derivatives") else path_through(path, limits, ends)
    if trajectory.n != arm.robot.n:
        raise TrajectoryError(f"the path has {trajectory.n} joints, {arm.robot.name} has {arm.robot.n}")
    for name, derivatives in ends.items():
        if any(rate.shape != (trajectory.n,) for rate in derivatives):
            raise TrajectoryError(f"{name} must have derivatives of shape ({trajectory.n},), one number for each joint")
    fixed = len(ends["start"]), len(ends["end"])
    curve = GeometricPath(trajectory, fixed)
    moving = outset(curve, ends, arm.robot.joint_names)
    require_limits(limits, tool)
    require_ends(arm, limits, tool, curve, ends)
    finer = _FINE_OF_RATES if limits.limited("jerk", "effort_rate") else _FINE
    finer = _FINE_OF_MOTORS if limits.of_motors or arm.robot.joint_friction else finer
    fine = SquaredSpeed(_knots(curve, moving), fixed=fixed, finer=finer)
    places = np.append(fine.nodes[fine.finer // 2 :: fine.finer], [0.0, 1.0])
    q = curve.positions(places)
    require_positions(arm, limits, q, curve.percent(places))
    require_statics(arm, limits, q, curve.percent(places))
    everywhere = Constraints(arm, curve, fine, limits, tool)
    fastest = max([_SHORTEST_MOTION**-2, *(4 * x[0] for _, x, _ in moving)])
    slow, fast = (everywhere.used(np.full((4, len(fine.nodes)), x)) for x in (SLOW * fastest, fastest))
    if slow is not None:
        everywhere.at_rest = slow[: len(slow) - len(everywhere.heat_limits)]
        require_limits_everywhere(curve, fine, slow, fast)
    return _Task(arm, limits, tool, ends, curve, moving, fastest, fine, everywhere)


def _searched(task: _Task, progress: Callable[[float], Any]) -> tuple[Spline, Array]:
    """The fastest motion, and parameters of the given path at its knots."""
    nodes = _nodes(task, np.zeros(0, dtype=np.intp))
    # A given state may be at a limit, and the search stays inside.
    for side, _, _ in task.moving:
        wider = np.ones(len(nodes.speed.nodes))
        wider[:_AT_ENDS] = 1 + 0.9 * AT_MOVING_ENDS
        nodes.constraints.tighten(wider if side == 0 else wider[::-1])
    places = places_of(task.curve, nodes.speed)
    if task.moving:
        start = motion_between(nodes.speed, nodes.constraints, task.moving)
        c = first = entered(task.curve, nodes.speed, nodes.constraints, start)
    else:
        c = first = _inside(nodes, np.ones(nodes.speed.count), _COLD)
    multipliers, gap, motions = None, (_START, _TIGHTENED), list[tuple[Spline, Array]]()
    shortest, least = 0.0, np.inf
    for attempt in range(_ATTEMPTS):
        late = attempt >= _ATTEMPTS - _LATE
        speed, _, constraints = nodes
        fastest, _, multipliers = minimise(
            speed,
            constraints,
            c,
            gap=gap,
            multipliers=multipliers,
            progress=lambda done, attempt=attempt: progress((attempt + done) / _ATTEMPTS),  # type: ignore[misc]
        )
        duration = float(np.sum(speed.steps / np.sqrt(speed.at_nodes(fastest)[0])))
        shortest, least = shortest or duration, min(least, duration)
        c = _positive(task, speed, fastest, c, places)
        worst, more = _tighten(task, nodes, c, _PEAK if attempt < _PATIENT else 1 + _BETWEEN)
        if len(more):
            nodes, multipliers = _with_more(task, nodes, more), None
        gap = _TIGHTENED, _END_GAP
        if attempt and (late or not 1 + _BETWEEN < worst < np.inf):
            times, states, sigma = motion_of(task.curve, nodes.speed, c, places)
            for row, exact in zip((0, -1), task.ends.values(), strict=True):
                states[1 : len(exact) + 1, row] = np.reshape(exact, (len(exact), task.arm.robot.n))
            motion, affine = Spline(times, states), nodes.constraints.affine
            slower, over, hot = _slowed(task, motion, affine, _SCALED)
            final = slower is not None
            if not final and (late or not affine):
                slower, *_ = _slowed(task, motion, affine, _SLOWEST)
            if slower is not None:
                motions.append((slower, task.curve.parameter(sigma)))
            if final and (affine or motions[-1][0].end < _NEARLY * least):
                break
            if final:
                nodes.constraints.loosen()
            else:
                if not affine:
                    more = np.searchsorted(task.fine.nodes[:-1], np.interp(over.t, times, sigma))
                    nodes, multipliers = _with_more(task, nodes, more), None
                hot = np.where(hot > 1, hot * (1 + _BETWEEN), 1.0)[np.isfinite(task.limits.effort_rms)]
                nodes.constraints.tighten_heat(1 / hot)
                times = np.interp(nodes.speed.nodes, sigma, times)
                _tighten_near(nodes.constraints, task.limits, over, times, bool(task.moving))
        c = entered(task.curve, nodes.speed, nodes.constraints, first) if task.moving else _inside(nodes, c, _INSIDE)
    best = min(motions, key=lambda pair: pair[0].end, default=None)
    if best is None or best[0].end > _MOST_SLOWED * shortest:
        raise TrajectoryError("the fastest motion was not found: between nodes it violates limits; smooth the path")
    return best


def _nodes(task: _Task, more: NDArray[np.intp]) -> _Nodes:
    """The speed at its own nodes and at more of the fine ones."""
    speed, index = task.fine.thinned(more)
    constraints = task.everywhere.thinned(speed, index)
    constraints.cap(task.fastest)
    return _Nodes(speed, index, constraints)


def _with_more(task: _Task, nodes: _Nodes, more: NDArray[np.intp]) -> _Nodes:
    """Nodes and more of the fine ones, with limits tightened as they were."""
    finer = _nodes(task, np.union1d(nodes.places, more))
    finer.constraints.follow(nodes.constraints, np.searchsorted(finer.places, nodes.places))
    return finer


def _positive(task: _Task, speed: SquaredSpeed, better: Array, c: Array, places: tuple[Array, Array]) -> Array:
    """Coefficients found if x is positive between nodes, too, else c."""
    checked = np.concatenate([task.fine.nodes, *map(np.ravel, places)])
    for tried in (better, c):
        # Not negative where all coefficients are positive.
        if np.min(tried) > 0:
            return tried
        x = speed.values(tried, checked, 1)[0]
        if np.min(x) > 0:
            return tried
    place = float(task.curve.parameter(checked[int(np.argmin(x))]))
    raise TrajectoryError(
        f"the fastest motion was not found: it nearly stops at {place:.6g} of the path; smooth the path there"
    )


def _inside(nodes: _Nodes, c: Array, share: float) -> Array:
    """Coefficients scaled to this share of the largest squared speed within the limits."""
    speed, _, constraints = nodes
    scaled = feasible(speed, constraints, c, share)
    if scaled is None:
        used = constraints.used(speed.at_nodes(c * 1e-20))
        i = -1 if used is None else int(np.argmax(np.max(used, axis=1)))
        most = 0.0 if used is None else float(np.max(used))
        why = f": in a slow motion, {constraints.names[i]} is {most:.4g} times its limit" if most > 1 else ""
        raise TrajectoryError(f"no speed along the path meets the limits{why}")
    return scaled


def _knots(curve: GeometricPath, moving: Sequence[tuple[int, Array, int]]) -> Array:
    edges = np.concatenate([[0.0], curve.breaks, [1.0]])
    counts = np.full(len(edges) - 1, float(_PER_PIECE))
    # A path that is at rest at its ends speeds up there.
    counts[:_AT_REST] = counts[-_AT_REST:] = _PER_END_PIECE
    counts = np.clip(counts, _INTERVALS * np.diff(edges), _DENSEST * np.diff(edges))
    passed = np.append(0.0, np.cumsum(counts))
    count = round(passed[-1])
    outer = {end: np.array([0.0, _END * _INTERVALS]) for end in (0, -1)}
    for end, x, _ in moving:
        # What is fixed leaves the first intervals little freedom.
        shortest = min(_SHORTEST * np.sqrt(x[0]) * count, 0.5)
        outer[end] = np.append(0.0, _GRADED[shortest < _GRADED])
    first, last = outer[0], passed[-1] - outer[-1][::-1]
    inner = np.linspace(first[-1], last[0], count - 1)
    return np.asarray(np.interp(np.concatenate([first[:-1], inner, last[1:]]), passed, edges))


def _tighten(task: _Task, nodes: _Nodes, c: Array, most: float) -> tuple[float, NDArray[np.intp]]:
    """Reduce limits at nodes by as much as they are violated next to them, with the speed of coefficients c.

    Returns the largest value over its limit, and indices of fine nodes with more than the most, which are to be nodes;
    limits around these are not reduced.
    """
    fine, (_, index, constraints) = task.fine, nodes
    used = task.everywhere.used(fine.at_nodes(c))
    if used is None:
        return np.inf, index[:0]
    rows = len(used) - len(constraints.heat_limits)
    constraints.tighten_heat(1 / np.maximum(used[rows:, 0], 1.0))
    used = used[:rows].reshape(rows, -1, fine.finer)
    # Faster than along the short last axis.
    worst = reduce(np.maximum, [used[..., k] for k in range(fine.finer)])
    peaks = np.flatnonzero(np.max(worst, axis=0) > most)
    largest = np.argmax(np.max(used[:, peaks], axis=0), axis=1)
    more = np.setdiff1d(peaks * fine.finer + largest, index) if len(peaks) else peaks
    violation = float(np.max(worst))
    worst[:, more // fine.finer] = 1.0
    around = worst.copy()
    around[:, 1:] = np.maximum(around[:, 1:], worst[:, :-1])
    around[:, :-1] = np.maximum(around[:, :-1], worst[:, 1:])
    constraints.tighten(1 / np.maximum(around[:, index // fine.finer], 1.0))
    return violation, more


def _slowed(task: _Task, motion: Spline, affine: bool, most: float) -> tuple[Spline | None, ViolatedInstants, Array]:
    """The motion, slowed down if it violates limits; a motion with a given state at an end is not slowed down.

    None if it must be slowed down by more than 1 + the most; instants of the given one at which it then violates
    limits; and RMS efforts over their limits (m,).
    """
    arm, limits, tool, moving = task.arm, task.limits, task.tool, bool(task.moving)
    tolerance = AT_MOVING_ENDS if moving else 0.5 * TOLERANCE
    every = pieces = np.arange(len(motion.t) - 1)
    duration, cold = motion.end, np.zeros(len(limits.effort_rms))
    for repeat in range(2 if limits.of_motors and most <= _SCALED else _ATTEMPTS):
        # Friction changes efforts within a millisecond.
        rate = 0.0 if affine else motion_rate(motion, CHECK_RATE)
        over = violated_instants(arm, limits, tool, motion, rate, pieces, 1 + tolerance)
        if not len(over.t):
            hot = heat(arm, limits, motion)
            if np.any(hot > 1 + tolerance):
                return None, over, hot
            # Peaks between samples at a lower rate are higher.
            return motion.stretched(1 + _MARGIN) if 0 < rate < CHECK_RATE and not moving else motion, over, cold
        if moving:
            break
        # Efforts decrease with the square of the duration, velocities with the duration, and gravity not at all.
        scaling = 1 + 2.0 ** (repeat - (not limits.of_motors)) * (float(np.max(over.used)) - 1 + _MARGIN)
        if scaling > 1 + most:
            break
        # Elsewhere, other quantities of joints decrease with a longer duration, or meet those at rest. In effort rates,
        # those of gravity and friction decrease less than those of inertia, which they may balance.
        pieces = over.pieces if affine and not limits.limited("effort_rate") else every
        motion = motion.stretched(scaling)
    return None, over._replace(t=over.t * (duration / motion.end)), cold


def _tighten_near(constraints: Constraints, limits: Bounds, over: ViolatedInstants, times: Array, moving: bool) -> None:
    """Reduce limits at nodes, at times (M,), s, next to instants at which a motion violates them."""
    if not len(over.t):
        return
    shares = np.ones((len(constraints.rows_of("tool")), len(times)))
    if moving:
        # The peaks between nodes would move on; states at the ends may be at a limit.
        shares[:, _AT_ENDS:-_AT_ENDS] /= min(float(np.max(over.used)), 1 + _BETWEEN) ** 2
    nearest, factors = np.searchsorted(times, over.t), 1 / (over.used * (1 + _BETWEEN))
    for index, name in enumerate([*limits.quantities, "tool"]):
        # Other limits may leave little more than values at rest.
        chosen = over.quantities == index
        of_nodes = np.ones(len(times))
        for k in (-1, 0, 1):
            np.minimum.at(of_nodes, np.clip(nearest[chosen] + k, 0, len(times) - 1), factors[chosen])
        rows = constraints.rows_of(name)
        shares[rows] = np.minimum(shares[rows], of_nodes)
    constraints.tighten(shares)


_CHUNKS = 4  # chunks of paths for each process: some paths take longer than others

_Found = tuple[Spline, Array, float]


def minimum_times(
    arm: ElasticArm, paths: Iterable[Trajectory | ArrayLike], *, workers: int | None = None, **options: Any
) -> list[FastestMotion | TrajectoryError]:
    """The fastest motion along each path, or the error that refuses it.

    Scripts that call it need a guard ``if __name__ == "__main__":``, since processes import them.

    Args:
        arm: the arm; compiled code comes from the cache.
        paths: each as for :func:`.minimum_time`; they are pickled.
        workers: number of processes; by default that of the cores.
        options: ``limits``, ``tool``, ``start`` and ``end`` of :func:`.minimum_time`.
    """
    # Most users of this package start no processes.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    limits, listed, workers = bounds(arm, options.get("limits")), list(paths), workers or os.cpu_count() or 1
    find = partial(_found, arm, options)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        # The arm goes along with each chunk.
        motions = list(pool.map(find, listed, chunksize=-(-len(listed) // (_CHUNKS * workers)) or 1))
    return [x if isinstance(x, TrajectoryError) else FastestMotion(arm, limits, *x) for x in motions]


def _found(arm: ElasticArm, options: Mapping[str, Any], path: Trajectory | ArrayLike) -> _Found | TrajectoryError:
    try:
        motion = minimum_time(arm, path, **options)
    except TrajectoryError as error:
        return error
    return Spline(motion.t, motion.states), motion.parameters, motion.computing_time
