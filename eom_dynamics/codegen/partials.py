# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives of expressions, in the same graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .expressions import Expression, Node, Op, Scalar


class Partials:
    """Derivatives with respect to one input, or along a direction of several; each node is differentiated once."""

    def __init__(self, variable: Expression, *, along: Sequence[tuple[Expression, Scalar]] = ()) -> None:
        """Set the input, and inputs that change with it, and how fast."""
        self._graph = variable.graph
        self._known: dict[int, Scalar] = {variable.node: 1.0}
        self._known.update((x.node, rate) for x, rate in along)

    def __call__(self, expression: Scalar) -> Scalar:
        """The derivative of an expression."""
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
            return self._of_root(node, derivatives[0], derivatives[4:])
        return 0.0  # of inputs, constants and entries of tables

    def _of_root(self, node: Node, target: Scalar, parameters: Sequence[Scalar]) -> Scalar:
        """By implicit differentiation of f(x) = target."""
        if any(isinstance(slope, Expression) or slope for slope in parameters):
            raise ValueError("a root whose function depends on the variable has no derivative here")
        x = Expression(self._graph, self._graph.node(node))
        _, slope, _ = node.constant.values(x, [self._scalar(k) for k in node.operands[4:]])
        return target / slope

    def _scalar(self, index: int) -> Scalar:
        node = self._graph.nodes[index]
        return node.constant if node.op is Op.CONSTANT else Expression(self._graph, index)


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
