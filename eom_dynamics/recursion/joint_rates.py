# SPDX-License-Identifier: Apache-2.0
"""Joint rates to any order, from the twist of the first tool and its derivatives.

The joint rates x for a twist V, with a damping d and a null-space motion u, are

    x = u + J' y,    V = J x + d² y,

or, if fewer joints move the tool than the twist has entries, J' (V - J x) = d² (x - u). Both hold at each time, so that
Leibniz' rule gives their derivatives in sequence. The derivative of order k contains J to order k, x to order k - 1,
and the unknown of order k with the same matrix for all orders, K = J J' + d² I or K = J' J + d² I. The results are
therefore derivatives of the same motion, damped or not. V - J x is the error of the twist.

Scalars may be of any type, as in :mod:`.newton_euler`; the inverse of K is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

from .kinematics import jacobian
from .links import LinkTree
from .scalars import Matrix, Numbers, Scalar, minus, plus, product, transposed


class JointRates(NamedTuple):
    """Rates qd, qdd, …, (n) each, and the errors of V, Vd, …, (6) each."""

    rates: list[Numbers]
    missed: list[Numbers]


def joint_rates(
    tree: LinkTree,
    q: Sequence[Scalar],
    twists: Sequence[Numbers],
    null_motion: Sequence[Numbers],
    inverse: Matrix,
    squared_damping: Scalar,
    reference: str,
    moving: Sequence[int],
    units: Sequence[float],
    scales: Sequence[Scalar],
) -> JointRates:
    """Joint rates and their derivatives.

    Args:
        q: joint variables (n).
        twists: V, Vd, … (6) each.
        null_motion: u, ud, … (n) for each twist, in units of ``scales``.
        inverse: inverse of K, (6 x 6), or (m x m) with m < 6 moving joints.
        squared_damping: d².
        reference: as for :func:`.jacobian`.
        moving: indices of the joint variables that move the tool.
        units: factors (6) of the rows, 0 for free rows; K has rows in these units.
        scales: units (n) of the joint rates; K has columns in these units.
    """
    wide = len(moving) >= len(units)
    rates: list[Numbers] = []
    x: list[Numbers] = []
    y: list[Numbers] = []
    missed: list[Numbers] = []
    for V, u in zip(twists, null_motion, strict=True):
        levels = jacobian(tree, [q, *rates], reference)
        J = [[[unit * level[j][i] * scales[j] for j in moving] for i, unit in enumerate(units)] for level in levels]
        Jt = [transposed(level) for level in J]
        preferred = [u[j] for j in moving]
        rest = minus([unit * entry for unit, entry in zip(units, V, strict=True)], _known(J, x))
        if wide:
            known = plus(preferred, _known(Jt, y))
            y.append(product(inverse, minus(rest, product(J[0], known))))
            x.append(plus(known, product(Jt[0], y[-1])))
        else:
            right = plus(product(Jt[0], rest), _known(Jt, missed))
            x.append(product(inverse, plus(right, [squared_damping * u for u in preferred])))
        missed.append(minus(rest, product(J[0], x[-1])))
        every = dict(enumerate(u)) | dict(zip(moving, x[-1], strict=True))
        rates.append([value * scales[j] for j, value in sorted(every.items())])
    in_si = [
        [entry * (1.0 / unit if unit else 0.0) for entry, unit in zip(level, units, strict=True)] for level in missed
    ]
    return JointRates(rates, in_si)


def _known(matrices: Sequence[Matrix], vectors: Sequence[Numbers]) -> Numbers:
    """Derivative of the product of a matrix and a vector, without the term of the vector's next derivative."""
    k = len(vectors)
    total: Numbers = [0.0] * len(matrices[0])
    for j in range(1, k + 1):
        total = plus(total, [comb(k, j) * b for b in product(matrices[j], vectors[k - j])])
    return total
