# SPDX-License-Identifier: Apache-2.0
"""Phi functions, which solve linear first-order filters over a time step."""

from __future__ import annotations

from math import factorial

import numpy as np

from ...arrays import Array

# Up to here powers of z are summed, where the recursion would divide differences of nearly equal numbers by z.
_EXPANSION_END = 4.0
_TERMS = 40


def phi_functions(z: float | Array, count: int) -> list[Array]:
    """phi_0(-z) … phi_{count-1}(-z), z >= 0: integrals of exp(-z (1 - s)) s^(k-1)/(k-1)! over s from 0 to 1.

    M. Hochbruck and A. Ostermann, "Exponential integrators", Acta Numerica 19 (2010), equations (2.9) to (2.11):
    phi_0(x) = exp(x), phi_k(x) = sum over j of x^j/(j + k)!, x phi_{k+1}(x) = phi_k(x) - 1/k!.
    """
    z = np.asarray(z, dtype=float)
    small = np.minimum(z, _EXPANSION_END)
    # The highest by a sum of positive terms, phi_k(-z) = exp(-z) sum z^j/(j! (j + k) (k - 1)!), the lower ones by
    # downward recursion, which is stable.
    k = count - 1
    term, total = np.ones_like(small), np.full_like(small, 1 / k)
    for j in range(1, _TERMS):
        term = term * small / j
        total = total + term / (j + k)
    expansion = [np.exp(-small) * total / factorial(k - 1)]
    for j in range(k - 1, -1, -1):
        expansion.insert(0, 1 / factorial(j) - small * expansion[0])
    large = np.maximum(z, _EXPANSION_END)
    recursion = [np.exp(-large)]
    for j in range(k):
        recursion.append((1 / factorial(j) - recursion[-1]) / large)
    return [np.where(z <= _EXPANSION_END, s, r) for s, r in zip(expansion, recursion, strict=True)]
