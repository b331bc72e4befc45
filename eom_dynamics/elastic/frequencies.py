# SPDX-License-Identifier: Apache-2.0
"""Natural frequencies of links on their springs."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from .elastic_arm import ElasticArm


def lowest_frequency(arm: ElasticArm, M: Array) -> float:
    """Lowest frequency of links with mass matrices M (..., n, n) on unloaded springs, with motors at rest, rad/s.

    Raises:
        StateError: the arm has no springs, or none with stiffness at rest.
    """
    E = np.eye(arm.robot.n)[arm.motor_joint]
    K = E.T @ arm.spring_set.tangents(np.zeros(len(E)))[0] @ E
    # NumPy 1 takes a matrix beside a stack of them for a stack of vectors.
    squares = np.linalg.eigvals(np.linalg.solve(M, np.broadcast_to(K, M.shape))).real
    # Links on rigid joints have none.
    elastic = squares[squares > 1e-9 * np.max(squares)]
    if not elastic.size:
        raise StateError(f"{arm.robot.name} has no springs with stiffness at rest, so no feedback of links")
    return float(np.sqrt(np.min(elastic)))
