# SPDX-License-Identifier: Apache-2.0
"""Program text in any language, a definition for each operation, an expression for each result; programs in Python.

Languages differ in the syntax of inputs, definitions and products, and in function names. Operations and their order
are shared.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import elementary
from ..exceptions import require
from ..jet import Jet
from ..lie import sincos
from .expressions import ELEMENTARY, Node, Op
from .program import MonotoneFunction, Program, SinCosArgument

FUNCTIONS = ELEMENTARY | {Op.SQRT, Op.SELECT}
"""Operations written as calls of a function of the same name."""


@dataclass(frozen=True)
class Syntax:
    """Syntax of a language.

    Attributes:
        define: format of a definition, with the fields ``{name}`` and ``{value}``.
        times: multiplication operator.
        function: format of a function name, with the field ``{name}``. In addition to :data:`FUNCTIONS` there are
            ``index_<table>`` and ``lookup_<table>``, numbered by ``program.constants(INDEX, LOOKUP)``, and
            ``root_<k>``, numbered by ``program.constants(ROOT)``.
        number: format of a constant argument of a function, with the field ``{value}``.
        nan, infinity: expressions of these numbers.
    """

    define: str
    times: str = "*"
    function: str = "{name}"
    number: str = "{value}"
    nan: str = "(0.0 / 0.0)"
    infinity: str = "(1.0 / 0.0)"

    def constant(self, value: float) -> str:
        """Expression of a number."""
        if math.isnan(value):
            return self.nan
        if math.isinf(value):
            return self.infinity if value > 0 else f"(-{self.infinity})"
        return repr(value)

    def angle(self, angle: SinCosArgument, inputs: Sequence[str]) -> str:
        """Expression of an angle, from expressions of the entries of all inputs."""
        scaled = inputs[angle.position]
        if angle.scale != 1:
            scaled = f"{scaled} {self.times} {self.constant(angle.scale)}"
        return f"{scaled} + {self.constant(angle.shift)}" if angle.shift else scaled


class NodeExpressions:
    """Expressions of the values of a program's nodes in a language."""

    def __init__(
        self, program: Program, inputs: Sequence[str], sines: Sequence[tuple[str, str]], syntax: Syntax
    ) -> None:
        """Set the expressions of all input entries, and of sine and cosine of each angle of the program."""
        self._program, self.syntax = program, syntax
        self._tables = {table: k for k, table in enumerate(program.constants(Op.INDEX, Op.LOOKUP))}
        self._roots = {function: k for k, function in enumerate(program.constants(Op.ROOT))}
        known = dict(zip(program.angles, sines, strict=True))
        self._names: dict[int, str] = {}
        for index, node in enumerate(program.nodes):
            if node.op is Op.INPUT:
                self._names[index] = inputs[node.constant]
            elif node.op in (Op.SIN, Op.COS):
                self._names[index] = known[program.angle(node)][node.op is Op.COS]
            elif node.op is Op.CONSTANT:
                self._names[index] = syntax.number.format(value=syntax.constant(node.constant))
            else:
                self._names[index] = value_name(index)

    def name(self, index: int) -> str:
        """Expression of a defined node's value."""
        return self._names[index]

    def function(self, node: Node) -> str:
        """Function name of an operation."""
        name = node.op.value
        if node.op in (Op.INDEX, Op.LOOKUP):
            name = f"{name}_{self._tables[node.constant]}"
        elif node.op is Op.ROOT:
            name = f"{name}_{self._roots[node.constant]}"
        return self.syntax.function.format(name=name)

    def value(self, index: int) -> str:
        """Expression that computes the value of a node."""
        node, times = self._program.nodes[index], self.syntax.times
        operands = [self._names[k] for k in node.operands]
        if node.op is Op.SCALE:
            return f"{operands[0]} {times} {self.syntax.constant(node.constant)}"
        if node.op is Op.SHIFT:
            return f"{operands[0]} + {self.syntax.constant(node.constant)}"
        if node.op is Op.RECIPROCAL:
            return f"{self.syntax.constant(1.0)} {times.replace('*', '/')} {operands[0]}"
        if node.op in (Op.ADD, Op.SUB, Op.MUL):
            return f" {_SIGNS.get(node.op, times)} ".join(operands)
        return f"{self.function(node)}({', '.join(operands)})"

    def definition(self, index: int) -> str:
        """Line that defines the value of a node."""
        return self.syntax.define.format(name=self._names[index], value=self.value(index))

    def results(self) -> list[str]:
        """Expression of each output entry."""
        return [
            self.syntax.constant(result.factor)
            if result.node is None
            else f"{'-' * (result.factor < 0)}{self._names[result.node]}"
            if abs(result.factor) == 1
            else f"{self._names[result.node]} {self.syntax.times} {self.syntax.constant(result.factor)}"
            for result in self._program.results
        ]


_SIGNS = {Op.ADD: "+", Op.SUB: "-"}


def straight_line(program: Program, inputs: Sequence[str], syntax: Syntax) -> tuple[list[str], list[str]]:
    """Lines of the :func:`definitions` of a program, and an expression for each entry of its outputs.

    Sines are s0, ..., cosines c0, ...; arguments as in :class:`NodeExpressions`.
    """
    values = NodeExpressions(program, inputs, [(f"s{k}", f"c{k}") for k in range(len(program.angles))], syntax)
    return list(map(values.definition, definitions(program))), values.results()


def definitions(program: Program) -> list[int]:
    """Nodes that are computed: no inputs, constants, sines, cosines, nor operations that only sines and cosines use."""
    known = Op.INPUT, Op.CONSTANT, Op.SIN, Op.COS
    needed = {result.node for result in program.results if result.node is not None}
    for index in reversed(range(len(program.nodes))):
        node = program.nodes[index]
        if index in needed and node.op not in (Op.SIN, Op.COS):
            needed.update(node.operands)
    return [index for index in sorted(needed) if program.nodes[index].op not in known]


def value_name(node: int) -> str:
    """Name of the value of a node."""
    return f"v{node}"


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
