# SPDX-License-Identifier: Apache-2.0
"""Minimum-time motion along a path within all limits of an arm, with the requirements for limits and path."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.limit_violations import IN_DEGREES, TURN, beyond
from ...elastic.limits import TOLERANCE, GivenLimits, LimitCheck, arm_limits
from ...exceptions import StateError, TrajectoryError
from ..planned_path import path_through
from ..quantities import Load, quantities
from ..trajectory import ORDERS, Spline, Trajectory
from . import SETTINGS
from .constraints import Constraints, limited_kinds
from .interior_point import feasible, minimise
from .motion import FastestMotion, ViolatedInstants, motion_of, motion_rate, places_of, violated_instants
from .path import GeometricPath, SquaredSpeed


def positive_limits(arm: ElasticArm, limits: GivenLimits | None) -> LimitCheck:
    """Limits of an arm; TrajectoryError unless they are positive and without limits of RMS efforts."""
    checked = arm_limits(arm, limits)
    for quantity, largest in checked.largest.items():
        for name, most in zip(checked.names[quantity], largest, strict=True):
            if not most > 0:
                raise TrajectoryError(f"{name}: limit of {quantity} must be positive, is {most:g}")
    for i in np.flatnonzero(checked.of_rms)[:1]:
        name = checked.names["effort_rms"][i]
        raise TrajectoryError(
            f"{name}: the search has no limits of effort_rms; omit them, and slow the motion down as check tells"
        )
    return checked


def require_limits_everywhere(curve: GeometricPath, speed: SquaredSpeed, slow: Array, fast: Array) -> None:
    """Raise an error if limit utilizations (R, M) are equal in a slow and a fast motion."""
    unlimited = np.max(np.abs(fast - slow), axis=0) < SETTINGS.unlimited
    # The path does not move at its ends.
    unlimited[: speed.counts[0]] = unlimited[-speed.counts[-1] :] = False
    if np.any(unlimited):
        place = curve.percent(speed.nodes[int(np.argmax(unlimited))])
        raise TrajectoryError(f"the motion has no shortest duration: the path is without limits at {place:.4g} % of it")


def require_positions(arm: ElasticArm, limits: LimitCheck, q: Array, percent: Array) -> None:
    """Raise an error if positions (M, n) are out of their ranges; ``percent``: their places on the path."""
    E, e = arm.robot.coupling
    q = q @ E.T + e
    scale = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
    distance = beyond(q, limits.lower, limits.upper) - TOLERANCE * np.where(np.isfinite(scale), scale, 1.0)
    if np.max(distance) > 0:
        k, joint = np.unravel_index(int(np.argmax(distance)), distance.shape)
        unit = limits.units["position"][joint]
        remedy = f", {IN_DEGREES}" if unit == "rad" and distance[k, joint] > TURN else "; change the path"
        raise TrajectoryError(
            f"{limits.names['position'][joint]}: position {q[k, joint]:.6g} {unit} at {percent[k]:.4g} % of "
            f"the path is out of its range, {limits.lower[joint]:g} to {limits.upper[joint]:g}{remedy}"
        )


def require_statics(arm: ElasticArm, limits: LimitCheck, q: Array, percent: Array) -> None:
    """Raise an error if an effort at rest exceeds its limit."""
    try:
        values = quantities(arm, Load((q, *[np.zeros_like(q)] * (ORDERS - 1))), limits)
    except StateError as error:
        raise TrajectoryError(f"the springs cannot hold the arm at rest on the path: {error}") from error
    for quantity, value in values.items():
        used = np.nan_to_num(np.abs(value) / limits.largest[quantity], nan=0.0)
        if np.max(used) >= 1:
            k, i = np.unravel_index(int(np.argmax(used)), used.shape)
            unit = limits.units[quantity][i]
            raise TrajectoryError(
                f"{limits.names[quantity][i]}: {quantity} {value[k, i]:.6g} {unit} at rest at "
                f"{percent[k]:.4g} % of the path leaves nothing of its limit {limits.largest[quantity][i]:g} "
                f"{unit} for motion; change the path, the payload or the limit"
            )


def minimum_time(
    arm: ElasticArm,
    path: Trajectory | ArrayLike,
    limits: GivenLimits | None = None,
    *,
    tolerance: float | None = None,
    progress: Callable[[float], Any] = lambda fraction: None,
) -> FastestMotion:
    """The fastest motion along a path, from rest to rest, C⁴ and within all limits of joints and motors.

    It has the limits of :func:`.check` except RMS efforts: position, velocity, acceleration, jerk, effort and effort
    rate of joints; effort, speed, torque, current and voltage of motors, with friction, gear losses and springs of the
    arm. Without limits of effort rate, jerk or motors, efforts change within a millisecond.

    Args:
        arm: the arm.
        path: a trajectory with a start and an end; its timing does not matter. Or waypoints (K, n), rad or m, for the
            smoothest curve within a tolerance, or through them if there are few for the bends.
        limits: by joint name, instead of the limits in the robot file: :class:`.Limits`, or single limits by name,
            as ``{"velocity": 1.0}``.
        tolerance: largest distance of each joint from waypoints, rad or m; None: by their digits and their noise, 1e-6
            to 1e-3.
        progress: called at times with the fraction that is done; exceptions that it raises end the computation.

    Returns:
        The motion, which starts at 0 s. It stops at waypoints with a reversal of the path.

    Raises:
        TrajectoryError: no motion along the path meets the limits (a position is out of range, or the effort at rest
            exceeds a limit), the path is not smooth, or there are no limits, or some of RMS efforts. The message has
            the place on the path.
    """
    begin = time.perf_counter()
    bounds_of_arm = positive_limits(arm, limits)
    if hasattr(path, "derivatives"):
        waypoints = None
        parts: tuple[Trajectory, ...] = (cast("Trajectory", path),)
    else:
        waypoints = path_through(path, bounds_of_arm.largest["velocity"], tolerance)
        parts = waypoints.parts
    motions = [
        _searched(_task(arm, bounds_of_arm, part), lambda done, k=k: progress((k + done) / len(parts)))  # type: ignore[misc]
        for k, part in enumerate(parts)
    ]
    progress(1.0)
    motion, parameters = _joined(motions)
    return FastestMotion(arm, bounds_of_arm, motion, parameters, time.perf_counter() - begin, waypoints)


def _joined(motions: list[tuple[Spline, Array]]) -> tuple[Spline, Array]:
    """Concatenate motions, each from rest at the end of the one before, and their parameters."""
    (motion, parameters), *others = motions
    for later, more in others:
        states = np.concatenate([motion.states, later.states[:, 1:]], axis=1)
        motion = Spline(np.append(motion.t, motion.end + later.t[1:]), states)
        parameters = np.append(parameters, more[1:])
    return motion, parameters


class _Task(NamedTuple):
    """Path, limits of a motion along it, and limits at fine nodes."""

    arm: ElasticArm
    limits: LimitCheck
    curve: GeometricPath
    fine: SquaredSpeed
    everywhere: Constraints


class _Nodes(NamedTuple):
    """Speed at nodes, their indices among the fine nodes, and limits there."""

    speed: SquaredSpeed
    places: NDArray[np.intp]
    constraints: Constraints


def _task(arm: ElasticArm, limits: LimitCheck, trajectory: Trajectory) -> _Task:
    if trajectory.n != arm.robot.n:
        raise TrajectoryError(f"the path has {trajectory.n} joints, {arm.robot.name} has {arm.robot.n}")
    curve = GeometricPath(trajectory)
    if not limits.quantities:
        raise TrajectoryError("there are no limits, hence no shortest duration; give limits of velocity and effort")
    smooth = all(kind.polynomial for kind in limited_kinds(arm, limits))
    fine = SquaredSpeed(_knots(curve), SETTINGS.fine if smooth else SETTINGS.fine_of_friction)
    places = np.append(fine.nodes[fine.finer // 2 :: fine.finer], [0.0, 1.0])
    q = curve.positions(places)
    require_positions(arm, limits, q, curve.percent(places))
    require_statics(arm, limits, q, curve.percent(places))
    everywhere = Constraints(arm, curve, fine, limits)
    fastest = SETTINGS.shortest_motion**-2
    slow, fast = (everywhere.used(np.full((4, len(fine.nodes)), x)) for x in (SETTINGS.slow * fastest, fastest))
    if slow is not None:
        everywhere.at_rest = slow
    if slow is not None and fast is not None:
        require_limits_everywhere(curve, fine, slow, fast)
    everywhere.cap(fastest)
    return _Task(arm, limits, curve, fine, everywhere)


def _searched(task: _Task, progress: Callable[[float], Any]) -> tuple[Spline, Array]:
    """The fastest motion, and parameters of the input path at its knots."""
    nodes = _nodes(task, np.zeros(0, dtype=np.intp))
    places = places_of(task.curve, nodes.speed)
    start = nodes.speed.below(nodes.constraints.largest_constant())
    c = feasible(nodes.speed, nodes.constraints, start, SETTINGS.cold)
    multipliers, gap, motions = None, SETTINGS.first_gap, list[tuple[Spline, Array]]()
    shortest, least, attempts, between = 0.0, np.inf, SETTINGS.attempts, SETTINGS.between
    for attempt in range(attempts):
        late = attempt >= attempts - SETTINGS.late
        speed, _, constraints = nodes
        fastest, multipliers = minimise(
            speed,
            constraints,
            c,
            gap=gap,
            multipliers=multipliers,
            progress=lambda done, attempt=attempt: progress((attempt + done) / attempts),  # type: ignore[misc]
        )
        duration = float(np.sum(speed.steps / np.sqrt(speed.at_nodes(fastest)[0])))
        shortest, least = shortest or duration, min(least, duration)
        c = _positive(task, speed, fastest, c, places)
        worst, more, shares = _excess(task, nodes, c, SETTINGS.peak if attempt < SETTINGS.patient else 1 + between)
        polynomial = constraints.polynomial
        left = SETTINGS.between_motors if polynomial and task.limits.of_motors else between
        tried = attempt and (late or not 1 + left < worst < np.inf)
        # A motion violates limits at other places as well.
        if not (tried and polynomial):
            constraints.tighten(shares)
        if len(more):
            before, nodes = nodes, _nodes(task, more, nodes)
            multipliers = _interpolated(multipliers, before, nodes) if polynomial else None
        gap = SETTINGS.last_gap
        if tried:
            times, states, sigma = motion_of(task.curve, nodes.speed, c, places)
            states[1:, [0, -1]] = 0.0
            motion = Spline(times, states)
            slower, over = _slowed(task, motion, polynomial, SETTINGS.scaled)
            final = slower is not None
            if not final and (late or not polynomial):
                slower, _ = _slowed(task, motion, polynomial, SETTINGS.slowest)
            if slower is not None:
                motions.append((slower, task.curve.parameter(sigma)))
            if final and (polynomial or motions[-1][0].end < SETTINGS.nearly * least):
                break
            if final:
                nodes.constraints.loosen()
            else:
                if not polynomial:
                    more = np.searchsorted(task.fine.nodes[:-1], np.interp(over.t, times, sigma))
                    nodes, multipliers = _nodes(task, more, nodes), None
                times = np.interp(nodes.speed.nodes, sigma, times)
                _tighten_near(nodes.constraints, task.limits, over, times)
        c = feasible(nodes.speed, nodes.constraints, c, SETTINGS.inside)
    best = min(motions, key=lambda pair: pair[0].end, default=None)
    if best is None or best[0].end > SETTINGS.most_slowed * shortest:
        raise TrajectoryError("the fastest motion was not found: between nodes it violates limits; smooth the path")
    return best


def _nodes(task: _Task, more: NDArray[np.intp], before: _Nodes | None = None) -> _Nodes:
    """Speed at its own nodes and at ``more`` fine nodes, including the nodes before with their tightened limits."""
    speed, index = task.fine.thinned(more if before is None else np.union1d(before.places, more))
    constraints = task.everywhere.thinned(index)
    if before is not None:
        constraints.follow(before.constraints, np.searchsorted(index, before.places))
    return _Nodes(speed, index, constraints)


def _interpolated(multipliers: Array, before: _Nodes, nodes: _Nodes) -> Array:
    """Multipliers (D,) of limits at nodes, interpolated from the nodes before."""
    rows = multipliers.reshape(-1, len(before.places))
    return np.concatenate([np.interp(nodes.places, before.places, row) for row in rows])


def _positive(task: _Task, speed: SquaredSpeed, better: Array, c: Array, places: tuple[Array, Array]) -> Array:
    """Coefficients ``better`` if x is positive between nodes, else c."""
    checked = np.concatenate([task.fine.nodes, *map(np.ravel, places)])
    for tried in (better, c):
        # Positive if all coefficients are positive.
        if np.min(tried) > 0:
            return tried
        x = speed.values(tried, checked, 1)[0]
        if np.min(x) > 0:
            return tried
    place = float(task.curve.parameter(checked[int(np.argmin(x))]))
    raise TrajectoryError(
        f"the fastest motion was not found: it nearly stops at {place:.6g} of the path; smooth the path there"
    )


def _knots(curve: GeometricPath) -> Array:
    edges = np.concatenate([[0.0], curve.breaks, [1.0]])
    counts = np.full(len(edges) - 1, float(SETTINGS.intervals_of_piece if curve.kinks else 1))
    # A path that is at rest at its ends speeds up there.
    if curve.kinks:
        counts[: SETTINGS.end_pieces] = counts[-SETTINGS.end_pieces :] = SETTINGS.intervals_of_end_piece
    counts = np.clip(counts, SETTINGS.intervals * np.diff(edges), SETTINGS.most_intervals * np.diff(edges))
    passed = np.append(0.0, np.cumsum(counts))
    count = round(passed[-1])
    end = SETTINGS.end_interval * SETTINGS.intervals
    inner = np.linspace(end, passed[-1] - end, count - 1)
    return np.asarray(np.interp(np.concatenate([[0.0], inner, passed[-1:]]), passed, edges))


def _excess(task: _Task, nodes: _Nodes, c: Array, most: float) -> tuple[float, NDArray[np.intp], Array]:
    """Violations of limits with the speed of coefficients c.

    Returns the largest ratio to a limit; indices of fine nodes above ``most``, which become nodes; and factors (R, M)
    of limits at nodes for violations next to them, except violations around the new nodes.
    """
    fine, index = task.fine, nodes.places
    used = task.everywhere.used(fine.at_nodes(c))
    if used is None:
        return np.inf, index[:0], np.ones((1, len(index)))
    used = used.reshape(len(used), -1, fine.finer)
    worst = np.max(used, axis=-1)
    peaks = np.flatnonzero(np.max(worst, axis=0) > most)
    largest = np.argmax(np.max(used[:, peaks], axis=0), axis=1)
    more = np.setdiff1d(peaks * fine.finer + largest, index) if len(peaks) else peaks
    violation = float(np.max(worst))
    worst[:, more // fine.finer] = 1.0
    around = worst.copy()
    around[:, 1:] = np.maximum(around[:, 1:], worst[:, :-1])
    around[:, :-1] = np.maximum(around[:, :-1], worst[:, 1:])
    return violation, more, 1 / np.maximum(around[:, index // fine.finer], 1.0)


def _slowed(task: _Task, motion: Spline, polynomial: bool, most: float) -> tuple[Spline | None, ViolatedInstants]:
    """The motion, slowed down if it violates limits.

    None if the time scaling would exceed 1 + ``most``; also returns the instants at which the given motion violates
    limits.
    """
    arm, limits, duration = task.arm, task.limits, motion.end
    every = pieces = np.arange(len(motion.t) - 1)
    driven = limits.of_motors and not polynomial
    for repeat in range(2 if driven and most <= SETTINGS.scaled else SETTINGS.attempts):
        # Friction changes efforts within a millisecond.
        rate = 0.0 if polynomial else motion_rate(motion, SETTINGS.check_rate)
        over = violated_instants(arm, limits, motion, rate, pieces, 1 + 0.5 * TOLERANCE)
        if not len(over.t):
            # Peaks between samples at a lower rate are higher.
            return motion.stretched(1 + SETTINGS.margin) if 0 < rate < SETTINGS.check_rate else motion, over
        # Efforts decrease with the square of the duration, velocities with the duration, and gravity not at all.
        scaling = 1 + 2.0 ** (repeat - (not driven)) * (float(np.max(over.used)) - 1 + SETTINGS.margin)
        if scaling > 1 + most:
            break
        # Elsewhere, other joint quantities decrease with a longer duration, or meet their limits at rest. In effort
        # rates and motor efforts, parts that decrease less may balance inertial parts, which decrease.
        mixed = limits.of_motors or limits.limited("effort_rate") or not polynomial
        pieces = every if mixed else over.pieces
        motion = motion.stretched(scaling)
    return None, over._replace(t=over.t * (duration / motion.end))


def _tighten_near(constraints: Constraints, limits: LimitCheck, over: ViolatedInstants, times: Array) -> None:
    """Reduce limits at nodes, at times (M,), s, next to instants with violations."""
    shares = np.ones((len(constraints.names), len(times)))
    nearest, factors = np.searchsorted(times, over.t), 1 / (over.used * (1 + SETTINGS.between))
    for index, name in enumerate(limits.quantities):
        # Other limits may leave little more than values at rest.
        chosen = over.quantities == index
        of_nodes = np.ones(len(times))
        for k in (-1, 0, 1):
            np.minimum.at(of_nodes, np.clip(nearest[chosen] + k, 0, len(times) - 1), factors[chosen])
        rows = constraints.rows_of(name)
        shares[rows] = np.minimum(shares[rows], of_nodes)
    constraints.tighten(shares)
