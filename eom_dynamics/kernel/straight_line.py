# SPDX-License-Identifier: Apache-2.0
"""Programs as lines of text, the same for every language: a definition for each operation, then the results.

Languages differ in how they name an input, write a definition and multiply; what is computed, and in which order,
is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expressions import Node, Op
from .program import Program, operands


def straight_line(
    program: Program, inputs: Sequence[str], sines: Sequence[tuple[str, str]], *, define: str, times: str = "*"
) -> tuple[list[str], list[str]]:
    """The definitions of all values, and an expression for each entry of the outputs.

    Args:
        program: the program.
        inputs: an expression for each entry of the inputs, in order.
        sines: expressions for sine and cosine of each of the program's :func:`angles`.
        define: a definition, with the fields ``{name}`` and ``{value}``.
        times: the sign of multiplication.
    """
    known = dict(zip(angles(program), sines, strict=True))
    names: list[str] = []
    lines = []
    for index, node in enumerate(program.nodes):
        if node.op is Op.INPUT:
            names.append(inputs[node.left])
        elif node.op in (Op.SIN, Op.COS):
            names.append(known[_angle(program.nodes, node)][node.op is Op.COS])
        elif _is_angle_only(program, index):
            names.append("")
        else:
            names.append(f"v{index}")
            lines.append(define.format(name=f"v{index}", value=_operation(node, names, times)))
    return lines, [
        repr(result.factor) if result.node is None else _scaled(names[result.node], result.factor, times)
        for result in program.results
    ]


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


def _operation(node: Node, names: Sequence[str], times: str) -> str:
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


def _is_angle_only(program: Program, index: int) -> bool:
    """Whether a node serves nothing but sines and cosines, which take their angles from a table."""
    users = [node for node in program.nodes if index in operands(node)] if program.nodes[index].op is Op.SHIFT else []
    return bool(users) and all(node.op in (Op.SIN, Op.COS) for node in users)
