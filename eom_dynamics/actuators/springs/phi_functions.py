# SPDX-License-Identifier: Apache-2.0
"""Phi functions, which solve linear first-order filters over a time step."""

from __future__ import annotations

from math import factorial
from typing import Any

from ...elementary import exp, select

# Up to here powers of z are summed, where the recursion would divide differences of nearly equal numbers by z.
_EXPANSION_END = 4.0
_TERMS = 40


def phi_functions(z: Any, count: int) -> list[Any]:
    """phi_0(-z) … phi_{count-1}(-z), z >= 0: integrals of exp(-z (1 - s)) s^(k-1)/(k-1)! over s from 0 to 1.

    M. Hochbruck and A. Ostermann, "Exponential integrators", Acta Numerica 19 (2010), equations (2.9) to (2.11):
    phi_0(x) = exp(x), phi_k(x) = sum over j of x^j/(j + k)!, x phi_{k+1}(x) = phi_k(x) - 1/k!.
    """
    is_large = z - _EXPANSION_END
    small, large = select(is_large, _EXPANSION_END, z), select(is_large, z, _EXPANSION_END)
    # The highest by a sum of positive terms, phi_k(-z) = exp(-z) sum z^j/(j! (j + k) (k - 1)!), the lower ones by
    # downward recursion, which is stable.
    k = count - 1
    total: Any = 0.0
    for j in range(_TERMS - 1, -1, -1):
        total = total * small + 1 / (factorial(j) * (j + k))
    expansion = [exp(-small) * total * (1 / factorial(k - 1))]
    for j in range(k - 1, -1, -1):
        expansion.insert(0, 1 / factorial(j) - small * expansion[0])
    recursion = [exp(-large)]
    inverse = 1.0 / large
    for j in range(k):
        recursion.append((1 / factorial(j) - recursion[-1]) * inverse)
    return [select(is_large, r, s) for s, r in zip(expansion, recursion, strict=True)]
