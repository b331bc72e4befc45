# SPDX-License-Identifier: Apache-2.0
"""Least squares over inertias that bodies can have: log-Cholesky parameters, and the robot's file as the prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares, minimize

from ..arrays import Array
from ..recursion import PARAMETERS
from .prior import RESIDUALS, Prior, packed, unpacked
from .pseudo_inertia import log_cholesky, log_cholesky_derivatives, log_cholesky_parameters, parameters_of, possible

SMALLEST = 0.01
"""Least radius of gyration of a body of the prior, m, also for point masses and inconsistent inertias."""

# Least eigenvalue of X, relative to its trace. Data that contradict all masses drive bodies to the edge of the cone,
# where rounding alone decides whether a pseudo-inertia is positive definite.
_THINNEST = 1e-9

# Relative change of the cost, the parameters and the gradient that ends the last step, and its evaluations: far fewer
# are needed from the convex solution with the entropic distance.
_TOLERANCE, _MOST_EVALUATIONS = 1e-8, 100

# Log-Cholesky parameters beyond are a runaway of data that no body explains, such as efforts of the wrong sign; steps
# there are refused.
_FARTHEST = 100.0

# Gradient that ends the convex step, relative to the weight: at the end, and on the way there.
_GRADIENT, _ON_THE_WAY = 1e-3, 0.3

# Iterations of the convex step around one centre, and number of centres.
_ITERATIONS, _MOST_CENTRES = 12, 6

# Singular values of columns of length one below which they depend on each other.
_DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class Bodies:
    """Bodies whose inertias are free.

    Attributes:
        parameters: of the file, of all B bodies, (10 B,), kg, kg m, kg m².
        free: indices of the bodies.
        priors: of the free bodies.
    """

    parameters: Array
    free: tuple[int, ...]
    priors: tuple[Prior, ...]

    def possible(self, theta: Array) -> Array:
        """Inertial parameters (bodies, 10) of log-Cholesky parameters of the free bodies (bodies, 10)."""
        P = []
        for prior, body in zip(self.priors, theta, strict=True):
            X = log_cholesky(body)
            P.append(prior.factor @ (X + _THINNEST * np.trace(X) * np.eye(4)) @ prior.factor.T)
        return parameters_of(np.array(P).reshape(-1, 4, 4))

    def derivatives(self, k: int, theta: Array) -> tuple[Array, Array]:
        """Derivatives for theta (10,) of free body k: of X (10, 4, 4), and of its parameters (10, 10) by columns."""
        dX, L = log_cholesky_derivatives(theta), self.priors[k].factor
        return dX, parameters_of(L @ dX @ L.T).T


def free_bodies(parameters: Array, kind: str = "entropic", bodies: Sequence[int] | None = None) -> Bodies:
    """Bodies with the prior of a robot's file.

    Args:
        parameters: of the file, of all B bodies, (10 B,).
        kind: of the prior, ``entropic`` or ``geodesic``.
        bodies: those that are free; by default all with mass. A massless one stays as it is: it stands for no part.
    """
    table = np.array(parameters, dtype=float).reshape(-1, PARAMETERS)
    free = [i for i in range(len(table)) if table[i, 0] > 0 and (bodies is None or i in bodies)]
    return Bodies(table.ravel(), tuple(free), tuple(Prior(possible(table[i], SMALLEST), kind) for i in free))


@dataclass(frozen=True, eq=False)
class Consistent:
    """A solution.

    Attributes:
        parameters: inertial parameters of all bodies (10 B,); those of each free body are possible.
        terms: parameters of the terms (k,).
        theta: log-Cholesky parameters of the free bodies (bodies, 10).
        covariance: of (theta, terms).
        converged: whether the optimiser came to an end.
    """

    parameters: Array
    terms: Array
    theta: Array
    covariance: Array
    converged: bool

    def parameter_deviations(self, bodies: Bodies) -> Array:
        """Standard deviations (10 B,) of the inertial parameters; zero for bodies that are not free."""
        result = np.zeros(len(self.parameters))
        for k, body in enumerate(bodies.free):
            own = slice(PARAMETERS * k, PARAMETERS * (k + 1))
            J = bodies.derivatives(k, self.theta[k])[1]
            variance = np.diag(J @ self.covariance[own, own] @ J.T)
            result[PARAMETERS * body : PARAMETERS * (body + 1)] = np.sqrt(np.maximum(variance, 0.0))
        return result

    @property
    def term_deviations(self) -> Array:
        """Standard deviations (k,) of the terms."""
        return np.sqrt(np.maximum(np.diag(self.covariance)[self.theta.size :], 0.0))


def solve(
    bodies: Bodies,
    R: Array,
    right: Array,
    combinations: Array,
    lower: Array,
    weight: float,
    start: Array | None = None,
    *,
    expected: Array | None = None,
    spread: Array | None = None,
    draft: bool = False,
) -> Consistent:
    """Minimise |R (K pi; x) - b|²/2 + weight (sum of the distances of the free bodies and of the terms from the file).

    The distance of a term is ((x - expected)/spread)²/2.

    In two steps of SciPy's. With the entropic distance the problem is convex in the entries of X = L^-1 P L^-T:
    Newton's method in a trust region finds its solution in some ten iterations, however stiff the data are. From
    there, least squares over the log-Cholesky parameters end where the gradient is zero, for either distance. Terms,
    which are linear, are eliminated; those that would pass their bounds stay at them.

    Args:
        bodies: the bodies, some of them free.
        R: (rows, b + k), in units of the standard deviation.
        right: b (rows,).
        combinations: K (b, 10 B).
        lower: lower bounds of the terms (k,), 0 or minus infinity.
        weight: of the distances; 1 if inertias are known to a factor of e.
        start: log-Cholesky parameters to begin with (bodies, 10); by default zero, the file.
        expected, spread: of terms (k,); a spread is infinite without a prior, and 0 for a term that stays zero.
        draft: stop after the first step, without a covariance.
    """
    b = len(combinations)
    columns = [R[:, :b] @ combinations[:, PARAMETERS * i : PARAMETERS * (i + 1)] for i in bodies.free]
    fixed = bodies.parameters.copy()
    for i in bodies.free:
        fixed[PARAMETERS * i : PARAMETERS * (i + 1)] = 0.0
    right = right - R[:, :b] @ (combinations @ fixed)
    own = R[:, b:]
    theta: Array = np.zeros((len(bodies.free), PARAMETERS)) if start is None else start
    free: NDArray[np.bool_] = np.ones(own.shape[1], dtype=bool)
    if expected is not None and spread is not None:
        free = spread > 0
        own = np.where(free, own, 0.0)
        if (known := free & np.isfinite(spread)).any():
            scale = np.sqrt(weight) / spread[known]
            own = np.concatenate([own, scale[:, np.newaxis] * np.eye(len(spread))[known]])
            columns = [np.concatenate([column, np.zeros((len(scale), PARAMETERS))]) for column in columns]
            right = np.concatenate([right, scale * expected[known]])
    for _ in range(own.shape[1] + 1):
        basis = _basis(own[:, free])
        A = [column - basis @ (basis.T @ column) for column in columns]
        rest = right - basis @ (basis.T @ right)
        theta = _convex(bodies, A, rest, weight, theta)
        pis = bodies.possible(theta)
        terms = _terms(own, free, right, columns, pis)
        negative = free & (terms < lower)
        if not negative.any():
            break
        free &= ~negative
    converged = True
    covariance: Array = np.zeros((0, 0))
    if not draft:
        found = _polished(bodies, A, rest, weight, theta)
        theta, converged = found.x.reshape(-1, PARAMETERS), bool(found.status > 0)
        pis = bodies.possible(theta)
        covariance = _covariance(bodies, columns, own, weight, theta)
    parameters = bodies.parameters.copy()
    for i, pi in zip(bodies.free, pis, strict=True):
        parameters[PARAMETERS * i : PARAMETERS * (i + 1)] = pi
    terms = np.maximum(_terms(own, free, right, columns, pis), lower)
    return Consistent(parameters, terms, theta, covariance, converged)


def _basis(columns: Array) -> Array:
    """Orthonormal basis (rows, rank) of columns."""
    size = np.linalg.norm(columns, axis=0)
    U, values, _ = np.linalg.svd(columns[:, size > 0] / size[size > 0], full_matrices=False)
    return np.asarray(U[:, values > _DEPENDENT])


def _terms(own: Array, free: NDArray[np.bool_], right: Array, columns: Sequence[Array], pis: Array) -> Array:
    """Terms (k,) for given inertias; zero where they are not free."""
    rest = right - sum((A @ pi for A, pi in zip(columns, pis, strict=True)), np.zeros(len(right)))
    size = np.linalg.norm(own, axis=0)
    size = np.where(size > 0, size, 1.0)
    terms = np.zeros(own.shape[1])
    terms[free] = np.linalg.lstsq(own[:, free] / size[free], rest, rcond=_DEPENDENT)[0] / size[free]
    return terms


def _convex(bodies: Bodies, A: Sequence[Array], right: Array, weight: float, theta: Array) -> Array:
    """Log-Cholesky parameters (bodies, 10) of the solution for the entropic distance."""
    try:
        centre = np.linalg.cholesky(np.array([log_cholesky(body) for body in theta]))
    except np.linalg.LinAlgError:
        # A start at the edge of the cone, but for rounding: that of the file instead.
        theta = np.zeros_like(theta)
        centre = np.linalg.cholesky(np.array([log_cholesky(body) for body in theta]))
    cost = 0.5 * float(right @ right)
    # From a distance that outweighs the data to the one that is wanted: the path through the middle of the cone.
    steps = max(0, int(np.ceil(np.log10(max(cost, 1e-300) / weight)))) if not np.any(theta) else 0
    for reduction in range(steps, -1, -1):
        current = weight * 10.0**reduction
        for _ in range(_MOST_CENTRES):
            local = _Local(bodies, A, right, current, centre)
            try:
                with np.errstate(invalid="ignore"):
                    found = minimize(
                        local.value,
                        np.zeros(local.size),
                        jac=local.gradient,
                        hess=local.hessian,
                        method="trust-exact",
                        options={
                            "gtol": (_GRADIENT if not reduction else _ON_THE_WAY) * np.sqrt(current),
                            "maxiter": _ITERATIONS,
                            "max_trust_radius": np.inf,
                        },
                    )
            except ValueError:
                break  # older SciPy gets NaN by rounding at the edge of the cone: the last centre stays
            new = local.relative(found.x)
            try:
                centre, theta = np.linalg.cholesky(new), np.array([log_cholesky_parameters(body) for body in new])
            except np.linalg.LinAlgError:
                break  # at the edge of the cone but for rounding: the last one inside stays
            if found.success or found.nit == 0:
                break
    return theta


class _Local:
    """Cost, gradient and Hessian around a centre C C^T of the X of all bodies.

    X = C Y C^T, and the entries of all Y are y = 1 + T z. T makes the Hessian at the centre a unit matrix, by the
    singular values of the data's part and by the distance's, which is a unit matrix in y: a trust region is then round
    although data are stiff, and as far from the edge of the cone in all directions.

    Attributes:
        size: number of entries of z.
    """

    def __init__(self, bodies: Bodies, A: Sequence[Array], right: Array, weight: float, centre: Array) -> None:
        self._centre, self._weight, self._count = centre, weight, len(bodies.free)
        self._units = unpacked(np.eye(RESIDUALS))
        linear = []
        for a, prior, C in zip(A, bodies.priors, centre, strict=True):
            L = prior.factor @ C
            # Parameters of a body are linear in the entries of Y.
            linear.append(a @ parameters_of(L @ self._units @ L.T).T)
        B = np.concatenate(linear, axis=1)
        _, values, Vt = np.linalg.svd(B, full_matrices=True)
        self.size = B.shape[1]
        self._T = Vt.T / np.sqrt(np.append(np.square(values), np.zeros(self.size - len(values))) + weight)
        self._one = packed(np.broadcast_to(np.eye(4), (self._count, 4, 4))).ravel()
        self._BT, self._right = B @ self._T, right - B @ self._one
        self._trace = packed(np.swapaxes(centre, -1, -2) @ centre)
        self._logarithm = 2 * float(np.log(np.diagonal(centre, axis1=-2, axis2=-1)).sum())

    def relative(self, z: Array) -> Array:
        """X (bodies, 4, 4) of z."""
        return np.asarray(self._centre @ self._Y(z) @ np.swapaxes(self._centre, -1, -2))

    def value(self, z: Array) -> float:
        Y = self._Y(z)
        try:
            lower = np.linalg.cholesky(Y)
        except np.linalg.LinAlgError:
            return np.inf  # outside of the cone: the step is refused
        logarithm = 2 * float(np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum()) + self._logarithm
        distance = float(self._trace.ravel() @ packed(Y).ravel()) - logarithm - 4 * self._count
        residual = self._BT @ z - self._right
        return float(0.5 * residual @ residual + self._weight * distance)

    def gradient(self, z: Array) -> Array:
        inverse = packed(np.asarray(np.linalg.inv(self._Y(z)), dtype=float))
        data = self._BT.T @ (self._BT @ z - self._right)
        return np.asarray(data + self._weight * self._T.T @ (self._trace - inverse).ravel())

    def hessian(self, z: Array) -> Array:
        result = self._BT.T @ self._BT
        for k, inverse in enumerate(np.linalg.inv(self._Y(z))):
            T = self._T[RESIDUALS * k : RESIDUALS * (k + 1)]
            result += self._weight * T.T @ packed(inverse @ self._units @ inverse) @ T
        return np.asarray(result)

    def _Y(self, z: Array) -> Array:
        return unpacked((self._one + self._T @ z).reshape(self._count, RESIDUALS))


def _polished(bodies: Bodies, A: Sequence[Array], right: Array, weight: float, theta: Array) -> OptimizeResult:
    """Least squares over the log-Cholesky parameters."""
    count, rows, root = len(bodies.free), len(right), np.sqrt(weight)
    none = np.zeros((0, 4, 4))

    def residuals(z: Array) -> Array:
        refused = np.full(rows + RESIDUALS * count, np.inf)
        if not np.max(np.abs(z)) < _FARTHEST:
            return refused
        bodies_of = z.reshape(count, PARAMETERS)
        data = sum((a @ pi for a, pi in zip(A, bodies.possible(bodies_of), strict=True)), -right)
        pairs = zip(bodies.priors, bodies_of, strict=True)
        try:
            distances = [root * prior.residuals(log_cholesky(body), none)[0] for prior, body in pairs]
        except np.linalg.LinAlgError:
            return refused
        return np.concatenate([data, *distances])

    def jacobian(z: Array) -> Array:
        J = np.zeros((rows + RESIDUALS * count, len(z)))
        _fill(J, bodies, A, weight, z.reshape(count, PARAMETERS), rows)
        return J

    with np.errstate(over="ignore", invalid="ignore"):
        return least_squares(
            residuals,
            theta.ravel(),
            jacobian,
            ftol=_TOLERANCE,
            xtol=_TOLERANCE,
            gtol=_TOLERANCE,
            max_nfev=_MOST_EVALUATIONS,
        )


def _fill(J: Array, bodies: Bodies, A: Sequence[Array], weight: float, theta: Array, rows: int) -> None:
    """Fill in the derivatives of the data's residuals, and of the distances below them."""
    for k, (a, prior) in enumerate(zip(A, bodies.priors, strict=True)):
        at = slice(PARAMETERS * k, PARAMETERS * (k + 1))
        dX, dpi = bodies.derivatives(k, theta[k])
        J[:rows, at] = a @ dpi
        below = slice(rows + RESIDUALS * k, rows + RESIDUALS * (k + 1))
        J[below, at] = np.sqrt(weight) * prior.residuals(log_cholesky(theta[k]), dX)[1]


def _covariance(bodies: Bodies, columns: Sequence[Array], own: Array, weight: float, theta: Array) -> Array:
    """Covariance of (theta, terms) by the curvature at the solution."""
    rows, count = len(own), theta.size
    J = np.zeros((rows + RESIDUALS * len(theta), count + own.shape[1]))
    _fill(J, bodies, columns, weight, theta, rows)
    J[:rows, count:] = own
    size = np.linalg.norm(J, axis=0)
    size = np.where(size > 0, size, 1.0)
    return np.asarray(np.linalg.pinv((J / size).T @ (J / size), hermitian=True) / np.outer(size, size))
