# SPDX-License-Identifier: Apache-2.0
"""Programs as Python functions, over numbers, NumPy arrays or symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..jet_functions import tanh
from ..lie import sincos
from .program import Program
from .straight_line import angles, straight_line


def python_function(program: Program) -> Callable[[Sequence[Any]], list[Any]]:
    """Function of the list of all input entries that returns the list of all output entries.

    Entries may be of any type with + - * / and a sine, cosine and hyperbolic tangent; with arrays of equal shape the
    function is evaluated elementwise.
    """
    inputs = [f"x[{i}]" for i in range(sum(program.inputs.values()))]
    lines, results = straight_line(
        program,
        inputs,
        [(f"s{k}", f"c{k}") for k in range(len(angles(program)))],
        define="    {name} = {value}",
    )
    taken = [f"    s{k}, c{k} = sincos({angle.text(inputs)})" for k, angle in enumerate(angles(program))]
    source = ["def evaluate(x):", *taken, *lines, f"    return [{', '.join(results)}]"]
    namespace: dict[str, Any] = {"sincos": sincos, "tanh": tanh}
    exec(compile("\n".join(source), f"<{program.name}>", "exec"), namespace)
    function: Callable[[Sequence[Any]], list[Any]] = namespace["evaluate"]
    return function
