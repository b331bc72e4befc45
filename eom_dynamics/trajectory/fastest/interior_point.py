# SPDX-License-Identifier: Apache-2.0
"""Interior-point method for the fastest motion along a path.

Minimise T(c) = ∫ dσ/√x over the coefficients c of x = (dσ/dt)², subject to s(c) >= 0 for the distances s from all
limits at all nodes. Newton's method on the primal-dual equations

    ∇T - Jᵀ λ = 0,    λ s = μ,

for μ that decreases to zero (S. Boyd and L. Vandenberghe, Convex Optimization, section 11.7). All iterates meet all
limits. The matrix ∇²T + Jᵀ (λ/s) J has the bandwidth of the spline. Curvature of limits is neglected, except for that
of limit/√x, see :mod:`.constraints`, which cancels against that of T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...exceptions import TrajectoryError
from .constraints import ConstraintRows, Constraints
from .speed import PAIRS, SquaredSpeed

# Residual of the equations at which to stop, relative to the distance from the shortest duration.
_RESIDUAL = 10.0

# Share of the way to the nearest limit that a step may take, and of a distance that it must leave.
_NEAREST = 0.95
_LEFT = 1e-3

# λ s stays within this factor of μ.
_CENTRAL = 100.0

# Shares of μ after long and medium steps.
_REDUCTIONS = ((0.9, 0.2), (0.4, 0.5))

# μ times the number of limits decreases no further than to this share of the residual.
_PACE = 0.5

# Steps in which the duration must decrease.
_PATIENCE = 10

# Limits are met from this share of them on, and are first widened to this multiple of the largest value.
_ENTERED, _WIDER = 0.97, 1.2

_MOST_STEPS = 80
_MOST_HALVINGS = 40

# Start inside the limits: at this share of the largest squared speed.
_INSIDE = 0.5


class InteriorPointSolution(NamedTuple):
    """Result of :func:`minimise`.

    Attributes:
        c: coefficients (count,).
        steps: number of Newton steps.
        multipliers: of the distances from limits, and from those of RMS efforts.
    """

    c: Array
    steps: int
    multipliers: tuple[Array, Array]


class _Point(NamedTuple):
    """Coefficients, x … x''' at the nodes, and distances from limits.

    Attributes:
        rows: of both sides of the rows (2, R, M).
        heat: of RMS efforts (H,), their derivatives and curvature, see :meth:`.Constraints.heat`.
    """

    c: Array
    x: Array
    rows: Array
    heat: tuple[Array, Array, Array]

    @property
    def inside(self) -> bool:
        return bool(np.min(self.x[0]) > 0 and np.all(self.rows > 0) and np.all(self.heat[0] > 0))


def feasible(speed: SquaredSpeed, constraints: Constraints, c: Array, inside: float = _INSIDE) -> Array | None:
    """Scale coefficients c uniformly so that all limits are met; None if no speed does.

    Args:
        speed, constraints: the problem.
        c: coefficients of a positive x.
        inside: share of the largest possible scale to return.
    """
    largest, less = constraints.largest_scale(speed.at_nodes(c)[0]), LESS
    while not _is_inside(speed, constraints, c * largest):
        largest, less = largest * (1 - less), min(2 * less, 0.5)
        if largest < 1e-60:
            return None
    for step in (1.4, 1.2, 1.1) if less == 0.5 else ():
        if _is_inside(speed, constraints, c * largest * step):
            largest *= step
    # Inertial forces may carry a part of the weight, so that a slower motion is not always further inside.
    while inside > _LEFT and not _is_inside(speed, constraints, c * largest * inside):
        inside *= 0.8
    return c * largest * inside


def meet(speed: SquaredSpeed, constraints: Constraints, c: Array) -> Array:
    """Change the free coefficients until all limits are met, or until they are violated by the least factor.

    Minimises the factor t of limits t |limit| that are met, with the same method as :func:`minimise`. Curvature is
    neglected altogether.

    Args:
        speed, constraints: the problem.
        c: coefficients of a positive x.
    """
    constraints.allow(1.0)
    used = constraints.used(speed.at_nodes(c))
    if used is None:
        return c
    t, best, mu, worst = _WIDER * float(np.max(used)), c, np.inf, [np.inf]
    for _ in range(_MOST_STEPS):
        x = speed.at_nodes(c)
        constraints.allow(1.0)
        used = constraints.used(x)
        if used is None:
            break
        if np.max(used) < np.min(worst):
            best = c
        worst.append(float(np.max(used)))
        if worst[-1] < _ENTERED or (len(worst) > _PATIENCE and worst[-1] > 0.999 * worst[-_PATIENCE]):
            break
        constraints.allow(t)
        rows = constraints.rows(x, changes=True)
        if rows is None:
            break
        distances, by_t = _distances(rows), rows.bound / t
        if not np.isfinite(mu):
            mu = 0.1 * t / distances.size
            multipliers = mu / distances
        np.clip(multipliers, mu / distances / _CENTRAL, mu / distances * _CENTRAL, out=multipliers)
        weights = multipliers / distances
        curvature = _curvature(rows, x, weights, multipliers, mu / x[0] ** 2)
        pulled = _pulled(rows, mu / distances)
        pulled[0] += mu / x[0]
        border = speed.gradient(_pulled(rows, weights * by_t))
        solve = _factored(speed, curvature)
        if solve is None:
            break
        steps = solve(np.stack([speed.gradient(pulled), border], axis=1))
        corner, right = float(np.sum(weights * by_t**2)), float(np.sum(mu / distances * by_t)) - 1.0
        t_step = float(right - border @ steps[:, 0]) / float(corner - border @ steps[:, 1])
        step = steps[:, 0] - t_step * steps[:, 1]
        x_change = speed.at_nodes(step)
        change = _distance_changes(rows, x_change) + t_step * by_t
        dual = mu / distances - multipliers - weights * change
        primal = _longest(change / distances, x_change[0] / x[0])
        for _ in range(_MOST_HALVINGS):
            constraints.allow(t + primal * t_step)
            if _is_inside(speed, constraints, c + primal * step, heated=False):
                break
            primal *= 0.6
        else:
            break
        for least, share in _REDUCTIONS:
            if primal > least:
                mu *= share
                break
        multipliers += _longest(dual / multipliers) * dual
        t, c = t + primal * t_step, c + primal * step
    constraints.allow(1.0)
    return best


def minimise(
    speed: SquaredSpeed,
    constraints: Constraints,
    c: Array,
    *,
    gap: tuple[float, float] = (1.0, 1e-4),
    multipliers: tuple[Array, Array] | None = None,
    progress: Callable[[float], Any] = lambda fraction: None,
) -> InteriorPointSolution:
    """Compute the coefficients of the fastest motion.

    Args:
        speed, constraints: the problem.
        c: coefficients of a motion within all limits.
        gap: relative distance from the shortest duration to begin with, and to end with.
        multipliers: of a similar problem, to begin with in place of those of this distance.
        progress: called with the fraction that is done.

    Raises:
        TrajectoryError: c is not within the limits.
    """
    x = speed.at_nodes(c)
    rows = constraints.rows(x, changes=True)
    point = None if rows is None else _point(constraints, c, x, rows)
    if point is None or rows is None or not point.inside:
        raise TrajectoryError("the motion to start from does not meet the limits")
    unit = 1.0 / np.sum(speed.steps / np.sqrt(x[0]))
    count = point.rows.size + point.heat[0].size
    mu = gap[0] / count
    of_rows, of_heat = (mu / point.rows, mu / point.heat[0])
    if multipliers is not None:
        of_rows, of_heat = (x.copy() for x in multipliers)
        mu = _centred(of_rows, of_heat, point)
    first = mu
    durations: list[float] = []
    for steps in range(_MOST_STEPS):
        progress(min(max(np.log(mu / first) / np.log(gap[1] / (first * count)), 0.0), 1.0))
        x0 = point.x[0]
        durations.append(float(np.sum(speed.steps / np.sqrt(x0))))
        if steps >= _PATIENCE and durations[-1] > durations[-1 - _PATIENCE] * (1 - 0.1 * gap[1]):
            break  # where limits jump, the equations are met nowhere
        heat, heat_change, heat_curvature = point.heat
        gradient = speed.gradient(-0.5 * unit * speed.steps[np.newaxis] * x0**-1.5)
        by_c = np.array([speed.gradient(heat_change[:, i]) for i in range(len(heat))]).reshape(-1, speed.count).T
        residual = gradient - speed.gradient(_pulled(rows, of_rows)) - by_c @ of_heat
        error = np.sum(np.abs(residual * point.c)[speed.free])
        if mu * count <= gap[1] and error <= _RESIDUAL * gap[1]:
            return InteriorPointSolution(point.c, steps, (of_rows, of_heat))
        # Durations in the limits of RMS efforts cancel against that which is minimised.
        left = max(unit - float(np.sum(of_heat)), 0.0)
        weights = of_rows / point.rows
        curvature = _curvature(rows, point.x, weights, of_rows, 0.25 * left * speed.steps * x0**-2.5)
        if len(heat):
            curvature -= of_heat @ heat_curvature
        solve = _factored(speed, curvature)
        if solve is None:
            break
        target, heat_target = np.zeros(()), np.zeros(())
        share = 0.0
        for last in (False, True):
            pull = speed.gradient(_pulled(rows, target / point.rows)) if last else 0.0
            found = solve(np.column_stack([pull - gradient + by_c @ (heat_target / heat), by_c]))
            # Woodbury's formula: each of these limits depends on all coefficients.
            small = np.diag(heat / of_heat) + by_c.T @ found[:, 1:]
            step = found[:, 0] - found[:, 1:] @ np.linalg.solve(small, by_c.T @ found[:, 0])
            x_change = speed.at_nodes(step)
            change, heat_step = _distance_changes(rows, x_change), by_c.T @ step
            dual = target / point.rows - of_rows - weights * change
            heat_dual = heat_target / heat - of_heat - of_heat / heat * heat_step
            primal = _longest(change / point.rows, x_change[0] / x0, heat_step / heat)
            longest = _longest(dual / of_rows, heat_dual / of_heat)
            if not last:
                after = np.sum((point.rows + primal * change) * (of_rows + longest * dual))
                after += np.sum((heat + primal * heat_step) * (of_heat + longest * heat_dual))
                share = min(float(after / (mu * count)) ** 3, 1.0)
                share = max(share, 0.01, min(SH, PACE*error/(count*mu)))
                target = share * mu - change * dual
                np.clip(target, 0.1 * share * mu, 10 * share * mu, out=target)
                heat_target = np.clip(share * mu - heat_step * heat_dual, 0.1*share*mu, 10*share*mu)
        for _ in range(_MOST_HALVINGS):
            c_next = point.c + primal * step
            x_next = speed.at_nodes(c_next)
            following = constraints.rows(x_next, changes=True) if np.min(x_next[0]) > 0 else None
            if following is not None:
                tried = _point(constraints, c_next, x_next, following)
                pairs = (tried.rows, point.rows), (tried.heat[0], heat)
                if all(np.all(after >= _LEFT * before) for after, before in pairs):
                    break
            primal *= 0.6
        else:
            break  # rounding, or limits that jump; the motion so far meets them
        if DEBUG: print(steps, "gap %.1e err %.1e share %.2g primal %.3f dual %.3f"%(mu*count, error, share, primal, longest))
        point, rows = tried, following
        of_rows += longest * dual
        of_heat += longest * heat_dual
        mu = _centred(of_rows, of_heat, point)
    return InteriorPointSolution(point.c, steps, (of_rows, of_heat))
DEBUG=0
SH=1.0; PACE=0.01; LESS=0.001


def _centred(of_rows: Array, of_heat: Array, point: _Point) -> float:
    """Mean of multipliers times distances, after products far from it are brought closer."""
    pairs = (of_rows, point.rows), (of_heat, point.heat[0])
    mu = sum(float(np.sum(each * distances)) for each, distances in pairs) / sum(each.size for each, _ in pairs)
    for each, distances in pairs:
        np.clip(each, mu / distances / _CENTRAL, mu / distances * _CENTRAL, out=each)
    return mu


def _is_inside(speed: SquaredSpeed, constraints: Constraints, c: Array, *, heated: bool = True) -> bool:
    x = speed.at_nodes(c)
    if not np.all(np.isfinite(x)) or np.min(x[0]) <= 0:
        return False
    rows = constraints.rows(x, changes=False)
    if rows is None:
        return False
    return _point(constraints, c, x, rows).inside if heated else bool(np.all(_distances(rows) > 0))


def _point(constraints: Constraints, c: Array, x: Array, rows: ConstraintRows) -> _Point:
    return _Point(c, x, _distances(rows), constraints.heat(x, rows))


def _distances(rows: ConstraintRows) -> Array:
    """Distances from both sides of the limits (2, R, M)."""
    return np.stack([rows.bound - rows.value, rows.bound + rows.value])


def _pulled(rows: ConstraintRows, multipliers: Array) -> Array:
    """Σ multiplier (2, R, M) · derivative of the distance by x and its first derivatives (K, M)."""
    pull: Array = np.sum((multipliers[1] - multipliers[0]) * rows.change, axis=1)
    if rows.bound_change is not None:
        pull[0] += np.sum((multipliers[0] + multipliers[1]) * rows.bound_change, axis=0)
    return pull


def _distance_changes(rows: ConstraintRows, change: Array) -> Array:
    """Changes (2, R, M) of the distances with those of x and its derivatives (4, M)."""
    value = np.sum(rows.change * change[: len(rows.change), np.newaxis], axis=0)
    bound = 0.0 if rows.bound_change is None else rows.bound_change * change[0]
    return np.stack([bound - value, bound + value])


def _curvature(rows: ConstraintRows, x: Array, weights: Array, multipliers: Array, own: Array) -> Array:
    """Matrix of Newton's equations at the nodes, by the first P of :data:`.PAIRS` (P, M).

    Args:
        rows, x: at the point.
        weights: multipliers over distances (2, R, M).
        multipliers: of the distances (2, R, M).
        own: curvature of what is minimised by x (M,).
    """
    total, count = weights[0] + weights[1], len(rows.change)
    weighted = total * rows.change
    pairs = PAIRS[: count * (count + 1) // 2]
    K = np.array([np.sum(weighted[k] * rows.change[m], axis=0) for k, m in pairs])
    if rows.bound_change is not None:
        mixed = np.sum((weights[1] - weights[0]) * rows.bound_change * rows.change, axis=1)
        K[0] += mixed[0] + np.sum(total * rows.bound_change**2, axis=0)
        for p, (k, m) in enumerate(pairs):
            if m == 0:
                K[p] += mixed[k]
        # The second derivative of 1/√x is -1.5/x times the first.
        own = np.maximum(own + 1.5 / x[0] * np.sum((multipliers[0] + multipliers[1]) * rows.bound_change, axis=0), 0.0)
    K[0] += own
    return K


def _factored(speed: SquaredSpeed, curvature: Array) -> Callable[[Array], Array] | None:
    """Solver for changes of the coefficients for right sides (count, …), zero for fixed ones; None if indefinite."""
    # Its import takes longer than that of this library.
    from scipy.linalg.lapack import dpbtrf, dpbtrs

    # Coefficients near the ends differ from others by orders of magnitude.
    bands = speed.bands(curvature)[:, speed.free]
    bands[0] *= 1 + 1e-12
    scale = 1 / np.sqrt(bands[0])
    for k in range(len(bands)):
        bands[k, : len(scale) - k] *= scale[: len(scale) - k] * scale[k:]
    factor, refused = dpbtrf(bands, lower=1)
    if refused:
        return None

    def solve(right: Array) -> Array:
        step = np.zeros_like(right)
        step[speed.free] = (dpbtrs(factor, (right[speed.free].T * scale).T, lower=1)[0].T * scale).T
        return step

    return solve


def _longest(*relative: Array) -> float:
    """Longest step, at most 1, that takes no distance further down than to a share of itself."""
    worst = min((float(np.min(x)) for x in relative if x.size), default=0.0)
    return min(1.0, _NEAREST / -worst) if worst < 0 else 1.0
