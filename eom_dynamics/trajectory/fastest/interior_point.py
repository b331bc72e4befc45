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
from .speed import SquaredSpeed

# Residual of the equations at which to stop, relative to the distance from the shortest duration.
_RESIDUAL = 10.0

# Share of the way to the nearest limit that a step may take, and of a distance that it must leave.
_NEAREST = 0.95
_LEFT = 1e-3

# λ s stays within this factor of μ.
_CENTRAL = 10.0

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
    """

    c: Array
    steps: int


class _Point(NamedTuple):
    """Coefficients, x … x''' at the nodes, and distances from limits.

    Attributes:
        rows: of rows (2, M, R).
        ends: of x itself (2, M).
        heat: of RMS efforts (H,), their derivatives and curvature, see :meth:`.Constraints.heat`.
    """

    c: Array
    x: Array
    rows: Array
    ends: Array
    heat: tuple[Array, Array, Array]

    @property
    def inside(self) -> bool:
        return bool(np.min(self.ends) > 0 and np.all(self.rows > 0) and np.all(self.heat[0] > 0))


def feasible(speed: SquaredSpeed, constraints: Constraints, c: Array, inside: float = _INSIDE) -> Array | None:
    """Scale coefficients c uniformly so that all limits are met; None if no speed does.

    Args:
        speed, constraints: the problem.
        c: coefficients of a positive x.
        inside: share of the largest possible scale to return.
    """
    factor, found = 1.0, None
    constraints.set_reference(np.ones(len(speed.nodes)))
    while factor > 1e-60:
        if _is_inside(speed, constraints, c * factor):
            found = factor
            break
        factor *= 0.1
    if found is None:
        return None
    largest = found
    while largest < 1e60 and _is_inside(speed, constraints, c * largest * 2):
        largest *= 2
    for step in (1.4, 1.2, 1.1):
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
        start = x[0]
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
        point = _point(speed, constraints, c, x, start, rows)
        by_t = np.stack([rows.bound, rows.bound]) / t, np.stack([2 * x[0] / (constraints.largest * t), 0 * start])
        if not np.isfinite(mu):
            mu = 0.1 * t / (point.rows.size + point.ends.size)
            of_rows, of_ends = mu / point.rows, mu / point.ends
        for multipliers, distances in ((of_rows, point.rows), (of_ends, point.ends)):
            np.clip(multipliers, mu / distances / _CENTRAL, mu / distances * _CENTRAL, out=multipliers)
        weights = of_rows / point.rows, of_ends / point.ends
        curvature = _curvature(speed, constraints, 0.0, start, point, rows, of_rows, of_ends)
        pull = speed.gradient(_pulled(constraints, start, rows, mu / point.rows, mu / point.ends))
        border = speed.gradient(_pulled(constraints, start, rows, weights[0] * by_t[0], weights[1] * by_t[1]))
        steps = _solved(speed, curvature, np.stack([pull, border], axis=1))
        if steps is None:
            break
        corner = sum(float(np.sum(w * by**2)) for w, by in zip(weights, by_t, strict=True))
        right = sum(float(np.sum(mu / d * by)) for d, by in zip((point.rows, point.ends), by_t, strict=True)) - 1.0
        t_step = float(right - border @ steps[:, 0]) / float(corner - border @ steps[:, 1])
        step = steps[:, 0] - t_step * steps[:, 1]
        row_change, end_change = _distance_changes(constraints, start, rows, speed.at_nodes(step))
        row_change, end_change = row_change + t_step * by_t[0], end_change + t_step * by_t[1]
        row_dual = mu / point.rows - of_rows - of_rows / point.rows * row_change
        end_dual = mu / point.ends - of_ends - of_ends / point.ends * end_change
        primal = _longest((row_change / point.rows, end_change / point.ends))
        dual = _longest((row_dual / of_rows, end_dual / of_ends))
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
        t, c = t + primal * t_step, c + primal * step
        of_rows += dual * row_dual
        of_ends += dual * end_dual
    constraints.allow(1.0)
    return best


def minimise(
    speed: SquaredSpeed,
    constraints: Constraints,
    c: Array,
    *,
    gap: tuple[float, float] = (1.0, 1e-4),
    progress: Callable[[float], Any] = lambda fraction: None,
) -> InteriorPointSolution:
    """Compute the coefficients of the fastest motion.

    Args:
        speed, constraints: the problem.
        c: coefficients of a motion within all limits.
        gap: relative distance from the shortest duration to begin with, and to end with.
        progress: called with the fraction that is done.

    Raises:
        TrajectoryError: c is not within the limits.
    """
    x = speed.at_nodes(c)
    start = x[0]
    constraints.set_reference(start)
    rows = constraints.rows(x, changes=True)
    point = None if rows is None else _point(speed, constraints, c, x, start, rows)
    if point is None or rows is None or not point.inside:
        raise TrajectoryError("the motion to start from does not meet the limits")
    unit = 1.0 / np.sum(speed.steps / np.sqrt(start))
    count = point.rows.size + point.ends.size + point.heat[0].size
    mu = gap[0] / count
    of_rows, of_ends, of_heat = mu / point.rows, mu / point.ends, mu / point.heat[0]
    durations: list[float] = []
    for steps in range(_MOST_STEPS):
        progress(np.log(mu * count / gap[0]) / np.log(gap[1] / gap[0]))
        x0 = point.x[0]
        durations.append(float(np.sum(speed.steps / np.sqrt(x0))))
        if steps >= _PATIENCE and durations[-1] > durations[-1 - _PATIENCE] * (1 - 0.1 * gap[1]):
            break  # where limits jump, the equations are met nowhere
        by_x = -0.5 * unit * speed.steps * x0**-1.5
        heat, heat_change, heat_curvature = point.heat
        for multipliers, distances in ((of_rows, point.rows), (of_ends, point.ends), (of_heat, heat)):
            np.clip(multipliers, mu / distances / _CENTRAL, mu / distances * _CENTRAL, out=multipliers)
        gradient = speed.gradient(_first(by_x))
        by_c = np.array([speed.gradient(each) for each in np.moveaxis(heat_change, 2, 0)]).reshape(-1, speed.count).T
        residual = gradient - speed.gradient(_pulled(constraints, start, rows, of_rows, of_ends)) - by_c @ of_heat
        error = np.sum(np.abs(residual * point.c)[speed.free])
        if mu * count <= gap[1] and error <= _RESIDUAL * gap[1]:
            return InteriorPointSolution(point.c, steps)
        # Durations in the limits of RMS efforts cancel against that which is minimised.
        left = max(unit - float(np.sum(of_heat)), 0.0)
        curvature = _curvature(speed, constraints, left, start, point, rows, of_rows, of_ends)
        curvature -= heat_curvature @ of_heat
        pull = speed.gradient(_pulled(constraints, start, rows, mu / point.rows, mu / point.ends)) + by_c @ (mu / heat)
        found = _solved(speed, curvature, np.column_stack([pull - gradient, by_c]))
        if found is None:
            break
        # Woodbury's formula: each of these limits depends on all coefficients.
        small = np.diag(heat / of_heat) + by_c.T @ found[:, 1:]
        step = found[:, 0] - found[:, 1:] @ np.linalg.solve(small, by_c.T @ found[:, 0])
        change = speed.at_nodes(step)
        row_change, end_change = _distance_changes(constraints, start, rows, change)
        row_dual = mu / point.rows - of_rows - of_rows / point.rows * row_change
        end_dual = mu / point.ends - of_ends - of_ends / point.ends * end_change
        heat_step = by_c.T @ step
        heat_dual = mu / heat - of_heat - of_heat / heat * heat_step
        primal = _longest((row_change / point.rows, end_change / point.ends, heat_step / heat))
        dual = _longest((row_dual / of_rows, end_dual / of_ends, heat_dual / of_heat))
        for _ in range(_MOST_HALVINGS):
            c_next = point.c + primal * step
            x_next = speed.at_nodes(c_next)
            following = constraints.rows(x_next, changes=True) if np.min(x_next[0]) > 0 else None
            if following is not None:
                tried = _point(speed, constraints, c_next, x_next, start, following)
                pairs = (tried.rows, point.rows), (tried.ends, point.ends), (tried.heat[0], heat)
                if all(np.all(after >= _LEFT * before) for after, before in pairs):
                    break
            primal *= 0.6
        else:
            break  # rounding, or limits that jump; the motion so far meets them
        for least, share in _REDUCTIONS:
            if primal > least:
                mu = max(share * mu, min(mu, _PACE * error / count))
                break
        point, rows = tried, following
        of_rows += dual * row_dual
        of_ends += dual * end_dual
        of_heat += dual * heat_dual
    return InteriorPointSolution(point.c, steps)


def _is_inside(speed: SquaredSpeed, constraints: Constraints, c: Array, *, heated: bool = True) -> bool:
    x = speed.at_nodes(c)
    if not np.all(np.isfinite(x)) or np.min(x[0]) <= 0:
        return False
    rows = constraints.rows(x, changes=False)
    if rows is None:
        return False
    point = _point(speed, constraints, c, x, x[0], rows)
    return point.inside if heated else bool(np.min(point.ends) > 0 and np.all(point.rows > 0))


def _point(
    speed: SquaredSpeed, constraints: Constraints, c: Array, x: Array, start: Array, rows: ConstraintRows
) -> _Point:
    ends = np.stack([1 - x[0] / constraints.largest, x[0] / start])
    both = np.stack([rows.bound - rows.value, rows.bound + rows.value])
    return _Point(c, x, both, ends, constraints.heat(x, rows))


def _first(by_x: Array) -> Array:
    """Derivatives by x … x''' (4, M) of what depends on x alone."""
    result = np.zeros((4, len(by_x)))
    result[0] = by_x
    return result


def _pulled(constraints: Constraints, start: Array, rows: ConstraintRows, of_rows: Array, of_ends: Array) -> Array:
    """Σ multiplier · derivative of the distance by x … x''' (4, M)."""
    pull = np.einsum("mr,kmr->km", of_rows[1] - of_rows[0], rows.change)
    pull[0] += np.sum((of_rows[0] + of_rows[1]) * rows.bound_change, axis=1)
    pull[0] += of_ends[1] / start - of_ends[0] / constraints.largest
    return pull


def _distance_changes(
    constraints: Constraints, start: Array, rows: ConstraintRows, change: Array
) -> tuple[Array, Array]:
    """Changes of the distances with those of x … x''' (4, M)."""
    value = np.einsum("kmr,km->mr", rows.change, change)
    bound = rows.bound_change * change[0][:, np.newaxis]
    return np.stack([bound - value, bound + value]), np.stack([-change[0] / constraints.largest, change[0] / start])


def _curvature(
    speed: SquaredSpeed,
    constraints: Constraints,
    unit: float,
    start: Array,
    point: _Point,
    rows: ConstraintRows,
    of_rows: Array,
    of_ends: Array,
) -> Array:
    """Matrix of Newton's equations by x … x''' at the nodes (M, 4, 4)."""
    x0 = point.x[0]
    weights = of_rows / point.rows
    total, change = weights[0] + weights[1], rows.change
    K: Array = np.matmul((total * change).transpose(1, 0, 2), change.transpose(1, 2, 0))
    mixed = np.einsum("mr,kmr->mk", (weights[1] - weights[0]) * rows.bound_change, change)
    K[:, 0, :] += mixed
    K[:, :, 0] += mixed
    own = 0.75 * unit * speed.steps * x0**-2.5
    # The second derivative of 1/√x is -1.5/x times the first.
    of_bounds = -1.5 / x0 * np.sum((of_rows[0] + of_rows[1]) * rows.bound_change, axis=1)
    K[:, 0, 0] += np.maximum(own - of_bounds, 0.0) + np.sum(total * rows.bound_change**2, axis=1)
    K[:, 0, 0] += of_ends[0] / point.ends[0] / constraints.largest**2 + of_ends[1] / point.ends[1] / start**2
    return K


def _solved(speed: SquaredSpeed, curvature: Array, right: Array) -> Array | None:
    """Changes of the coefficients for right sides (count, …), zero for fixed ones; None if the matrix is indefinite."""
    # Its import takes longer than that of this library.
    from scipy.linalg.lapack import dpbsv

    # Coefficients near the ends differ from others by orders of magnitude.
    bands = speed.bands(curvature)[:, speed.free]
    bands[0] *= 1 + 1e-12
    scale = 1 / np.sqrt(bands[0])
    for k in range(len(bands)):
        bands[k, : len(scale) - k] *= scale[: len(scale) - k] * scale[k:]
    _, found, refused = dpbsv(bands, (right[speed.free].T * scale).T, lower=1)
    if refused:
        return None
    step = np.zeros_like(right)
    step[speed.free] = (found.T * scale).T
    return step


def _longest(relative: tuple[Array, ...]) -> float:
    """Longest step, at most 1, that takes no distance further down than to a share of itself."""
    worst = min((float(np.min(x)) for x in relative if x.size), default=0.0)
    return min(1.0, _NEAREST / -worst) if worst < 0 else 1.0
