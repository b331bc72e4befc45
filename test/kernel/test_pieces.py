# SPDX-License-Identifier: Apache-2.0
"""Programs in pieces: every value is where it is looked for, and the bits are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from chains import fixed_case

from eom_dynamics import Dynamics, equations_of_motion, load_robot
from eom_dynamics.kernel.pieces import Piece, cut
from eom_dynamics.kernel.program import Program, operands
from eom_dynamics.kernel.programs import PROGRAMS
from eom_dynamics.kernel.straight_line import definitions

SIZES = (1, 2, 3, 50, 1000, 10**6)


@pytest.fixture(scope="module")
def program() -> Program:
    return PROGRAMS["inverse_dynamics"](load_robot("iiwa"))


def run(program: Program, defined: list[int], pieces: list[Piece], slots: int) -> list[int | None]:
    """Pass nodes through the pieces as if they were values; the node behind each output."""
    memory: list[int | None] = [None] * slots
    outputs: list[int | None] = [None] * len(program.results)
    for piece in pieces:
        at_hand = set(range(len(program.nodes))) - set(defined)
        for node, slot in piece.taken.items():
            assert memory[slot] == node
            at_hand.add(node)
        for node in defined[slice(*piece.definitions)]:
            assert set(operands(program.nodes[node])) <= at_hand
            at_hand.add(node)
        for node, slot in piece.kept.items():
            assert node in at_hand
            memory[slot] = node
        for position in piece.results:
            node = program.results[position].node
            assert node is None or node in at_hand
            assert outputs[position] is None
            outputs[position] = node
    return outputs


@pytest.mark.parametrize("size", SIZES)
def test_each_piece_finds_what_it_uses(program: Program, size: int) -> None:
    defined = definitions(program)
    pieces, slots = cut(program, defined, size)
    assert run(program, defined, pieces, slots) == [result.node for result in program.results]


@pytest.mark.parametrize("size", SIZES)
def test_pieces_are_of_nearly_equal_length(program: Program, size: int) -> None:
    pieces, _ = cut(program, definitions(program), size)
    lengths = [stop - start for start, stop in (piece.definitions for piece in pieces)]
    assert sum(lengths) == len(definitions(program))
    assert max(lengths) <= size and max(lengths) - min(lengths) <= 1


def test_slots_are_used_again(program: Program) -> None:
    defined = definitions(program)
    pieces, slots = cut(program, defined, 100)
    assert slots < sum(len(piece.kept) for piece in pieces) / 2


def test_one_piece_shares_nothing(program: Program) -> None:
    ((piece,), slots) = cut(program, definitions(program), 10**6)
    assert not piece.taken and not piece.kept and slots == 0


@pytest.mark.parametrize("name", ["iiwa", "mixed_chain", "planar_2r"])
def test_a_state_has_the_same_bits_alone_and_among_others(name: str) -> None:
    """Since compiled code fuses the same operations in both."""
    robot = fixed_case(name, 0).robot
    states = np.random.default_rng(0).uniform(-3, 3, (5, 200, robot.n))
    dynamics = Dynamics(robot, backend="native")
    batch = np.array(dynamics.inverse_dynamics(*states))
    alone = np.array([dynamics.inverse_dynamics(*state) for state in states.swapaxes(0, 1)])
    np.testing.assert_array_equal(alone.swapaxes(0, 1), batch)


def test_more_pieces_than_one_agree_with_the_closed_form() -> None:
    robot = fixed_case("iiwa", 0).robot
    assert len(definitions(PROGRAMS["inverse_dynamics"](robot))) > 2000
    *states, last = np.random.default_rng(0).uniform(-3, 3, (5, robot.n))
    efforts = np.array(Dynamics(robot, backend="native").inverse_dynamics(*states, last))
    desired = np.array(equations_of_motion(robot, *states).efforts(last))
    assert np.max(np.abs(efforts - desired)) < 1e-11 * np.max(np.abs(desired))
