# SPDX-License-Identifier: Apache-2.0
"""Least squares over physically consistent inertias, with the robot's file as the prior.

A mass distribution with mass m, first moment h and inertia I about the origin has the second moments
S = tr(I)/2 1 - I, and a rigid body can have the ten numbers exactly if the pseudo-inertia

    P = [[S, h], [h^T, m]]   (4, 4)

is positive semidefinite (P. Wensing, S. Kim, J.-J. Slotine, IEEE RA-L 3, 2018). With the pseudo-inertia P0 = L L^T of
the file and P = L X L^T, X and P0^-1 P have the same eigenvalues x, and the entropic distance from the file is

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

# Minimum eigenvalue of X, relative to its trace. Data that contradict all masses drive bodies to the edge of the cone.
# There, rounding decides whether a pseudo-inertia is positive definite.
_THINNEST = 1e-9

_END, _DRAFT = 1e-9, 1e-4  # promised decrease of the cost over the weight that ends an iteration
_ROUNDING = 1e-3  # decrease of the cost over the weight that may be lost by rounding
_MOST_STEPS = 100  # efforts of the opposite sign, which no masses explain, take 25
_INSIDE = 0.9  # share of the way to the edge of the cone
_CENTERED = 0.1  # largest relative difference of eigenvalues of X S from the weight at the solution
_DEPENDENT = 1e-9  # singular value of dependent columns, relative to columns of length 1


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

    A body with a radius of gyration below the ``smallest``, m, in any direction becomes a little fatter.
    """
    P, mass, center = pseudo_inertia(parameters), parameters[0], parameters[1:4] / parameters[0]
    values, vectors = np.linalg.eigh(P[:3, :3] - mass * np.outer(center, center))
    about_center = (vectors * np.maximum(values, mass * smallest**2)) @ vectors.T
    P[:3, :3] = about_center + mass * np.outer(center, center)
    return parameters_of(P)


def distance(X: Array) -> float:
    """Sum of the entropic distances from the file of bodies with P = L X L^T, of positive definite X (bodies, 4, 4)."""
    x = np.linalg.eigvalsh(X)
    return float(np.sum(x - 1 - np.log(x)))


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
    """Bodies of a robot with the parameters (10 B,) of its file, kg, kg m, kg m².

    The ``factors`` L (4, 4) of the pseudo-inertias of the prior are lower triangular, for the free bodies.
    """

    parameters: Array
    free: tuple[int, ...]
    factors: tuple[Array, ...]

    @cached_property
    def maps(self) -> list[Array]:
        """Maps (10, 10) from the entries of X, P = L X L^T, to the inertial parameters of each free body."""
        return [parameters_of(L @ _UNITS @ L.T).T for L in self.factors]


def free_bodies(parameters: Array, bodies: Sequence[int] | None = None) -> Bodies:
    """Bodies with the file's parameters (10 B,) as the prior; by default all with mass are free."""
    table = np.array(parameters, dtype=float).reshape(-1, PARAMETERS)
    free = [i for i in range(len(table)) if table[i, 0] > 0 and (bodies is None or i in bodies)]
    priors = (pseudo_inertia(consistent(table[i], SMALLEST)) for i in free)
    return Bodies(table.ravel(), tuple(free), tuple(np.asarray(np.linalg.cholesky(P)) for P in priors))


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

    ``distance`` is the distance of the free bodies from the file. Standard deviations are zero for other bodies, and
    empty for a draft.
    """

    parameters: Array
    terms: Array
    distance: float
    converged: bool
    parameter_deviations: Array
    term_deviations: Array


def consistent_solution(
    unknowns: Unknowns, R: Array, right: Array, weight: float, *, draft: bool = False
) -> ConsistentSolution:
    """Minimize |R (K pi; x) - b|²/2 + weight (sum of the distances of the free bodies and of the terms from the file).

    The distance of a term is ((x - expected)/spread)²/2. The problem is convex in the entries of X = L^-1 P L^-T, and
    its barrier keeps these positive definite. Terms, which are linear, are eliminated; terms that would pass their
    bounds stay at them. R (rows, b + k) and b (rows,) are in units of the standard deviation; the weight is 1 if
    inertias are known to a factor of e. A draft stops early, without standard deviations.
    """
    bodies, K, b = unknowns.bodies, unknowns.combinations, len(unknowns.combinations)
    table = bodies.parameters.reshape(-1, PARAMETERS).copy()
    table[list(bodies.free)] = 0.0
    right = right - R[:, :b] @ (K @ table.ravel())
    inertial = (R[:, :b] @ K).reshape(len(R), *table.shape)
    free: NDArray[np.bool_] = unknowns.spread > 0
    of_terms = np.where(free, R[:, b:], 0.0)
    known = free & np.isfinite(unknowns.spread)
    scale = np.sqrt(weight) / unknowns.spread[known]
    of_terms = np.concatenate([of_terms, scale[:, np.newaxis] * np.eye(len(free))[known]])
    right = np.concatenate([right, scale * unknowns.expected[known]])
    columns = [inertial[:, i] @ m for i, m in zip(bodies.free, bodies.maps, strict=True)]
    B = np.concatenate([np.concatenate(columns, axis=1), np.zeros((len(scale), ENTRIES * len(columns)))])
    for _ in range(of_terms.shape[1] + 1):
        basis = column_basis(of_terms[:, free])
        rest = right - basis @ (basis.T @ right)
        X, converged = _minimum(B - basis @ (basis.T @ B), rest, weight, _DRAFT if draft else _END)
        terms = np.zeros(of_terms.shape[1])
        terms[free] = least_squares(of_terms[:, free], right - B @ packed(X).ravel(), _DEPENDENT)
        negative = free & (terms < unknowns.lower)
        if not negative.any():
            break
        free = free & ~negative
    table[list(bodies.free)] = [m @ entries for m, entries in zip(bodies.maps, packed(X), strict=True)]
    none = np.zeros(0)
    solution = ConsistentSolution(table.ravel(), np.maximum(terms, unknowns.lower), distance(X), converged, none, none)
    return solution if draft else _with_deviations(solution, X, bodies, B, of_terms, weight)


def _minimum(B: Array, right: Array, weight: float, tolerance: float) -> tuple[Array, bool]:
    """X (bodies, 4, 4) of the least |B x - b|²/2 + weight (sum of distances), and whether the iteration converged.

    Newton's method is slow along the edge of the cone if data contradict the file. A primal-dual path is not: at the
    minimum, X S = weight 1 with the dual S, the gradient of all terms except the barrier. The path X S = mu 1 starts
    at mu above the data and ends at the weight, in coordinates G with X = G D G^T and S = G^-T D G^-1 of one diagonal D
    (Y. Nesterov, M. Todd, SIAM Journal on Optimization 8, 1998).
    """
    unit = np.tile(np.eye(4), (B.shape[1] // ENTRIES, 1, 1))
    start = max(weight, 0.5 * float(np.sum(np.square(B @ packed(unit).ravel() - right))))
    G, D = unit * start**-0.25, np.full(unit.shape[:2], np.sqrt(start))
    X, feasible, before = unit, False, np.inf
    for _ in range(_MOST_STEPS):
        X = (G * D[:, np.newaxis]) @ np.swapaxes(G, -1, -2)
        A = _in_coordinates(B, G)
        # Steps for Z of X = G Z G^T minimize |A z + residual|²/2 + |z - c|²/2, c = mu D^-1 - weight G^T G: two columns.
        C = np.stack([-weight * packed(np.swapaxes(G, -1, -2) @ G), packed(unit / D[:, np.newaxis])], axis=-1)
        C = C.reshape(-1, 2)
        residual = np.stack([B @ packed(X).ravel() - right, np.zeros(len(B))], axis=1)
        # By the singular values of A, because its square is badly conditioned.
        U, values, V = np.linalg.svd(A, full_matrices=False)
        steps = C - V.T @ ((values / (1 + values**2))[:, np.newaxis] * (U.T @ (residual + A @ C)))
        dZ, dS, share = _step(steps, D, weight)
        last = steps @ [1.0, weight]
        promised = float(last @ last + np.sum(np.square(A @ last)))
        if np.all(np.abs(D**2 - weight) < _CENTERED * weight):
            ended, before = promised <= tolerance * weight or before <= promised <= _ROUNDING * weight, promised
            if ended:
                break
        if share < 1:
            mean = float(np.mean(D**2))
            # A lower mu would take X and S to the edge of the cone as long as S is not the gradient.
            dZ, dS, share = _step(steps, D, max(weight, mean * (1 - share) ** 2) if feasible else mean)
        feasible |= share == 1
        try:
            F, H = (np.linalg.cholesky(unit * D[:, np.newaxis] + share * d) for d in (dZ, dS))
        except np.linalg.LinAlgError:
            break  # at the edge of the cone, except for rounding
        _, D, W = np.linalg.svd(np.swapaxes(H, -1, -2) @ F)
        G = G @ F @ np.swapaxes(W, -1, -2) / np.sqrt(D)[:, np.newaxis]
    # Within the cone by more than rounding.
    values, vectors = np.linalg.eigh(X)
    values = np.maximum(values, _THINNEST * values.sum(axis=-1, keepdims=True))
    return (vectors * values[:, np.newaxis]) @ np.swapaxes(vectors, -1, -2), before <= _ROUNDING * weight


def _step(steps: Array, D: Array, mu: float) -> tuple[Array, Array, float]:
    """Steps of X and S (bodies, 4, 4) towards mu, in coordinates in which both are D, and the usable fraction of them.

    ``steps`` (10 bodies, 2) are steps of X for mu = 0, and per unit of mu.
    """
    dZ = unpacked((steps @ [1.0, mu]).reshape(-1, ENTRIES))
    dS = np.eye(4) * (mu / D - D)[:, np.newaxis] - dZ
    size = np.sqrt(D[:, np.newaxis] * D[:, :, np.newaxis])
    least = min(float(np.linalg.eigvalsh(d / size).min()) for d in (dZ, dS))
    return dZ, dS, min(1.0, _INSIDE / max(-least, 1e-9))


def _in_coordinates(B: Array, G: Array) -> Array:
    """Columns B (rows, 10 bodies) for entries of Z, X = G Z G^T, from columns for entries of X."""
    moved = packed(G[:, np.newaxis] @ _UNITS @ np.swapaxes(G, -1, -2)[:, np.newaxis])
    parts = B.reshape(len(B), -1, ENTRIES).swapaxes(0, 1) @ np.swapaxes(moved, -1, -2)
    return np.asarray(parts.swapaxes(0, 1).reshape(B.shape))


def column_basis(columns: Array) -> Array:
    """Orthonormal basis (rows, rank) of columns."""
    size = np.linalg.norm(columns, axis=0)
    U, values, _ = np.linalg.svd(columns[:, size > 0] / size[size > 0], full_matrices=False)
    return np.asarray(U[:, values > _DEPENDENT])


def project_out(known: Array, columns: Array) -> Array:
    """Columns (N,) or (N, k) less their projections on others (N, m)."""
    basis = column_basis(known)
    return np.asarray(columns - basis @ (basis.T @ columns))


def _with_deviations(
    solution: ConsistentSolution, X: Array, bodies: Bodies, B: Array, of_terms: Array, weight: float
) -> ConsistentSolution:
    """The solution with standard deviations by the curvature at X (bodies, 4, 4)."""
    C = np.asarray(np.linalg.cholesky(X), dtype=float)
    count = B.shape[1]
    above = np.zeros((count, of_terms.shape[1]))
    J = np.block([[_in_coordinates(B, C), of_terms], [np.sqrt(weight) * np.eye(count), above]])
    size = column_lengths(J)
    covariance = np.linalg.pinv((J / size).T @ (J / size), hermitian=True) / np.outer(size, size)
    variances = np.zeros((len(solution.parameters) // PARAMETERS, PARAMETERS))
    for k, (i, m) in enumerate(zip(bodies.free, bodies.maps, strict=True)):
        entries, moved = slice(ENTRIES * k, ENTRIES * (k + 1)), _in_coordinates(m, C[k : k + 1])
        variances[i] = np.diag(moved @ covariance[entries, entries] @ moved.T)
    of_parameters, of_terms = (np.sqrt(np.maximum(x, 0.0)) for x in (variances.ravel(), np.diag(covariance)[count:]))
    return replace(solution, parameter_deviations=of_parameters, term_deviations=of_terms)
