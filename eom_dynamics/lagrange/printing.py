# SPDX-License-Identifier: Apache-2.0
"""Equations of motion as LaTeX, and as functions in Python (NumPy) and C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import sympy as sp
from sympy.codegen.rewriting import create_expand_pow_optimization
from sympy.printing.c import C99CodePrinter
from sympy.printing.numpy import NumPyPrinter

from ..arguments import choice, count
from ..states import STATE_NAMES
from .lagrangian import Lagrangian
from .variables import DOTS, latex_names, rate


def latex(system: Lagrangian, order: int = 0) -> str:
    """The terms M, c and g (and friction, forces) and the equations of motion, as LaTeX with a display equation each.

    Numbers are decimals, time derivatives have dots. Efforts are numbered by row; that of a coordinate with another
    number, such as the motor theta1 behind two joints, has the coordinate as its index.

    Args:
        system: the system.
        order: of the highest time derivative of the efforts, at most 2.

    Raises:
        StateError: ``order`` is something else.
    """
    count(order, "order", most=MOST_ORDER)
    names = latex_names((*system.q, *system.inputs))

    def printed(expression: Any) -> str:
        text: str = sp.latex(_decimals(expression), symbol_names=names)
        return text

    indices = [_effort_index(x, i, printed(x)) for i, x in enumerate(system.q, start=1)]
    terms = [("M", system.M), ("c", system.velocity_terms), ("g", system.gravity)]
    if system.dissipation != 0:
        terms.append((r"\tau_{f}", system.friction))
    if any(system.forces):
        terms.append(("Q", sp.ImmutableMatrix(system.forces)))
    lines = [f"{name} = {printed(value)}" for name, value in terms]
    for dots, rows in zip((r"\tau", *(rf"\{each}{{\tau}}" for each in DOTS)), system.efforts(order), strict=False):
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
        language: ``python`` or ``c``.
        order: of the highest time derivative of the efforts: 1 adds effort_rate, 2 effort_acceleration, too.

    Raises:
        StateError: the language is unknown, or the order is not 0, 1 or 2.
    """
    choice(language, "language", LANGUAGES)
    efforts = system.efforts(count(order, "order", most=MOST_ORDER))
    taken = {str(x) for x in system.q} | {str(x) for x in efforts[-1].free_symbols | efforts[0].free_symbols}
    states, symbols = [], system.q
    for name in STATE_NAMES[: order + 3]:
        states.append((_untaken(name, taken), symbols))
        symbols = tuple(map(rate, symbols))
    functions = [
        ("mass_matrix", system.M, states[:1]),
        ("velocity_terms", system.velocity_terms, states[:2]),
        ("gravity", system.gravity, states[:1]),
    ]
    names = ("effort", "effort_rate", "effort_acceleration")
    functions += [(name, effort, states[: k + 3]) for k, (name, effort) in enumerate(zip(names, efforts, strict=False))]
    known = {symbol for _, vector in states for symbol in vector}
    header, function = LANGUAGES[language]
    texts = [header]
    for name, matrix, arguments in functions:
        parameters = sorted(matrix.free_symbols - known, key=str)
        texts.append(function(name, matrix, arguments, parameters, _untaken("out", taken)))
    return "\n\n".join(texts)


MOST_ORDER = 2
"""Of the time derivatives of efforts that are printed; :meth:`Lagrangian.efforts` has all."""


def _python(name: str, matrix: Any, states: Sequence[Any], parameters: Sequence[Any], _: str) -> str:
    printer = NumPyPrinter()
    printed = printer.doprint
    steps, body = _steps(matrix, states)
    rows = [[printed(x) for x in body.row(i)] for i in range(body.rows)]
    entries = ", ".join(f"[{', '.join(row)}]" if body.cols > 1 else row[0] for row in rows)
    lines = [
        f"def {name}({', '.join([vector for vector, _ in states] + [printed(p) for p in parameters])}):",
        *(f"    ({', '.join(map(printed, symbols))},) = {vector}" for vector, symbols in states),
        *(f"    {symbol} = {printed(value)}" for symbol, value in steps),
        f"    return numpy.array([{entries}], dtype=float)",
    ]
    return "\n".join(lines) + "\n"


def _c(name: str, matrix: Any, states: Sequence[Any], parameters: Sequence[Any], out: str) -> str:
    printer = C99CodePrinter()
    printed, powers = printer.doprint, create_expand_pow_optimization(4)
    steps, body = _steps(matrix, states)
    arguments = [f"const double {vector}[{len(symbols)}]" for vector, symbols in states]
    arguments += [f"double {printed(p)}" for p in parameters]
    arguments += [f"double {out}[{body.rows * body.cols}]"]
    used = set().union(*(value.free_symbols for _, value in steps), body.free_symbols)
    lines = [f"void {name}({', '.join(arguments)})", "{"]
    for vector, symbols in states:
        read = [f"    const double {printed(x)} = {vector}[{i}];" for i, x in enumerate(symbols) if x in used]
        lines += read or [f"    (void){vector};"]
    lines += [f"    const double {symbol} = {printed(powers(value))};" for symbol, value in steps]
    lines += [f"    {out}[{i}] = {printed(powers(x))};" for i, x in enumerate(body)]
    return "\n".join([*lines, "}"]) + "\n"


def _untaken(name: str, taken: set[str]) -> str:
    """The name, with underscores where a symbol has it."""
    while name in taken:
        name += "_"
    return name


def _steps(matrix: Any, states: Sequence[Any]) -> tuple[list[tuple[Any, Any]], Any]:
    """Common subexpressions, and the matrix in terms of them; numbers as decimals."""
    taken = {str(x) for x in matrix.free_symbols} | {str(x) for _, symbols in states for x in symbols}
    # By name, since symbols of one name may differ in their assumptions.
    symbols = (x for x in sp.numbered_symbols("x") if str(x) not in taken)
    steps, body = sp.cse(_decimals(matrix, 17), symbols=symbols, list=False)
    return steps, body


def _decimals(expression: Any, digits: int = 15) -> Any:
    """Floating-point numbers in place of fractions; halves and other powers stay as they are."""
    fractions = {x: sp.Float(x, digits) for x in expression.atoms(sp.Rational) if not x.is_Integer}
    return expression.xreplace(fractions)


LANGUAGES: Mapping[str, tuple[str, Callable[..., str]]] = MappingProxyType(
    {"python": ("import numpy", _python), "c": ("#include <math.h>", _c)}
)
"""Languages of :func:`code`: header, and printer of a function."""
