# SPDX-License-Identifier: Apache-2.0
"""Quadratic programs over second-order cones, by the interior-point solver Clarabel (the extra ``contacts``).

P. J. Goulart and Y. Chen, "Clarabel: an interior-point solver for conic programs with quadratic objectives" (2024). It
takes second-order cones as they are, so that exact friction cones need no pyramids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix

from ..arrays import Array
from ..exceptions import ContactError
from ..extras import require

# Relative accuracy of the cost; that of the solution is about its square root where the cost is flat.
_ACCURACY = 1e-10


def minimize(
    P: Array, p: Array, equal: tuple[Array, Array], below: tuple[Array, Array], cones: Array, reason: str
) -> Array:
    """Minimise u' P u / 2 + p' u over E u = e, A u <= a, with every three rows of B u in a second-order cone.

    Args:
        P, p: (k, k) positive semidefinite and (k,).
        equal: E, e.
        below: A, a.
        cones: B.
        reason: message of the error if there is no such u.

    Raises:
        ContactError: there is no such u.
        MissingLibraryError: Clarabel is not installed.
    """
    require("contacts")
    import clarabel

    (E, e), (A, a) = equal, below
    size = len(p)
    rows = np.concatenate([E, A, -cones])
    bounds = np.concatenate([e, a, np.zeros(len(cones))])
    kinds: list[Any] = []
    if len(e):
        kinds.append(clarabel.ZeroConeT(len(e)))
    if len(a):
        kinds.append(clarabel.NonnegativeConeT(len(a)))
    kinds += [clarabel.SecondOrderConeT(3)] * (len(cones) // 3)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _ACCURACY
    # For problems of this size a second thread costs more than it saves.
    settings.max_threads = 1
    solver = clarabel.DefaultSolver(
        csc_matrix(np.triu(P), shape=(size, size)), p, csc_matrix(rows, shape=rows.shape), bounds, kinds, settings
    )
    solution = solver.solve()
    if solution.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        raise ContactError(f"{reason} (Clarabel: {solution.status})")
    return np.array(solution.x)
