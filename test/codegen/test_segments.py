# SPDX-License-Identifier: Apache-2.0
"""Division of programs into segments: each value is computed before its use, or loaded from its slot."""

from __future__ import annotations

import pytest

from eom_dynamics import load_robot
from eom_dynamics.codegen.emit_c import Segment, split
from eom_dynamics.codegen.program import Program
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.codegen.straight_line import definitions


@pytest.fixture(scope="module")
def program() -> Program:
    return PROGRAMS["inverse_dynamics"](load_robot("planar_2r"))


def run(program: Program, defined: list[int], segments: list[Segment], slots: int) -> list[int | None]:
    """Pass nodes through the segments in place of their values; returns the node of each output."""
    memory: list[int | None] = [None] * slots
    outputs: list[int | None] = [None] * len(program.results)
    for segment in segments:
        known = set(range(len(program.nodes))) - set(defined)
        for node, slot in segment.loaded.items():
            assert memory[slot] == node
            known.add(node)
        for node in defined[slice(*segment.definitions)]:
            assert set(program.nodes[node].operands) <= known
            known.add(node)
        for node, slot in segment.stored.items():
            assert node in known
            memory[slot] = node
        for position in segment.results:
            node = program.results[position].node
            assert node is None or node in known
            assert outputs[position] is None
            outputs[position] = node
    return outputs


@pytest.mark.parametrize("size", [1, 2, 3, 50, 10**6])
def test_values_and_lengths(program: Program, size: int) -> None:
    defined = definitions(program)
    segments, slots = split(program, [[node] for node in defined], size)
    assert run(program, defined, segments, slots) == [result.node for result in program.results]
    lengths = [stop - start for start, stop in (segment.definitions for segment in segments)]
    assert sum(lengths) == len(defined)
    assert max(lengths) <= size and max(lengths) - min(lengths) <= 1


def test_slots_are_reused(program: Program) -> None:
    segments, slots = split(program, [[node] for node in definitions(program)], 10)
    assert slots < sum(len(segment.stored) for segment in segments) / 2


def test_a_single_segment_needs_no_slots(program: Program) -> None:
    ((segment,), slots) = split(program, [[node] for node in definitions(program)], 10**6)
    assert not segment.loaded and not segment.stored and slots == 0


def test_kernels_have_several_segments() -> None:
    """So that the tests of kernels include values in slots."""
    assert len(definitions(PROGRAMS["inverse_dynamics"](load_robot("iiwa")))) > 2000


def test_groups_stay_together(program: Program) -> None:
    defined = definitions(program)
    groups = [defined[i : i + 7] for i in range(0, len(defined), 7)]
    segments, slots = split(program, groups, 10)
    assert run(program, defined, segments, slots) == [result.node for result in program.results]
    assert all(segment.definitions[0] % 7 == 0 for segment in segments)
