# SPDX-License-Identifier: Apache-2.0
"""CasADi: the recursion and its automatic derivatives, on CasADi's virtual machine and as C that it generates."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import casadi
import numpy as np
from compiled import casadi_loop, scratch, shared_object
from numpy.typing import NDArray

from eom_dynamics import Robot
from eom_dynamics.benchmark.timing import Task
from eom_dynamics.recursion import LinkTree, inverse_dynamics, link_tree
from eom_dynamics.states import STATE_NAMES

Array = NDArray[np.float64]

# As CasADi's users compile: it emits plain scalar C.
FLAGS = ("-O3", "-march=native", "-fPIC", "-shared")

_NO_ARITHMETIC = (casadi.OP_INPUT, casadi.OP_OUTPUT, casadi.OP_CONST, casadi.OP_SIN, casadi.OP_COS)


def recursion_function(robot: Robot) -> casadi.Function:
    """tau, taud and taudd by the recursion, over CasADi's symbols."""
    x = _symbols(robot, len(STATE_NAMES))
    efforts = inverse_dynamics(link_tree(robot), [casadi.vertsplit(v) for v in x])
    return casadi.Function("recursion", x, [casadi.vertcat(*effort) for effort in efforts])


def automatic_function(robot: Robot) -> casadi.Function:
    """tau by the recursion, taud and taudd by CasADi's automatic differentiation along the motion."""
    x = _symbols(robot, len(STATE_NAMES))
    (tau,) = inverse_dynamics(link_tree(robot), [casadi.vertsplit(v) for v in x[:3]])
    values = [casadi.vertcat(*tau)]
    for _ in range(2):
        values.append(casadi.jtimes(values[-1], casadi.vertcat(*x[:-1]), casadi.vertcat(*x[1:])))
    return casadi.Function("automatic", x, values)


def operations(function: casadi.Function) -> int:
    """Arithmetic instructions of a function, sines and cosines apart."""
    return sum(function.instruction_id(k) not in _NO_ARITHMETIC for k in range(function.n_instructions()))


def recursion_operations(tree: LinkTree, recursion: Callable[..., Any], orders: int) -> int:
    """Arithmetic instructions of a recursion that CasADi traces."""
    x = [casadi.SX.sym(name, len(tree.links)) for name in STATE_NAMES[: orders + 2]]
    efforts = recursion(tree, [casadi.vertsplit(v) for v in x])
    return operations(casadi.Function("traced", x, [casadi.vertcat(*effort) for effort in efforts]))


class GeneratedC:
    """A function as C that CasADi generates, compiled.

    Attributes:
        function: the compiled function, as CasADi calls it.
        compile_seconds: what the compiler took.
    """

    def __init__(self, function: casadi.Function) -> None:
        folder = os.getcwd()
        os.chdir(scratch())  # CasADi writes nowhere else
        try:
            source = (scratch() / function.generate(f"{function.name()}.c")).read_text()
        finally:
            os.chdir(folder)
        self._library, self.compile_seconds = shared_object(source, FLAGS)
        self._name = function.name()
        self._work = function.sz_w()
        self._sizes = [function.size1_out(k) for k in range(function.n_out())]
        self.function = casadi.external(self._name, self._library._name)

    def state_loop(self, inputs: Sequence[Array]) -> Task:
        """States one by one, in C."""
        return casadi_loop(self._library[self._name], inputs, [np.empty(size) for size in self._sizes], self._work)


class Buffered:
    """A function called through CasADi's buffer: the fastest way from Python."""

    def __init__(self, function: casadi.Function) -> None:
        self._buffer, self._evaluate = function.buffer()
        self.results = [np.empty(function.size1_out(k)) for k in range(function.n_out())]
        for k, result in enumerate(self.results):
            self._buffer.set_res(k, memoryview(result))

    def __call__(self, *views: memoryview) -> list[Array]:
        """The results for a state, in arrays that the next call overwrites."""
        for k, view in enumerate(views):
            self._buffer.set_arg(k, view)
        self._evaluate()
        return self.results


def mapped(function: casadi.Function, inputs: Sequence[Array], threads: int) -> tuple[Task, list[Array]]:
    """All states in one call of CasADi's map on some threads, and the arrays that the results go to."""
    count = len(inputs[0])
    many = function.map(count, "thread", threads) if threads > 1 else function.map(count)
    buffer, evaluate = many.buffer()
    out = [np.empty((count, function.size1_out(k))) for k in range(function.n_out())]
    for k, x in enumerate(inputs):
        buffer.set_arg(k, memoryview(x))
    for k, x in enumerate(out):
        buffer.set_res(k, memoryview(x))
    kept = (inputs, many, buffer)

    def run() -> object:
        evaluate()
        return kept

    return Task(run, count), out


def _symbols(robot: Robot, count: int) -> list[casadi.SX]:
    return [casadi.SX.sym(name, robot.n) for name in STATE_NAMES[:count]]
