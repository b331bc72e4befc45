# SPDX-License-Identifier: Apache-2.0
"""Traced programs: exact, without redundant operations, and the same by every backend."""

from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from differences import derivative
from exact import Dual, Exact, Tape, run_program, tapes
from hypothesis import given, settings
from hypothesis import strategies as st

from eom_dynamics import elementary, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.codegen.backends import kernel_of
from eom_dynamics.codegen.expressions import Expression, Op, Partials
from eom_dynamics.codegen.functions import CompiledFunction, Signature, Vector
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.codegen.straight_line import casadi_function, python_function
from eom_dynamics.jet import Jet

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


@pytest.mark.parametrize("argument", [lambda x: x[0] * x[1], lambda x: x[0] + x[1], lambda x: 1.0 / x[0] + 2.0])
def test_angles_that_are_not_linear_in_an_input_are_refused(argument: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="input"):
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


@pytest.mark.parametrize(
    ("robot", "program", "most"),
    [
        *(("iiwa", "inverse_dynamics", 2152), ("iiwa", "effort", 562), ("iiwa", "mass_matrix", 353)),
        *(("iiwa", "effort_partials", 2709), ("iiwa", "coriolis_matrix", 1241), ("iiwa", "coriolis_tensor", 2290)),
        *(("planar_2r", "inverse_dynamics", 132), ("planar_2r", "effort", 32)),
        *(("planar_2r", "mass_matrix", 10), ("planar_2r", "effort_partials", 53)),
    ],
)
def test_number_of_operations(robot: str, program: str, most: int) -> None:
    """At most as many as now; lower the limits when programs become shorter."""
    assert PROGRAMS[program](load_robot(robot)).operations <= most


# Operations of the motor side.

POINTS, TABLE = (-1.0, -0.25, 0.5, 2.0), (3.0, -1.0, 0.5, 0.25, 7.0)


def hardening(x: Jet, stiffness: Any) -> Jet:
    return x * (x * x * 2.0 + stiffness)


def root_of(target: Any, stiffness: Any) -> Any:
    line = target / stiffness
    bounds = elementary.select(target, 0.0, line), elementary.select(target, line, 0.0)
    return elementary.root(hardening, target, bounds, line, (stiffness,))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "exp": lambda a, b, c: elementary.exp(a * b),
    "expm1": lambda a, b, c: elementary.expm1(a) * c,
    "log": lambda a, b, c: elementary.log(a * a + 0.5) - b,
    "log1p": lambda a, b, c: elementary.log1p(b * b) * a,
    "sqrt": lambda a, b, c: elementary.sqrt(c * c + 0.1),
    "tanh": lambda a, b, c: elementary.tanh(a * -2.0) * c,
    "sinh": lambda a, b, c: elementary.sinh_cosh(a)[0] * elementary.sinh_cosh(b)[1],
    "asinh": lambda a, b, c: elementary.asinh(a * b * 10.0),
    "quotient": lambda a, b, c: (a + 2.0 * b) / (c * c + 0.3),
    "select": lambda a, b, c: elementary.select(a - b, a * c, b),
    "select of numbers": lambda a, b, c: elementary.select(a * b, 2.0, -1.0) * c,
    "lookup": lambda a, b, c: elementary.lookup(elementary.index(a, POINTS), TABLE) * b,
    "lookup in a table of more entries than fit into registers": lambda a, b, c: (
        elementary.lookup(elementary.index(a, [0.1 * k for k in range(-9, 12)]), [k * k - 20.0 for k in range(22)]) * c
    ),
    "exp of a small number": lambda a, b, c: elementary.exp_times(elementary.tanh(a), -0.2) * c,
    "exp of a number of at most 1.6": lambda a, b, c: elementary.exp_times(elementary.tanh(a), 1.6),
    "root": lambda a, b, c: root_of(a * 3.0, 5.0),
    "flat root": lambda a, b, c: root_of(b, 1e-3) * c,
    "root with a parameter": lambda a, b, c: root_of(a, elementary.exp(b)),
}


@pytest.fixture(scope="module")
def program() -> Program:
    return trace("operations", {"x": 3}, lambda x: {"y": [operation(*x["x"]) for operation in OPERATIONS.values()]})


@pytest.fixture(scope="module")
def backends(program: Program) -> dict[str, Callable[[Array], Array]]:
    """Results (N, outputs) of states (N, 3), or of one, by backend; of CasADi, if it is installed."""
    function, native = python_function(program), kernel_of(program, "native")
    signature = Signature((Vector("x", (3,)),), (Vector("y", (len(OPERATIONS),)),), result_type=None)
    call = CompiledFunction(signature, native)

    def compiled(x: Array) -> Array:
        found: Array = call(x)
        return found

    computed: dict[str, Callable[[Array], Array]] = {
        "floats": lambda x: np.array([[float(value) for value in function(row)] for row in x.tolist()]),
        "arrays": lambda x: np.stack([value + 0 * x[:, 0] for value in function(list(x.T))], axis=1),
        "direct": lambda x: np.stack([operation(*x.T) + 0 * x[:, 0] for operation in OPERATIONS.values()], axis=1),
        "compiled": compiled,
        "compiled, one by one": lambda x: np.stack([compiled(row) for row in x]),
    }
    if find_spec("casadi"):
        casadi = casadi_function(program)
        computed["casadi"] = lambda x: np.array([casadi(row).full()[:, 0] for row in x])
    return computed


numbers = st.one_of(st.floats(-3, 3), st.sampled_from([*POINTS, 0.0, -0.0, 1e-9]))


@settings(max_examples=20)
@given(rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=9, max_size=9))
def test_every_backend_computes_the_same(backends: dict[str, Callable[[Array], Array]], rows: list[Any]) -> None:
    """To a few ulp of each function; a selection or an index is the same exactly."""
    results = {name: backend(np.array(rows)) for name, backend in backends.items()}
    for name, found in results.items():
        np.testing.assert_allclose(found, results["floats"], rtol=2e-14, atol=1e-15, err_msg=name)
    assert results["compiled"].tobytes() == results["compiled, one by one"].tobytes()


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "root with a parameter"])
def test_partial_derivatives_of_the_motor_side(name: str) -> None:
    operation = OPERATIONS[name]

    def partials(x: list[Expression]) -> list[Any]:
        value = operation(*x)
        return [Partials(variable)(value) for variable in x]

    function = python_function(traced(partials))
    for at in np.random.default_rng(0).uniform(-1.5, 1.5, (6, 3)):
        found = np.array([float(value) for value in function(at.tolist())])
        expected = [derivative(lambda t, e=e: operation(*(at + t * e)), 1e-3) for e in np.eye(3)]  # noqa: B023
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_partial_derivative_by_a_parameter_of_a_root_is_refused() -> None:
    with pytest.raises(ValueError, match="depends"):
        traced(lambda x: [Partials(x[1])(OPERATIONS["root with a parameter"](*x))])
