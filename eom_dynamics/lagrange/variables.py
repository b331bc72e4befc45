# SPDX-License-Identifier: Apache-2.0
"""Symbols of generalised coordinates and their time derivatives: q1, qd1, qdd1, qddd1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sympy as sp

from ..exceptions import EomDynamicsError
from ..spelling import duplicates


class LagrangianError(EomDynamicsError, ValueError):
    """Coordinates or energies do not define a Lagrangian."""


def variables(names: int | str, prefix: str = "q") -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Symbols of coordinates and of their rates.

    Args:
        names: names separated by spaces; or a number n, for q1 … qn.
        prefix: in place of q.

    A rate has its d before the index: xd of x, and xd0 of x0.

    Raises:
        LagrangianError: there is no name, one is repeated, or one is that of the rate of another.

    >>> variables("x theta")
    ((x, theta), (xd, thetad))
    """
    if isinstance(names, str):
        listed = names.split()
    elif isinstance(names, int) and not isinstance(names, bool):
        listed = [f"{prefix}{i + 1}" for i in range(names)]
    else:
        listed = []
    if not listed:
        raise LagrangianError(f"names must be names separated by spaces, or a number from 1, is {names!r:.60}")
    q = tuple(sp.Symbol(name, real=True) for name in listed)
    check_coordinates(q)
    return q, tuple(map(rate, q))


def check_coordinates(q: Sequence[Any]) -> None:
    """Check symbols of coordinates.

    Raises:
        LagrangianError: one is not a symbol, is repeated, or has the name of a time derivative of another.
    """
    for x in q:
        if not isinstance(x, sp.Symbol):
            raise LagrangianError(f"q must be a tuple of symbols, see variables; {x!r:.60} is none")
    names = [x.name for x in q]
    if again := duplicates(names):
        raise LagrangianError(f"coordinate {again[0]} is listed twice")
    for x in q:
        for derivative, what in zip(derivatives(x, names), ("rate", "acceleration", "jerk", "snap"), strict=False):
            if derivative.name in names:
                raise LagrangianError(
                    f"coordinate {derivative.name} has the name of the {what} of {x.name}; choose another name"
                )


def derivatives(variable: Any, names: Iterable[str]) -> Iterator[Any]:
    """Symbols of the time derivatives of a variable, from its rate on, as long as one of the names may be theirs."""
    longest = max(map(len, names), default=0)
    while len(variable.name) < longest:
        variable = rate(variable)
        yield variable


def rate(variable: Any) -> Any:
    """Symbol of the time derivative: qd1 of q1, qdd1 of qd1, xd of x, xd0 of x0."""
    letters, digits = _split(variable.name)
    return sp.Symbol(f"{letters}d{digits}", real=True)


def latex_names(q: tuple[Any, ...]) -> dict[Any, str]:
    """LaTeX of the first four time derivatives of variables, with dots."""
    names = {}
    for variable in q:
        head, _, index = sp.latex(variable).partition("_")
        index = f"_{index}" if index else ""
        for dots in DOTS:
            variable = rate(variable)
            names[variable] = rf"\{dots}{{{head}}}{index}"
    return names


DOTS = ("dot", "ddot", "dddot", "ddddot")
"""LaTeX accents of the first four time derivatives."""


def _split(name: str) -> tuple[str, str]:
    found = re.fullmatch(r"(.*?)(_?\d*)", name)
    assert found is not None  # the pattern takes any name
    return found[1], found[2]
