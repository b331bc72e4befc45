# SPDX-License-Identifier: Apache-2.0
"""Random computations, and exact numbers to evaluate them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import strategies as st

from eom_dynamics.codegen.expressions import Node, Op
from eom_dynamics.codegen.program import Program

CONSTANTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.25, 3.0, -0.75)
"""Constants that folding distinguishes, with few bits, so that products are exact."""


class Wrapped:
    """A number of another kind, made by ``of``, with the arithmetic that the recursion asks for."""

    of: Callable[[Any], Any]

    def __init__(self, value: Any) -> None:
        self.value = value.value if isinstance(value, Wrapped) else type(self).of(value)

    def __add__(self, other: Any) -> Any:
        return type(self)(self.value + type(self)(other).value)

    def __mul__(self, other: Any) -> Any:
        return type(self)(self.value * type(self)(other).value)

    def __neg__(self) -> Any:
        return type(self)(-self.value)

    def __sub__(self, other: Any) -> Any:
        return self + -type(self)(other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__


class Exact(Wrapped):
    """Rational number with polynomials instead of sine and cosine: ``sin`` is odd, ``cos`` is even."""

    of = Fraction

    def sin(self) -> Exact:
        return Exact(self.value**3 - 5 * self.value)

    def cos(self) -> Exact:
        return Exact(self.value**2 - 7)

    def __eq__(self, other: Any) -> bool:
        return self.value == Exact(other).value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return str(self.value)


class Dual:
    """Dual number: a rational number with its derivative."""

    def __init__(self, value: Any, rate: Any = 0) -> None:
        self.value, self.rate = Fraction(value), Fraction(rate)

    def __add__(self, other: Any) -> Dual:
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value + other.value, self.rate + other.rate)

    def __mul__(self, other: Any) -> Dual:
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value * other.value, self.rate * other.value + self.value * other.rate)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.rate)

    def __sub__(self, other: Any) -> Dual:
        return self + -other

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__


class Tape(NamedTuple):
    """A computation: each step takes two of the inputs, the constants and the results of earlier steps."""

    steps: tuple[tuple[str, int, int], ...]

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Results of the last steps."""
        values: list[Any] = [*inputs, *CONSTANTS]
        for operation, i, j in self.steps:
            a, b = values[i % len(values)], values[j % len(values)]
            if operation in ("sin", "cos") and isinstance(a, float):
                operation = "add"
            values.append(_OPERATIONS[operation](a, b))
        return values[-min(4, len(self.steps)) :]


_OPERATIONS = {
    **{"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a, b: -a},
    **{"sin": lambda a, b: a.sin(), "cos": lambda a, b: a.cos()},
}


def run_program(program: Program, inputs: Sequence[Exact]) -> list[Exact]:
    """Results of a program, evaluated node by node."""
    values: list[Exact] = []
    for node in program.nodes:
        values.append(inputs[node.constant] if node.op is Op.INPUT else _run_node(node, values))
    return [Exact(x.factor) if x.node is None else x.factor * values[x.node] for x in program.results]


def _run_node(node: Node, values: Sequence[Exact]) -> Exact:
    operands = [values[k] for k in node.operands]
    if node.op in (Op.SIN, Op.COS):
        return operands[0].sin() if node.op is Op.SIN else operands[0].cos()
    if node.op in (Op.SCALE, Op.SHIFT):
        return operands[0] * node.constant if node.op is Op.SCALE else operands[0] + node.constant
    return _OPERATIONS[node.op.value](*operands)


def tapes(*, trigonometry: bool = True) -> st.SearchStrategy[Tape]:
    """Computations with common subexpressions, cancellation, and products with all kinds of constants."""
    kinds = ["add", "sub", "mul", "neg"] + ["sin", "cos"] * trigonometry
    step = st.tuples(st.sampled_from(kinds), st.integers(0, 30), st.integers(0, 30))
    return st.lists(step, min_size=1, max_size=8).map(lambda steps: Tape(tuple(steps)))
