# SPDX-License-Identifier: Apache-2.0
"""Text of programs in any language: a definition for each operation, and an expression for each result.

Languages differ in the syntax of inputs, definitions and products, but share the operations and their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .expressions import Node, Op
from .program import Program, operands


def straight_line(
    program: Program,
    inputs: Sequence[str],
    sines: Sequence[tuple[str, str]],
    *,
    define: str,
    times: str = "*",
    tanh: str = "tanh",
) -> tuple[list[str], list[str]]:
    """A line for each of the :func:`definitions`, and an expression for each entry of the outputs.

    Args:
        program: the program.
        inputs: expressions of the entries of all inputs.
        sines: expressions of the sine and cosine of each of the :func:`angles`.
        define: format of a definition, with the fields ``{name}`` and ``{value}``.
        times: multiplication operator.
        tanh: function of the hyperbolic tangent.
    """
    known = dict(zip(angles(program), sines, strict=True))
    names: dict[int, str] = {}
    for index, node in enumerate(program.nodes):
        if node.op is Op.INPUT:
            names[index] = inputs[node.left]
        elif node.op in (Op.SIN, Op.COS):
            names[index] = known[_angle(program.nodes, node)][node.op is Op.COS]
    lines = []
    for index in definitions(program):
        names[index] = value_name(index)
        value = _operation(program.nodes[index], names, times, tanh)
        lines.append(define.format(name=names[index], value=value))
    return lines, [
        repr(result.factor) if result.node is None else _scaled(names[result.node], result.factor, times)
        for result in program.results
    ]


def definitions(program: Program) -> list[int]:
    """Nodes that are computed: all but inputs, sines, cosines and operations that only sines and cosines use."""
    needed = {result.node for result in program.results if result.node is not None}
    for index in reversed(range(len(program.nodes))):
        node = program.nodes[index]
        if index in needed and node.op not in (Op.SIN, Op.COS):
            needed.update(operands(node))
    return [index for index in sorted(needed) if program.nodes[index].op not in (Op.INPUT, Op.SIN, Op.COS)]


def value_name(node: int) -> str:
    """Name of the value of a node."""
    return f"v{node}"


class Angle(NamedTuple):
    """Argument of a sine or cosine: ``scale`` times the entry of the inputs at ``position``, plus ``shift``."""

    position: int
    scale: float
    shift: float

    def text(self, inputs: Sequence[str], times: str = "*") -> str:
        """Expression of the angle, from expressions of the entries of all inputs."""
        scaled = inputs[self.position] if self.scale == 1 else f"{inputs[self.position]} {times} {self.scale!r}"
        return f"{scaled} + {self.shift!r}" if self.shift else scaled


def angles(program: Program) -> list[Angle]:
    """Arguments of the sines and cosines.

    Raises:
        ValueError: an argument is not linear in an input.
    """
    found = {_angle(program.nodes, node): None for node in program.nodes if node.op in (Op.SIN, Op.COS)}
    return list(found)


def used_inputs(program: Program) -> set[int]:
    """Positions of the entries of all inputs that the program reads."""
    return {node.left for node in program.nodes if node.op is Op.INPUT}


def _operation(node: Node, names: Mapping[int, str], times: str, tanh: str) -> str:
    left = names[node.left]
    if node.op is Op.SCALE:
        return f"{left} {times} {node.right!r}"
    if node.op is Op.SHIFT:
        return f"{left} + {node.right!r}"
    if node.op is Op.RECIPROCAL:
        return f"1.0 {times.replace('*', '/')} {left}"
    if node.op is Op.TANH:
        return f"{tanh}({left})"
    sign = {Op.ADD: "+", Op.SUB: "-", Op.MUL: times}[node.op]
    return f"{left} {sign} {names[int(node.right)]}"


def _scaled(name: str, factor: float, times: str) -> str:
    if abs(factor) == 1:
        return name if factor == 1 else f"-{name}"
    return f"{name} {times} {factor!r}"


def _angle(nodes: Sequence[Node], node: Node) -> Angle:
    scale, shift = 1.0, 0.0
    argument = nodes[node.left]
    if argument.op is Op.SHIFT:
        shift, argument = argument.right, nodes[argument.left]
    if argument.op is Op.SCALE:
        scale, argument = argument.right, nodes[argument.left]
    if argument.op is not Op.INPUT:
        raise ValueError("the angle of a sine or cosine must be linear in an input")
    return Angle(argument.left, scale, shift)
