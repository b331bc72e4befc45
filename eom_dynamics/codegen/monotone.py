# SPDX-License-Identifier: Apache-2.0
"""Increasing functions as small programs, whose roots are an operation of larger ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import elementary
from ..jet import Jet
from .expressions import ELEMENTARY, Expression, Graph, Node, Op, Scalar
from .program import OutputEntry, Program, trace


@dataclass(frozen=True)
class MonotoneFunction:
    """An increasing function f(x; p).

    Attributes:
        program: from x and the parameters p to f and its first two derivatives with respect to x.
    """

    program: Program

    def __hash__(self) -> int:
        return hash((self.program.nodes, self.program.results))

    def __repr__(self) -> str:
        return f"MonotoneFunction({self.program.nodes!r}, {self.program.results!r})"

    def values(self, x: Scalar, parameters: Sequence[Scalar]) -> list[Scalar]:
        """f and its derivatives at scalars."""
        given, values = [x, *parameters], list[Scalar]()
        for node in self.program.nodes:
            operands = [values[k] for k in node.operands]
            values.append(given[node.constant] if node.op is Op.INPUT else _OPERATIONS[node.op](*operands))
        return [r.factor if r.node is None else r.factor * values[r.node] for r in self.program.results]


_OPERATIONS: dict[Op, Callable[..., Scalar]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.RECIPROCAL: lambda x: 1.0 / x,
    **{op: getattr(elementary, op.value) for op in (*ELEMENTARY, Op.SQRT, Op.SELECT)},
}


def root(
    function: Callable[..., Jet],
    target: Scalar,
    bounds: tuple[Scalar, Scalar],
    start: Scalar,
    parameters: tuple[Scalar, ...],
    graph: Graph,
) -> Expression:
    """The operation of :func:`eom_dynamics.elementary.root`.

    Numbers of the function become further parameters, so that one function serves all joints with a kind of spring.
    """
    own = len(parameters)

    def compute(x: dict[str, list[Expression]]) -> dict[str, list[Scalar]]:
        return {"f": list(function(Jet([x["x"][0], 1.0, 0.0]), *x["p"]))}

    traced, numbers = _with_numbers_as_parameters(trace("function", {"x": 1, "p": own}, compute), own)
    scalars = (target, *bounds, start, *parameters, *numbers)
    node = Node(Op.ROOT, tuple(map(graph.operand, scalars)), MonotoneFunction(traced))
    return Expression(graph, graph.node(node))


def _with_numbers_as_parameters(program: Program, own: int) -> tuple[Program, list[float]]:
    numbers: dict[float, int] = {}
    nodes: list[Node] = []
    place: dict[Node, int] = {}

    def add(node: Node) -> int:
        if node not in place:
            place[node] = len(nodes)
            nodes.append(node)
        return place[node]

    def parameter(number: float) -> int:
        return add(Node(Op.INPUT, (), 1 + own + numbers.setdefault(number, len(numbers))))

    moved: list[int] = []
    for node in program.nodes:
        operands = tuple(moved[k] for k in node.operands)
        if node.op is Op.CONSTANT:
            moved.append(parameter(node.constant))
        elif node.op in (Op.SCALE, Op.SHIFT):
            op = Op.MUL if node.op is Op.SCALE else Op.ADD
            moved.append(add(Node(op, (*operands, parameter(node.constant)))))
        else:
            moved.append(add(node._replace(operands=operands)))
    results = []
    for result in program.results:
        if result.node is None or result.factor in (1.0, -1.0):
            results.append(result if result.node is None else OutputEntry(moved[result.node], result.factor))
        else:
            results.append(OutputEntry(add(Node(Op.MUL, (moved[result.node], parameter(result.factor)))), 1.0))
    inputs = {"x": 1, "p": own + len(numbers)}
    return Program(program.name, inputs, program.outputs, tuple(nodes), tuple(results)), list(numbers)
