# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives of expressions, in the same graph."""

from __future__ import annotations

from collections.abc import Sequence

from .expressions import Expression, Node, Op, Scalar
from .program import operands


class Partials:
    """Derivatives with respect to one input; each node is differentiated once."""

    def __init__(self, variable: Expression, held: Sequence[Scalar] = ()) -> None:
        """Set the input, and expressions that count as constant."""
        self._graph = variable.graph
        self._known: dict[int, Scalar] = {x.node: 0.0 for x in held if isinstance(x, Expression)}
        self._known[variable.node] = 1.0

    def __call__(self, expression: Scalar) -> Scalar:
        """The derivative of an expression."""
        if not isinstance(expression, Expression):
            return 0.0
        # Iterative, because recursion would exceed the depth of the stack.
        pending = [expression.node]
        while pending:
            index = pending[-1]
            missing = [k for k in operands(self._graph.nodes[index]) if k not in self._known]
            if index not in self._known and missing:
                pending += missing
                continue
            if index not in self._known:
                self._known[index] = self._derivative(self._graph.nodes[index])
            pending.pop()
        return expression.factor * self._known[expression.node]

    def _derivative(self, node: Node) -> Scalar:
        if node.op is Op.INPUT:
            return 0.0
        left, d_left = Expression(self._graph, node.left), self._known[node.left]
        if node.op is Op.SIN:
            return left.cos() * d_left
        if node.op is Op.COS:
            return -left.sin() * d_left
        if node.op is Op.SCALE:
            return node.right * d_left
        if node.op is Op.SHIFT:
            return d_left
        if node.op is Op.RECIPROCAL:
            inverse = 1.0 / left
            return -(inverse * inverse * d_left)
        if node.op is Op.TANH:
            value = left.tanh()
            return (1.0 - value * value) * d_left
        right, d_right = Expression(self._graph, int(node.right)), self._known[int(node.right)]
        if node.op is Op.MUL:
            return d_left * right + left * d_right
        return d_left + d_right if node.op is Op.ADD else d_left - d_right
