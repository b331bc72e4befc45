# SPDX-License-Identifier: Apache-2.0
"""Programs as Python functions, over numbers, NumPy arrays or symbols, and as CasADi functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import elementary
from ..exceptions import require
from ..jet import Jet
from ..lie import sincos
from .expressions import Op
from .program import MonotoneFunction, Program
from .straight_line import FUNCTIONS, Syntax, straight_line

_PYTHON = Syntax("    {name} = {value}", nan="nan", infinity="inf")


def python_function(program: Program) -> Callable[[Sequence[Any]], list[Any]]:
    """Function of the list of all input entries that returns the list of all output entries.

    Entries may have any type with + - * / and the functions of :mod:`eom_dynamics.elementary`. Arrays of equal shape
    are evaluated elementwise.
    """
    inputs = [f"x[{i}]" for i in range(sum(program.inputs.values()))]
    lines, results = straight_line(program, inputs, _PYTHON)
    taken = [f"    s{k}, c{k} = sincos({_PYTHON.angle(angle, inputs)})" for k, angle in enumerate(program.angles)]
    source = ["def evaluate(x):", *taken, *lines, f"    return [{', '.join(results)}]"]
    namespace: dict[str, Any] = {"sincos": sincos, "nan": float("nan"), "inf": float("inf")}
    namespace |= {op.value: getattr(elementary, op.value) for op in FUNCTIONS if program.uses(op)}
    for k, table in enumerate(program.constants(Op.INDEX, Op.LOOKUP)):
        namespace[f"index_{k}"] = partial(elementary.index, points=table)
        namespace[f"lookup_{k}"] = partial(elementary.lookup, table=table)
    namespace |= {f"root_{k}": _root(function) for k, function in enumerate(program.constants(Op.ROOT))}
    exec(compile("\n".join(source), f"<{program.name}>", "exec"), namespace)
    return namespace["evaluate"]


def _root(function: MonotoneFunction) -> Callable[..., Any]:
    evaluate = python_function(function.program)

    def jet(x: Jet, *parameters: Any) -> Jet:
        return Jet(evaluate([x[0], *parameters]))

    def root(target: Any, low: Any, high: Any, start: Any, *parameters: Any) -> Any:
        return elementary.root(jet, target, (low, high), start, parameters)

    return root


def casadi_function(program: Program) -> Any:
    """Program as a ``casadi.Function`` with named inputs and outputs, all columns."""
    require("casadi")
    casadi: Any = importlib.import_module("casadi")
    symbols = [casadi.SX.sym(key, size) for key, size in program.inputs.items()]
    results = iter(python_function(program)([x for symbol in symbols for x in casadi.vertsplit(symbol)]))
    values = [casadi.vertcat(*(next(results) for _ in range(size))) for size in program.outputs.values()]
    return casadi.Function(program.name, symbols, values, list(program.inputs), list(program.outputs))
