# SPDX-License-Identifier: Apache-2.0
"""Traced programs: exact, and without redundant operations."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact import Dual, Exact, Tape, run_program, tapes
from hypothesis import given, settings
from hypothesis import strategies as st

from eom_dynamics import load_robot
from eom_dynamics.codegen.emit_python import python_function
from eom_dynamics.codegen.expressions import Expression, Op
from eom_dynamics.codegen.partials import Partials
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.codegen.straight_line import used_inputs

points = st.lists(st.fractions(-3, 3, max_denominator=4), min_size=3, max_size=3)


def traced(compute: Callable[..., list[Any]], size: int = 3) -> Program:
    return trace("program", {"x": size}, lambda x: {"y": compute(x["x"])})


@settings(max_examples=100)
@given(tape=tapes(), point=points)
def test_programs_compute_what_was_traced(tape: Tape, point: list[Fraction]) -> None:
    exact = [Exact(x) for x in point]
    assert run_program(traced(tape.run), exact) == [Exact(x) for x in tape.run([Exact(x) for x in point])]


@settings(max_examples=100)
@given(tape=tapes())
def test_operations(tape: Tape) -> None:
    """Each is used, done once, follows its operands, and does not multiply by zero or one or add zero."""
    program = traced(tape.run)
    used = {k for node in program.nodes for k in node.operands} | {result.node for result in program.results}
    assert used >= set(range(len(program.nodes)))
    assert len(set(program.nodes)) == len(program.nodes)
    for index, node in enumerate(program.nodes):
        assert all(k < index for k in node.operands)
        assert not (node.op is Op.SCALE and node.constant in (0, 1))
        assert not (node.op is Op.SHIFT and node.constant == 0)


@settings(max_examples=60)
@given(tape=tapes(trigonometry=False), point=points)
def test_partial_derivatives_agree_with_dual_numbers(tape: Tape, point: list[Fraction]) -> None:
    for i in range(3):

        def partials(x: list[Expression], i: int = i) -> list[Any]:
            derivative = Partials(x[i])
            return [derivative(value) for value in tape.run(x)]

        duals = tape.run([Dual(value, j == i) for j, value in enumerate(point)])
        expected = [value.rate if isinstance(value, Dual) else 0 for value in duals]
        assert run_program(traced(partials), [Exact(x) for x in point]) == expected


def test_partial_derivatives_of_sines() -> None:
    def compute(x: list[Expression]) -> list[Any]:
        value = (x[0] + 1.0).sin() * x[1].cos()
        return [Partials(variable)(value) for variable in x]

    a, b = 0.3, -0.7
    expected = [np.cos(a + 1) * np.cos(b), -np.sin(a + 1) * np.sin(b), 0]
    np.testing.assert_allclose(python_function(traced(compute))([a, b, 0.5]), expected, rtol=1e-15)


def test_partial_derivatives_of_quotients_and_hyperbolic_tangents() -> None:
    def compute(x: list[Expression]) -> list[Any]:
        value = x[2].tanh() * (1.0 / (x[0] * x[1] + 2.0))
        return [Partials(variable)(value) for variable in x]

    a, b, c = 0.3, -0.7, 0.4
    inverse = 1 / (a * b + 2)
    expected = [-b * inverse**2 * np.tanh(c), -a * inverse**2 * np.tanh(c), inverse / np.cosh(c) ** 2]
    np.testing.assert_allclose(python_function(traced(compute))([a, b, c]), expected, rtol=1e-14)


@pytest.mark.parametrize("argument", [lambda x: x[0] * x[1], lambda x: x[0] + x[1], lambda x: 1.0 / x[0] + 2.0])
def test_angles_that_are_not_linear_in_an_input_are_refused(argument: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="must be linear in an input"):
        python_function(traced(lambda x: [argument(x).sin()]))


@pytest.mark.parametrize(
    ("compute", "operations"),
    [
        (lambda x, y: [x + 0.0, 0.0 + x, x - 0.0, 1.0 * x, x * 1.0, x * -1.0, 0.0 - x, 0.0 - (0.0 - x)], 0),
        (lambda x, y: [0.0 * x, x * 0.0, x - x, x * y - y * x, (x + y) - (y + x), (x - y) + (y - x)], 0),
        (lambda x, y: [2.0 * x - x - x, 0.5 * x + 0.5 * x - x], 0),
        (lambda x, y: [x + y, y + x, -(x + y), -x - y, 3.0 * x + 3.0 * y], 1),
        (lambda x, y: [x - y, y - x, -(x - y), 2.0 * x - 2.0 * y], 1),
        (lambda x, y: [x * y, y * x, (-x) * y, (2.0 * x) * (-3.0 * y), x * (y * 1.0)], 1),
        (lambda x, y: [x.sin() + y, y + x.sin(), x.sin() + (-y) * -1.0], 1),
        (lambda x, y: [2.0 * x + y, y + 2.0 * x, -y - 2.0 * x, y - (-2.0) * x], 2),
        (lambda x, y: [2.0 * (3.0 * (0.5 * x)) + y], 2),
        (lambda x, y: [x + 1.0 - 1.0 * y], 2),
    ],
)
def test_zeros_ones_signs_and_factors_cost_nothing(compute: Callable[..., list[Any]], operations: int) -> None:
    assert traced(lambda x: compute(*x), size=2).operations == operations


def test_numbers_remain_numbers() -> None:
    program = traced(lambda x: [x[0] - x[0], 0.0 * x[1] + 2.5])
    assert not program.nodes
    assert [(result.node, result.factor) for result in program.results] == [(None, 0.0), (None, 2.5)]


def test_equal_angles_share_a_sine() -> None:
    program = traced(lambda x: [x[0].sin(), (1.0 * x[0]).sin(), (x[0] + 0.0).sin(), (0.0 - (0.0 - x[0])).sin()])
    assert program.operation_counts() == {"sin": 1}


def test_unused_inputs_are_not_read() -> None:
    program = trace("p", {"a": 2, "b": 2}, lambda x: {"y": [x["b"][1] * 2.0]})
    assert [(node.op, node.constant) for node in program.nodes] == [(Op.INPUT, 3)]
    assert used_inputs(traced(lambda x: [x[0].sin() + 1.0 / x[2]])) == {0, 2}


@pytest.mark.parametrize(
    ("robot", "program", "most"),
    [
        ("iiwa", "inverse_dynamics", 2152),
        ("iiwa", "effort", 562),
        ("iiwa", "mass_matrix", 353),
        ("iiwa", "effort_partials", 2709),
        ("iiwa", "coriolis_matrix", 1241),
        ("iiwa", "coriolis_tensor", 2290),
        ("planar_2r", "inverse_dynamics", 126),
        ("planar_2r", "effort", 30),
        ("planar_2r", "mass_matrix", 10),
        ("planar_2r", "effort_partials", 53),
    ],
)
def test_number_of_operations(robot: str, program: str, most: int) -> None:
    """At most as many as now; lower the limits when programs become shorter."""
    assert PROGRAMS[program](load_robot(robot)).operations <= most


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_sine_and_one_cosine_for_each_joint(program: str) -> None:
    """Without the first joint of the iiwa: its axis is vertical, so that nothing depends on its angle."""
    counts = PROGRAMS[program](load_robot("iiwa")).operation_counts()
    assert (counts["sin"], counts["cos"]) == (6, 6)
