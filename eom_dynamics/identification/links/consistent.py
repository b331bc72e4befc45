# SPDX-License-Identifier: Apache-2.0
"""Least squares over physically consistent inertias, with the robot's file as the prior.

A mass distribution with mass m, first moment h and inertia I about the origin has the second moments
S = tr(I)/2 1 - I, and a rigid body can have the ten numbers exactly if the pseudo-inertia

    P = [[S, h], [h^T, m]]   (4, 4)

is positive semidefinite (P. Wensing, S. Kim, J.-J. Slotine, IEEE RA-L 3, 2018). With the pseudo-inertia P0 = L L^T of
the file and P = L X L^T, the eigenvalues x of X are those of P0^-1 P, and the entropic distance from the file is

    tr X - log det X - 4 = sum of (x - 1 - log x)

(T. Lee, P. Wensing, F. Park, "Geometric robot dynamic identification: a convex programming approach", IEEE T-RO 36,
2020). It does not depend on units, nor on the choice of the body's frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...recursion import PARAMETERS
from ..sampling import column_lengths, least_squares

_LOWER = np.tril_indices(4)

_WEIGHTS = np.where(_LOWER[0] == _LOWER[1], 1.0, np.sqrt(2))
ENTRIES = len(_LOWER[0])  # entries of the pseudo-inertia of a body
SMALLEST = 0.01  # least radius of gyration of a body of the prior, m, also for point masses and inconsistent inertias

# Least eigenvalue of X, relative to its trace. Data that contradict all masses drive bodies to the edge of the cone,
# where rounding alone decides whether a pseudo-inertia is positive definite.
_THINNEST = 1e-9

_END, _DRAFT, _ON_THE_WAY = 1e-9, 1e-4, 0.1  # promised decrease of the cost over the weight that ends an iteration
_ROUNDING = 1e-3  # decrease of the cost over the weight that may be lost by rounding
_MOST_STEPS = 1000  # steps for each weight: a load of ten times the mass of its body takes hundreds
_INSIDE = -0.8  # least eigenvalue of a step; -1 is the edge of the cone
_ARMIJO = 1e-4  # share of the decrease that a step promises by its gradient which it must give
_MORE, _LESS = 4.0, 1 / 16  # factors of the damping after a step that is refused, and before the next one
_LARGEST = 1e12  # largest damping, relative to the weight
_DEPENDENT = 1e-9  # singular values of columns of length one below which they depend on each other


def pseudo_inertia(parameters: Array) -> Array:
    """P (…, 4, 4) of inertial parameters pi (…, 10): mass, first moments, inertia xx … zz about the origin."""
    m, x, y, z, xx, xy, xz, yy, yz, zz = np.moveaxis(np.asarray(parameters, dtype=float), -1, 0)
    a, b, c = 0.5 * (yy + zz - xx), 0.5 * (xx + zz - yy), 0.5 * (xx + yy - zz)
    P = np.array([[a, -xy, -xz, x], [-xy, b, -yz, y], [-xz, -yz, c, z], [x, y, z, m]])
    return np.moveaxis(P, (0, 1), (-2, -1))


def parameters_of(pseudo: Array) -> Array:
    """Inertial parameters pi (…, 10) of pseudo-inertias (…, 4, 4)."""
    (a, xy, xz, x), (_, b, yz, y), (_, _, c, z), (_, _, _, m) = np.moveaxis(pseudo, (-2, -1), (0, 1))
    return np.stack([m, x, y, z, b + c, -xy, -xz, a + c, -yz, a + b], axis=-1)


def consistent(parameters: Array, smallest: float) -> Array:
    """Physically consistent inertial parameters (10,) close to pi (10,).

    Where the radius of gyration in any direction is less than the ``smallest``, m, the body becomes a little fatter.
    """
    P, mass, center = pseudo_inertia(parameters), parameters[0], parameters[1:4] / parameters[0]
    values, vectors = np.linalg.eigh(P[:3, :3] - mass * np.outer(center, center))
    about_center = (vectors * np.maximum(values, mass * smallest**2)) @ vectors.T
    P[:3, :3] = about_center + mass * np.outer(center, center)
    return parameters_of(P)


class Prior:
    """Entropic distance from the inertia of a body in the file.

    Attributes:
        factor: lower triangular L (4, 4) of the file's pseudo-inertia.
    """

    def __init__(self, parameters: Array) -> None:
        """Take the inertial parameters (10,) of the file, whose pseudo-inertia must be positive definite."""
        self.factor: Array = np.asarray(np.linalg.cholesky(pseudo_inertia(parameters)))

    def of_relative(self, X: Array) -> float:
        """Distance of P = L X L^T, with positive definite X (4, 4)."""
        x = np.linalg.eigvalsh(X)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.sum(x - 1 - np.log(x))) if x[0] > 0 else np.inf

    def gradient(self, C: Array) -> Array:
        """Derivatives (10,) at Y = 1 of the distance of X = C Y C^T for the entries of Y, see :func:`packed`.

        The second derivatives are the unit matrix.
        """
        return packed(C.T @ C - np.eye(4))


def packed(symmetric: Array) -> Array:
    """Symmetric matrices (…, 4, 4) packed into entries (…, 10) of the same norm."""
    return symmetric[..., _LOWER[0], _LOWER[1]] * _WEIGHTS


def unpacked(entries: Array) -> Array:
    """Symmetric matrices (…, 4, 4) unpacked from their entries (…, 10)."""
    result = np.zeros((*entries.shape[:-1], 4, 4))
    result[..., _LOWER[0], _LOWER[1]] = result[..., _LOWER[1], _LOWER[0]] = entries / _WEIGHTS
    return result


_UNITS = unpacked(np.eye(ENTRIES))


@dataclass(frozen=True, eq=False)
class Bodies:
    """Bodies of a robot with the parameters (10 B,) of its file, kg, kg m, kg m², and priors of those that are free."""

    parameters: Array
    free: tuple[int, ...]
    priors: tuple[Prior, ...]

    @cached_property
    def maps(self) -> list[Array]:
        """Maps (10, 10) from the entries of X, P = L X L^T, to the inertial parameters of each free body."""
        return [parameters_of(prior.factor @ _UNITS @ prior.factor.T).T for prior in self.priors]


def free_bodies(parameters: Array, bodies: Sequence[int] | None = None) -> Bodies:
    """Bodies with the file's parameters (10 B,) as the prior; by default all with mass are free."""
    table = np.array(parameters, dtype=float).reshape(-1, PARAMETERS)
    free = [i for i in range(len(table)) if table[i, 0] > 0 and (bodies is None or i in bodies)]
    return Bodies(table.ravel(), tuple(free), tuple(Prior(consistent(table[i], SMALLEST)) for i in free))


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Unknowns of the fit: inertias, by base parameters K pi with combinations K (b, 10 B), and k terms.

    Terms have lower bounds (k,), 0 or minus infinity, and those expected by the prior with a spread (k,), which is
    infinite without a prior, and 0 for a term that stays zero.
    """

    bodies: Bodies
    combinations: Array
    lower: Array
    expected: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class ConsistentSolution:
    """Physically consistent solution: inertial parameters of all bodies (10 B,), and parameters of the terms (k,).

    ``relative`` are X (bodies, 4, 4) of the free bodies. Standard deviations are zero for bodies that are not free, and
    empty of a draft.
    """

    parameters: Array
    terms: Array
    relative: Array
    converged: bool
    parameter_deviations: Array
    term_deviations: Array


def consistent_solution(
    unknowns: Unknowns, R: Array, right: Array, weight: float, start: Array | None = None, *, draft: bool = False
) -> ConsistentSolution:
    """Minimise |R (K pi; x) - b|²/2 + weight (sum of the distances of the free bodies and of the terms from the file).

    The distance of a term is ((x - expected)/spread)²/2. The problem is convex in the entries of X = L^-1 P L^-T, and
    its barrier keeps these positive definite. Terms, which are linear, are eliminated; those that would pass their
    bounds stay at them. R (rows, b + k) and b (rows,) are in units of the standard deviation; the weight is 1 if
    inertias are known to a factor of e. The start is X (bodies, 4, 4), by default that of the file; a draft stops
    early, without standard deviations.
    """
    bodies, K, b = unknowns.bodies, unknowns.combinations, len(unknowns.combinations)
    table = bodies.parameters.reshape(-1, PARAMETERS).copy()
    table[list(bodies.free)] = 0.0
    right = right - R[:, :b] @ (K @ table.ravel())
    inertial = (R[:, :b] @ K).reshape(len(R), *table.shape)
    free: NDArray[np.bool_] = unknowns.spread > 0
    own = np.where(free, R[:, b:], 0.0)
    known = free & np.isfinite(unknowns.spread)
    scale = np.sqrt(weight) / unknowns.spread[known]
    own = np.concatenate([own, scale[:, np.newaxis] * np.eye(len(free))[known]])
    right = np.concatenate([right, scale * unknowns.expected[known]])
    columns = [inertial[:, i] @ m for i, m in zip(bodies.free, bodies.maps, strict=True)]
    B = np.concatenate([np.concatenate(columns, axis=1), np.zeros((len(scale), ENTRIES * len(columns)))])
    near, converged = start is not None, True
    X: Array = np.tile(np.eye(4), (len(columns), 1, 1)) if start is None else start
    for _ in range(own.shape[1] + 1):
        basis = column_basis(own[:, free])
        cost = _Cost(bodies.priors, B - basis @ (basis.T @ B), right - basis @ (basis.T @ right), weight)
        X, converged = _minimum(cost, X, _DRAFT if draft else _END, near=near)
        near = True
        terms = np.zeros(own.shape[1])
        terms[free] = least_squares(own[:, free], right - B @ packed(X).ravel(), _DEPENDENT)
        negative = free & (terms < unknowns.lower)
        if not negative.any():
            break
        free = free & ~negative
    table[list(bodies.free)] = [m @ entries for m, entries in zip(bodies.maps, packed(X), strict=True)]
    none = np.zeros(0)
    solution = ConsistentSolution(table.ravel(), np.maximum(terms, unknowns.lower), X, converged, none, none)
    return solution if draft else _with_deviations(solution, bodies, B, own, weight)


@dataclass(frozen=True, eq=False)
class _Cost:
    """|B x - b|²/2 + weight (sum of distances), of the entries x of all X."""

    priors: Sequence[Prior]
    B: Array
    right: Array
    weight: float

    def value(self, X: Array) -> float:
        residual = self.B @ packed(X).ravel() - self.right
        distance = sum(prior.of_relative(relative) for prior, relative in zip(self.priors, X, strict=True))
        return float(0.5 * residual @ residual + self.weight * distance)

    def quadratic(self, X: Array, C: Array) -> tuple[Array, Array, Array]:
        """The cost for Y = 1 + V^T z of X = C Y C^T: its gradient and diagonal of second derivatives for z, and V.

        The unit matrix is the second derivative of the distance: a step is as far from the edge of the cone in all
        directions (L. Vandenberghe, S. Boyd, SIAM Review 38, 1996).
        """
        root = _in_coordinates(self.B, C)
        distances = np.concatenate([prior.gradient(factor) for prior, factor in zip(self.priors, C, strict=True)])
        gradient = root.T @ (self.B @ packed(X).ravel() - self.right) + self.weight * distances
        # Of the singular values of B, which is stiff, rather than of its square.
        _, values, V = np.linalg.svd(root)
        curvature = np.append(np.square(values), np.zeros(len(gradient) - len(values))) + self.weight
        return V @ gradient, curvature, V


def _minimum(cost: _Cost, X: Array, tolerance: float, *, near: bool) -> tuple[Array, bool]:
    """X (bodies, 4, 4) of the least cost, and whether the iteration converged.

    From a weight that outweighs the data to the one that is wanted, the path through the middle of the cone, unless X
    is near the solution.
    """
    ratio = 1.0 if near else cost.value(X) / cost.weight
    converged = False
    for reduction in range(max(0, int(np.ceil(np.log10(max(ratio, 1.0))))), -1, -1):
        current = replace(cost, weight=cost.weight * 10.0**reduction)
        X, converged = _newton(current, X, _ON_THE_WAY if reduction else tolerance)
    trace = np.trace(X, axis1=-2, axis2=-1)[:, np.newaxis, np.newaxis]
    return X + _THINNEST * trace * np.eye(4), converged


def _newton(cost: _Cost, X: Array, tolerance: float) -> tuple[Array, bool]:
    """Newton's method, damped where its step would leave the cone or not decrease the cost (Levenberg, Marquardt)."""
    value, damping = cost.value(X), 0.0
    for _ in range(_MOST_STEPS):
        try:
            C = np.asarray(np.linalg.cholesky(X), dtype=float)
        except np.linalg.LinAlgError:
            return X, False  # at the edge of the cone but for rounding
        gradient, curvature, V = cost.quadratic(X, C)
        promised = float(gradient @ (gradient / curvature))
        if promised <= tolerance * cost.weight:
            return X, True
        while damping < _LARGEST * cost.weight:
            z = gradient / (curvature + damping)
            dY, decrease = -unpacked((z @ V).reshape(-1, ENTRIES)), float(gradient @ z)
            if np.linalg.eigvalsh(dY).min() > _INSIDE:
                new = C @ (np.eye(4) + dY) @ np.swapaxes(C, -1, -2)
                lower = cost.value(new)
                if lower <= value - _ARMIJO * decrease:
                    break
            damping = max(_MORE * damping, cost.weight)
        else:
            return X, promised <= _ROUNDING * cost.weight
        X, value = new, lower
        damping = _LESS * damping if damping > cost.weight else 0.0
    return X, False


def _in_coordinates(B: Array, C: Array) -> Array:
    """Columns B (rows, 10 bodies) for entries of Y, X = C Y C^T, from those for entries of X."""
    moved = packed(C[:, np.newaxis] @ _UNITS @ np.swapaxes(C, -1, -2)[:, np.newaxis])
    parts = [B[:, ENTRIES * k : ENTRIES * (k + 1)] @ matrices.T for k, matrices in enumerate(moved)]
    return np.concatenate(parts, axis=1)


def column_basis(columns: Array) -> Array:
    """Orthonormal basis (rows, rank) of columns."""
    size = np.linalg.norm(columns, axis=0)
    U, values, _ = np.linalg.svd(columns[:, size > 0] / size[size > 0], full_matrices=False)
    return np.asarray(U[:, values > _DEPENDENT])


def _with_deviations(
    solution: ConsistentSolution, bodies: Bodies, B: Array, own: Array, weight: float
) -> ConsistentSolution:
    """The solution with standard deviations by the curvature there."""
    C = np.asarray(np.linalg.cholesky(solution.relative), dtype=float)
    count = B.shape[1]
    J = np.block([[_in_coordinates(B, C), own], [np.sqrt(weight) * np.eye(count), np.zeros((count, own.shape[1]))]])
    size = column_lengths(J)
    covariance = np.linalg.pinv((J / size).T @ (J / size), hermitian=True) / np.outer(size, size)
    variances = np.zeros((len(solution.parameters) // PARAMETERS, PARAMETERS))
    for k, (i, m) in enumerate(zip(bodies.free, bodies.maps, strict=True)):
        entries, moved = slice(ENTRIES * k, ENTRIES * (k + 1)), _in_coordinates(m, C[k : k + 1])
        variances[i] = np.diag(moved @ covariance[entries, entries] @ moved.T)
    of_parameters, of_terms = (np.sqrt(np.maximum(x, 0.0)) for x in (variances.ravel(), np.diag(covariance)[count:]))
    return replace(solution, parameter_deviations=of_parameters, term_deviations=of_terms)
