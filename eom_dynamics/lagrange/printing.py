# SPDX-License-Identifier: Apache-2.0
"""Equations of motion as LaTeX, and as functions in Python (NumPy) and C, by SymPy's printers and code generators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import sympy as sp
from sympy.utilities.codegen import C99CodeGen

from ..arguments import choice, count
from ..spelling import unused_name
from ..states import STATE_NAMES
from .lagrangian import DOTS, Lagrangian, latex_names, rate


def latex(system: Lagrangian, order: int = 0) -> str:
    """The terms M, c and g (and friction, forces) and the equations of motion, as LaTeX with a display equation each.

    Numbers are decimals, time derivatives have dots. Efforts are numbered by row; that of a coordinate with another
    number, such as the motor theta1 behind two joints, has the coordinate as its index. The order of the highest time
    derivative of the efforts is at most 2; else StateError.
    """
    count(order, "order", most=MOST_ORDER)
    names = latex_names((*system.q, *system.inputs))

    def printed(expression: Any) -> str:
        return sp.latex(_decimals(expression), symbol_names=names)

    indices = [_effort_index(x, i, printed(x)) for i, x in enumerate(system.q, start=1)]
    terms = [("M", system.M), ("c", system.velocity_terms), ("g", system.gravity)]
    if system.dissipation != 0:
        terms.append((r"\tau_{f}", system.friction))
    if any(system.forces):
        terms.append(("Q", sp.ImmutableMatrix(system.forces)))
    lines = [f"{name} = {printed(value)}" for name, value in terms]
    for dots, rows in zip((r"\tau", *(rf"\{accent}{{\tau}}" for accent in DOTS)), system.efforts(order), strict=False):
        lines += [f"{dots}_{{{index}}} = {printed(row)}" for index, row in zip(indices, rows, strict=True)]
    return "\n".join(f"\\[ {line} \\]" for line in lines) + "\n"


def _effort_index(coordinate: Any, row: int, name: str) -> str:
    """Index of the effort of a coordinate: its row, unless the coordinate has another number."""
    letters = coordinate.name.rstrip("0123456789")
    return name if coordinate.name not in (letters, f"{letters}{row}") else str(row)


def code(system: Lagrangian, language: str = "python", order: int = 0) -> str:
    """Functions mass_matrix, velocity_terms, gravity and effort in a language; common subexpressions are shared.

    Each takes q, qd, qdd, … as far as it depends on them in general, then the parameters and inputs that are symbols,
    in alphabetical order. Python functions return NumPy arrays; C functions write to their last argument, row by row.

    Args:
        system: the system.
        language: ``python`` or ``c``; StateError for another one.
        order: of the highest time derivative of the efforts: 1 adds effort_rate, 2 effort_acceleration, too; else
            StateError.
    """
    choice(language, "language", LANGUAGES)
    efforts = system.efforts(count(order, "order", most=MOST_ORDER))
    terms = [("mass_matrix", system.M, 1), ("velocity_terms", system.velocity_terms, 2), ("gravity", system.gravity, 1)]
    terms += [(f"effort{_SUFFIXES[k]}", effort, k + 3) for k, effort in enumerate(efforts)]
    vectors, symbols = [], system.q
    for _ in STATE_NAMES[: order + 3]:
        vectors.append(symbols)
        symbols = tuple(map(rate, symbols))
    states = {x for vector in vectors for x in vector}
    taken = {str(x) for effort in efforts for x in effort.free_symbols - states}
    names = [unused_name(name, taken) for name in (*STATE_NAMES[: order + 3], "out")]
    header, function = LANGUAGES[language]
    texts = [header]
    for name, matrix, k in terms:
        # Without their assumptions, by which SymPy would tell a parameter x0 from its own x0 of a subexpression.
        plain = {x: sp.Symbol(x.name) for x in matrix.free_symbols - states}
        matrix, parameters = matrix.xreplace(plain), sorted(plain.values(), key=str)
        vectors_of_term = dict(zip(names, vectors[:k], strict=False))
        texts.append(function(name, _decimals(matrix, 17), vectors_of_term, parameters, names[-1]))
    return "\n\n".join(texts)


MOST_ORDER = 2
"""Of the time derivatives of efforts that are printed; :meth:`Lagrangian.efforts` has all."""

_SUFFIXES = ("", "_rate", "_acceleration")


def _python(name: str, matrix: Any, states: Mapping[str, Any], parameters: Sequence[Any], _: str) -> str:
    vectors = [sp.DeferredVector(vector) for vector in states]
    entries = {x: v[i] for v, symbols in zip(vectors, states.values(), strict=True) for i, x in enumerate(symbols)}
    result = matrix if matrix.cols > 1 else sp.Array(matrix.flat())
    function = sp.lambdify([*vectors, *parameters], result.xreplace(entries), "numpy", cse=True)
    return inspect.getsource(function).replace("_lambdifygenerated", name)


def _c(name: str, matrix: Any, states: Mapping[str, Any], parameters: Sequence[Any], out: str) -> str:
    vectors = [sp.MatrixSymbol(vector, len(symbols), 1) for vector, symbols in states.items()]
    entries = {x: v[i, 0] for v, symbols in zip(vectors, states.values(), strict=True) for i, x in enumerate(symbols)}
    result = sp.MatrixSymbol(out, *matrix.shape)
    generator = C99CodeGen(cse=True)
    equation = sp.Eq(result, matrix.xreplace(entries), evaluate=False)
    routine = generator.routine(name, equation, [*vectors, *parameters, result])
    (_, text), _ = generator.write([routine], name, header=False)
    return str(text.split("\n\n", 1)[1])


def _decimals(expression: Any, digits: int = 15) -> Any:
    """Floating-point numbers in place of fractions; halves and other powers stay as they are."""
    fractions = {x: sp.Float(x, digits) for x in expression.atoms(sp.Rational) if not x.is_Integer}
    return expression.xreplace(fractions)


LANGUAGES: Mapping[str, tuple[str, Callable[..., str]]] = MappingProxyType(
    {"python": ("from numpy import *", _python), "c": ("#include <math.h>", _c)}
)
"""Languages of :func:`code`: header, and printer of a function."""
