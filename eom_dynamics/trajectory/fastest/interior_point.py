# SPDX-License-Identifier: Apache-2.0
"""Interior-point method for the fastest motion along a path.

Minimize T(c) = ∫ dσ/√x over the coefficients c of x = (dσ/dt)² > 0, subject to s(c) >= 0 for the distances s from all
limits at all nodes. Newton's method on the primal-dual equations

    ∇T - Jᵀ λ = 0,    λ s = μ,

for μ that decreases to zero (S. Boyd and L. Vandenberghe, Convex Optimization, section 11.7). All iterates meet all
limits. The matrix ∇²T + Jᵀ (λ/s) J has the bandwidth of the spline. Curvature of limits is neglected, except for
limit/√x (see :mod:`.constraints`), which cancels against the curvature of T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arguments import all_finite
from ...arrays import Array
from ...exceptions import TrajectoryError
from . import SETTINGS
from .constraints import ConstraintRows, Constraints
from .path import PAIRS, SquaredSpeed


class _Point:
    """Coefficients c (count,), and distances (D,) from both sides of the limits there, D = 2 R M."""

    def __init__(self, speed: SquaredSpeed, c: Array, rows: ConstraintRows, x: Array) -> None:
        self._speed, self.c, self.x, self.rows = speed, c, x, rows
        self.distances = np.empty(2 * rows.value.size)
        lower, upper = self.both(self.distances)
        np.subtract(rows.bound, rows.value, out=lower)
        np.add(rows.bound, rows.value, out=upper)

    @classmethod
    def at(cls, speed: SquaredSpeed, constraints: Constraints, c: Array, *, changes: bool = True) -> _Point | None:
        """The point of coefficients; None if x is not positive, or springs or motors cannot realize it."""
        x = speed.at_nodes(c)
        rows = constraints.rows(x, changes=changes) if all_finite(x) and x[0].min() > 0 else None
        return None if rows is None else cls(speed, c, rows, x)

    def both(self, values: Array) -> Array:
        """Numbers for distances (D,) by side and row (2, R, M)."""
        return values.reshape(2, *self.rows.value.shape)

    def pulled(self, multipliers: Array) -> Array:
        """Σ multiplier · derivative of the distance by the coefficients (count,), for multipliers (D,)."""
        lower, upper = self.both(multipliers)
        pull = np.einsum("rm,krm->km", upper - lower, self.rows.change)
        if self.rows.bound_change is not None:
            pull[0] += ((lower + upper) * self.rows.bound_change).sum(axis=0)
        return self._speed.gradient(pull)

    def changes(self, step: Array) -> tuple[Array, Array]:
        """Changes of the distances (D,) and of x (M,) for a change of the coefficients (count,)."""
        change, distances = self._speed.at_nodes(step), np.empty_like(self.distances)
        lower, upper = self.both(distances)
        value = np.einsum("krm,km->rm", self.rows.change, change[: len(self.rows.change)])
        bound = 0.0 if self.rows.bound_change is None else self.rows.bound_change * change[0]
        np.subtract(bound, value, out=lower)
        np.add(bound, value, out=upper)
        return distances, change[0]

    def newton(self, weights: Array, multipliers: Array, curved: Array) -> Callable[[Array], Array] | None:
        """Solver of Newton's equations for right sides (count,); None if the matrix is indefinite.

        Weights are multipliers over distances (D,); ``curved`` is the second derivative of the objective by x (M,).
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
            bent = (self.both(multipliers).sum(axis=0) * bound).sum(axis=0)
            curved = np.maximum(curved + 1.5 / self.x[0] * bent, 0.0)
        K[0] += curved
        return _factored(self._speed, K)


def feasible(speed: SquaredSpeed, constraints: Constraints, c: Array, inside: float) -> Array:
    """Coefficients of a positive x, scaled to a fraction ``inside`` of the largest scale within all limits.

    Raises TrajectoryError if no scale meets the limits.
    """
    # The largest scale itself may be inside or not by rounding.
    largest, less = (1 - SETTINGS.margin) * constraints.largest_scale(speed.at_nodes(c)[0]), SETTINGS.step_down
    while not _is_inside(speed, constraints, c * largest):
        largest, less = largest * (1 - less), min(2 * less, 0.5)
        if largest < 1e-60:
            raise TrajectoryError("no speed along the path meets the limits; change the path or the limits")
    for step in (1.4, 1.2, 1.1) if less == 0.5 else ():
        if _is_inside(speed, constraints, c * largest * step):
            largest *= step
    # Inertial forces may carry a part of the weight, so that a slower motion is not always further inside.
    while inside > SETTINGS.left and not _is_inside(speed, constraints, c * largest * inside):
        inside *= 0.8
    return c * largest * inside


def minimise(
    speed: SquaredSpeed,
    constraints: Constraints,
    c: Array,
    *,
    gap: tuple[float, float] = (1.0, 1e-4),
    multipliers: Array | None = None,
    progress: Callable[[float], Any] = lambda fraction: None,
) -> tuple[Array, Array]:
    """Coefficients (count,) of the fastest motion and multipliers (D,) of the limits, from a motion within all limits.

    The gap is the relative distance from the shortest duration at the start and at the end. The first multipliers can
    be ``multipliers`` of a similar problem. Raises TrajectoryError if c is not within the limits.
    """
    start = _Point.at(speed, constraints, c)
    if start is None or not start.distances.min() > 0:
        raise TrajectoryError("the motion to start from does not meet the limits")
    point = start
    unit, count = 1.0 / np.sum(speed.steps / np.sqrt(point.x[0])), len(point.distances)
    last = gap[1] / count
    products, mu = _centred(np.full(count, gap[0] / count) if multipliers is None else multipliers * point.distances)
    first, durations = max(mu, 2 * last), list[float]()
    for steps in range(SETTINGS.most_steps):
        x, distances = point.x[0], point.distances
        progress(min(max(np.log(mu / first) / np.log(last / first), 0.0), 1.0))
        pace = speed.steps / np.sqrt(x)
        durations.append(float(pace.sum()))
        multipliers = products / distances
        gradient = speed.gradient((-0.5 * unit * pace / x)[np.newaxis])
        residual = gradient - point.pulled(multipliers)
        error = float(np.sum(np.abs(residual * point.c)))
        if mu <= last and error <= SETTINGS.residual * gap[1]:
            break
        patience = SETTINGS.patience
        if steps >= patience and durations[-1] > durations[-1 - patience] * (1 - 0.1 * gap[1]):
            break  # limits with jumps: the equations have no solution
        # Curvature by the logarithm of x, because the duration is more nearly quadratic in it.
        solve = point.newton(multipliers / distances, multipliers, 0.25 * unit * pace / x**2)
        if solve is None:
            break
        # S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optimization 2, 1992:
        # changes relative to distances and multipliers, first for μ = 0, then for a share of it.
        change, x_change = point.changes(solve(-gradient))
        change /= distances
        ahead = _longest(change, x_change / x)
        dual = min(1.0, SETTINGS.nearest / max(1 + float(change.max()), SETTINGS.nearest))
        bent = products * change
        left_over = (1 - dual) * mu * count + (ahead * (1 - dual) - dual) * bent.sum() - ahead * dual * (bent @ change)
        aim = min(max(mu * max((left_over / (mu * count)) ** 3, SETTINGS.least), SETTINGS.pace * error / count), mu)
        target = np.clip(aim + bent * (1 + change), aim / SETTINGS.aimed, aim * SETTINGS.aimed)
        followed = _followed(speed, constraints, point, solve, gradient, products, target)
        if followed is None:
            break  # rounding, or limits that jump; the motion so far meets them
        following, relative = followed
        multipliers *= 1 + _longest(relative) * relative
        point = following
        products, mu = _centred(multipliers * point.distances)
    return point.c, products / point.distances


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
    x, distances = point.x[0], point.distances
    step = solve(point.pulled(target / distances) - gradient)
    change, x_change = point.changes(step)
    change /= distances
    ahead, relative = _longest(change, x_change / x), target / products - 1 - change
    for _ in range(SETTINGS.most_halvings):
        # Derivatives of limits that are not affine take much longer than their values.
        following = _Point.at(speed, constraints, point.c + ahead * step, changes=constraints.polynomial)
        if following is not None and (following.distances >= SETTINGS.left * distances).all():
            if not constraints.polynomial:
                following = _Point.at(speed, constraints, following.c)
            return None if following is None else (following, relative)
        ahead *= 0.6
    return None


def _centred(products: Array) -> tuple[Array, float]:
    """Multipliers times distances (D,), closer to their mean if far from it, and this mean."""
    mu = float(products.mean())
    return np.clip(products, mu / SETTINGS.central, mu * SETTINGS.central), mu


def _is_inside(speed: SquaredSpeed, constraints: Constraints, c: Array) -> bool:
    point = _Point.at(speed, constraints, c, changes=False)
    return point is not None and bool(point.distances.min() > 0)


def _factored(speed: SquaredSpeed, curvature: Array) -> Callable[[Array], Array] | None:
    """Solver for changes of the coefficients for right sides (count,); None if indefinite."""
    # Its import takes longer than importing this library.
    from scipy.linalg.lapack import dpbtrf, dpbtrs

    # Coefficients near the ends differ from others by orders of magnitude.
    bands = speed.bands(curvature)
    bands[0] *= 1 + 1e-12
    scale = 1 / np.sqrt(bands[0])
    for k in range(len(bands)):
        bands[k, : len(scale) - k] *= scale[: len(scale) - k] * scale[k:]
    factor, refused = dpbtrf(bands, lower=1)
    if refused:
        return None

    def solve(right: Array) -> Array:
        step: Array = dpbtrs(factor, right * scale, lower=1)[0] * scale
        return step

    return solve


def _longest(*relative: Array) -> float:
    """Longest step, at most 1, that takes no distance further down than to a share of itself."""
    worst = min(float(x.min()) for x in relative)
    return min(1.0, SETTINGS.nearest / -worst) if worst < 0 else 1.0
