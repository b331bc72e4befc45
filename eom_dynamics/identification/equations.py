# SPDX-License-Identifier: Apache-2.0
"""Identification equations, compressed to a size independent of the number of samples.

The rows of joint j are A_j x = b_j. With the QR decomposition [A_j b_j] = Q M_j, where M_j has no more rows than
columns, |A_j x - b_j| = |M_j (x; -1)| for each x: a recording of any length is as small as the number of parameters,
and new samples are added by another QR decomposition (G. Golub, C. Van Loan, Matrix Computations, section 5.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from .filtering import FilteredSamples
from .regressor import Regressor

# Rows of a joint that are compressed at once: enough for speed, few enough for memory.
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Equations:
    """Compressed equations of n joints in P parameters.

    Attributes:
        factors: M_j of each joint, (rows, P + 1).
        counts: (n,) numbers of equations.
    """

    factors: tuple[Array, ...]
    counts: Array

    def __add__(self, other: Equations) -> Equations:
        pairs = zip(self.factors, other.factors, strict=True)
        return Equations(tuple(_triangle(np.concatenate(pair)) for pair in pairs), self.counts + other.counts)

    @property
    def parameters(self) -> int:
        """Number P of parameters."""
        return self.factors[0].shape[1] - 1

    def squares(self, x: Array) -> Array:
        """Sum of squared residuals of each joint (n,), (N m)² or N²."""
        right = np.append(x, -1.0)
        return np.array([np.sum(np.square(M @ right)) for M in self.factors])

    def weighted(self, weights: Array) -> tuple[Array, Array]:
        """All equations, each joint's times its weight: R (rows, P) and right side (rows,)."""
        stacked = _triangle(np.concatenate([w * M for w, M in zip(weights, self.factors, strict=True)]))
        return stacked[:, :-1], stacked[:, -1]


def equations(
    regressor: Regressor, samples: Sequence[FilteredSamples], weights: Sequence[Array] | None = None
) -> Equations:
    """Compress the used samples of motions to equations, with weights (N, n) for each motion."""
    n, P = regressor.robot.n, len(regressor.names)
    factors = [np.zeros((0, P + 1)) for _ in range(n)]
    counts = np.zeros(n)
    for k, part in enumerate(samples):
        for rows, state in _states(part):
            inertial = regressor.inertial_columns(*state)
            for j in range(n):
                used = part.used[rows, j]
                if not used.any():
                    continue
                own = [part.bases[term][rows, j] for term in regressor.terms]
                block = np.column_stack([inertial[:, j], *own, part.tau[rows, j]])[used]
                if weights is not None:
                    block = block * weights[k][rows, j][used, np.newaxis]
                columns = [*range(regressor.inertial), *(regressor.column(term, j) for term in regressor.terms), P]
                narrow = np.concatenate([factors[j][:, columns], block])
                factors[j] = np.zeros((min(narrow.shape), P + 1))
                factors[j][:, columns] = _triangle(narrow)
                counts[j] += np.sum(used)
    return Equations(tuple(factors), counts)


def predictions(regressor: Regressor, samples: FilteredSamples, x: Array) -> Array:
    """Efforts (N, n) by parameters (P,), N m or N; or (N, n, k) by k sets of parameters (P, k)."""
    tau = np.concatenate([regressor.inertial_efforts(*state, x) for _, state in _states(samples)])
    for term in regressor.terms:
        columns = [regressor.column(term, j) for j in range(regressor.robot.n)]
        basis = samples.bases[term]
        tau += basis.reshape(*basis.shape, *(1,) * (x.ndim - 1)) * x[columns]
    return tau


def _states(samples: FilteredSamples) -> Iterator[tuple[slice, tuple[Array, Array, Array]]]:
    for start in range(0, len(samples), _CHUNK):
        rows = slice(start, start + _CHUNK)
        yield rows, (samples.q[rows], samples.qd[rows], samples.qdd[rows])


def _triangle(rows: Array) -> Array:
    return np.asarray(np.linalg.qr(rows, mode="r")) if len(rows) else rows
