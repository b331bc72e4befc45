# SPDX-License-Identifier: Apache-2.0
"""Scalar expressions over a graph with shared subexpressions.

An :class:`Expression` is a constant factor times a node of a :class:`Graph`. With the factor outside the node, signs
and factors cost nothing: factors merge in products and cancel in sums, signs select a sum or a difference. Numbers
remain numbers, so that a robot's zeros and ones cause no operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, Union

Scalar: TypeAlias = Union["Expression", float]


class Op(Enum):
    """Operation of a node."""

    INPUT = "input"  # constant: position among the inputs
    CONSTANT = "constant"  # constant: the number; operand of SELECT and ROOT only
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    SCALE = "scale"  # by the constant
    SHIFT = "shift"  # by the constant
    RECIPROCAL = "reciprocal"
    SIN = "sin"
    COS = "cos"
    SQRT = "sqrt"
    EXP = "exp"
    EXPM1 = "expm1"
    LOG = "log"
    LOG1P = "log1p"
    TANH = "tanh"
    SELECT = "select"  # the second operand where the first is positive, else the third
    INDEX = "index"  # number of the points, the constant, that do not exceed the operand
    LOOKUP = "lookup"  # entry of the constant at the index
    ROOT = "root"  # constant: the function; operands: target, lower, upper and first value, parameters


ARITHMETIC = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.SCALE, Op.SHIFT, Op.RECIPROCAL})
"""Operations of one floating-point instruction."""

ELEMENTARY = frozenset({Op.EXP, Op.EXPM1, Op.LOG, Op.LOG1P, Op.TANH})
"""Functions of one number, each some twenty instructions."""


class Node(NamedTuple):
    """An operation, the indices of its operands among earlier nodes, and its constant."""

    op: Op
    operands: tuple[int, ...] = ()
    constant: Any = None


class Graph:
    """Nodes in order of creation, so that operands precede their uses.

    Attributes:
        root: adds the operation of :func:`eom_dynamics.elementary.root` and traces its function as another program.
    """

    def __init__(self, root: Callable[..., Expression]) -> None:
        self.root = root
        self.nodes: list[Node] = []
        self._index: dict[Node, int] = {}

    def input(self) -> Expression:
        """A new input."""
        return Expression(self, self.node(Node(Op.INPUT, (), len(self.nodes))))

    def node(self, node: Node) -> int:
        """Index of a node; adds the node unless an equal node exists."""
        index = self._index.get(node)
        if index is None:
            index = self._index[node] = len(self.nodes)
            self.nodes.append(node)
        return index

    def operand(self, value: Scalar) -> int:
        """Node of an expression or of a number."""
        return value.value() if isinstance(value, Expression) else self.node(Node(Op.CONSTANT, (), float(value)))


def _unary(op: Op) -> Callable[[Expression], Expression]:
    return lambda x: Expression(x.graph, x.graph.node(Node(op, (x.value(),))))


class Expression:
    """``factor`` times a node of a graph."""

    __slots__ = ("factor", "graph", "node")

    def __init__(self, graph: Graph, node: int, factor: float = 1.0) -> None:
        self.graph, self.node, self.factor = graph, node, factor

    def value(self) -> int:
        """Node of this expression with its factor multiplied in."""
        if self.factor == 1:
            return self.node
        return self.graph.node(Node(Op.SCALE, (self.node,), self.factor))

    sin, cos, sqrt, exp, expm1, log, log1p = map(_unary, (Op.SIN, Op.COS, Op.SQRT, Op.EXP, Op.EXPM1, Op.LOG, Op.LOG1P))

    def tanh(self) -> Expression:
        """Hyperbolic tangent, an odd function."""
        sign = 1.0 if self.factor > 0 else -1.0
        magnitude = Expression(self.graph, self.node, abs(self.factor)).value()
        return Expression(self.graph, self.graph.node(Node(Op.TANH, (magnitude,))), sign)

    def select(self, positive: Scalar, other: Scalar) -> Scalar:
        """``positive`` if this expression is positive, else ``other``, also for NaN."""
        if not isinstance(positive, Expression) and positive == other:
            return positive
        operands = (self.value(), self.graph.operand(positive), self.graph.operand(other))
        return Expression(self.graph, self.graph.node(Node(Op.SELECT, operands)))

    def index(self, points: tuple[float, ...]) -> Expression:
        """Number of increasing points that do not exceed this expression."""
        return Expression(self.graph, self.graph.node(Node(Op.INDEX, (self.value(),), points)))

    def lookup(self, table: tuple[float, ...]) -> Scalar:
        """Table entry at this index."""
        if len(set(table)) == 1:
            return table[0]
        return Expression(self.graph, self.graph.node(Node(Op.LOOKUP, (self.value(),), table)))

    def root(
        self,
        function: Callable[..., Any],
        target: Scalar,
        bounds: tuple[Scalar, Scalar],
        start: Scalar,
        parameters: Sequence[Scalar] = (),
    ) -> Expression:
        """:func:`eom_dynamics.elementary.root` with at least one scalar that is an expression of this graph."""
        return self.graph.root(function, target, bounds, start, parameters, self.graph)

    def __rtruediv__(self, other: float) -> Expression:
        inverse = self.graph.node(Node(Op.RECIPROCAL, (self.node,)))
        return Expression(self.graph, inverse, float(other) / self.factor)

    def __truediv__(self, other: Scalar) -> Scalar:
        return self * (1.0 / other)

    def __neg__(self) -> Expression:
        return Expression(self.graph, self.node, -self.factor)

    def __add__(self, other: Scalar) -> Scalar:
        if not isinstance(other, Expression):
            if other == 0:
                return self
            return Expression(self.graph, self.graph.node(Node(Op.SHIFT, (self.value(),), float(other))))
        if self.node == other.node:
            factor = self.factor + other.factor
            return Expression(self.graph, self.node, factor) if factor else 0.0
        if abs(self.factor) == abs(other.factor):
            return self._combined(self.node, other.node, self.factor, other.factor)
        # Magnitudes become operations; the signs select a sum or a difference.
        sign_self, sign_other = (1.0 if x.factor > 0 else -1.0 for x in (self, other))
        first = Expression(self.graph, self.node, abs(self.factor)).value()
        second = Expression(self.graph, other.node, abs(other.factor)).value()
        return self._combined(first, second, sign_self, sign_other)

    def _combined(self, first: int, second: int, factor_first: float, factor_second: float) -> Expression:
        """Sum of two nodes with equal or opposite factors."""
        if first > second:
            first, second, factor_first, factor_second = second, first, factor_second, factor_first
        op = Op.ADD if factor_first == factor_second else Op.SUB
        return Expression(self.graph, self.graph.node(Node(op, (first, second))), factor_first)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Scalar:
        return self + (-other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return -self + other

    def __mul__(self, other: Scalar) -> Scalar:
        if not isinstance(other, Expression):
            return Expression(self.graph, self.node, self.factor * float(other)) if other else 0.0
        first, second = min(self.node, other.node), max(self.node, other.node)
        return Expression(self.graph, self.graph.node(Node(Op.MUL, (first, second))), self.factor * other.factor)

    __rmul__ = __mul__


class Partials:
    """Derivatives with respect to an input, or along a direction of several; each node is differentiated once."""

    def __init__(self, variable: Expression, *, along: Sequence[tuple[Expression, Scalar]] = ()) -> None:
        """Set the input, or each changing input with its rate."""
        self._graph = variable.graph
        self._known: dict[int, Scalar] = {variable.node: 1.0}
        self._known.update((x.node, rate) for x, rate in along)

    def __call__(self, expression: Scalar) -> Scalar:
        """Derivative of an expression."""
        if not isinstance(expression, Expression):
            return 0.0
        # Iterative, because recursion would exceed the depth of the stack.
        pending = [expression.node]
        while pending:
            index = pending[-1]
            missing = [k for k in self._graph.nodes[index].operands if k not in self._known]
            if index not in self._known and missing:
                pending += missing
                continue
            if index not in self._known:
                self._known[index] = self._derivative(self._graph.nodes[index])
            pending.pop()
        return expression.factor * self._known[expression.node]

    def _derivative(self, node: Node) -> Scalar:
        operands = [Expression(self._graph, k) for k in node.operands]
        derivatives = [self._known[k] for k in node.operands]
        if node.op in _SLOPES:
            (x,), (slope,) = operands, derivatives
            return _SLOPES[node.op](x) * slope if isinstance(slope, Expression) or slope else 0.0
        if node.op is Op.SCALE:
            return node.constant * derivatives[0]
        if node.op is Op.SHIFT:
            return derivatives[0]
        if node.op is Op.ADD:
            return derivatives[0] + derivatives[1]
        if node.op is Op.SUB:
            return derivatives[0] - derivatives[1]
        if node.op is Op.MUL:
            return derivatives[0] * operands[1] + operands[0] * derivatives[1]
        if node.op is Op.SELECT:
            return operands[0].select(derivatives[1], derivatives[2])
        if node.op is Op.ROOT:
            # By implicit differentiation of f(x) = target.
            if any(isinstance(slope, Expression) or slope for slope in derivatives[4:]):
                raise ValueError("a root with a function that depends on the variable has no derivative here")
            x, parameters = Expression(self._graph, self._graph.node(node)), list[Scalar](operands[4:])
            for i, k in enumerate(node.operands[4:]):
                if self._graph.nodes[k].op is Op.CONSTANT:
                    parameters[i] = self._graph.nodes[k].constant
            return derivatives[0] / node.constant.values(x, parameters)[1]
        return 0.0  # derivative of inputs, constants and table entries


_SLOPES: dict[Op, Callable[[Expression], Scalar]] = {
    Op.SIN: lambda x: x.cos(),
    Op.COS: lambda x: -x.sin(),
    Op.RECIPROCAL: lambda x: -((1.0 / x) * (1.0 / x)),
    Op.SQRT: lambda x: 0.5 * (1.0 / x.sqrt()),
    Op.EXP: lambda x: x.exp(),
    Op.EXPM1: lambda x: x.expm1() + 1.0,
    Op.LOG: lambda x: 1.0 / x,
    Op.LOG1P: lambda x: 1.0 / (x + 1.0),
    Op.TANH: lambda x: 1.0 - x.tanh() * x.tanh(),
}
