# SPDX-License-Identifier: Apache-2.0
"""Straight-line programs, traced from a computation for one robot.

The root of an increasing function is a single operation; the function is a small program.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from .. import elementary
from ..jet import Jet
from .expressions import ARITHMETIC, ELEMENTARY, Expression, Graph, Node, Op, Scalar

Sizes: TypeAlias = Mapping[str, int]


@dataclass(frozen=True)
class OutputEntry:
    """Output entry: ``factor`` times a node, or the number ``factor`` if the node is None."""

    node: int | None
    factor: float


class SinCosArgument(NamedTuple):
    """Argument of a sine or cosine: ``scale`` times the entry of the inputs at ``position``, plus ``shift``."""

    position: int
    scale: float
    shift: float


@dataclass(frozen=True)
class Program:
    """Arithmetic from named input vectors to named output vectors.

    Attributes:
        name: a C identifier.
        inputs, outputs: names and lengths of the vectors, in order.
        nodes: the operations; operands precede their uses. INPUT nodes index the entries of all inputs.
        results: an entry for each number of all outputs.
    """

    name: str
    inputs: Sizes
    outputs: Sizes
    nodes: tuple[Node, ...]
    results: tuple[OutputEntry, ...]

    def operation_counts(self) -> Counter[str]:
        """Number of operations by kind."""
        return Counter(node.op.value for node in self.nodes if node.op not in (Op.INPUT, Op.CONSTANT))

    def costs(self) -> dict[str, int]:
        """Number of operations by kind and in total.

        Scalings are multiplications by constants. Functions of the motor side and of joint friction are listed if used.
        """
        counts = self.operation_counts()
        costs = {
            "additions": counts["add"] + counts["sub"] + counts["shift"],
            "multiplications": counts["mul"],
            "scalings": counts["scale"],
            "divisions": counts["reciprocal"],
            "sines_and_cosines": counts["sin"] + counts["cos"],
        }
        if others := counts.total() - sum(costs.values()):
            costs["other_functions"] = others
        return costs | {"total": sum(costs.values())}

    def constants(self, *ops: Op) -> list[Any]:
        """Distinct constants of the nodes of some operations, such as tables, in order."""
        return list(dict.fromkeys(node.constant for node in self.nodes if node.op in ops))

    def uses(self, *ops: Op) -> bool:
        """Check whether the program has any of these operations."""
        return any(node.op in ops for node in self.nodes)

    @cached_property
    def angles(self) -> list[SinCosArgument]:
        """Arguments of the sines and cosines.

        Raises:
            ValueError: an argument is not linear in an input.
        """
        return list(dict.fromkeys(self.angle(node) for node in self.nodes if node.op in (Op.SIN, Op.COS)))

    def angle(self, node: Node) -> SinCosArgument:
        """Argument of the sine or cosine of a node."""
        scale, shift = 1.0, 0.0
        argument = self.nodes[node.operands[0]]
        if argument.op is Op.SHIFT:
            shift, argument = argument.constant, self.nodes[argument.operands[0]]
        if argument.op is Op.SCALE:
            scale, argument = argument.constant, self.nodes[argument.operands[0]]
        if argument.op is not Op.INPUT:
            raise ValueError("the angle of a sine or cosine must be linear in an input")
        return SinCosArgument(argument.constant, scale, shift)

    @property
    def operations(self) -> int:
        """Number of arithmetic operations, without sines and cosines."""
        return sum(node.op in ARITHMETIC for node in self.nodes)


def c_name(program: str) -> str:
    """Function name of a program in compiled code."""
    return f"eom_{program}"


def trace(
    name: str, inputs: Sizes, compute: Callable[[dict[str, list[Expression]]], Mapping[str, Sequence[Scalar]]]
) -> Program:
    """Program of a function, recorded by calling it with expressions.

    Args:
        name: a C identifier.
        inputs: names and lengths of the input vectors.
        compute: takes the input vectors by name and returns the output vectors by name.
    """
    graph = Graph(_root)
    symbols = {key: [graph.input() for _ in range(size)] for key, size in inputs.items()}
    outputs = compute(symbols)
    results = [value for vector in outputs.values() for value in vector]
    needed, pending = set(), [x.node for x in results if isinstance(x, Expression)]
    while pending:
        index = pending.pop()
        if index not in needed:
            needed.add(index)
            pending.extend(graph.nodes[index].operands)
    live = [(old, graph.nodes[old]) for old in sorted(needed)]
    position = {old: new for new, (old, _) in enumerate(live)}
    return Program(
        name=name,
        inputs=dict(inputs),
        outputs={key: len(vector) for key, vector in outputs.items()},
        nodes=tuple(node._replace(operands=tuple(position[k] for k in node.operands)) for _, node in live),
        results=tuple(
            OutputEntry(position[x.node], x.factor) if isinstance(x, Expression) else OutputEntry(None, float(x))
            for x in results
        ),
    )


@dataclass(frozen=True)
class MonotoneFunction:
    """Increasing function f(x; p).

    Attributes:
        program: maps x and the parameters p to f and its first two derivatives with respect to x.
    """

    program: Program

    def __hash__(self) -> int:
        return hash((self.program.nodes, self.program.results))

    def __repr__(self) -> str:
        return f"MonotoneFunction({self.program.nodes!r}, {self.program.results!r})"

    def values(self, x: Scalar, parameters: Sequence[Scalar]) -> list[Scalar]:
        """f and its derivatives at scalars."""
        arguments, values = [x, *parameters], list[Scalar]()
        for node in self.program.nodes:
            operands = [values[k] for k in node.operands]
            values.append(arguments[node.constant] if node.op is Op.INPUT else _OPERATIONS[node.op](*operands))
        return [r.factor if r.node is None else r.factor * values[r.node] for r in self.program.results]


_OPERATIONS: dict[Op, Callable[..., Scalar]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.RECIPROCAL: lambda x: 1.0 / x,
    **{op: getattr(elementary, op.value) for op in (*ELEMENTARY, Op.SQRT, Op.SELECT)},
}


def _root(
    function: Callable[..., Jet],
    target: Scalar,
    bounds: tuple[Scalar, Scalar],
    start: Scalar,
    parameters: Sequence[Scalar],
    graph: Graph,
) -> Expression:
    """Operation of :func:`eom_dynamics.elementary.root`.

    Constants of the function become further parameters, so that one function serves all joints with a kind of spring.
    """
    size = len(parameters)

    def compute(x: dict[str, list[Expression]]) -> dict[str, list[Scalar]]:
        return {"f": list(function(Jet([x["x"][0], 1.0, 0.0]), *x["p"]))}

    traced, numbers = _with_numbers_as_parameters(trace("function", {"x": 1, "p": size}, compute), size)
    scalars = (target, *bounds, start, *parameters, *numbers)
    node = Node(Op.ROOT, tuple(map(graph.operand, scalars)), MonotoneFunction(traced))
    return Expression(graph, graph.node(node))


def _with_numbers_as_parameters(program: Program, size: int) -> tuple[Program, list[float]]:
    numbers: dict[float, int] = {}
    nodes: list[Node] = []
    place: dict[Node, int] = {}

    def add(node: Node) -> int:
        if node not in place:
            place[node] = len(nodes)
            nodes.append(node)
        return place[node]

    def parameter(number: float) -> int:
        return add(Node(Op.INPUT, (), 1 + size + numbers.setdefault(number, len(numbers))))

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
    inputs = {"x": 1, "p": size + len(numbers)}
    return Program(program.name, inputs, program.outputs, tuple(nodes), tuple(results)), list(numbers)
