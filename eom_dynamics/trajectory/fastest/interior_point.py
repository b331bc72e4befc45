# SPDX-License-Identifier: Apache-2.0
"""Interior-point method for the fastest motion along a path.

Minimise T(c) = ∫ dσ/√x over the coefficients c of x = (dσ/dt)² > 0, subject to s(c) >= 0 for the distances s from all
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

_RESIDUAL = 10.0  # residual of the equations at which to stop, relative to the distance from the shortest duration
_NEAREST = 0.95  # share of the way to the nearest limit that a step may take
_LEFT = 1e-3  # share of a distance that a step must leave
_CENTRAL = 100.0  # λ s stays within this factor of its mean μ
_AIMED = 10.0  # factor of μ within which a step aims
_LEAST, _PACE = 0.01, 0.3  # least share of μ that a step aims at, and of the residual for all distances together
_REDUCTIONS = ((0.9, 0.2), (0.4, 0.5))  # shares of μ after long and medium steps in the search within limits
_PATIENCE = 10  # steps in which the duration must decrease
_ENTERED, _WIDER = 0.97, 1.2  # share of limits from which on they are met, and their first widening over the largest
_MOST_STEPS = 80
_MOST_HALVINGS = 40
_INSIDE = 0.5  # share of the largest squared speed at which to start
_STEP_DOWN = 1e-3  # least step down in the search for the largest squared speed


class InteriorPointSolution(NamedTuple):
    """Coefficients c (count,), number of Newton steps, and multipliers of the distances from limits (D,)."""

    c: Array
    steps: int
    multipliers: Array


class _Point:
    """Coefficients c (count,), and distances (D,) from limits there with their derivatives.

    The first ``sides`` of them, 2 R M, are those from both sides of the rows, the others those of RMS efforts.
    """

    def __init__(self, speed: SquaredSpeed, constraints: Constraints, c: Array, rows: ConstraintRows, x: Array) -> None:
        self._speed, self.c, self.x, self.rows = speed, c, x, rows
        heat, by_x, self.curvature = constraints.heat(x, rows)
        self.sides = 2 * rows.value.size
        self.distances = np.empty(self.sides + len(heat))
        lower, upper = self.both(self.distances)
        np.subtract(rows.bound, rows.value, out=lower)
        np.add(rows.bound, rows.value, out=upper)
        self.distances[self.sides :] = heat
        self.by_c = np.array([speed.gradient(by_x[:, i]) for i in range(len(heat))]).reshape(-1, speed.count)

    @classmethod
    def at(cls, speed: SquaredSpeed, constraints: Constraints, c: Array, *, changes: bool = True) -> _Point | None:
        """The point of coefficients; None if x is not positive, or springs or motors cannot realise it."""
        x = speed.at_nodes(c)
        rows = constraints.rows(x, changes=changes) if np.isfinite(x).all() and x[0].min() > 0 else None
        return None if rows is None else cls(speed, constraints, c, rows, x)

    def both(self, values: Array) -> Array:
        """Those of numbers for distances (D,) that belong to the rows (2, R, M)."""
        return values[: self.sides].reshape(2, *self.rows.value.shape)

    def pulled(self, multipliers: Array) -> Array:
        """Σ multiplier · derivative of the distance by the coefficients (count,), for multipliers (D,)."""
        lower, upper = self.both(multipliers)
        pull = np.einsum("rm,krm->km", upper - lower, self.rows.change)
        if self.rows.bound_change is not None:
            pull[0] += ((lower + upper) * self.rows.bound_change).sum(axis=0)
        gradient = self._speed.gradient(pull)
        return gradient + multipliers[self.sides :] @ self.by_c if len(self.by_c) else gradient

    def changes(self, step: Array) -> tuple[Array, Array]:
        """Changes of the distances (D,) and of x (M,) with those of the coefficients (count,)."""
        change, distances = self._speed.at_nodes(step), np.empty_like(self.distances)
        lower, upper = self.both(distances)
        value = np.einsum("krm,km->rm", self.rows.change, change[: len(self.rows.change)])
        bound = 0.0 if self.rows.bound_change is None else self.rows.bound_change * change[0]
        np.subtract(bound, value, out=lower)
        np.add(bound, value, out=upper)
        distances[self.sides :] = self.by_c @ step
        return distances, change[0]

    def newton(self, weights: Array, multipliers: Array, curved: Array) -> Callable[[Array], Array] | None:
        """Solver of Newton's equations for right sides (count,); None if the matrix is indefinite.

        Weights are multipliers over distances (D,); ``curved`` is the curvature of what is minimised by x (M,).
        """
        lower, upper = self.both(weights)
        total, change = lower + upper, self.rows.change
        weighted = total * change
        pairs = PAIRS[: len(change) * (len(change) + 1) // 2]
        K = np.array([np.einsum("rm,rm->m", weighted[k], change[m]) for k, m in pairs])
        if (bound := self.rows.bound_change) is not None:
            mixed = np.einsum("rm,krm->km", (upper - lower) * bound, change)
            K[0] += mixed[0] + (total * bound**2).sum(axis=0)
            for p, (k, m) in enumerate(pairs):
                if m == 0:
                    K[p] += mixed[k]
            # The second derivative of 1/√x is -1.5/x times the first.
            curved = np.maximum(
                curved + 1.5 / self.x[0] * (self.both(multipliers).sum(axis=0) * bound).sum(axis=0), 0.0
            )
        K[0] += curved
        if not len(self.by_c):
            return _factored(self._speed, K)
        K -= multipliers[self.sides :] @ self.curvature
        solve, by_c = _factored(self._speed, K), self.by_c
        if solve is None:
            return None
        # Woodbury's formula: each limit of an RMS effort depends on all coefficients.
        beside = solve(by_c.T)
        W = np.diag(weights[self.sides :])
        small = np.linalg.solve(np.eye(len(W)) + W @ by_c @ beside, W @ by_c)
        return lambda right: (x := solve(right)) - beside @ (small @ x)


def feasible(speed: SquaredSpeed, constraints: Constraints, c: Array, inside: float = _INSIDE) -> Array | None:
    """Coefficients of a positive x, scaled to a share of the largest scale that meets all limits; None if none does."""
    largest, less = constraints.largest_scale(speed.at_nodes(c)[0]), _STEP_DOWN
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
    """Change the free coefficients of a positive x until limits are met, or violated by the least factor.

    Minimises the factor t of limits t |limit| that are met, with a method like that of :func:`minimise`. Curvature is
    neglected altogether, and so are limits of RMS efforts.
    """
    constraints.allow(1.0)
    used = constraints.used(speed.at_nodes(c))
    if used is None:
        return c
    t, best, mu, worst = _WIDER * float(np.max(used)), c, np.inf, [np.inf]
    for _ in range(_MOST_STEPS):
        constraints.allow(1.0)
        used = constraints.used(speed.at_nodes(c))
        if used is None:
            break
        if np.max(used) < np.min(worst):
            best = c
        worst.append(float(np.max(used)))
        if worst[-1] < _ENTERED or (len(worst) > _PATIENCE and worst[-1] > 0.999 * worst[-_PATIENCE]):
            break
        constraints.allow(t)
        point = _Point.at(speed, constraints, c)
        if point is None:
            break
        by_t = np.zeros_like(point.distances)
        point.both(by_t)[:] = point.rows.bound / t
        distances = np.where(by_t > 0, point.distances, np.inf)
        if not np.isfinite(mu):
            mu = 0.1 * t / point.sides
            multipliers = mu / distances
        np.clip(multipliers, mu / distances / _AIMED, mu / distances * _AIMED, out=multipliers)
        weights, x = multipliers / distances, point.x[0]
        solve = point.newton(weights, multipliers, mu / x**2)
        if solve is None:
            break
        pull = point.pulled(mu / distances) + speed.gradient(mu / x[np.newaxis])
        border = point.pulled(weights * by_t)
        ahead, beside = solve(pull), solve(border)
        corner, right = float(np.sum(weights * by_t**2)), float(np.sum(mu / distances * by_t)) - 1.0
        t_step = float(right - border @ ahead) / float(corner - border @ beside)
        step = ahead - t_step * beside
        change, x_change = point.changes(step)
        change += t_step * by_t
        dual = mu / distances - multipliers - weights * change
        primal = _longest(change / distances, x_change / x)
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
        multipliers += _longest(dual[: point.sides] / multipliers[: point.sides]) * dual
        t, c = t + primal * t_step, c + primal * step
    constraints.allow(1.0)
    return best


def minimise(
    speed: SquaredSpeed,
    constraints: Constraints,
    c: Array,
    *,
    gap: tuple[float, float] = (1.0, 1e-4),
    multipliers: Array | None = None,
    progress: Callable[[float], Any] = lambda fraction: None,
) -> InteriorPointSolution:
    """Compute the coefficients of the fastest motion, from those of a motion within all limits.

    The gap is the relative distance from the shortest duration to begin with, and to end with; multipliers of a similar
    problem stand for those of this distance. Raises TrajectoryError if c is not within the limits.
    """
    start = _Point.at(speed, constraints, c)
    if start is None or not start.distances.min() > 0:
        raise TrajectoryError("the motion to start from does not meet the limits")
    point = start
    unit, count = 1.0 / np.sum(speed.steps / np.sqrt(point.x[0])), len(point.distances)
    last = gap[1] / count
    products, mu = _centred(np.full(count, gap[0] / count) if multipliers is None else multipliers * point.distances)
    first, durations = max(mu, 2 * last), list[float]()
    for steps in range(_MOST_STEPS):
        x, distances = point.x[0], point.distances
        progress(min(max(np.log(mu / first) / np.log(last / first), 0.0), 1.0))
        pace = speed.steps / np.sqrt(x)
        durations.append(float(pace.sum()))
        multipliers = products / distances
        gradient = speed.gradient((-0.5 * unit * pace / x)[np.newaxis])
        residual = gradient - point.pulled(multipliers)
        error = float(np.sum(np.abs(residual * point.c)[speed.free]))
        if mu <= last and error <= _RESIDUAL * gap[1]:
            best = point, products
            break
        if len(point.by_c) and durations[-1] > durations[max(steps - 1, 0)]:
            durations[-1] = durations[-2]  # corrected steps may go back
        else:
            best = point, products
        if steps >= _PATIENCE and durations[-1] > durations[-1 - _PATIENCE] * (1 - 0.1 * gap[1]):
            break  # where limits jump, the equations are met nowhere
        # Durations in the limits of RMS efforts cancel against that which is minimised, whose curvature is that by the
        # logarithm of x: it is more nearly quadratic.
        left = max(unit - float(multipliers[point.sides :].sum()), 0.0)
        solve = point.newton(multipliers / distances, multipliers, 0.25 * left * pace / x**2)
        if solve is None:
            break
        # S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optimization 2, 1992:
        # changes relative to distances and multipliers, first for μ = 0, then for a share of it.
        change, x_change = point.changes(solve(-gradient))
        change /= distances
        ahead, dual = _longest(change, x_change / x), min(1.0, _NEAREST / max(1 + float(change.max()), _NEAREST))
        bent = products * change
        left_over = (1 - dual) * mu * count + (ahead * (1 - dual) - dual) * bent.sum() - ahead * dual * (bent @ change)
        aim = min(max(mu * max((left_over / (mu * count)) ** 3, _LEAST), _PACE * error / count), mu)
        target = np.clip(aim + bent * (1 + change), aim / _AIMED, aim * _AIMED)
        followed = _followed(speed, constraints, point, solve, gradient, products, target)
        if followed is None:
            break  # rounding, or limits that jump; the motion so far meets them
        following, relative = followed
        multipliers *= 1 + _longest(relative) * relative
        point = following
        products, mu = _centred(multipliers * point.distances)
    if not len(point.by_c):
        best = point, products
    return InteriorPointSolution(best[0].c, steps, best[1] / best[0].distances)


def _followed(
    speed: SquaredSpeed,
    constraints: Constraints,
    point: _Point,
    solve: Callable[[Array], Array],
    gradient: Array,
    products: Array,
    target: Array,
) -> tuple[_Point, Array] | None:
    """The next point on the way to products of multipliers and distances, and relative changes of the multipliers.

    None if no step leaves enough of the distances.
    """
    x, distances, multipliers = point.x[0], point.distances, products / point.distances
    pull, corrected = target / distances, np.zeros_like(distances)
    step = solve(point.pulled(pull) - gradient)
    change, x_change = point.changes(step)
    change /= distances
    ahead, relative = _longest(change, x_change / x), target / products - 1 - change
    usual = step, ahead, relative
    for trial in range(_MOST_HALVINGS):
        # Derivatives of limits that are not affine take much longer than their values.
        following = _Point.at(speed, constraints, point.c + ahead * step, changes=constraints.affine)
        if following is not None and (following.distances >= _LEFT * distances).all():
            if not constraints.affine:
                following = _Point.at(speed, constraints, following.c)
            return None if following is None else (following, relative)
        if trial == 0 and following is not None and len(point.by_c):
            # A second-order correction: RMS efforts are the more curved, the closer they are to their limits.
            corrected[point.sides :] = (following.distances / distances - 1 - ahead * change)[point.sides :]
            step = solve(point.pulled(pull - multipliers * corrected) - gradient)
            change, x_change = point.changes(step)
            change = change / distances + corrected
            ahead, relative = _longest(change, x_change / x), target / products - 1 - change
            continue
        if step is not usual[0]:
            step, ahead, relative = usual
        ahead *= 0.6
    return None


def _centred(products: Array) -> tuple[Array, float]:
    """Multipliers times distances (D,) brought closer to their mean where they are far from it, and this mean."""
    mu = float(products.mean())
    return np.clip(products, mu / _CENTRAL, mu * _CENTRAL), mu


def _is_inside(speed: SquaredSpeed, constraints: Constraints, c: Array, *, heated: bool = True) -> bool:
    point = _Point.at(speed, constraints, c, changes=False)
    return point is not None and bool(point.distances[: None if heated else point.sides].min() > 0)


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
    worst = min(float(x.min()) for x in relative)
    return min(1.0, _NEAREST / -worst) if worst < 0 else 1.0
