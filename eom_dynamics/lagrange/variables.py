# SPDX-License-Identifier: Apache-2.0
"""Symbols of generalised coordinates and their time derivatives: q1, qd1, qdd1."""

from __future__ import annotations

import re
from typing import Any

import sympy as sp


def variables(names: int | str, prefix: str = "q") -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Symbols of coordinates, and those of their rates.

    Args:
        names: names separated by spaces; or a number n, for q1 … qn.
        prefix: in place of q.

    >>> variables("x theta")
    ((x, theta), (xd, thetad))
    """
    listed = names.split() if isinstance(names, str) else [f"{prefix}{i + 1}" for i in range(names)]
    q = tuple(sp.Symbol(name, real=True) for name in listed)
    return q, tuple(map(rate, q))


def rate(variable: Any) -> Any:
    """Symbol of the time derivative: qd1 of q1, qdd1 of qd1, xd of x."""
    letters, digits = _split(variable.name)
    return sp.Symbol(f"{letters}d{digits}", real=True)


def latex_names(q: tuple[Any, ...]) -> dict[Any, str]:
    """LaTeX of the first two time derivatives of coordinates, with dots."""
    names = {}
    for variable in q:
        head, _, index = sp.latex(variable).partition("_")
        index = f"_{index}" if index else ""
        first = rate(variable)
        names[first], names[rate(first)] = rf"\dot{{{head}}}{index}", rf"\ddot{{{head}}}{index}"
    return names


def _split(name: str) -> tuple[str, str]:
    found = re.fullmatch(r"(.*?)(_?\d*)", name)
    assert found is not None  # the pattern takes any name
    return found[1], found[2]
