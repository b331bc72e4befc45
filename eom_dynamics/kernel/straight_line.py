# SPDX-License-Identifier: Apache-2.0
"""Programs as lines of text, the same for every language: a definition for each operation, then the results.

Languages differ in how they name an input, write a definition and multiply; what is computed, and in which order,
is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .expressions import Node, Op
from .program import Program, operands


def straight_line(
    program: Program, inputs: Sequence[str], sines: Sequence[tuple[str, str]], *, define: str, times: str = "*"
) -> tuple[list[str], list[str]]:
    """The definitions of the values of :func:`definitions`, and an expression for each entry of the outputs.

    Args:
        program: the program.
        inputs: an expression for each entry of the inputs, in order.
        sines: expressions for sine and cosine of each of the program's :func:`angles`.
        define: a definition, with the fields ``{name}`` and ``{value}``.
        times: the sign of multiplication.
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
        value = _operation(program.nodes[index], names, times)
        lines.append(define.format(name=names[index], value=value))
    return lines, [
        repr(result.factor) if result.node is None else _scaled(names[result.node], result.factor, times)
        for result in program.results
    ]


def definitions(program: Program) -> list[int]:
    """The nodes that are computed: all but inputs, sines, cosines and what serves nothing but these.

    Sines and cosines take their angles from a table.
    """
    used = {operand for node in program.nodes if node.op not in (Op.SIN, Op.COS) for operand in operands(node)}
    used.update(result.node for result in program.results if result.node is not None)
    return [
        index for index, node in enumerate(program.nodes) if node.op not in (Op.INPUT, Op.SIN, Op.COS) and index in used
    ]


def value_name(node: int) -> str:
    """The name of the value of a node that is computed."""
    return f"v{node}"


def angles(program: Program) -> list[tuple[int, float]]:
    """The angles whose sine or cosine is taken: (position among the entries of the inputs, what is added to it).

    Raises:
        ValueError: a sine or cosine is taken of anything else.
    """
    found = {_angle(program.nodes, node): None for node in program.nodes if node.op in (Op.SIN, Op.COS)}
    return list(found)


def used_inputs(program: Program) -> set[int]:
    """Positions, among the entries of the inputs, of those that the program reads."""
    return {node.left for node in program.nodes if node.op is Op.INPUT}


def _operation(node: Node, names: Mapping[int, str], times: str) -> str:
    left = names[node.left]
    if node.op is Op.SCALE:
        return f"{left} {times} {node.right!r}"
    if node.op is Op.SHIFT:
        return f"{left} + {node.right!r}"
    sign = {Op.ADD: "+", Op.SUB: "-", Op.MUL: times}[node.op]
    return f"{left} {sign} {names[int(node.right)]}"


def _scaled(name: str, factor: float, times: str) -> str:
    if abs(factor) == 1:
        return name if factor == 1 else f"-{name}"
    return f"{name} {times} {factor!r}"


def _angle(nodes: Sequence[Node], node: Node) -> tuple[int, float]:
    argument = nodes[node.left]
    if argument.op is Op.INPUT:
        return argument.left, 0.0
    if argument.op is Op.SHIFT and nodes[argument.left].op is Op.INPUT:
        return nodes[argument.left].left, argument.right
    raise ValueError("a sine or cosine of anything but an input, or an input and a constant, cannot be emitted")
