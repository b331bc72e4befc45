# SPDX-License-Identifier: Apache-2.0
"""Division of a long program into segments, each of which is emitted as a function.

Compile times grow with the square of the length of straight-line code; divided into segments, they grow linearly. The
code runs as fast, since of so many values most are in memory anyway.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from .program import Program


@dataclass(frozen=True)
class Segment:
    """Consecutive definitions of a program, and the values that they exchange with other segments through slots.

    Attributes:
        definitions: positions of the first definition and after the last.
        loaded: node to slot, for values of earlier segments.
        stored: node to slot, for values that later segments use.
        results: positions of the outputs that are computed here.
    """

    definitions: tuple[int, int]
    loaded: dict[int, int] = field(default_factory=dict)
    stored: dict[int, int] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)


def split(program: Program, groups: Sequence[Sequence[int]], size: int) -> tuple[list[Segment], int]:
    """Segments of a program, of nearly equal length, and the number of slots.

    Args:
        groups: the nodes that become definitions, in order; those of a group stay together.
        size: number of definitions that a segment has at most, but for the rest of a group.
    """
    definitions = [node for group in groups for node in group]
    count = -(-len(definitions) // size) or 1
    ends = list(accumulate(map(len, groups), initial=0))
    bounds = [ends[bisect_left(ends, len(definitions) * k // count)] for k in range(count + 1)]
    segments = [Segment((start, stop)) for start, stop in pairwise(bounds)]
    segment_of = {node: bisect_right(bounds, at) - 1 for at, node in enumerate(definitions)}
    last_use = {
        operand: segment_of[node]
        for node in definitions
        for operand in program.nodes[node].operands
        if operand in segment_of and segment_of[operand] != segment_of[node]
    }
    slots, free = 0, list[int]()
    for index, segment in enumerate(segments):
        for node in definitions[slice(*segment.definitions)]:
            for operand in program.nodes[node].operands:
                if operand in segment_of and segment_of[operand] != index:
                    segment.loaded[operand] = segments[segment_of[operand]].stored[operand]
            if node in last_use:
                if not free:
                    free.append(slots)
                    slots += 1
                segment.stored[node] = free.pop()
        free += [slot for node, slot in segment.loaded.items() if last_use[node] == index]
    for position, result in enumerate(program.results):
        segments[0 if result.node is None else segment_of.get(result.node, 0)].results.append(position)
    return segments, slots
