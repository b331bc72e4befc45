# SPDX-License-Identifier: Apache-2.0
"""Long programs cut into pieces, each to become a function of its own.

Compilers take four times as long for straight-line code of twice the length. In pieces, the time grows in
proportion; and the code runs as fast, since of that many values most live in memory anyway.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .program import Program, operands


@dataclass(frozen=True)
class Piece:
    """A run of definitions, and what it shares with other pieces through an array of slots.

    Attributes:
        definitions: positions of its first definition and behind its last.
        taken: node to slot, for the values of earlier pieces that it uses.
        kept: node to slot, for those of its own values that later pieces use.
        results: positions of the outputs that are known once it has run, and were not before.
    """

    definitions: tuple[int, int]
    taken: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)


def cut(program: Program, definitions: Sequence[int], size: int) -> tuple[list[Piece], int]:
    """A program in pieces of nearly equal length, and how many slots they need.

    Args:
        program: the program.
        definitions: the nodes that become definitions, in order.
        size: how many of them a piece has at most.
    """
    count = -(-len(definitions) // size) or 1
    bounds = [len(definitions) * k // count for k in range(count + 1)]
    pieces = [Piece((start, stop)) for start, stop in pairwise(bounds)]
    piece_of = {node: bisect_right(bounds, at) - 1 for at, node in enumerate(definitions)}
    last_piece = {
        operand: piece_of[node]
        for node in definitions
        for operand in operands(program.nodes[node])
        if operand in piece_of and piece_of[operand] != piece_of[node]
    }
    slots, free = 0, list[int]()
    for index, piece in enumerate(pieces):
        for node in definitions[slice(*piece.definitions)]:
            for operand in operands(program.nodes[node]):
                if operand in piece_of and piece_of[operand] != index:
                    piece.taken[operand] = pieces[piece_of[operand]].kept[operand]
            if node in last_piece:
                if not free:
                    free.append(slots)
                    slots += 1
                piece.kept[node] = free.pop()
        free += [slot for node, slot in piece.taken.items() if last_piece[node] == index]
    for position, result in enumerate(program.results):
        pieces[0 if result.node is None else piece_of.get(result.node, 0)].results.append(position)
    return pieces, slots
