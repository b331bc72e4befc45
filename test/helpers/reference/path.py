# SPDX-License-Identifier: Apache-2.0
"""Motions along a path."""

import numpy as np

from eom_dynamics.arrays import Array


def chain(path: Array, s: Array) -> Array:
    """State (5, n) of q(s(t)) from that of q(s), and s with four derivatives: Faa di Bruno's formula."""
    q, v, a, j, k = path, *s[1:]
    return np.stack(
        [
            *(q[0], q[1] * v, q[2] * v**2 + q[1] * a),
            *(
                q[3] * v**3 + 3 * q[2] * v * a + q[1] * j,
                q[4] * v**4 + 6 * q[3] * v**2 * a + q[2] * (3 * a**2 + 4 * v * j) + q[1] * k,
            ),
        ]
    )
